"""One job from one cluster to two: each goes its own way, whatever happens to the other one and to the source."""

from __future__ import annotations

import time

import pytest

from interpulse.clock import now_ms
from interpulse.model.names import TopicName
from interpulse.testing import InProcessBroker
from tests.spark.replication_job import (
    PARTITIONS,
    TOPIC,
    Job,
    assert_exactly_once,
    partitions,
    publish_keyed,
    read_all,
    stored_entries,
    wait_until,
)
from tests.support.cli_cluster import CliCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

KEPT = {
    "brokerDeleteInactiveTopicsEnabled": "false",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
    "allowAutoTopicCreation": "false",
    "replicationJob": "external",
}


@pytest.fixture
def clusters(tmp_path):
    """East has the topic, which is replicated to both others."""
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east", **KEPT}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west", **KEPT}) as west,
        InProcessBroker(tmp_path / "north", {"clusterName": "north", **KEPT}) as north,
    ):
        east.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(TOPIC), PARTITIONS))
        cli = CliCluster(east.web_url, east.service_url)
        for name, broker in (("west", west), ("north", north)):
            cli.run(f"clusters create {name} --url {broker.web_url} --broker-url {broker.service_url}")
        cli.run("tenants update public -c east,west,north")
        cli.run("namespaces set-clusters public/default -c east,west,north")
        yield east, west, north


def configured(directory, east, begin_ms):
    path = directory / "job.toml"
    path.write_text(
        f"""
        [pipeline]
        name = "test"
        state = "{directory / "state"}"
        start = {begin_ms}
        [source]
        cluster = "east"
        service_url = "{east.service_url}"
        admin_url = "{east.web_url}"
        [select]
        from_policies = true
        [limits]
        entries_per_batch = 500
        [spark]
        driver_memory = "600m"
        """
    )
    return path


def records(east, cluster):
    """What the status says of the topic-partitions that go to a cluster."""
    cli = CliCluster(east.web_url, east.service_url)
    found = cli.json("namespaces replication-status public/default -o json")
    return [record for record in found if record["cluster"] == cluster]


def arrived(cluster, numbers):
    wait_until(lambda: stored_entries(cluster) >= len(numbers))
    assert_exactly_once(read_all(cluster), numbers)


def test_each_remote_cluster_gets_everything_once_whatever_happens_to_the_others(clusters, tmp_path):
    east, west, north = clusters
    publish_keyed(east, range(50), batching_enabled=False)
    time.sleep(0.05)  # what is published from now on is copied
    begin_ms = now_ms()
    publish_keyed(east, range(50, 200), batching_enabled=False)
    north.stop()
    job = Job(configured(tmp_path, east, begin_ms)).start()
    try:
        arrived(west, range(50, 200))
        wait_until(lambda: {record["state"] for record in records(east, "north")} == {"DISCONNECTED"})
        assert all(record["reason"] and "see that north is up" in record["remedy"] for record in records(east, "north"))
        north.restart()
        arrived(north, range(50, 200))

        north.stop()  # while its query runs
        publish_keyed(east, range(200, 300), batching_enabled=False)
        arrived(west, range(50, 300))
        wait_until(lambda: any(record["state"] == "DISCONNECTED" for record in records(east, "north")))
        north.restart()
        arrived(north, range(50, 300))

        first = 300
        for trouble in (unload, cut, restart):
            for cluster in (east, west):
                trouble(cluster)
                publish_keyed(east, range(first, first + 50), batching_enabled=False)
                first += 50
        for cluster in (west, north):
            arrived(cluster, range(50, first))
        wait_until(
            lambda: {record["state"] for name in ("west", "north") for record in records(east, name)} == {"REPLICATING"}
        )
    finally:
        job.stop()
    assert {line["topic"] for line in job.lines("begins", cluster="north")} == set(partitions(TOPIC))


def unload(cluster):
    cluster.call(lambda app: app.registry.unload(TopicName.parse(TOPIC).partition(0)))


def cut(cluster):
    cluster.faults.drop_connections()


def restart(cluster):
    cluster.stop()
    cluster.restart()
