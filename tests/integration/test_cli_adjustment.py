"""``namespaces set-clusters`` with a preview and with adjustment, between two brokers of ours.

Told twice: once the broker makes the plan, once the command line does, as it has to with brokers that do not offer it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.support.cli_cluster import CliCluster

ADJUST = "--adjust-namespace-level-policies-automatically"
SET = "namespaces set-clusters demo/a -c east,west"


@pytest.fixture(params=["true", "false"], ids=["planned-by-the-broker", "planned-from-here"])
def east(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[CliCluster]:
    settings = {"clusterName": "east", "supportsReplicationPreview": request.param, "replicationJob": "external"}
    with InProcessBroker(tmp_path / "east", settings) as broker:
        yield CliCluster(broker.web_url, broker.service_url)


@pytest.fixture
def west(tmp_path: Path) -> Iterator[CliCluster]:
    with InProcessBroker(tmp_path / "west", {"clusterName": "west", "replicationJob": "external"}) as broker:
        yield CliCluster(broker.web_url, broker.service_url)


@pytest.fixture
def both(east: CliCluster, west: CliCluster) -> tuple[CliCluster, CliCluster]:
    east.run(f"clusters create west --url {west.web_url}")
    west.run(f"clusters create east --url {east.web_url}")
    for cluster in (east, west):
        cluster.run("tenants create demo -c east,west")
        cluster.run("namespaces create demo/a")
    return east, west


def test_plan_is_printed_applied_and_empty_afterwards(both: tuple[CliCluster, CliCluster]) -> None:
    east, west = both
    east.run("topics create-partitioned-topic demo/a/p -p 4")
    west.run("topics create-partitioned-topic demo/a/p -p 2")
    west.run("topics create demo/a/only-there")
    east.run("namespaces set-auto-topic-creation demo/a -e -t partitioned -n 3")
    assert east.attempt(SET)[0] == 1, "refused without adjustment"
    code, output, error = east.attempt(f"{SET} --preview")
    assert (code, error) == (1, "")
    assert output.splitlines()[0] == "demo/a can be replicated to east, west after these changes."
    assert "west     topic partitions of persistent://demo/a/p  partitions=2" in output
    assert "allowAutoTopicCreation=true, topicType=partitioned, defaultNumPartitions=3" in output
    assert output.endswith("persistent://demo/a/only-there exists on west only.\n")
    assert east.run("namespaces get-clusters demo/a") == "east\n"
    assert west.json("topics get-partitioned-topic-metadata demo/a/p")["partitions"] == 2
    assert west.json("namespaces get-auto-topic-creation demo/a") is None

    code, output, _ = east.attempt(f"{SET} {ADJUST}")
    assert (code, output.splitlines()[0]) == (0, "demo/a is replicated to east, west.")
    assert output.count("DONE") == 2
    assert east.run("namespaces get-clusters demo/a") == "east\nwest\n"
    assert west.json("topics get-partitioned-topic-metadata demo/a/p")["partitions"] == 4
    east.run("namespaces set-clusters demo/a -c east")
    code, output, _ = east.attempt(f"{SET} --preview -o json")
    assert (code, json.loads(output)["outcome"], json.loads(output)["clusters"][0]["changes"]) == (0, "READY", [])


def test_conflicts_are_printed_with_what_would_end_them(both: tuple[CliCluster, CliCluster]) -> None:
    east, west = both
    east.run("topics create-partitioned-topic demo/a/u -p 2")
    west.run("topics create-partitioned-topic demo/a/u -p 8")
    for options in ("--preview", ADJUST):
        code, output, _ = east.attempt(f"{SET} {options}")
        assert code == 3
        assert "conflicts have to be solved first" in output.splitlines()[0]
        assert "west: PARTITIONS_CANNOT_SHRINK" in output
        assert "expand it here (topics update-partitioned-topic persistent://demo/a/u -p 8)" in output
    assert east.run("namespaces get-clusters demo/a") == "east\n"


def conflicts(east: CliCluster) -> list[dict[str, str]]:
    document = json.loads(east.attempt(f"{SET} --preview -o json")[1])
    return list(document["clusters"][0]["conflicts"])


@pytest.mark.parametrize("here", [True, False])
def test_remedies_when_followed_to_the_letter_end_the_conflicts(
    both: tuple[CliCluster, CliCluster], here: bool
) -> None:
    """Each one has two ways out, the first here and the second there."""
    east, west = both
    west.run("namespaces delete demo/a")
    west.run("tenants delete demo")
    (missing,) = conflicts(east)
    for command in reversed(re.findall(r"\((.*?)\)", missing["remedy"])):
        west.run(command)
    for name, ours, theirs in (("shrunk", "-p 2", "-p 8"), ("plain here", "", "-p 1"), ("plain there ü", "-p 1", "")):
        for cluster, shape in ((east, ours), (west, theirs)):
            kind = "create-partitioned-topic" if shape else "create"
            cluster.run(f"topics {kind} 'demo/a/{name}' {shape}")
    assert len(conflicts(east)) == 3
    for conflict in conflicts(east):
        commands = re.findall(r"\((topics .*?)\)", conflict["remedy"])
        (east if here else west).run(commands[0 if here else 1])
    assert conflicts(east) == []


def test_other_forms_hold_the_whole_document(both: tuple[CliCluster, CliCluster]) -> None:
    east, _ = both
    code, output, _ = east.attempt(f"{SET} --preview -o json")
    assert code == 0
    document = json.loads(output)
    assert re.fullmatch("[0-9a-f]{64}", document.pop("digest"))
    assert document == {
        "namespace": "demo/a",
        "localCluster": "east",
        "requestedClusters": ["east", "west"],
        "addedClusters": ["west"],
        "outcome": "READY",
        "clusters": [
            {"cluster": "west", "checked": True, "skipReason": None, "changes": [], "conflicts": [], "info": []}
        ],
    }
    assert "outcome: READY\n" in east.attempt(f"{SET} --preview -o yaml")[1]


def test_what_the_broker_would_refuse_is_refused(both: tuple[CliCluster, CliCluster]) -> None:
    east, _ = both
    for options in ("--preview", ADJUST):
        code, output, error = east.attempt(f"namespaces set-clusters demo/a -c east,nowhere {options}")
        assert (code, output, "Invalid cluster id: nowhere" in error) == (1, "", True)
        assert east.attempt(f"namespaces set-clusters demo/missing -c east,west {options}")[0] == 1


def test_comparison_cannot_be_skipped_and_previewed(both: tuple[CliCluster, CliCluster]) -> None:
    east, _ = both
    assert east.attempt(f"{SET} --preview --skipCompareTopicPartitions")[0] == 2
