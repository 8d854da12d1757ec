"""Topics that are not stored, with the official client: the same on our broker and on a real Pulsar."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.support.official_client import admin, connected, is_quiet, receive

pytestmark = pytest.mark.interop

POLICIES = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 3600,
    "deleteWhileInactive": False,
}


class Side:
    """One cluster, a namespace of the test's own, and an official client."""

    def __init__(self, address: Address, client: pulsar.Client) -> None:
        self.client = client
        self.namespace = f"public/np-{uuid.uuid4().hex[:8]}"
        self._web_url = address.web_url
        self.admin("PUT", f"namespaces/{self.namespace}")
        self.admin("POST", f"namespaces/{self.namespace}/inactiveTopicPolicies", POLICIES)

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        return admin(self._web_url, method, path, body)

    def topic(self, method: str, rest: str, body: Any = None) -> Any:
        return self.admin(method, f"non-persistent/{self.namespace}/{rest}", body)

    def name(self, local: str) -> str:
        return f"non-persistent://{self.namespace}/{local}"


@pytest.fixture(scope="module")
def np_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """One broker of ours for the tests of this file."""
    with InProcessBroker(tmp_path_factory.mktemp("np")) as broker:
        yield Address(broker.service_url, broker.web_url)


@pytest.fixture(params=["interpulse", pytest.param("pulsar", marks=pytest.mark.slow)])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    """Every test runs against both."""
    address: Address = request.getfixturevalue("np_broker" if request.param == "interpulse" else "real_pulsar")
    with connected(address.service_url, tmp_path / "client.log") as client:
        yield Side(address, client)


def test_message_when_sent_then_reaches_every_subscription_that_is_there_and_no_later_one(side: Side) -> None:
    name = side.name("t")
    producer = side.client.create_producer(name)
    producer.send(b"before the first subscription")
    kinds = [
        pulsar.ConsumerType.Exclusive,
        pulsar.ConsumerType.Shared,
        pulsar.ConsumerType.Failover,
        pulsar.ConsumerType.KeyShared,
    ]
    consumers = [side.client.subscribe(name, f"s-{kind.name}", kind) for kind in kinds]
    sent = producer.send(b"x", partition_key="k", properties={"a": "b"})
    assert (sent.ledger_id(), sent.entry_id()) == (0, 0)
    for consumer in consumers:
        message = receive(consumer, 1)[0]
        assert (message.data(), message.partition_key(), message.properties()) == (b"x", "k", {"a": "b"})
        consumer.acknowledge(message)
    late = side.client.subscribe(name, "late", initial_position=pulsar.InitialPosition.Earliest)
    reader = side.client.create_reader(name, pulsar.MessageId.earliest)
    assert is_quiet(late)
    producer.send(b"y")
    assert reader.read_next(60_000).data() == b"y"


def test_subscription_when_shared_then_each_message_goes_to_one(side: Side) -> None:
    name = side.name("t")
    producer = side.client.create_producer(name)
    consumers = [side.client.subscribe(name, "s", pulsar.ConsumerType.Shared) for _ in range(2)]
    for number in range(6):
        producer.send(b"%d" % number)
    got = [[message.data() for message in receive(consumer, 3)] for consumer in consumers]
    assert sorted(data for each in got for data in each) == [b"%d" % number for number in range(6)]
    with pytest.raises(pulsar.ConsumerBusy):
        side.client.subscribe(name, "s", pulsar.ConsumerType.Exclusive)


def test_subscription_when_its_consumers_leave_or_it_is_deleted_then_is_gone(side: Side) -> None:
    name = side.name("t")
    side.client.create_producer(name)
    consumer = side.client.subscribe(name, "s")
    assert side.topic("GET", "t/subscriptions") == ["s"]
    consumer.seek(pulsar.MessageId.earliest)  # answered, and without an effect
    consumer.close()
    assert side.topic("GET", "t/subscriptions") == []
    other = side.client.subscribe(name, "u")
    other.unsubscribe()
    assert side.topic("GET", "t/subscriptions") == []


def test_lists_when_asked_for_then_show_it_beside_stored_topics_only_where_wanted(side: Side) -> None:
    side.client.create_producer(side.name("t"))
    side.topic("PUT", "p/partitions", 2)
    producer = side.client.create_producer(side.name("p"))
    assert sorted(side.admin("GET", f"non-persistent/{side.namespace}")) == [
        side.name("p-partition-0"),
        side.name("p-partition-1"),
        side.name("t"),
    ]
    assert side.topic("GET", "partitioned") == [side.name("p")]
    assert side.admin("GET", f"persistent/{side.namespace}") == []
    assert side.admin("GET", f"namespaces/{side.namespace}/topics") == []
    assert len(side.admin("GET", f"namespaces/{side.namespace}/topics?mode=ALL")) == 3
    assert len(side.admin("GET", f"namespaces/{side.namespace}/topics?mode=NON_PERSISTENT")) == 3
    producer.close()


def test_stats_when_messages_pass_then_count_them_and_nothing_is_stored(side: Side) -> None:
    name = side.name("t")
    producer = side.client.create_producer(name, producer_name="p")
    consumer = side.client.subscribe(name, "s", pulsar.ConsumerType.Shared)
    for number in range(3):
        producer.send(b"%d" % number)
    receive(consumer, 3)
    stats = side.topic("GET", "t/stats")
    assert [stats[key] for key in ("msgInCounter", "msgOutCounter", "storageSize", "backlogSize")] == [3, 3, 0, 0]
    assert [each["producerName"] for each in stats["publishers"]] == ["p"]
    subscription = stats["subscriptions"]["s"]
    assert (subscription["type"], subscription["msgBacklog"], subscription["isDurable"]) == ("Shared", 0, False)
    assert [each["msgOutCounter"] for each in subscription["consumers"]] == [3]
    internal = side.topic("GET", "t/internalStats")
    assert (internal["entriesAddedCounter"], internal["numberOfEntries"], list(internal["cursors"])) == (3, 0, ["s"])


def test_partitioned_topic_when_used_then_is_the_sum_of_its_partitions(side: Side) -> None:
    side.topic("PUT", "p/partitions", 2)
    consumer = side.client.subscribe(side.name("p"), "s")
    producer = side.client.create_producer(side.name("p"))
    for number in range(4):
        producer.send(b"%d" % number)
    assert sorted(message.data() for message in receive(consumer, 4)) == [b"0", b"1", b"2", b"3"]
    stats = side.topic("GET", "p/partitioned-stats")
    assert (stats["msgInCounter"], stats["metadata"]["partitions"], len(stats["partitions"])) == (4, 2, 2)
    assert side.topic("GET", "p/subscriptions") == ["s"]
    with pytest.raises(AssertionError, match="412"):
        side.topic("DELETE", "p/partitions")
    side.topic("POST", "p/partitions", 3)
    assert len(side.client.get_topic_partitions(side.name("p"))) == 3


@pytest.mark.parametrize("open_it", ["producer", "consumer"])
def test_name_when_it_may_not_be_opened_then_the_client_is_told_for_good(side: Side, open_it: str) -> None:
    def attempt(local: str) -> None:
        if open_it == "producer":
            side.client.create_producer(side.name(local))
        else:
            side.client.subscribe(side.name(local), "s")

    with pytest.raises(pulsar.NotAllowedError):
        attempt("none-partition-0")
    side.topic("PUT", "p/partitions", 1)
    with pytest.raises(pulsar.TopicNotFound):
        attempt("p-partition-1")
    side.admin("POST", f"namespaces/{side.namespace}/autoTopicCreation", {"allowAutoTopicCreation": False})
    with pytest.raises(pulsar.TopicNotFound):
        attempt("none")
    attempt("p")
    side.topic("PUT", "made")
    attempt("made")
