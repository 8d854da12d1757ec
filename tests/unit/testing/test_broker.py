"""Brokers in the process: settings, a factory, a pair of clusters."""

from __future__ import annotations

import socket
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from interpulse import sync
from interpulse.broker.app import BrokerApp
from interpulse.broker.assembly import CannotServe
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.errors import AlreadyClosed, Conflict
from interpulse.testing import BrokerFactory, ClusterPair, ConfigError, IgnoredSettingWarning, InProcessBroker
from interpulse.testing.broker import broker_config
from tests.support.waiting import until

INSIDE_TLS = {"webServicePortTls": 0, "tlsCertificateFilePath": "/broker.pem", "tlsKeyFilePath": "/broker.key"}


@pytest.mark.parametrize(
    ("settings", "field", "value"),
    [
        ({"allowAutoTopicCreation": False}, "allow_auto_topic_creation", False),
        ({"allowAutoTopicCreation": "false"}, "allow_auto_topic_creation", False),
        ({"brokerDeduplicationEnabled": True}, "broker_deduplication_enabled", True),
        ({"defaultNumPartitions": 3}, "default_num_partitions", 3),
        ({"maxTopicsPerNamespace": 0}, "max_topics_per_namespace", 0),
        ({"backlogQuotaDefaultLimitBytes": -1}, "backlog_quota_default_limit_bytes", -1),
        ({"clusterName": "west"}, "cluster_name", "west"),
        ({"superUserRoles": ""}, "super_user_roles", ""),
        ({}, "web_service_port", 0),
        ({"webServicePort": "", **INSIDE_TLS}, "web_service_port", None),
        ({"webServicePort": 8081}, "web_service_port", 8081),
    ],
)
def test_settings_when_written_in_python_then_hold(settings: dict[str, Any], field: str, value: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(broker_config(settings, {"webServicePort": "0"}), field) == value


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"allowAutoTopicCreate": False}, "allowAutoTopicCreate is not a known setting; the nearest is allowAuto"),
        ({"allow_auto_topic_creation": 1}, "is not a known setting; the nearest is allowAutoTopicCreation"),
        ({"allowAutoTopicCreation": 0}, "allowAutoTopicCreation=0: must be true or false"),
        ({"defaultNumPartitions": True}, "defaultNumPartitions=true: must be an integer"),
        ({"defaultNumPartitions": 0}, "defaultNumPartitions=0: must be at least 1"),
        ({"defaultNumPartitions": 3.0}, "defaultNumPartitions=3.0: must be a bool, an int or a str, and is a float"),
        ({"superUserRoles": ["me"]}, r"superUserRoles=\['me'\]: must be a bool, an int or a str, and is a list"),
        ({"clusterName": None}, "clusterName=None: must be a bool, an int or a str, and is a NoneType"),
        ({"maxMessageSize": 1.5, "noSuchKey": 1}, "(?s)maxMessageSize=1.5.*noSuchKey is not a known setting"),
    ],
)
def test_settings_when_they_cannot_be_then_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        broker_config(settings, {})


def test_settings_when_a_key_of_pulsar_has_no_effect_then_the_caller_is_warned() -> None:
    with pytest.warns(IgnoredSettingWarning, match="maxConsumerMetadataSize is a setting of Pulsar") as told:
        assert broker_config({"maxConsumerMetadataSize": 1}, {}) == BrokerConfig()
    assert [each.filename for each in told] == [__file__]


def test_broker_when_started_twice_on_one_directory_then_second_one_is_refused(tmp_path: Path) -> None:
    from interpulse.storage.api import DataDirectoryInUse

    with InProcessBroker(tmp_path) as broker:
        assert broker.service_url.startswith("pulsar://127.0.0.1:")
        with pytest.raises(DataDirectoryInUse):
            InProcessBroker(tmp_path).start()
    with InProcessBroker(tmp_path):
        pass


def test_broker_when_its_port_is_taken_then_nothing_of_it_is_left_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        with pytest.raises(CannotServe, match=f"port {port} on 127.0.0.1 is already in use"):
            InProcessBroker(tmp_path, {"webServicePort": port}).start()
    with InProcessBroker(tmp_path, {"webServicePort": port}):
        pass


def test_broker_when_called_then_works_in_its_own_loop(tmp_path: Path) -> None:
    async def clusters(app: BrokerApp) -> str:
        assert app.ready
        return app.context.namespaces.local_cluster

    with InProcessBroker(tmp_path, {"clusterName": "east"}) as broker:
        assert broker.call(clusters) == "east"


def test_broker_when_a_setting_is_unknown_then_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        InProcessBroker(tmp_path, {"noSuchKey": "1"})


def test_broker_when_it_could_not_start_then_stopping_it_is_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        broker = InProcessBroker(tmp_path, {"webServicePort": holder.getsockname()[1]})
        with pytest.raises(CannotServe):
            broker.start()
        broker.stop()
    broker.start()
    broker.stop()


def test_broker_when_restarted_then_has_its_addresses_and_its_data(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path, {"clusterName": "east"}) as broker:
        addresses = broker.service_url, broker.web_url
        before = broker.app
        with sync.Client(broker.service_url) as client, client.create_producer("orders") as producer:
            sent = producer.send(b"one")
            broker.restart()
            assert producer.send(b"two").ledger > sent.ledger
            assert [client.create_reader("orders").read_next(60_000).content] == [b"one"]
        assert (broker.service_url, broker.web_url) == addresses
        assert broker.app is not before
        assert broker.app.config.cluster_name == "east"


def test_admin_when_the_broker_is_restarted_then_goes_on_and_ends_with_it(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        admin = broker.admin
        admin.topics.create_partitioned("orders", 2)
        broker.restart()
        assert broker.admin is admin
        assert admin.topics.list_partitioned("public/default") == ["persistent://public/default/orders"]
    with pytest.raises(AlreadyClosed):
        admin.brokers.health()
    with broker:
        assert broker.admin.brokers.health() == "ok"


def test_factory_when_called_twice_then_two_brokers_with_their_own_settings_and_data(tmp_path: Path) -> None:
    factory = BrokerFactory(tmp_path)
    east, west = factory(clusterName="east"), factory(clusterName="west", allowAutoTopicCreation=False)
    assert (east.app.config.cluster_name, west.app.config.cluster_name) == ("east", "west")
    assert not west.app.config.allow_auto_topic_creation
    assert east.app.data_dir != west.app.data_dir
    factory.close()
    for broker in (east, west):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", urlsplit(broker.service_url).port or 0), timeout=60)


def test_factory_when_a_broker_cannot_be_then_the_others_are_stopped_all_the_same(tmp_path: Path) -> None:
    factory = BrokerFactory(tmp_path)
    broker = factory()
    with pytest.raises(ConfigError, match="noSuchKey"):
        factory(noSuchKey=1)
    factory.close()
    assert not broker.app.ready


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
