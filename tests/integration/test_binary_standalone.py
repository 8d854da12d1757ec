"""The program ``interpulse standalone``: what it prints, how it refuses, how it ends.

Each start of the program is dear, so what its settings may not be is asked in its own process, in ``tests/unit/cli``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.standalone_process import SECONDS_MAX, StandaloneProcess, command, environment

TOPIC = "persistent://public/default/t"


def refusal(*arguments: str) -> str:
    """What a broker that cannot start says; it must be one line behind the log's first, and the exit code 2."""
    ended = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=SECONDS_MAX, env=environment())
    assert ended.returncode == 2
    assert ended.stdout == ""
    *log, line = ended.stderr.strip().splitlines()
    assert len(log) <= 1
    assert all(" starting version=" in each for each in log)
    return line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_standalone_when_told_to_stop_then_ends_cleanly_and_keeps_what_it_has(
    tmp_path: Path, number: signal.Signals
) -> None:
    with StandaloneProcess(tmp_path / "data") as broker:
        assert broker.lines[0].startswith("binary service: pulsar://127.0.0.1:")
        assert broker.lines[1].startswith("web service: http://127.0.0.1:")
        assert broker.lines[2:] == [f"data directory: {tmp_path / 'data'}", "ready"]
        with RawClient(broker.service_url) as client:
            client.ask(commands.producer(1, 1, TOPIC))
            client.ask(commands.subscribe(2, 1, TOPIC, "s"))
            assert client.ask(commands.send(1, 0, entry(b"kept"))).sequence_id == 0
            assert broker.stop(number) == 0
    with InProcessBroker(tmp_path / "data") as again, RawClient(again.service_url) as client:
        client.ask(commands.subscribe(1, 1, TOPIC, "s"))
        client.send(commands.flow(1, 1))
        assert bytes(client.receive().entry or b"") == entry(b"kept")


def test_standalone_when_ready_then_health_and_default_namespace_answer(tmp_path: Path) -> None:
    with StandaloneProcess(tmp_path / "data", "--cluster-name", "east", open_files=256) as broker:
        for path in ("brokers/health", "namespaces/public/default", "namespaces/pulsar/system"):
            with urllib.request.urlopen(f"{broker.web_url}/admin/v2/{path}", timeout=60) as answer:
                assert answer.status == 200
        _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert resource.prlimit(broker.pid, resource.RLIMIT_NOFILE) == (files_max, files_max)
        assert f" open_files={files_max}" in broker.log.read_text().splitlines()[0]
        with urllib.request.urlopen(f"{broker.web_url}/admin/v2/clusters/east", timeout=60) as answer:
            assert json.load(answer)["brokerServiceUrl"] == broker.service_url


def test_standalone_when_settings_are_given_then_they_hold(tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    config.write_text("# ours\nallowAutoTopicCreation=false\nkeepAliveIntervalSeconds=30\n")
    arguments = ("--config", str(config), "--set", "allowAutoTopicCreation=true", "--set", "zookeeperServers=x")
    with StandaloneProcess(tmp_path / "data", *arguments) as broker, RawClient(broker.service_url) as client:
        assert client.ask(commands.producer(1, 1, TOPIC)).request_id == 1
    warnings = [line for line in (tmp_path / "data.log").read_text().splitlines() if "settings without effect" in line]
    assert len(warnings) == 1
    assert "zookeeperServers" in warnings[0]


def test_standalone_when_an_address_is_advertised_then_clients_are_sent_there(tmp_path: Path) -> None:
    arguments = ("--bind", "0.0.0.0", "--advertised-address", "localhost.localdomain")
    with StandaloneProcess(tmp_path / "data", *arguments) as broker:
        port, web_port = broker.service_url.rpartition(":")[2], broker.web_url.rpartition(":")[2]
        assert broker.service_url == f"pulsar://localhost.localdomain:{port}"
        lookup = f"http://127.0.0.1:{web_port}/lookup/v2/topic/persistent/public/default/t"
        with urllib.request.urlopen(lookup, timeout=60) as answer:
            assert json.load(answer)["brokerUrl"] == broker.service_url


def test_standalone_when_a_port_is_in_use_then_says_which(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        line = refusal("--port", port, "--http-port", "0", "--data-dir", str(tmp_path / "data"))
        assert line == f"Error: binary service: port {port} on 127.0.0.1 is already in use"
        line = refusal("--port", "0", "--http-port", port, "--data-dir", str(tmp_path / "data"))
        assert line == f"Error: web service: port {port} on 127.0.0.1 is already in use"
    assert not (tmp_path / "data").exists()


def test_standalone_when_address_is_not_ours_then_says_so(tmp_path: Path) -> None:
    line = refusal("--bind", "192.0.2.1", "--port", "0", "--http-port", "0", "--data-dir", str(tmp_path / "data"))
    assert line.startswith("Error: binary service: cannot listen on 192.0.2.1 port 0: ")


def test_standalone_when_data_directory_cannot_be_used_then_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = refusal("--port", "0", "--http-port", "0", "--data-dir", str(tmp_path / "file" / "data"))
    assert line.startswith(f"Error: data directory {tmp_path}/file/data cannot be used: ")


def test_standalone_when_data_directory_is_of_another_cluster_then_refused_and_nothing_changed(tmp_path: Path) -> None:
    east = {"clusterName": "east"}
    with InProcessBroker(tmp_path / "data", east):
        pass
    line = refusal("--cluster-name", "west", "--port", "0", "--http-port", "0", "--data-dir", str(tmp_path / "data"))
    assert f"data directory {tmp_path / 'data'} cannot be served: it belongs to cluster east, not to west" in line
    with (
        InProcessBroker(tmp_path / "data", east) as broker,
        urllib.request.urlopen(f"{broker.web_url}/admin/v2/clusters", timeout=60) as answer,
    ):
        assert json.load(answer) == ["east"]


def test_standalone_when_metadata_is_damaged_then_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "metadata.sqlite").write_text("this is not the file you are looking for")
    line = refusal("--port", "0", "--http-port", "0", "--data-dir", str(tmp_path / "data"))
    assert f"metadata store {tmp_path / 'data' / 'metadata.sqlite'}: file is not a database" in line


def test_standalone_when_data_directory_belongs_to_another_then_refused(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path / "data"):
        line = refusal("--port", "0", "--http-port", "0", "--data-dir", str(tmp_path / "data"))
        assert "is in use by another process" in line
        assert str(os.getpid()) in line
