"""Subscribing, deliveries, acknowledgements, positions."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.binary.transport import sinks
from interpulse.broker.live.api import Delivery, InitialPosition, KeyRange, SubType
from interpulse.model.errors import ConsumerBusy, NotAllowed, ServerError, TopicMoved
from interpulse.model.ids import LATEST, MessageId, Position
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.failover_role import FailoverRole, Role
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, with_broker_metadata
from interpulse.wire.ids import message_id_to_wire
from tests.support import commands

ENTRY = build_entry(pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString(), b"hello")
TOPIC = "persistent://public/default/t-partition-3"


async def test_subscribe_when_accepted_then_request_reaches_the_topic(client: Any) -> None:
    ranges = pb.KeySharedMeta(keySharedMode=pb.STICKY, hashRanges=[pb.IntRange(start=1, end=5)])
    consumer = await client.subscribe(
        3,
        kind=pb.CommandSubscribe.Key_Shared,
        name="me",
        priority_level=2,
        initial_position=pb.CommandSubscribe.Earliest,
        key_shared=ranges,
        properties={"a": "b"},
        subscription_properties={"c": "d"},
    )
    request = consumer.request
    assert (request.consumer_id, request.subscription, request.consumer_name) == (3, "s", "me")
    assert (request.sub_type, request.priority_level) == (SubType.KEY_SHARED, 2)
    assert (request.initial_position, request.durable) == (InitialPosition.EARLIEST, True)
    assert (request.metadata, request.properties) == ({"a": "b"}, {"c": "d"})
    assert (request.key_sharing.sticky_ranges, request.key_sharing.mode) == ((KeyRange(1, 5),), "STICKY")
    assert request.start_message_id is None


async def test_subscribe_when_sticky_without_a_range_then_refused(client: Any) -> None:
    answer = await client.ask(
        commands.subscribe(1, 1, TOPIC, "s", key_shared=pb.KeySharedMeta(keySharedMode=pb.STICKY))
    )
    assert answer.message == "Ranges for KeyShared policy must not be empty."


async def test_subscribe_when_it_is_a_reader_then_start_is_signed(client: Any) -> None:
    consumer = await client.subscribe(durable=False, start=Position(-1, -1))
    assert consumer.request.start_message_id == MessageId(-1, -1)
    consumer = await client.subscribe(2, durable=False, start=LATEST)
    assert consumer.request.start_message_id.position == LATEST


async def test_subscribe_when_creation_is_not_wanted_then_the_registry_knows(client: Any) -> None:
    await client.subscribe(force_topic_creation=False)
    assert client.context.opened[0][2] is False


async def test_subscribe_when_already_open_then_success_again(client: Any) -> None:
    await client.subscribe()
    assert (await client.ask(commands.subscribe(7, 1, TOPIC, "s"))).request_id == 7
    assert len(client.context.topic.consumers) == 1


async def test_subscribe_when_refused_then_error(client: Any) -> None:
    client.context.topic.failure = ConsumerBusy("taken")
    error = await client.ask(commands.subscribe(7, 1, TOPIC, "s"))
    assert (error.request_id, error.error, error.message) == (7, ServerError.ConsumerBusy, "taken")


@pytest.mark.parametrize(
    ("kind", "asked"), [(SchemaType.STRING, True), (SchemaType.AUTO_CONSUME, False), (SchemaType.NONE, False)]
)
async def test_subscribe_when_schema_is_given_then_checked_unless_it_stands_for_none(
    client: Any, kind: SchemaType, asked: bool
) -> None:
    await client.subscribe(schema=SchemaInfo(kind))
    assert bool(client.context.registered) is asked


async def test_active_change_when_before_success_then_sent_with_the_first_permits(client: Any) -> None:
    client.context.topic.early_active = True
    assert (await client.ask(commands.subscribe(7, 1, TOPIC, "s"))).request_id == 7
    assert await client.answers() == []
    client.send(commands.flow(1, 10))
    (change,) = await client.answers()
    assert change.command.active_consumer_change.is_active


async def test_active_change_when_there_are_no_permits_then_sent_after_a_while(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "_CLIENT_READY_S", 0)
    client.context.topic.early_active = True
    client.send(commands.subscribe(7, 1, TOPIC, "s"))
    success, change = await client.answers()
    assert success.command.success.request_id == 7
    assert change.command.active_consumer_change.is_active
    consumer = client.context.topic.consumers[-1]
    consumer.sink.active_changed(1, False)
    (change,) = await client.answers()
    assert not change.command.active_consumer_change.is_active


async def test_delivery_when_batch_then_one_message_each_with_all_details(client: Any) -> None:
    consumer = await client.subscribe()
    large = ENTRY + bytes(300_000)
    batch = [Delivery(Position(5, 6), ENTRY, 2, (5,)), Delivery(Position(5, 7), large), Delivery(Position(5, 8), ENTRY)]
    consumer.sink.deliver(1, batch)
    first, second, third = await client.answers()
    message = first.command.message
    assert (message.consumer_id, message.message_id.ledgerId, message.message_id.entryId) == (1, 5, 6)
    assert (message.message_id.partition, message.redelivery_count, list(message.ack_set)) == (3, 2, [5])
    assert not message.HasField("consumer_epoch")
    assert bytes(first.entry) == ENTRY
    assert bytes(second.entry) == large
    assert third.command.message.message_id.entryId == 8


PREFIXED = with_broker_metadata(pb.BrokerEntryMetadata(index=4), ENTRY)


@pytest.mark.parametrize(
    ("exposed", "supported", "possible", "expected"),
    [
        (True, True, True, PREFIXED),
        (True, False, True, ENTRY),
        (False, True, True, ENTRY),
        (False, False, True, ENTRY),
        (False, False, False, PREFIXED),  # a topic without such metadata is not looked at
    ],
)
async def test_delivery_when_broker_metadata_is_in_front_then_only_for_clients_that_may_see_it(
    dial: Any, exposed: bool, supported: bool, possible: bool, expected: bytes
) -> None:
    client = dial(broker_entry_metadata_exposed=exposed)
    await client.greet(supports_broker_entry_metadata=supported)
    client.context.topic.broker_entry_metadata_possible = possible
    consumer = await client.subscribe()
    consumer.sink.deliver(1, [Delivery(Position(5, 6), PREFIXED), Delivery(Position(5, 7), PREFIXED, 1)])
    assert [bytes(each.entry) for each in await client.answers()] == [expected, expected]


async def test_delivery_when_client_gave_an_epoch_then_repeated(client: Any) -> None:
    consumer = await client.subscribe(consumer_epoch=0)
    consumer.epoch = 4
    consumer.sink.deliver(1, [Delivery(Position(5, 6), ENTRY)])
    (answer,) = await client.answers()
    assert answer.command.message.consumer_epoch == 4


async def test_delivery_when_client_gave_no_epoch_until_it_asked_for_a_redelivery_then_repeated(client: Any) -> None:
    consumer = await client.subscribe()
    assert consumer.epoch is None
    consumer.epoch = 1  # `Consumer.redeliver` notes the one in the command
    consumer.sink.deliver(1, [Delivery(Position(5, 6), ENTRY)])
    (answer,) = await client.answers()
    assert answer.command.message.consumer_epoch == 1


async def test_flows_when_they_come_together_then_are_one(client: Any) -> None:
    consumer = await client.subscribe()
    client.send(commands.flow(1, 500), commands.flow(1, 500), commands.flow(9, 5), commands.flow(1, 6))
    assert consumer.calls == [("flow", 1000), ("flow", 6)]


async def test_flow_when_consumer_is_unknown_then_ignored(client: Any) -> None:
    consumer = await client.subscribe()
    client.send(commands.flow(9, 5), commands.flow(1, 6))
    assert consumer.calls == [("flow", 6)]


async def test_ack_when_individual_then_every_id_with_its_set(client: Any) -> None:
    consumer = await client.subscribe()
    first = pb.MessageIdData(ledgerId=1, entryId=2, ack_set=[5, -1])
    whole = [pb.MessageIdData(ledgerId=1, entryId=entry) for entry in (3, 5)]
    client.send(commands.ack(1, [whole[0], first, whole[1]]), commands.ack(1, [first, first]))
    client.send(commands.ack_one(1, 1, 4))
    assert consumer.calls == [
        ("ack", Position(1, 2), (5, -1)),
        ("ack_all", (Position(1, 3), Position(1, 5))),
        ("ack", Position(1, 2), (5, -1)),
        ("ack", Position(1, 2), (5, -1)),
        ("ack", Position(1, 4), ()),
    ]
    assert await client.answers() == []


async def test_acks_when_they_come_in_one_read_then_acknowledged_together(client: Any) -> None:
    consumer = await client.subscribe()
    client.send(*[commands.ack_one(1, 3, number) for number in (5, 4)], commands.ack_one(9, 3, 1))
    assert consumer.calls == [("ack_all", (Position(3, 5), Position(3, 4)))]
    assert not client.transport.closed


async def test_ack_when_answer_is_wanted_then_response_without_error(client: Any) -> None:
    consumer = await client.subscribe()
    ids = [message_id_to_wire(Position(1, 2))]
    response = await client.ask(commands.ack(1, ids, cumulative=True, request_id=4))
    assert (response.consumer_id, response.request_id) == (1, 4)
    assert not response.HasField("error")
    assert not response.HasField("message")
    assert consumer.calls == [("ack_cumulative", Position(1, 2), ())]


async def test_ack_when_refused_then_response_with_error(client: Any) -> None:
    consumer = await client.subscribe()
    consumer.failure = NotAllowed("not on shared")
    response = await client.ask(commands.ack(1, [message_id_to_wire(Position(1, 2))], cumulative=True, request_id=4))
    assert (response.error, response.message) == (ServerError.NotAllowedError, "not on shared")
    response = await client.ask(commands.ack(9, [message_id_to_wire(Position(1, 2))], request_id=5))
    assert response.error == ServerError.ConsumerNotFound


async def test_redeliver_when_ids_are_given_then_their_positions(client: Any) -> None:
    consumer = await client.subscribe()
    client.send(commands.redeliver_unacknowledged(1, [message_id_to_wire(Position(1, 2))], consumer_epoch=3))
    client.send(commands.redeliver_unacknowledged(1), commands.redeliver_unacknowledged(9))
    assert consumer.calls == [("redeliver", (Position(1, 2),), 3), ("redeliver", (), None)]


async def test_seek_when_to_a_message_then_close_first_and_success_second(client: Any) -> None:
    consumer = await client.subscribe()
    client.send(commands.seek(5, 1, MessageId(1, 2, 0, 3)))
    close, success = await client.answers()
    assert close.command.close_consumer.consumer_id == 1
    assert success.command.success.request_id == 5
    assert consumer.calls == [("seek", MessageId(1, 2, 0, 3), ())]


async def test_seek_when_to_a_time_then_passed_on(client: Any) -> None:
    consumer = await client.subscribe()
    await client.ask(commands.seek(5, 1, 1234))
    assert consumer.calls == [("seek_to_time", 1234)]


async def test_seek_when_without_target_then_metadata_error(client: Any) -> None:
    await client.subscribe()
    error = await client.ask(commands.encode(pb.CommandSeek(consumer_id=1, request_id=2)))
    assert (error.request_id, error.error) == (2, ServerError.MetadataError)


async def test_unsubscribe_when_consumer_is_known_then_gone(client: Any) -> None:
    consumer = await client.subscribe()
    assert (await client.ask(commands.unsubscribe(5, 1, force=True))).request_id == 5
    assert consumer.calls == [("unsubscribe", True)]
    error = await client.ask(commands.unsubscribe(6, 1))
    assert (error.error, error.message) == (ServerError.MetadataError, "Consumer not found")


async def test_close_when_known_or_not_then_success(client: Any) -> None:
    consumer = await client.subscribe()
    assert (await client.ask(commands.close_consumer(1, 5))).request_id == 5
    assert consumer.closed
    assert (await client.ask(commands.close_consumer(1, 6))).request_id == 6


async def test_last_message_id_when_topic_is_empty_then_minus_one_and_mark_delete_is_filled(client: Any) -> None:
    await client.subscribe()
    answer = await client.ask(commands.get_last_message_id(5, 1))
    assert (answer.last_message_id.ledgerId, answer.last_message_id.entryId) == (2**64 - 1, 2**64 - 1)
    assert (answer.last_message_id.partition, answer.last_message_id.batch_index) == (3, -1)
    assert (answer.consumer_mark_delete_position.ledgerId, answer.consumer_mark_delete_position.entryId) == (
        4,
        2**64 - 1,
    )


async def test_consumer_stats_when_asked_then_filled(client: Any) -> None:
    await client.subscribe()
    answer = await client.ask(commands.consumer_stats(5, 1))
    assert (answer.request_id, answer.msgRateOut, answer.availablePermits) == (5, 2.5, 7)
    assert (answer.unackedMessages, answer.type, answer.msgBacklog) == (3, "Shared", 9)


async def test_consumer_stats_when_consumer_is_unknown_then_error_inside_the_response(client: Any) -> None:
    answer = await client.ask(commands.consumer_stats(5, 1))
    assert (answer.request_id, answer.error_code) == (5, ServerError.MetadataError)


@pytest.mark.parametrize(("version", "sent"), [("Pulsar-Java-v4.0.0", True), ("Pulsar-CPP-v4.2.0", False)])
async def test_end_of_topic_when_reached_then_only_java_is_told(dial: Any, version: str, sent: bool) -> None:
    client = dial()
    await client.greet(version)
    consumer = await client.subscribe()
    client.send(commands.flow(1, 10))
    consumer.sink.end_of_topic(1)
    assert bool(await client.answers()) is sent


async def test_consumer_when_the_topic_moved_then_success_and_redirect(client: Any) -> None:
    """C++ consumers that reconnect deadlock without the success."""
    client.context.topic.failover_gate.refusal = TopicMoved("it moved", "pulsar://west:6650")
    client.send(commands.subscribe(5, 1, TOPIC, "s"))
    success, moved, closed = (answer.command for answer in await client.answers())
    assert success.success.request_id == 5
    assert moved.topicMigrated.resource_type == pb.CommandTopicMigrated.Consumer
    assert (moved.topicMigrated.resource_id, moved.topicMigrated.brokerServiceUrl) == (1, "pulsar://west:6650")
    assert (closed.close_consumer.consumer_id, closed.close_consumer.request_id) == (1, 2**64 - 1)
    client.send(commands.flow(1, 10), commands.ack(1, [pb.MessageIdData(ledgerId=1, entryId=1)]))
    assert await client.answers() == []
    assert client.context.topic.consumers == []


async def test_consumer_when_the_topic_moves_then_redirected(client: Any) -> None:
    consumer = await client.subscribe()
    consumer.sink.consumer_moved(1, FailoverRole(Role.MOVED, 1, "", "pulsar+ssl://west:6651"))
    moved, closed = (answer.command for answer in await client.answers())
    assert (moved.topicMigrated.brokerServiceUrl, moved.topicMigrated.brokerServiceUrlTls) == (
        "",
        "pulsar+ssl://west:6651",
    )
    assert closed.close_consumer.consumer_id == 1


async def test_consumer_when_its_client_is_too_old_for_a_redirect_then_closed(dial: Any) -> None:
    client = dial()
    await client.greet(protocol_version=19)
    consumer = await client.subscribe()
    consumer.sink.consumer_moved(1, FailoverRole(Role.MOVED, 1, "pulsar://west:6650"))
    (closed,) = await client.answers()
    assert closed.command.close_consumer.consumer_id == 1


async def test_close_by_broker_when_consumer_is_open_then_client_is_told(client: Any) -> None:
    consumer = await client.subscribe()
    consumer.sink.consumer_closed(1)
    (answer,) = await client.answers()
    assert answer.command.close_consumer.request_id == 2**64 - 1
    assert client.connection.consumers == {}
