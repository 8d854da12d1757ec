"""Spark Connect and `spark-pipelines` as the guide shows them: clients and a pipeline, on one server."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from interpulse.spark.class_archive import java_options
from tests.guides.pages import HOWTO, blocks_of
from tests.spark.replication_job import stored_entries
from tests.support.standalone_process import free_port
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

SPARK = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SECONDS_MAX = 360
BLOCKS = [each for each in blocks_of(HOWTO / "use-spark.md") if each.heading.startswith("Spark Connect")]


@pytest.fixture(scope="module")
def environment():
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    """Where a Connect server listens."""
    directory, port = tmp_path_factory.mktemp("connect"), free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [
        str(SPARK / "bin" / "spark-submit"),
        "--class",
        SERVER,
        "--master",
        "local[2]",
        "--driver-memory",
        "700m",
    ]
    command += ["--driver-java-options", java_options()]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    log = directory / "server.log"
    with log.open("wb") as lines:
        process = subprocess.Popen(
            [*command, "spark-internal"], cwd=directory, env=environment, stdout=lines, stderr=lines
        )
    try:
        until(lambda: "Spark Connect server started at" in log.read_text() or process.poll() is not None, SECONDS_MAX)
        assert process.poll() is None, log.read_text()
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(180)


@pytest.fixture
def project(broker, server, tmp_path):
    """What the reader saves; the addresses are those of this test."""
    here = {
        "pulsar://localhost:6650": broker.service_url,
        "sc://localhost:15002": server,
        "file:///var/lib/pipelines": tmp_path.as_uri(),
    }
    for block in BLOCKS:
        if block.file_name is not None:
            text = block.text
            for written, replacement in here.items():
                text = text.replace(written, replacement)
            (tmp_path / block.file_name).write_text(text)
    return tmp_path


def run(environment, directory, *command):
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_guide_when_followed_then_clients_and_a_pipeline_read_and_write_topics(
    broker, client, environment, project, server
):
    for topic in ("connected", "hot"):
        client.subscribe(topic, "keep").close()
    (said,) = [block.text for block in BLOCKS if block.language == "text"]
    assert run(environment, project, sys.executable, "connect_write.py").strip() == said.strip()
    (typed,) = [block.text.split() for block in BLOCKS if block.language == "sh"]
    run(environment, project, SPARK / "bin" / typed[0], *typed[1:], "--remote", server)
    with client.subscribe("hot", "keep") as desk:
        message = desk.receive(60_000)
    assert (message.key, message.content) == ("attic", b"33.0")
    assert stored_entries(broker, "persistent://public/default/hot") == 1
