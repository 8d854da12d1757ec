"""The connection itself: greeting, error boundary, back-pressure, signs of life."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from interpulse.broker.binary.transport import connection
from interpulse.broker.binary.transport.flow_control import PublishBuffer
from interpulse.model.errors import ServerError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from tests.support import commands

ENTRY = build_entry(
    pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString(), b"x" * 100
)


async def test_connect_when_first_then_connected_and_what_follows_is_answered(dial: Any) -> None:
    client = dial()
    flags = pb.FeatureFlags()
    greeting = commands.connect(client_version="Pulsar-Go", protocol_version=20, feature_flags=flags)
    client.send(greeting + commands.partitioned_metadata(7, "a/b/c"))
    connected, answer = await client.answers()
    assert connected.command.connected.server_version == "Pulsar Server"
    assert connected.command.connected.protocol_version == 20
    assert answer.command.partitionMetadataResponse.partitions == 4


async def test_connect_when_it_names_this_broker_behind_a_proxy_or_an_unknown_method_then_let_in(dial: Any) -> None:
    client = dial()
    greeting = commands.connect(
        client_version="Pulsar-Java",
        protocol_version=21,
        feature_flags=pb.FeatureFlags(),
        auth_method="athenz",
        auth_data=b"?",
        proxy_to_broker_url="127.0.0.1:6650",
    )
    assert (await client.ask(greeting)).server_version == "Pulsar Server"


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff\x00\x00\x00\x05", b"\x00" * 64, commands.PING],
    ids=["http", "huge", "zeros", "before-connect"],
)
async def test_bytes_when_no_greeting_then_closed_without_an_answer(dial: Any, garbage: bytes) -> None:
    client = dial()
    client.send(garbage)
    assert await client.answers() == []
    assert client.transport.closed


async def test_command_when_its_type_is_unknown_then_closed(client: Any) -> None:
    client.send(bytes.fromhex("0000000700000003" + "08ff01"))
    assert await client.answers() == []
    assert client.transport.closed


async def test_command_when_meant_for_clients_then_closed(client: Any) -> None:
    client.send(commands.success(1))
    await client.answers()
    assert client.transport.closed


async def test_ping_when_connected_then_pong(client: Any) -> None:
    client.send(commands.PING)
    (answer,) = await client.answers()
    assert answer.command.type == pb.BaseCommand.PONG


@pytest.mark.parametrize("number", [50, 52, 54, 56, 62])
async def test_transaction_when_asked_for_then_refused_in_pulsars_words(client: Any, number: int) -> None:
    contents = {
        50: pb.CommandNewTxn(request_id=5),
        52: pb.CommandAddPartitionToTxn(request_id=5),
        54: pb.CommandAddSubscriptionToTxn(request_id=5),
        56: pb.CommandEndTxn(request_id=5),
        62: pb.CommandTcClientConnectRequest(request_id=5, tc_id=0),
    }
    error = await client.ask(commands.encode(contents[number]))
    assert (error.request_id, error.error) == (5, ServerError.NotAllowedError)
    assert error.message == "Transactions are not enabled."


async def test_command_when_known_but_not_offered_then_unsupported_version(client: Any) -> None:
    lookup = pb.CommandScalableTopicLookup(session_id=6, topic="a")
    error = await client.ask(commands.encode(lookup))
    assert error.error == ServerError.UnsupportedVersionError
    assert not client.transport.closed


async def test_request_when_broker_code_fails_then_unknown_error_and_connection_stays(client: Any) -> None:
    client.context.failure = ZeroDivisionError("a fault")
    error = await client.ask(commands.producer(8, 1, "a/b/c"))
    assert (error.request_id, error.error) == (8, ServerError.UnknownError)
    assert "a fault" not in error.message
    assert not client.transport.closed


async def test_publishes_when_limit_is_reached_then_reading_stops_until_half_is_answered(dial: Any) -> None:
    client = dial(pending_publishes_max=4)
    await client.greet()
    producer = await client.open_producer()
    for sequence_id in range(4):
        assert client.transport.reading
        client.send(commands.send(1, sequence_id, ENTRY))
    assert not client.transport.reading
    producer.sink.receipts(1, [(0, -1, 3, 0)])
    assert not client.transport.reading
    producer.sink.receipts(1, [(1, -1, 3, 1)])
    assert client.transport.reading


async def test_publishes_when_byte_limit_is_reached_then_reading_stops(dial: Any) -> None:
    client = dial(pending_publish_bytes_max=2 * len(ENTRY))
    await client.greet()
    producer = await client.open_producer()
    client.send(commands.send(1, 0, ENTRY), commands.send(1, 1, ENTRY))
    assert not client.transport.reading
    producer.sink.receipts(1, [(0, -1, 3, 0)])
    assert client.transport.reading


async def test_publishes_when_all_connections_together_reach_a_limit_then_those_that_publish_are_not_read(
    dial: Any, context: Any
) -> None:
    context.publish_buffer = PublishBuffer(2 * len(ENTRY))
    one, other, silent = dial(), dial(), dial()
    producers = []
    for client in (one, other):
        await client.greet()
        producers.append(await client.open_producer())
    await silent.greet()
    one.send(commands.send(1, 0, ENTRY))
    other.send(commands.send(1, 0, ENTRY))
    one.send(commands.PING)
    silent.send(commands.PING)
    assert [client.transport.reading for client in (one, other, silent)] == [False, False, True]
    producers[0].sink.receipts(1, [(0, -1, 3, 0)])
    assert (one.transport.reading, other.transport.reading) == (True, True)


async def test_requests_when_at_the_limit_then_one_above_waits_and_nothing_more_is_read(client: Any) -> None:
    most = connection._REQUESTS_MAX
    questions = [commands.get_schema(number, "a/b/c") for number in range(most + 1)]
    client.send(*questions[:most])
    assert client.transport.reading
    client.send(questions[most], commands.PING)
    assert not client.transport.reading
    answers = await client.answers()
    while len(answers) <= most:
        answers += await client.answers()
    assert client.transport.reading


async def test_output_when_client_does_not_read_then_reading_stops_and_consumers_wait(client: Any) -> None:
    consumer = await client.subscribe()
    assert consumer.sink.writable
    client.transport.buffer_size = 64 * 1024 * 1024
    client.connection.pause_writing()
    assert not consumer.sink.writable
    client.send(commands.PING)
    assert not client.transport.reading
    client.connection.resume_writing()
    assert client.transport.reading
    assert consumer.calls == [("resume",)]
    assert consumer.sink.writable


async def test_output_when_above_the_high_water_mark_then_entries_wait_until_no_more_than_the_low_one_is_left(
    dial: Any,
) -> None:
    """Over a real transport, whose kernel buffer is full."""
    high, low, loop = 64 * 1024, 32 * 1024, asyncio.get_running_loop()
    connection = dial(output_bytes_high=high, output_bytes_low=low).connection
    here, there = socket.socketpair()
    with there:
        transport, _ = await loop.connect_accepted_socket(lambda: connection, here)
        while not transport.get_write_buffer_size():
            transport.write(bytes(4096))
        transport.write(bytes(high - transport.get_write_buffer_size()))
        assert connection.writable
        transport.write(bytes(1))
        assert not connection.writable
        there.setblocking(False)
        while not connection.writable:
            with suppress(BlockingIOError):
                there.recv(4096)
            assert connection.writable == (transport.get_write_buffer_size() <= low)
            await asyncio.sleep(0)
        transport.abort()


async def test_liveness_when_client_answers_then_alive(client: Any) -> None:
    asking = asyncio.ensure_future(client.connection.is_alive())
    (ping,) = await client.answers()
    assert ping.command.type == pb.BaseCommand.PING
    client.send(commands.PONG)
    assert await asking
    assert not client.transport.closed


async def test_liveness_when_client_is_silent_then_dropped(dial: Any) -> None:
    client = dial(liveness_check_seconds=0.01)
    await client.greet()
    assert not await client.connection.is_alive()
    assert client.transport.closed


async def test_liveness_when_client_waits_for_its_receipts_then_it_is_not_suspected(dial: Any) -> None:
    client = dial(pending_publishes_max=1, liveness_check_seconds=0.01)
    await client.greet()
    await client.open_producer()
    client.send(commands.send(1, 0, ENTRY))
    assert not client.transport.reading
    assert await client.connection.is_alive()
    assert not client.transport.closed


async def test_liveness_when_connection_ends_meanwhile_then_dead(client: Any) -> None:
    asking = asyncio.ensure_future(client.connection.is_alive())
    await client.answers()
    client.end()
    assert not await asking


async def test_connection_when_lost_then_producers_and_consumers_are_closed(client: Any) -> None:
    producer, consumer = await client.open_producer(), await client.subscribe()
    client.end()
    assert producer.closed
    assert consumer.closed


async def test_connection_when_lost_while_a_producer_opens_then_it_is_closed(client: Any) -> None:
    topic = client.context.topic
    topic.gate = asyncio.Event()
    client.send(commands.producer(1, 1, "a/b/c"))
    await client.answers()
    client.end()
    topic.gate.set()
    await client.connection.tasks_done()
    assert topic.producers[0].closed


THROTTLED_ENTRY = build_entry(
    pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString(), b"x"
)
LONG_MS = 3_600_000


def sends(*numbers: int, producer_id: int = 1) -> bytes:
    return b"".join(commands.send(producer_id, number, THROTTLED_ENTRY) for number in numbers)


def published(producer: Any) -> list[int]:
    return [each[0] for each in producer.published]


async def throttling(client: Any, after: int, wait_ms: int = LONG_MS) -> Any:
    """A producer whose topic allows so many entries, then none for some time."""
    producer = await client.open_producer(1)

    record = producer.publish

    def publish(*arguments: Any, **facts: Any) -> None:
        record(*arguments, **facts)
        if len(producer.published) >= after:
            producer.sink.throttle(wait_ms)

    producer.publish = publish
    return producer


async def test_throttled_client_is_stopped_in_the_middle_of_a_read(client: Any) -> None:
    producer = await throttling(client, 2)
    client.send(sends(0, 1, 2, 3) + commands.PING)
    assert (published(producer), client.transport.reading) == ([0, 1], False)
    [pong] = await client.answers()
    assert pong.command.type == pb.BaseCommand.PONG  # keep-alive does not wait
    producer.published.clear()
    client.connection.throttle(0)
    await client.answers()
    assert (published(producer), client.transport.reading) == ([2, 3], False)


async def test_throttled_client_goes_on_by_itself_in_order_when_the_time_is_over(client: Any) -> None:
    producer = await throttling(client, 1, wait_ms=1)
    client.send(sends(*range(5)))
    assert published(producer) == [0]
    async with asyncio.timeout(60):
        while len(producer.published) < 5:  # noqa: ASYNC110  # a fake producer has no event to wait for
            await asyncio.sleep(0)
    assert published(producer) == [0, 1, 2, 3, 4]
    async with asyncio.timeout(60):
        while not client.transport.reading:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_what_comes_while_a_client_is_throttled_waits_behind_what_came_before(client: Any) -> None:
    producer = await throttling(client, 1)
    client.send(sends(0, 1))
    client.send(sends(2))  # what the transport had read already
    assert published(producer) == [0]
    del producer.publish
    client.connection.throttle(0)
    await client.answers()
    assert (published(producer), client.transport.reading) == ([0, 1, 2], True)


async def test_longer_wait_of_another_topic_counts_and_a_shorter_one_does_not(client: Any) -> None:
    producer = await throttling(client, 1)
    client.send(sends(0))
    first = client.connection._throttle_timer.when()
    producer.sink.throttle(1)
    assert client.connection._throttle_timer.when() == first
    producer.sink.throttle(2 * LONG_MS)
    assert client.connection._throttle_timer.when() > first


async def test_client_that_is_not_throttled_is_not_touched_when_a_rate_is_taken_away(client: Any) -> None:
    producer = await client.open_producer(1)
    producer.sink.throttle(0)
    assert client.connection._throttle_timer is None
    assert client.transport.reading


async def test_throttled_client_is_not_suspected_of_being_dead(client: Any) -> None:
    await throttling(client, 1)
    client.send(sends(0))
    assert await client.connection.is_alive()


async def test_answers_still_reach_a_throttled_client(client: Any) -> None:
    producer = await throttling(client, 1)
    client.send(sends(0))
    producer.sink.receipts(1, [(0, -1, 5, 6)])
    [receipt] = await client.answers()
    assert receipt.command.send_receipt.message_id.entryId == 6


async def test_throttled_client_that_goes_away_is_forgotten(client: Any) -> None:
    producer = await throttling(client, 1)
    client.send(sends(0, 1))
    timer = client.connection._throttle_timer
    client.end()
    assert timer.cancelled()
    client.connection.throttle(0)
    assert published(producer) == [0]


async def test_both_holds_have_to_end(dial: Any) -> None:
    client = dial(pending_publishes_max=1)
    await client.greet()
    producer = await throttling(client, 1)
    client.send(sends(0))
    assert not client.transport.reading
    producer.sink.receipts(1, [(0, -1, 5, 6)])
    assert not client.transport.reading
    client.connection.throttle(0)
    await client.answers()
    assert client.transport.reading
