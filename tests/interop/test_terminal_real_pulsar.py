"""``perf``, ``top``, ``check`` and ``context`` against a real Pulsar."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from tests.interop.real_pulsar import Address
from tests.support.cli_cluster import CliCluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr + result.stdout
    return json.loads(result.stdout) if result.stdout else None


def test_real_pulsar_when_measured_watched_and_checked_then_tells_what_it_has(
    real_pulsar: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    run("context", "create", "real", "--url", real_pulsar.service_url, "--admin-url", real_pulsar.web_url, "--use")
    namespace = f"public/terminal-{uuid.uuid4()}"
    cluster = CliCluster(real_pulsar.web_url, real_pulsar.service_url)
    cluster.run(f"namespaces create {namespace}")
    topic = f"persistent://{namespace}/load"
    cluster.run(f"topics create {topic}")
    cluster.run(f"topics create-subscription {topic} -s sub -m earliest")

    sent = run("perf", "produce", topic, "-r", "500", "-m", "200", "--warmup-time", "0", "--output", "json")
    assert (sent["messages"], sent["failures"], sent["latencyMs"]["count"]) == (200, 0, 200)
    read = run("perf", "read", topic, "-n", "200", "-time", "60", "--output", "json")
    assert read["messages"] == 200
    for kind in ("metadata", "lookup", "batch"):
        asked = run("perf", "lookup", topic, "-k", kind, "-m", "20", "-r", "200", "--output", "json")
        assert (asked["messages"], asked["failures"]) == (20, 0)

    (row,) = run("top", "topics", namespace, "--once", "-o", "json")
    assert (row["topic"], row["subscriptions"], row["backlog"] > 0) == (topic, 1, True)
    (row,) = run("top", "subscriptions", namespace, "--once", "-o", "json")
    assert (row["subscription"], row["backlog"] > 0) == ("sub", True)

    received = run("perf", "consume", topic, "-m", "200", "-time", "60", "--output", "json")
    assert received["messages"] == 200

    looked = CliRunner().invoke(main, ["check", namespace, "-o", "json"])
    found = {each["name"]: each for each in json.loads(looked.stdout)}
    levels = {name: each["level"] for name, each in found.items()}
    of_all = {levels.pop("backlog age"), levels.pop("replication")}  # of the whole broker, which other tests share
    assert of_all <= {"ok", "untold", "warning", "critical"}
    assert levels == {
        "broker": "ok",
        "version": "ok",
        "disk": "untold",
        "event loop": "untold",
        "topic records": "ok",
    }
    assert found["topic records"]["sentence"].endswith(" topics agree")  # that of policies is among them
