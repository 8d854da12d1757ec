"""Two clusters that know each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse import sync
from interpulse.model.errors import Conflict
from interpulse.testing import ClusterPair, ConfigError
from tests.support.waiting import until

NAMESPACE = "public/default"


@pytest.mark.pulsar_settings(allowAutoTopicCreation=False)
def test_pair_when_started_then_each_knows_the_other_and_has_the_settings(pulsar_cluster_pair: ClusterPair) -> None:
    east, west = pulsar_cluster_pair.east, pulsar_cluster_pair.west
    for broker, other, name in ((east, west, "west"), (west, east, "east")):
        found = broker.admin.clusters.get(name)
        assert (found.service_url, found.broker_service_url) == (other.web_url, other.service_url)
        assert broker.admin.brokers.runtime_configuration()["allowAutoTopicCreation"] == "false"
        assert broker.app.config.replication_job == "external"


def test_pair_when_replication_is_enabled_then_topics_are_created_on_the_other_side(
    pulsar_cluster_pair: ClusterPair,
) -> None:
    east, west = pulsar_cluster_pair.east, pulsar_cluster_pair.west
    east.admin.topics.create_partitioned("orders", 3)
    east.admin.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])
    until(lambda: west.admin.topics.list_partitioned(NAMESPACE) == ["persistent://public/default/orders"])
    assert west.admin.topics.partitioned_metadata("orders").partitions == 3
    with sync.Client(east.service_url) as client, client.create_producer("orders") as producer:
        producer.send(b"one")
    assert west.admin.topics.partitioned_stats("orders")["msgInCounter"] == 0


def test_pair_when_topics_differ_then_comparison_tells_and_adjustment_mends(pulsar_cluster_pair: ClusterPair) -> None:
    east, west = pulsar_cluster_pair.east.admin, pulsar_cluster_pair.west.admin
    east.topics.create_partitioned("orders", 4)
    west.topics.create_partitioned("orders", 3)
    with pytest.raises(Conflict, match="orders"):
        east.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"], partitions_compared=True)
    plan = east.namespaces.adjust_for_replication(NAMESPACE, ["east", "west"], previewed=False)
    assert plan["applied"]
    assert west.topics.partitioned_metadata("orders").partitions == 4


def test_pair_when_served_again_then_has_its_data_and_its_new_addresses(tmp_path: Path) -> None:
    with ClusterPair(tmp_path) as pair:
        pair.east.admin.topics.create_partitioned("orders", 3)
    with ClusterPair(tmp_path) as pair:
        assert pair.east.admin.topics.partitioned_metadata("orders").partitions == 3
        assert pair.west.admin.clusters.get("east").service_url == pair.east.web_url


def test_pair_when_given_a_cluster_name_then_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="clusterName=north: the clusters of a pair are east and west"):
        ClusterPair(tmp_path, {"clusterName": "north"})
