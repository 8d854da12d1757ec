"""A client whose topic is over its publish rate: nothing more of it is handled or read for a while, nothing is lost."""

from __future__ import annotations

import asyncio
from typing import Any

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from tests.support import commands

ENTRY = build_entry(pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString(), b"x")
LONG_MS = 3_600_000


def sends(*numbers: int, producer_id: int = 1) -> bytes:
    return b"".join(commands.send(producer_id, number, ENTRY) for number in numbers)


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
