"""Compaction and what needs it, with our client and any broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.client import AdminClient, Client, Message
from interpulse.model.errors import Conflict, NotAllowed
from interpulse.model.ids import EARLIEST, LATEST, MessageId
from tests.scenarios.client import WAIT_MS, Cluster, Scenarios, administered, connected, new_topic, take

SCENARIOS = scenario = Scenarios()

HISTORY = [("a", b"1"), ("b", b"1"), (None, b"no key"), ("a", b"2"), ("c", b"1"), ("b", None), ("c", b"2"), ("d", b"")]
NEWEST = [("a", b"2"), ("c", b"2")]


async def publish_history(
    client: Client, topic: str, history: list[tuple[str | None, bytes | None]], **options: Any
) -> None:
    """All in one batch, or each in an entry of its own."""
    async with await client.create_producer(topic, **options) as producer:
        sent = [await producer.enqueue(content, key=key) for key, content in history]
        await producer.flush()
        assert len({each.result().position for each in sent}) in (1, len(history))


async def compact(admin: AdminClient, topic: str) -> None:
    await admin.topics.compact(topic)
    assert await ended(admin, topic) == {"status": "SUCCESS", "lastError": ""}


async def ended(admin: AdminClient, topic: str) -> dict[str, Any]:
    """How the compaction under way ended."""
    async with asyncio.timeout(WAIT_MS / 1000):
        while True:
            status = await admin.topics.compaction_status(topic)
            if status["status"] != "RUNNING":
                return status
            await asyncio.sleep(0.05)


async def read_all(client: Client, topic: str, start: Any = EARLIEST, **options: Any) -> list[Message]:
    """Everything up to the end."""
    found: list[Message] = []
    async with await client.create_reader(topic, start, **options) as reader:
        while await reader.has_message_available():
            found.append(await reader.read_next(WAIT_MS))
    return found


def pairs(messages: list[Message]) -> list[tuple[str | None, bytes | None]]:
    return [(message.key, message.content) for message in messages]


@scenario
async def compacted_topics_hold_the_newest_of_every_key(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        for options in ({"batching_enabled": False}, {}, {"compression": "zstd"}):
            topic = new_topic()
            await publish_history(client, topic, HISTORY, **options)
            assert (await admin.topics.compaction_status(topic))["status"] == "NOT_RUN"
            before = await read_all(client, topic, read_compacted=True)
            await compact(admin, topic)
            found = await read_all(client, topic, read_compacted=True)
            assert pairs(found) == NEWEST, options
            assert {message.id for message in found} <= {message.id for message in before}, "ids stay"
            assert len(await read_all(client, topic)) == len(before) == len(HISTORY)
            await publish_history(client, topic, [("a", b"3"), ("e", b"1")], **options)
            assert pairs(await read_all(client, topic, read_compacted=True)) == [*NEWEST, ("a", b"3"), ("e", b"1")]
            await compact(admin, topic)
            assert pairs(await read_all(client, topic, read_compacted=True)) == [NEWEST[1], ("a", b"3"), ("e", b"1")]
            inside = await admin.topics.internal_stats(topic)
            assert inside["compactedLedger"]["entries"] >= 2
            assert "CompactedTopicLedger" in inside["cursors"]["__compaction"]["properties"]


@scenario
async def compacted_reads_begin_anywhere(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await publish_history(client, topic, [(f"k{n % 4}", b"%d" % n) for n in range(8)], batching_enabled=False)
        ids = [message.id for message in await read_all(client, topic)]
        await compact(admin, topic)
        await publish_history(client, topic, [("new", b"8")], batching_enabled=False)
        for start, first in ((ids[1], 4), (ids[4], 5), (ids[6], 7), (ids[7], 8)):
            expected = [b"%d" % n for n in range(first, 9)]
            assert [each.content for each in await read_all(client, topic, start, read_compacted=True)] == expected
        async with await client.create_reader(topic, LATEST, read_compacted=True) as reader:
            assert not await reader.has_message_available()
            await reader.seek(ids[2])
            assert (await reader.read_next(WAIT_MS)).content == b"4"
            await reader.seek(MessageId(*EARLIEST))
            assert (await reader.read_next(WAIT_MS)).content == b"4"


@scenario
async def compacted_consumers_share_a_subscription_in_turn(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await publish_history(client, topic, HISTORY, batching_enabled=False)
        await compact(admin, topic)
        options = {"subscription_type": "failover", "initial_position": "earliest", "read_compacted": True}
        async with await client.subscribe(topic, "f", **options) as consumer:
            received = await take(consumer, 2)
            assert pairs(received) == NEWEST
            consumer.acknowledge_cumulative(received[0])
        async with await client.subscribe(topic, "f", **options) as consumer:
            assert pairs(await take(consumer, 1)) == NEWEST[1:]
        for kind in ("shared", "key-shared"):
            with pytest.raises(NotAllowed, match="readCompacted"):
                await client.subscribe(topic, kind, subscription_type=kind, read_compacted=True)


@scenario
async def a_topic_whose_last_messages_were_removed_has_an_end(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await publish_history(client, topic, [("a", b"1"), ("b", b"1"), ("b", None)])
        await publish_history(client, topic, [("c", None)])
        await compact(admin, topic)
        assert pairs(await read_all(client, topic, read_compacted=True)) == [("a", b"1")]
        gone = new_topic()
        await publish_history(client, gone, [("a", b"1"), ("a", None)], batching_enabled=False)
        await compact(admin, gone)
        assert await read_all(client, gone, read_compacted=True) == []
        assert len(await read_all(client, gone)) == 2


@scenario
async def a_compaction_runs_once_at_a_time(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await publish_history(client, topic, [(f"k{n}", b"x" * 100) for n in range(500)])
        await admin.topics.compact(topic)
        with pytest.raises(Conflict, match="Compaction already in progress"):
            await admin.topics.compact(topic)
        assert (await ended(admin, topic))["status"] == "SUCCESS"
        await compact(admin, topic)


@scenario
async def table_views_hold_and_follow_a_topic(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await publish_history(client, topic, HISTORY)
        await compact(admin, topic)
        await publish_history(client, topic, [("e", b"1")])
        async with await client.create_table_view(topic) as view:
            assert view.snapshot() == {"a": b"2", "c": b"2", "e": b"1"}
            heard: list[tuple[str, bytes | None]] = []
            view.listen(lambda key, value: heard.append((key, value)))
            await publish_history(client, topic, [("a", None), ("f", b"1")])
            await view.refresh()
            assert view.snapshot() == {"c": b"2", "e": b"1", "f": b"1"}
            assert heard == [("a", None), ("f", b"1")]


@scenario
async def table_views_take_new_partitions_in(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create_partitioned(topic, 2)
        await publish_history(client, topic, [(f"k{n}", b"%d" % n) for n in range(20)], batching_enabled=False)
        async with await client.create_table_view(topic) as view:
            assert view.snapshot() == {f"k{n}": b"%d" % n for n in range(20)}
            await admin.topics.expand(topic, 3)
            await publish_history(client, f"{topic}-partition-2", [("new", b"1")])
            await view.refresh()
            assert view["new"] == b"1"


@scenario
async def table_views_of_topics_that_are_not_there_make_them_if_that_is_allowed(cluster: Cluster) -> None:
    async with connected(cluster) as client:
        topic = new_topic()
        async with await client.create_table_view(topic) as view:
            assert len(view) == 0
            await publish_history(client, topic, [("a", b"1")])
            await view.refresh()
            assert view.get("a") == b"1"
