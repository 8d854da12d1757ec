"""Replicated subscriptions through the binary protocol and the admin API of our broker."""

from __future__ import annotations

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import Conflict, SubscriptionNotFound
from interpulse.model.ids import Position
from interpulse.testing.broker import BrokerFactory, InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry
from interpulse.wire.markers import build_marker, cluster_position
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.rest_broker import rest_broker

TOPIC = "persistent://public/default/marked"


def copy_of(marker: bytes, source: str) -> bytes:
    """What a replicator of ``source`` sends."""
    parsed = parse_entry(marker)
    parsed.metadata.replicated_from = source
    return build_entry(parsed.metadata.SerializeToString(), parsed.payload)


def publish(client: RawClient, number: int, stored: bytes, *, marker: bool = False) -> Position:
    client.send(commands.send(1, number, stored, marker=marker))
    message_id = client.answer().command.send_receipt.message_id
    return Position(message_id.ledgerId, message_id.entryId)


def subscribe(broker: InProcessBroker, subscription: str, *, replicate_state: bool) -> None:
    with RawClient(broker.service_url) as client:
        request = commands.subscribe(1, 1, TOPIC, subscription, replicate_state=replicate_state)
        assert isinstance(client.ask(request), pb.CommandSuccess)


def test_update_from_another_cluster_then_consumers_go_on_after_it(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        positions = [publish(client, number, entry(b"%d" % number)) for number in range(5)]
        payload = pb.ReplicatedSubscriptionsUpdate(
            subscription_name="s", clusters=[cluster_position("standalone", positions[2])]
        )
        marker = publish(client, 0, copy_of(build_marker(payload, 1_000), "east"), marker=True)
        assert marker == (positions[4].ledger, positions[4].entry + 1)
        shown = pulsar_broker.admin.topics.stats(TOPIC)["subscriptions"]["s"]
        assert (shown["msgBacklog"], shown["isReplicated"], shown["replicated"]) == (2, True, True)
        client.ask(commands.subscribe(2, 2, TOPIC, "s"))
        client.send(commands.flow(2, 10))
        assert [bytes(client.answer().entry or b"")[-1:] for _ in range(2)] == [b"3", b"4"]


async def test_missing_subscription_then_not_found() -> None:
    async with rest_broker() as broker, AdminClient(broker.web_url) as admin:
        await admin.topics.create("public/default/t")
        for call in (
            admin.topics.set_subscription_replicated("public/default/t", "nope", True),
            admin.topics.subscription_replicated("public/default/t", "nope"),
        ):
            with pytest.raises(SubscriptionNotFound, match="Subscription nope not found for topic persistent://"):
                await call


async def test_setting_that_is_off_then_calls_that_mark_a_subscription_are_refused() -> None:
    config = BrokerConfig(enable_replicated_subscriptions=False)
    topic = "persistent://public/default/t"
    async with rest_broker(config) as broker, AdminClient(broker.web_url) as admin:
        await admin.topics.create_subscription(topic, "s")
        with pytest.raises(Conflict, match="enableReplicatedSubscriptions=false"):
            await admin.topics.set_subscription_replicated(topic, "s", True)
        with pytest.raises(Conflict, match="enableReplicatedSubscriptions=false"):
            await admin.topics.create_subscription(topic, "r", replicated=True)
        assert await admin.topics.subscription_replicated(topic, "s") == {topic: False}
        assert await admin.topics.subscriptions(topic) == ["s"]


def test_setting_that_is_off_then_consumers_mark_nothing(pulsar_broker_factory: BrokerFactory) -> None:
    broker = pulsar_broker_factory(enableReplicatedSubscriptions=False)
    subscribe(broker, "s", replicate_state=True)
    subscribe(broker, "s", replicate_state=True)
    marks = broker.admin.topics.subscription_replicated(TOPIC, "s")
    assert marks == {TOPIC: False}


def test_consumer_without_the_flag_then_the_mark_stays(pulsar_broker: InProcessBroker) -> None:
    for flag, mark in ((False, False), (True, True), (False, True)):
        subscribe(pulsar_broker, "s", replicate_state=flag)
        assert pulsar_broker.admin.topics.subscription_replicated(TOPIC, "s") == {TOPIC: mark}
    pulsar_broker.restart()
    assert pulsar_broker.admin.topics.subscription_replicated(TOPIC, "s") == {TOPIC: True}
