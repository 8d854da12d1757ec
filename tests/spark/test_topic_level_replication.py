"""The broker's own job and the replication clusters of single topics: begun, ended and begun again beside others."""

from __future__ import annotations

import json
import time

import pytest

from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.spark.replication_job import stored_entries, wait_until
from tests.support.cli_cluster import CliCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

NAMESPACE = "public/default"
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false", "retentionCheckIntervalInSeconds": "3600"}


@pytest.fixture
def east(tmp_path):
    settings = {"clusterName": "east", "replicationJobDriverMemory": "600m", **KEPT}
    with InProcessBroker(tmp_path / "east", settings) as broker:
        yield CliCluster(broker.web_url, broker.service_url)


@pytest.fixture
def west(tmp_path):
    settings = {"clusterName": "west", "allowAutoTopicCreation": "false", "replicationJob": "external", **KEPT}
    with InProcessBroker(tmp_path / "west", settings) as broker:
        yield CliCluster(broker.web_url, broker.service_url)


def publish(cluster, topic, *values):
    with Client(cluster.service_url) as client, client.create_producer(f"{NAMESPACE}/{topic}") as producer:
        for value in values:
            producer.send(value.encode())


def wait_for(cluster, **counts):
    wait_until(lambda: [stored_entries(cluster, f"{NAMESPACE}/{topic}") for topic in counts] == [*counts.values()])


def arrived(cluster, topic):
    found = []
    with Client(cluster.service_url) as client, client.create_reader(f"{NAMESPACE}/{topic}") as reader:
        while reader.has_message_available():
            found.append(reader.read_next(5000).content.decode())
    return found


def keep_to_the_rate(east, west, topics_file):
    """Of 60 entries at 4 a second: never more than came in the time, besides what gathers in one period."""
    east.run(f"topics set-replicator-dispatch-rate {NAMESPACE}/z -md 4")
    rates = {f"persistent://{NAMESPACE}/z": [4, -1, 1, False]}
    wait_until(lambda: json.loads(topics_file.read_text())["rates"] == rates)
    before, started = stored_entries(west, f"{NAMESPACE}/z"), time.monotonic()
    publish(east, "z", *map(str, range(60)))
    publish(east, "x", *map(str, range(60)))
    wait_for(west, x=stored_entries(east, f"{NAMESPACE}/x") - 1)
    while (copied := stored_entries(west, f"{NAMESPACE}/z") - before) < 20:
        assert copied <= 4 * (time.monotonic() - started) + 2 * 4
        assert time.monotonic() - started < 60
    assert time.monotonic() - started > 3
    east.run(f"topics remove-replicator-dispatch-rate {NAMESPACE}/z")
    wait_for(west, z=before + 60)


def test_topics_are_replicated_as_long_as_their_own_policies_say(east, west, tmp_path):
    for here, there, name in ((east, west, "west"), (west, east, "east")):
        here.run(f"clusters create {name} --url {there.web_url} --broker-url {there.service_url}")
        here.run("tenants update public -c east,west")
    for topic in ("x", "z", "home"):
        east.run(f"topics create {NAMESPACE}/{topic}")
    for topic in ("x", "z"):
        east.run(f"topics set-replication-clusters {NAMESPACE}/{topic} -c east,west")
        publish(east, topic, "one")
    publish(east, "home", "one")
    wait_for(west, x=1, z=1)
    wait_until(lambda: east.json(f"topics replication-status {NAMESPACE}/x -o json")[0]["state"] == "REPLICATING")
    assert east.run(f"topics replication-status {NAMESPACE}/home") == "Nothing is replicated from here.\n"

    east.run(f"topics remove-replication-clusters {NAMESPACE}/x")
    publish(east, "x", "while no policy asks")
    publish(east, "z", "two")
    wait_for(west, z=2)
    east.run(f"topics set-replication-clusters {NAMESPACE}/x -c east,west")
    publish(east, "x", "three")
    publish(east, "z", "three")
    wait_until(lambda: "three" in arrived(west, "x"))
    wait_for(west, z=3)
    assert arrived(west, "x") == ["one", "three"]
    assert arrived(west, "z") == ["one", "two", "three"]
    keep_to_the_rate(east, west, tmp_path / "east" / "replication" / "west" / "topics.json")
    assert west.run(f"topics list {NAMESPACE}").splitlines() == [f"persistent://{NAMESPACE}/{name}" for name in "xz"]
