"""``top`` and ``check`` against our broker, as they are typed."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interpulse.cli.main import main
from interpulse.testing import InProcessBroker
from tests.support.cli_cluster import CliCluster


def run(broker: InProcessBroker, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--admin-url", broker.web_url], catch_exceptions=False)


@pytest.fixture
def namespace(pulsar_broker: InProcessBroker) -> str:
    cluster = CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)
    cluster.run("namespaces create public/top")
    for name in ("a", "b", "c"):
        cluster.run(f"topics create public/top/{name}")
    cluster.run("topics create-subscription public/top/b -s s -m earliest")
    cluster.produce("public/top/b", "-m", "1,2,3", "-db")
    return "public/top"


def rows(broker: InProcessBroker, *arguments: str) -> Any:
    result = run(broker, "top", *arguments, "--once", "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_topics_when_watched_once_then_are_sorted_and_filtered(pulsar_broker: InProcessBroker, namespace: str) -> None:
    found = rows(pulsar_broker, "topics", namespace, "--sort", "backlog")
    assert [(row["topic"][-1], row["backlog"]) for row in found] == [("b", 3), ("a", 0), ("c", 0)]
    assert [row["topic"][-1] for row in rows(pulsar_broker, "topics", namespace, "-f", "top/[ac]$")] == ["a", "c"]
    assert rows(pulsar_broker, "subscriptions", namespace)[0]["subscription"] == "s"
    assert rows(pulsar_broker, "replication", namespace) == []


def test_topics_when_more_than_are_asked_about_then_the_heading_says_so(
    pulsar_broker: InProcessBroker, namespace: str
) -> None:
    result = run(pulsar_broker, "top", "topics", namespace, "--once", "--topics-max", "2")
    assert "2 of 3 topics" in result.stderr
    assert result.stdout.splitlines()[0].split()[:2] == ["TOPIC", "IN/S"]
    assert len(result.stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sort", "SIZE", "--once"], "There is no column 'SIZE'; there is TOPIC, IN/S"),
        (["-o", "json"], "--output is for --once"),
        (["-f", "("], "is not a regular expression"),
        (["nonsense"], "'nonsense' is not one of"),
    ],
)
def test_top_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["top", *arguments])
    assert (result.exit_code, words in result.stderr) == (2, True)


CODES = {"ok": 0, "untold": 0, "warning": 1, "critical": 2}


def test_check_when_it_looks_then_has_a_line_for_each_thing_and_ends_with_the_worst(
    pulsar_broker: InProcessBroker, namespace: str
) -> None:
    result = run(pulsar_broker, "check", namespace)
    levels = {line[10:25].strip(): line.split()[0] for line in result.stdout.splitlines()}
    assert result.exit_code == max(CODES[level] for level in levels.values())
    of_machine = [levels.pop("disk"), levels.pop("event loop")]  # another machine, another answer
    assert "untold" not in of_machine
    assert levels == {
        "broker": "ok",
        "version": "ok",
        "backlog age": "untold",
        "replication": "ok",
        "topic records": "ok",
    }


def test_check_when_records_disagree_then_names_the_remedy(pulsar_broker: InProcessBroker, namespace: str) -> None:
    cluster = CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)
    cluster.run("topics create-partitioned-topic public/top/p -p 2")
    cluster.run("topics delete public/top/p-partition-1")
    result = run(pulsar_broker, "check", namespace, "-o", "json")
    found = {each["name"]: each for each in json.loads(result.stdout)}
    assert result.exit_code >= 1
    assert found["topic records"]["level"] == "warning"
    assert "public/top/p" in found["topic records"]["sentence"]
    assert "topics doctor" in found["topic records"]["sentence"]
    assert "topic records" not in run(pulsar_broker, "check", namespace, "--without-doctor").stdout


def test_check_when_the_broker_is_not_reached_then_ends_with_2() -> None:
    result = CliRunner().invoke(main, ["check", "--admin-url", "http://127.0.0.1:1"])
    assert result.exit_code == 2
    assert result.stdout.startswith("critical  broker  Cannot look: ")
