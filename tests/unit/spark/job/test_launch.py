"""What cannot run says so in one sentence."""

import json
import socket

import pytest

from interpulse.spark.job import launch
from interpulse.spark.job.inspection import Finding


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        f"""
        [pipeline]
        name = "p"
        state = "{tmp_path}"
        [source]
        cluster = "east"
        service_url = "pulsar://127.0.0.1:1"
        admin_url = "http://127.0.0.1:2"
        [select]
        from_policies = true
        """
    )
    return str(path)


def test_config_that_is_absent_is_named(capsys):
    assert launch.replicate("/absent.toml") == launch.EXIT_CANNOT_RUN
    assert capsys.readouterr().err == "interpulse replicate: /absent.toml: No such file or directory\n"


def test_java_that_is_missing_is_asked_for(config, capsys, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert launch.replicate(config) == launch.EXIT_CANNOT_RUN
    error = capsys.readouterr().err
    assert error.startswith("interpulse replicate: Java 17 or newer is needed")
    assert error.count("\n") == 1


def test_pyspark_that_is_missing_is_asked_for(config, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/java")
    assert launch.replicate(config) == launch.EXIT_CANNOT_RUN
    assert "pip install 'interpulse[spark]'" in capsys.readouterr().err


def test_dry_run_needs_no_spark_and_says_when_the_source_is_away(config, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert launch.replicate(config, dry_run=True) == launch.EXIT_CANNOT_RUN == Finding.UNKNOWN
    assert "source cannot be asked" in capsys.readouterr().err


def test_job_says_first_of_all_what_it_waits_for(config, capsys, monkeypatch):
    monkeypatch.setattr("interpulse.spark.job.launch.check_spark_installed", lambda: None)
    monkeypatch.setattr("interpulse.spark.job.launch._run", lambda config, reports, supervised: 0)
    assert launch.replicate(config) == 0
    source = "east at pulsar://127.0.0.1:1"
    assert json.loads(capsys.readouterr().out) == {
        "event": "starting",
        "pipeline": "p",
        "source": source,
        "waitsFor": [source, "Spark"],
    }


def test_port_of_metrics_that_is_taken_is_named(config, capsys, monkeypatch):
    monkeypatch.setattr("interpulse.spark.job.launch.check_spark_installed", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with open(config, "a") as file:
            file.write(f"\n[metrics]\nport = {port}\n")
        assert launch.replicate(config) == launch.EXIT_CANNOT_RUN
    assert f"[metrics] port = {port} cannot be used at 127.0.0.1: Address already in use" in capsys.readouterr().err
