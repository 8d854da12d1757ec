"""A Spark standalone cluster of three processes: the replication job, whose machines and driver die under load, and a
program that brings the package along.
"""

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from interpulse.model.names import TopicName
from interpulse.spark.class_archive import java_options
from interpulse.testing import InProcessBroker
from tests.guides.pages import HOWTO, blocks_of
from tests.spark.archived_package import bare_python, install
from tests.spark.replication_job import (
    PARTITIONS,
    TOPIC,
    Job,
    Load,
    assert_exactly_once,
    configure,
    read_all,
    stored_entries,
    wait_until,
)
from tests.spark.standalone_cluster import EXECUTOR_MB, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]

KEPT = {
    "brokerDeleteInactiveTopicsEnabled": "false",
    "retentionCheckIntervalInSeconds": "3600",
    "brokerDeduplicationEnabled": "true",
}


SIZE = {
    "spark.executor.memory": f"{EXECUTOR_MB}m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": java_options(),
}
SPARK = Path(pyspark.__file__).parent
GUIDE = [each for each in blocks_of(HOWTO / "run-on-a-cluster.md") if each.heading == "Run without installing"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Of two machines, of which a test may kill one."""
    with spark_cluster(tmp_path_factory.mktemp("spark") / "cluster", machines=2) as cluster:
        yield cluster
    assert not any(machine.is_running() for machine in cluster.machines)


def test_archive_when_made_and_submitted_as_the_guide_says_then_reads_writes_and_streams(cluster, broker, tmp_path):
    """On machines, and with a driver, whose Python has neither the package nor anything that it needs."""
    for topic in ("archived", "copied"):
        name = TopicName.parse(f"persistent://public/default/{topic}")
        broker.call(lambda app, name=name: app.lifecycle.create_partitioned(name, 2))
    python = bare_python(tmp_path / "environment")
    (program,) = (each for each in GUIDE if each.file_name == "program.py")
    (tmp_path / "program.py").write_text(program.text.replace("pulsar://broker:6650", broker.service_url))
    making, *submitting = (each for each in GUIDE if each.language == "sh")
    installing, *archiving = making.text.splitlines()
    assert installing == "pip install --target packages ."
    install(tmp_path / "packages")
    settings = {
        **SIZE,
        "spark.master": cluster.master,
        "spark.executorEnv.PYTHONPATH": tmp_path / "nothing",  # the machines have that of the tests
        "spark.driver.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.ui.enabled": "false",
    }
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "PATH": f"{python.parent}:{SPARK / 'bin'}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": str(python),
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    script = "\n".join(["set -e", *archiving, *(each.text for each in submitting)])
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    (shown,) = (each.text for each in GUIDE if each.language == "text")
    assert done.returncode == 0, done.stderr
    words = shown.split()
    assert done.stdout.split()[-len(words) :] == words  # warnings of Python processes may stand before
    assert "checksums are slow: package crc32c is not installed" in cluster.executor_errors()


def test_job_when_a_machine_and_the_driver_die_then_everything_arrives_once_and_in_order(cluster, tmp_path):
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east", **KEPT}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west", **KEPT}) as west,
    ):
        east.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(TOPIC), PARTITIONS))
        sides = ("east", east), ("west", west)
        job = Job(configure(tmp_path, *sides, master=cluster.master, conf=SIZE, entries_per_batch=2000))

        def copied_more(count=500):
            """Beyond what was there when it was asked for."""
            before = stored_entries(west)
            wait_until(lambda: stored_entries(west) >= before + count)

        try:
            with Load(east) as load:
                job.start()
                copied_more()
                wait_until(lambda: len(cluster.busy_machines()) == 2)
                cluster.kill_a_busy_machine()
                copied_more()
                job.kill(when=lambda: True)
                job.start()
                copied_more()
            wait_until(lambda: stored_entries(west) >= load.count)
        finally:
            job.stop()
        assert cluster.state()["aliveworkers"] == 1
        assert_exactly_once(read_all(west), range(load.count))
