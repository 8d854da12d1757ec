"""Replicated subscriptions through the binary protocol and the admin API of our broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.model.errors import Conflict, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.spark.writing.broker_target import BrokerTarget
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.testing.broker import BrokerFactory, InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry
from interpulse.wire.markers import build_marker, cluster_position
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.rest_broker import rest_broker
from tests.support.waiting import until

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
        shown = until(lambda: pulsar_broker.admin.topics.stats(TOPIC)["subscriptions"].get("s"))
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


def publish_with_a_request(east: InProcessBroker) -> Position:
    """Two messages, a request of ``west`` with its answer, and one more message, which is at the position returned."""
    east.admin.topics.create_subscription(TOPIC, "pulsar.repl.west", MessageId(*EARLIEST))
    payload = pb.ReplicatedSubscriptionsSnapshotRequest(snapshot_id="a", source_cluster="west")
    with RawClient(east.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        for number in range(2):
            publish(client, number, entry(b"%d" % number))
        asked = publish(client, 0, copy_of(build_marker(payload, 1_000), "west"), marker=True)
        assert asked.entry == 2
        until(lambda: east.admin.topics.internal_stats(TOPIC)["numberOfEntries"] == 4)
        return publish(client, 2, entry(b"2"))


async def test_request_of_a_cluster_then_the_answer_arrives_there_in_its_place(tmp_path: Path) -> None:
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west,
    ):
        last = await asyncio.to_thread(publish_with_a_request, east)
        await asyncio.to_thread(west.admin.namespaces.set_deduplication, "public/default", True)
        await asyncio.to_thread(west.admin.topics.create, TOPIC)
        options = WriteOptions(
            service_url=west.service_url,
            mode="entry",
            producer_name="lane",
            source_cluster="east",
            target_cluster="west",
        )
        async with Client(east.service_url) as here, Client(west.service_url) as there:
            writer = LaneWriter(BrokerTarget(there.session, options, source=here.session), options, {}, "query")
            name, cursor = TopicName.parse(TOPIC), "pulsar.repl.west"
            async with EntryReader(here.session, name, after=EARLIEST, upto=last, replication_cursor=cursor) as reader:
                await reader.open()
                while runs := await reader.read_runs():
                    await writer.copy(TOPIC, runs)
            (report,) = await writer.finish()
            await writer.close()
        assert (report.entries, report.skipped) == (3, {"marker": 1})
        stored = [await asyncio.to_thread(west.admin.topics.examine, TOPIC, "earliest", 1 + n) for n in range(4)]
        answer = pb.ReplicatedSubscriptionsSnapshotResponse(
            snapshot_id="a", cluster=cluster_position("east", Position(last.ledger, 2))
        )
        assert [message.content for (message,) in stored] == [b"0", b"1", answer.SerializeToString(), b"2"]
        assert {message.replicated_from for (message,) in stored} == {"east"}
