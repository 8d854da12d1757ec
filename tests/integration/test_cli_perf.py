"""``interpulse perf`` against our broker."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.cli.perf.commands import perf
from interpulse.testing import InProcessBroker
from tests.support.cli_cluster import CliCluster


def run(broker: InProcessBroker, *arguments: str) -> dict:
    result = CliRunner().invoke(
        perf, [*arguments, "-u", broker.service_url, "--output", "json"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_messages_when_produced_by_a_schedule_then_are_consumed_and_read(
    pulsar_broker: InProcessBroker, tmp_path: Path
) -> None:
    cluster = CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)
    cluster.run("topics create perf-a-0")
    cluster.run("topics create perf-a-1")
    cluster.run("topics create-subscription perf-a-0 -s sub -m earliest")
    cluster.run("topics create-subscription perf-a-1 -s sub -m earliest")
    file = tmp_path / "sent.hgrm"
    sent = run(pulsar_broker, "produce", "perf-a", "-t", "2", "-m", "200", "-r", "1000", "-s", "10", "-mk", "random",
               "--warmup-time", "0", "--histogram-file", str(file))  # fmt: skip
    assert (sent["messages"], sent["bytes"], sent["failures"], sent["unanswered"]) == (200, 2000, 0, 0)
    assert sent["latencyMs"]["count"] == 200
    assert sent["seconds"] >= 0.19  # the last one is due after 199 ms
    assert "#[Max" in file.read_text()
    received = run(pulsar_broker, "consume", "perf-a", "-t", "2", "-m", "200", "-time", "60")
    assert (received["messages"], received["bytes"], received["interrupted"]) == (200, 2000, False)
    read = run(pulsar_broker, "read", "perf-a-0", "-n", "100", "-time", "60")
    assert (read["messages"], read["latencyMs"]["count"]) == (100, 100)


def test_produce_when_partitions_are_wanted_then_creates_them_once(pulsar_broker: InProcessBroker) -> None:
    wanted = ("produce", "perf-b", "-np", "3", "-au", pulsar_broker.web_url, "-m", "3", "-r", "0")
    assert run(pulsar_broker, *wanted)["messages"] == 3
    assert run(pulsar_broker, *wanted)["messages"] == 3
    other = CliRunner().invoke(perf, [*wanted, "-np", "4", "-u", pulsar_broker.service_url])
    assert (other.exit_code, "has 3 partitions, not 4" in other.stderr) == (1, True)


@pytest.mark.parametrize("kind", ["metadata", "lookup", "batch"])
def test_questions_when_asked_by_a_schedule_then_are_answered_and_create_nothing(
    pulsar_broker: InProcessBroker, kind: str
) -> None:
    cluster = CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)
    cluster.run("topics create perf-c")
    asked = run(pulsar_broker, "lookup", "perf-c", "-k", kind, "-m", "50", "-r", "500", "--warmup-time", "0")
    assert (asked["messages"], asked["failures"], asked["latencyMs"]["count"]) == (50, 0, 50)


def test_questions_when_they_fail_then_are_counted_and_told(pulsar_broker: InProcessBroker) -> None:
    arguments = ["lookup", "perf-missing", "-k", "metadata", "-m", "7", "-r", "0", "-u", pulsar_broker.service_url]
    result = CliRunner().invoke(perf, [*arguments, "--output", "json"])
    assert json.loads(result.stdout)["failures"] == 7
    assert result.exit_code == 1
    assert result.stderr.count("failed: ") == 5
    assert "further failures are only counted" in result.stderr


def test_messages_when_they_are_too_large_then_all_fail_and_so_does_the_run(pulsar_broker: InProcessBroker) -> None:
    arguments = ["produce", "perf-e", "-s", "9999999", "-m", "3", "-r", "0", "-u", pulsar_broker.service_url]
    result = CliRunner().invoke(perf, arguments)
    assert result.exit_code == 1
    assert "--- 0 records sent --- " in result.stdout
    assert "--- 3 failed\n" in result.stdout
    assert result.stderr.endswith("Error: Not all of it succeeded: 3 failed, 0 had no answer\n")


def test_run_when_interrupted_then_ends_with_its_summary(pulsar_broker: InProcessBroker) -> None:
    arguments = ["produce", "perf-d", "-r", "200", "-u", pulsar_broker.service_url, "--report-interval", "0.2"]
    command = [sys.executable, "-m", "interpulse.cli", "perf", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert first.startswith("Throughput produced:")
    assert "Aggregated throughput stats --- " in rest
    assert "Aggregated latency stats --- Latency: mean: " in rest
