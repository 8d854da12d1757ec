"""Preview and adjustment between a broker of ours and a real Pulsar, each as the source once (PIP-433)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import RealPulsarFactory
from tests.support.cli_cluster import CliCluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ADJUST = "--adjust-namespace-level-policies-automatically"
CHANGES = [
    "AUTO_TOPIC_CREATION",
    "IS_ALLOW_AUTO_UPDATE_SCHEMA",
    "SCHEMA_COMPATIBILITY_STRATEGY",
    "TOPIC_PARTITIONS",
    "TOPIC_PARTITIONS",
]


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[CliCluster]:
    settings = {
        "clusterName": "ours",
        "replicationJob": "external",
        "allowAutoTopicCreationType": "partitioned",
        "defaultNumPartitions": "3",
    }
    with InProcessBroker(tmp_path / "ours", settings) as broker:
        yield CliCluster(broker.web_url, broker.service_url)


def plan(source: CliCluster, line: str) -> tuple[int, Any]:
    code, output, error = source.attempt(f"{line} -o json")
    assert output, error
    return code, json.loads(output)


def kinds(document: dict[str, Any], part: str = "changes") -> list[str]:
    (cluster,) = document["clusters"]
    return [each["kind"] for each in cluster[part]]


def create(cluster: CliCluster, name: str, partitions: int) -> None:
    kind = f"create-partitioned-topic -p {partitions}" if partitions else "create"
    cluster.run(f"topics {kind} '{name}'")


def story(source: CliCluster, target: CliCluster, namespace: str) -> None:
    """Two namespaces that differ in everything are previewed, refused, freed of conflicts, adjusted, and equal."""
    set_clusters = f"namespaces set-clusters {namespace} -c ours,real"
    code, document = plan(source, f"{set_clusters} --preview")
    assert (code, kinds(document, "conflicts")) == (3, ["NAMESPACE_MISSING"])
    target.run(f"namespaces create {namespace}")
    for name in ("p", "__change_events"):
        source.run(f"topics create-partitioned-topic {namespace}/{name} -p 4")
        target.run(f"topics create-partitioned-topic {namespace}/{name} -p 2")
    for name, here, there in (("shrunk ü", 2, 8), ("plain here", 0, 1), ("plain there", 1, 0)):
        create(source, f"{namespace}/{name}", here)
        create(target, f"{namespace}/{name}", there)
    code, refused = plan(source, f"{set_clusters} {ADJUST}")
    assert (code, refused["applied"]) == (3, False)
    assert kinds(refused, "conflicts") == ["PARTITIONS_CANNOT_SHRINK", "TOPIC_TYPE_MISMATCH", "TOPIC_TYPE_MISMATCH"]
    for number, conflict in enumerate(refused["clusters"][0]["conflicts"]):
        first_way, other_way = re.findall(r"\((topics .*?)\)", conflict["remedy"])
        if number % 2:
            target.run(other_way)
        else:
            source.run(first_way)
    source.run(f"namespaces set-schema-compatibility-strategy {namespace} -c BACKWARD")
    source.run(f"namespaces set-is-allow-auto-update-schema {namespace} -d --enable-for-replicator=false")
    before = source.run(f"namespaces get-clusters {namespace}")

    assert source.attempt(set_clusters)[0] == 1
    code, previewed = plan(source, f"{set_clusters} --preview")
    assert (code, previewed["outcome"], kinds(previewed)) == (1, "NEEDS_ADJUSTMENT", CHANGES)
    creation = previewed["clusters"][0]["changes"][0]
    assert [creation[side]["topicType"] for side in ("current", "desired")] == ["partitioned"] * 2
    assert source.run(f"namespaces get-clusters {namespace}") == before
    assert target.json(f"topics get-partitioned-topic-metadata {namespace}/p")["partitions"] == 2

    code, adjusted = plan(source, f"{set_clusters} {ADJUST}")
    assert (code, adjusted["applied"]) == (0, True), adjusted
    assert {each["status"] for each in adjusted["clusters"][0]["changes"]} == {"DONE"}
    target.run(f"topics update-partitioned-topic {namespace}/p -p 4")  # every change may be made twice
    assert source.run(f"namespaces get-clusters {namespace}").split() == ["ours", "real"]
    for name in ("p", "__change_events"):
        assert target.json(f"topics get-partitioned-topic-metadata {namespace}/{name}")["partitions"] == 4
    assert target.run(f"namespaces get-schema-compatibility-strategy {namespace}") == "BACKWARD\n"
    assert target.run(f"namespaces get-is-allow-auto-update-schema {namespace}") == "false\n"

    source.run(f"{set_clusters.rpartition(' ')[0]} {before.strip()}")
    code, again = plan(source, f"{set_clusters} --preview")
    assert (code, again["outcome"], kinds(again)) == (0, "READY", [])


@pytest.mark.timeout(1200)  # the start of a real Pulsar on a machine that may be busy
def test_namespaces_when_adjusted_then_are_equal_whichever_side_is_the_source(
    start_real_pulsar: RealPulsarFactory, ours: CliCluster
) -> None:
    pulsar = start_real_pulsar("real", {"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": "2"})
    real = CliCluster(pulsar.web_url, pulsar.service_url)
    real.run(f"clusters create ours --url {ours.web_url} --broker-url {ours.service_url}")
    ours.run(f"clusters create real --url {real.web_url} --broker-url {real.service_url}")
    for cluster in (ours, real):
        cluster.run("tenants create demo -c ours,real")
    ours.run("namespaces create demo/to-real")
    story(ours, real, "demo/to-real")
    real.run("namespaces create demo/from-real")
    story(real, ours, "demo/from-real")
