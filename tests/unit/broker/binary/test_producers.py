"""Opening producers, sends, receipts, closing."""

from __future__ import annotations

import asyncio
import tracemalloc
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from interpulse.broker.binary.producers import on_send
from interpulse.broker.live.api import AccessMode
from interpulse.broker.live.producing.producer import Producer
from interpulse.model.errors import (
    NoRoomLeft,
    PersistenceError,
    ProducerBusy,
    ProducerFenced,
    ServerError,
    TopicMoved,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Requester
from interpulse.rules.failover_role import FailoverRole, Role
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from interpulse.wire.frames import Frame
from tests.support import commands

METADATA = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString()
ENTRY = build_entry(METADATA, b"hello")
TOPIC = "persistent://public/default/t-partition-3"


async def test_producer_when_opened_then_request_reaches_the_topic(client: Any) -> None:
    opening = commands.producer(
        9,
        2,
        TOPIC,
        name="me",
        epoch=3,
        access_mode=pb.Exclusive,
        topic_epoch=0,
        encrypted=True,
        properties={"a": "b"},
    )
    success = await client.ask(opening)
    assert (success.request_id, success.producer_name, success.last_sequence_id) == (9, "me", -1)
    assert success.producer_ready
    request = client.context.topic.producers[0].request
    assert (request.name, request.epoch, request.access_mode) == ("me", 3, AccessMode.EXCLUSIVE)
    assert (request.topic_epoch, request.encrypted, request.metadata) == (0, True, {"a": "b"})
    assert (request.address, request.client_version) == ("/127.0.0.1:5", "Pulsar-CPP-v4.2.0")
    assert client.context.opened == [(TopicName.parse(TOPIC), Requester.CLIENT, True)]


async def test_producer_when_named_like_a_replicator_then_opened_as_one(client: Any) -> None:
    producer = await client.open_producer(name="pulsar.repl.east-->west")
    assert (producer.request.remote, producer.request.remote_cluster) == (True, "east")
    assert client.context.opened[0][1] is Requester.REPLICATOR


async def test_producer_when_its_name_only_begins_like_a_replicators_then_is_of_no_cluster(client: Any) -> None:
    producer = await client.open_producer(name="pulsar.replica")
    assert (producer.request.remote, producer.request.remote_cluster) == (True, None)


@pytest.mark.parametrize(
    ("name", "announced", "topic", "expected"),
    [
        ("pulsar.repl.east-->west", True, TOPIC, True),
        ("pulsar.repl.east-->west", False, TOPIC, False),
        ("pulsar.repl.east-->west", True, TOPIC.replace("persistent", "non-persistent"), False),
        ("me", True, TOPIC, False),
    ],
    ids=["replicator", "flag-not-announced", "not-persistent", "other-name"],
)
async def test_replicator_when_it_announces_source_positions_then_its_entries_are_known_by_them(
    dial: Any, name: str, announced: bool, topic: str, expected: bool
) -> None:
    client = dial()
    await client.greet(supports_repl_dedup_by_lid_and_eid=announced)
    await client.ask(commands.producer(1, 1, topic, name=name))
    producer = client.context.topic.producers[0]
    assert producer.request.by_source_position is expected
    client.send(commands.send(1, 7, ENTRY), commands.send(1, 8, ENTRY, num_messages=2))
    assert [row[:3] for row in producer.published] == [(7, -1, 1), (8, -1, 2)]


async def test_receipt_of_a_replication_marker_has_the_lowest_number_as_highest_id(client: Any) -> None:
    producer = await client.open_producer()
    client.send(commands.send(1, 7, ENTRY))
    producer.sink.receipts(1, [(7, 2**63, 11, 12)])
    (answer,) = await client.answers()
    assert answer.command.send_receipt.highest_sequence_id - 2**64 == -(2**63), "as Java reads it"


async def test_producer_when_schema_is_given_then_its_version_is_told(client: Any) -> None:
    schema = SchemaInfo(SchemaType.STRING)
    success = await client.ask(commands.producer(1, 1, TOPIC, schema=schema))
    assert success.schema_version == b"\0\0\0\0\0\0\0\5"
    success = await client.ask(commands.producer(2, 2, TOPIC, schema=SchemaInfo(SchemaType.NONE)))
    assert success.schema_version == b""


async def test_producer_when_already_open_then_success_again(client: Any) -> None:
    await client.open_producer()
    success = await client.ask(commands.producer(5, 1, TOPIC))
    assert success.request_id == 5
    assert len(client.context.topic.producers) == 1


async def test_producer_when_still_being_opened_then_service_not_ready(client: Any) -> None:
    client.context.topic.gate = asyncio.Event()
    client.send(commands.producer(1, 1, TOPIC))
    error = await client.ask(commands.producer(2, 1, TOPIC))
    assert (error.request_id, error.error) == (2, ServerError.ServiceNotReady)
    client.context.topic.gate.set()
    (answer,) = await client.answers()
    assert answer.command.producer_success.request_id == 1


@pytest.mark.parametrize("failure", [ProducerBusy("taken"), TopicNotFound("")])
async def test_producer_when_refused_then_error_with_its_code(client: Any, failure: Any) -> None:
    client.context.failure = failure
    error = await client.ask(commands.producer(3, 1, TOPIC))
    assert (error.request_id, error.error, error.message) == (3, failure.wire_code, str(failure))


MOVED = TopicMoved("it moved", "pulsar://west:6650", "pulsar+ssl://west:6651")
SCHEMA = SchemaInfo(SchemaType.STRING)


def redirect_of(frames: list[Frame]) -> tuple[int, str, str]:
    """The two frames by which a producer is sent to another cluster."""
    moved, closed = (frame.command for frame in frames)
    assert (closed.close_producer.producer_id, closed.close_producer.request_id) == (1, 2**64 - 1)
    where = moved.topicMigrated
    assert where.resource_type == pb.CommandTopicMigrated.Producer
    return where.resource_id, where.brokerServiceUrl, where.brokerServiceUrlTls


@pytest.mark.parametrize(("epoch", "schema"), [(0, None), (1, SCHEMA)], ids=["new", "with-schema"])
async def test_producer_when_the_topic_moved_then_redirected_without_an_answer_or_a_schema(
    client: Any, epoch: int, schema: SchemaInfo | None
) -> None:
    client.context.topic.failover_gate.refusal = MOVED
    client.send(commands.producer(1, 1, TOPIC, name="p", epoch=epoch, schema=schema))
    assert redirect_of(await client.answers()) == (1, "pulsar://west:6650", "pulsar+ssl://west:6651")
    assert client.context.admitted == []


async def test_producer_when_it_returns_to_a_topic_that_moved_then_success_comes_first_and_its_sends_are_ignored(
    client: Any,
) -> None:
    client.context.topic.failover_gate.refusal = MOVED
    client.send(commands.producer(7, 1, TOPIC, name="p", epoch=2))
    success, *redirect = await client.answers()
    assert (success.command.producer_success.request_id, success.command.producer_success.producer_name) == (7, "p")
    assert redirect_of(redirect)[0] == 1
    client.send(commands.send(1, 7, ENTRY))
    assert await client.answers() == []
    assert not client.transport.closed


async def test_producer_when_the_topic_moves_then_redirected(client: Any) -> None:
    producer = await client.open_producer()
    producer.sink.producer_moved(1, FailoverRole(Role.MOVED, 1, "pulsar://west:6650"))
    assert redirect_of(await client.answers()) == (1, "pulsar://west:6650", "")
    client.send(commands.send(1, 7, ENTRY))
    assert await client.answers() == []


async def test_producer_when_its_client_is_too_old_for_a_redirect_then_closed_and_refused_for_now(dial: Any) -> None:
    client = dial()
    await client.greet(protocol_version=19)
    producer = await client.open_producer()
    producer.sink.producer_moved(1, FailoverRole(Role.MOVED, 1, "pulsar://west:6650"))
    (closed,) = await client.answers()
    assert closed.command.close_producer.producer_id == 1
    client.context.topic.failover_gate.refusal = MOVED
    error = await client.ask(commands.producer(2, 1, TOPIC))
    assert (error.error, error.message) == (ServerError.ServiceNotReady, "it moved")


async def test_producer_when_name_is_invalid_then_code_17(client: Any) -> None:
    error = await client.ask(commands.producer(3, 1, "a/b"))
    assert error.error == ServerError.InvalidTopicName
    assert error.message.startswith("Invalid topic name")


async def test_producer_when_it_waits_for_exclusivity_then_a_second_success_follows(client: Any) -> None:
    client.context.topic.ready = False
    success = await client.ask(commands.producer(4, 1, TOPIC, access_mode=pb.WaitForExclusive))
    assert not success.producer_ready
    producer = client.context.topic.producers[0]
    producer.ready, producer.topic_epoch = True, 7
    producer.sink.producer_ready(1, 7)
    (answer,) = await client.answers()
    success = answer.command.producer_success
    assert (success.request_id, success.producer_ready, success.topic_epoch) == (4, True, 7)


async def test_producer_when_waiting_ends_in_refusal_then_error_for_the_open_request(client: Any) -> None:
    client.context.topic.ready = False
    await client.ask(commands.producer(4, 1, TOPIC, access_mode=pb.WaitForExclusive))
    client.context.topic.producers[0].sink.producer_refused(1, ProducerFenced("newer"))
    (answer,) = await client.answers()
    assert (answer.command.error.request_id, answer.command.error.error) == (4, ServerError.ProducerFenced)


async def test_send_when_stored_then_receipt_repeats_its_ids(client: Any) -> None:
    producer = await client.open_producer()
    client.send(commands.send(1, 7, ENTRY, num_messages=3, highest_sequence_id=9, is_chunk=True))
    sequence_id, highest, count, entry, is_chunk, marker = producer.published[0]
    assert (sequence_id, highest, count, bytes(entry), is_chunk, marker) == (7, 9, 3, ENTRY, True, False)
    producer.sink.receipts(1, [(7, 9, 11, 12)])
    (answer,) = await client.answers()
    receipt = answer.command.send_receipt
    assert (receipt.sequence_id, receipt.highest_sequence_id) == (7, 9)
    assert (receipt.message_id.ledgerId, receipt.message_id.entryId, receipt.message_id.partition) == (11, 12, 3)


async def test_send_when_no_highest_id_then_published_with_minus_one_and_receipt_has_none(client: Any) -> None:
    producer = await client.open_producer()
    client.send(commands.send(1, 0, ENTRY))
    assert producer.published[0][:3] == (0, -1, 1)
    producer.sink.receipts(1, [(0, -1, -1, -1)])
    (answer,) = await client.answers()
    receipt = answer.command.send_receipt
    assert receipt.highest_sequence_id == 0
    assert (receipt.message_id.ledgerId, receipt.message_id.entryId) == (2**64 - 1, 2**64 - 1)


@pytest.mark.parametrize("count", [0, -5, -(2**31)])
async def test_send_when_its_number_of_messages_is_none_then_it_counts_as_one(client: Any, count: int) -> None:
    """Else it would give back permits of consumers, and of the publish rate."""
    producer = await client.open_producer()
    command = pb.BaseCommand(type=pb.BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id, command.send.num_messages = 1, 7, count
    on_send(client.connection, Frame(command, memoryview(ENTRY)))
    assert producer.published[0][2] == 1


async def test_send_when_checksum_is_wrong_then_checksum_error_and_nothing_published(client: Any) -> None:
    producer = await client.open_producer()
    damaged = ENTRY[:-1] + b"!"
    error = await client.ask(commands.send(1, 7, damaged, highest_sequence_id=8))
    assert (error.producer_id, error.sequence_id, error.error) == (1, 8, ServerError.ChecksumError)
    assert producer.published == []


async def test_send_when_checksum_is_left_out_then_added(client: Any) -> None:
    producer = await client.open_producer()
    client.send(commands.send(1, 7, ENTRY[6:]))
    assert producer.published[0][3] == ENTRY


@pytest.mark.parametrize("read_bytes", [2**30, 256 * 1024, 60_001])
async def test_send_when_its_payload_is_large_then_copied_once_on_its_way_to_the_log(
    client: Any, read_bytes: int
) -> None:
    """Copies are counted by what lives at once: each holds its source until it is made. Reads begin amid frames."""
    appended: list[bytes] = []
    owner = Mock(publish_limits=None, deduplication=None, broker_entry_interceptor=None)
    owner.append.side_effect = lambda entries, *_, **__: appended.extend(entries)
    opened = await client.open_producer()
    connected = client.connection.producers[1]
    producer = Producer(owner, opened.request, "p", opened.sink)
    client.connection.producers[1] = replace(connected, producer=producer)
    entries = [build_entry(METADATA, bytes([number]) * 3_000_000) for number in range(4)]
    stream = b"".join(commands.send(1, number, entry) for number, entry in enumerate(entries))
    reads = [stream[start : start + read_bytes] for start in range(0, len(stream), read_bytes)]
    tracemalloc.start()
    try:
        for read in reads:
            client.connection.data_received(read)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert appended == entries
    assert sum(map(len, entries)) <= peak < sum(map(len, entries)) + 500_000


async def test_send_when_it_fails_then_send_error(client: Any) -> None:
    producer = await client.open_producer()
    client.send(commands.send(1, 7, ENTRY))
    producer.sink.send_failed(1, 7, PersistenceError("disk full"))
    (answer,) = await client.answers()
    error = answer.command.send_error
    assert (error.sequence_id, error.error, error.message) == (7, ServerError.PersistenceError, "disk full")


async def test_send_when_producer_is_unknown_then_closed(client: Any) -> None:
    client.send(commands.send(1, 7, ENTRY))
    await client.answers()
    assert client.transport.closed


async def test_send_when_entry_is_missing_then_closed(client: Any) -> None:
    await client.open_producer()
    client.send(commands.encode(pb.CommandSend(producer_id=1, sequence_id=1)))
    await client.answers()
    assert client.transport.closed


async def test_send_when_producer_was_closed_just_now_then_ignored(client: Any) -> None:
    producer = await client.open_producer()
    producer.sink.producer_closed(1)
    client.send(commands.send(1, 7, ENTRY))
    (answer,) = await client.answers()
    assert answer.command.close_producer.request_id == 2**64 - 1
    assert producer.published == []
    assert not client.transport.closed


async def test_close_by_broker_when_client_is_too_old_then_connection_is_closed(dial: Any) -> None:
    client = dial()
    await client.greet(protocol_version=4)
    producer = await client.open_producer()
    producer.sink.producer_closed(1)
    assert client.transport.closed


async def test_close_when_sends_are_pending_then_success_after_their_receipts(client: Any) -> None:
    producer = await client.open_producer()
    client.send(commands.send(1, 7, ENTRY), commands.close_producer(1, 3))
    assert await client.answers() == []
    producer.sink.receipts(1, [(7, -1, 1, 1)])
    receipt, success = await client.answers()
    assert receipt.command.type == pb.BaseCommand.SEND_RECEIPT
    assert success.command.success.request_id == 3
    assert producer.closed


async def test_close_when_producer_is_unknown_then_success(client: Any) -> None:
    assert (await client.ask(commands.close_producer(8, 3))).request_id == 3


async def test_close_when_producer_is_being_opened_then_closed_afterwards(client: Any) -> None:
    client.context.topic.gate = asyncio.Event()
    client.send(commands.producer(1, 1, TOPIC), commands.close_producer(1, 2))
    await client.answers()
    client.context.topic.gate.set()
    opened, closed = await client.answers()
    assert opened.command.producer_success.request_id == 1
    assert closed.command.success.request_id == 2
    assert client.context.topic.producers[0].closed


async def test_close_by_broker_when_sends_are_pending_then_they_do_not_count_any_more(dial: Any) -> None:
    client = dial(pending_publishes_max=2)
    await client.greet()
    producer = await client.open_producer()
    client.send(commands.send(1, 1, ENTRY), commands.send(1, 2, ENTRY))
    assert not client.transport.reading
    producer.sink.producer_closed(1)
    assert client.transport.reading
    producer.sink.receipts(1, [(1, -1, 1, 1)])
    producer.sink.send_failed(1, 2, PersistenceError("late"))
    (answer,) = await client.answers()
    assert answer.command.type == pb.BaseCommand.CLOSE_PRODUCER


async def test_close_when_connection_ends_before_the_receipts_then_no_request_is_left_waiting(client: Any) -> None:
    await client.open_producer()
    client.send(commands.send(1, 1, ENTRY), commands.close_producer(1, 3))
    await client.answers()
    client.end()
    await asyncio.wait_for(client.connection.tasks_done(), 5)


async def test_producer_when_there_is_no_room_for_messages_then_refused_before_the_topic_is_opened(client: Any) -> None:
    client.context.no_room = NoRoomLeft("full")
    answer = await client.ask(commands.producer(1, 1, TOPIC))
    assert (answer.error, answer.message) == (ServerError.ProducerBlockedQuotaExceededException, "full")
    assert client.context.opened == []
    client.context.no_room = None
    assert (await client.ask(commands.producer(2, 1, TOPIC))).producer_name


async def test_sends_when_they_come_in_one_read_then_published_together_and_counted(client: Any) -> None:
    producer = await client.open_producer()
    producer.takes_runs = True
    client.send(*[commands.send(1, number, ENTRY) for number in (5, 6, 7)])
    assert (producer.runs, producer.published) == ([([5, 6, 7], [ENTRY] * 3)], [])
    pending = client.connection.pending_publishes
    assert (pending.count, pending.bytes) == (3, 3 * len(ENTRY))
    producer.sink.receipts(1, [(5, -1, 1, 1), (6, -1, 1, 2)])
    assert (pending.count, pending.bytes) == (1, len(ENTRY))


async def test_sends_when_the_producer_judges_each_then_published_one_by_one_in_order(client: Any) -> None:
    producer = await client.open_producer()
    batch = commands.send(1, 7, ENTRY, num_messages=3, highest_sequence_id=9)
    client.send(commands.send(1, 5, ENTRY), commands.send(1, 6, ENTRY), batch, commands.send(1, 10, ENTRY))
    assert [(each[0], each[1], each[2], bytes(each[3])) for each in producer.published] == [
        (5, -1, 1, ENTRY),
        (6, -1, 1, ENTRY),
        (7, 9, 3, ENTRY),
        (10, -1, 1, ENTRY),
    ]
    assert client.connection.pending_publishes.count == 4


async def test_sends_when_the_producer_is_not_open_then_connection_ends_unless_it_was_just_closed(client: Any) -> None:
    await client.open_producer()
    await client.ask(commands.close_producer(1, 9))
    client.send(commands.send(1, 1, ENTRY), commands.send(1, 2, ENTRY))
    assert not client.transport.closed
    client.send(commands.send(7, 1, ENTRY), commands.send(7, 2, ENTRY))
    assert client.transport.closed
