"""What operators do to subscriptions, and what they leave out of statistics: on our broker as on a real Pulsar."""

from __future__ import annotations

import asyncio

from interpulse.client import AdminClient, Client
from interpulse.model.errors import Conflict
from interpulse.model.ids import MessageId
from tests.scenarios.client import Cluster, Scenarios, administered, new_topic, take

SCENARIOS = scenario = Scenarios()

_WAIT_SECONDS = 60


async def _filled(client: Client, topic: str) -> list[MessageId]:
    """Three entries of two messages each, and then no client is connected."""
    async with await client.create_producer(topic, batch_messages_max=2) as producer:
        futures = [await producer.enqueue(b"%d" % number) for number in range(6)]
        await producer.flush()
    return [future.result() for future in futures]


async def _rest(client: Client, topic: str, count: int) -> list[bytes | None]:
    async with await client.subscribe(topic, "s") as consumer:
        return [message.content for message in await take(consumer, count)]


@scenario
async def cursor_is_reset_to_a_message_or_behind_it_also_inside_of_a_batch(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create(topic)
        await admin.topics.create_subscription(topic, "s")
        ids = await _filled(client, topic)
        entry = MessageId(ids[2].ledger, ids[2].entry)
        await admin.topics.reset_cursor_to_message(topic, "s", entry)
        assert await _rest(client, topic, 4) == [b"2", b"3", b"4", b"5"]
        await admin.topics.reset_cursor_to_message(topic, "s", entry, excluded=True)
        assert await _rest(client, topic, 2) == [b"4", b"5"]
        await admin.topics.reset_cursor_to_message(topic, "s", ids[3])
        assert await _rest(client, topic, 3) == [b"3", b"4", b"5"]
        await admin.topics.reset_cursor_to_message(topic, "s", ids[2], excluded=True)
        assert await _rest(client, topic, 3) == [b"3", b"4", b"5"]
        await admin.topics.reset_cursor_to_message(topic, "s", ids[3], excluded=True)
        assert await _rest(client, topic, 2) == [b"4", b"5"]


async def _first_after_expiry(admin: AdminClient, topic: str, position: MessageId, *, excluded: bool) -> int:
    """The backlog in entries once an expiry has begun to show, which a real Pulsar does in its own time."""
    await admin.topics.reset_cursor_to_message(topic, "s", MessageId(-1, -1))
    await admin.topics.expire_upto(topic, "s", position, excluded=excluded)
    async with asyncio.timeout(_WAIT_SECONDS):
        while (waiting := await _waiting_entries(admin, topic)) == 3:  # noqa: ASYNC110  (an expiry is not announced)
            await asyncio.sleep(0.05)
    return waiting


async def _waiting_entries(admin: AdminClient, topic: str) -> int:
    stats = await admin.topics.internal_stats(topic)
    return int(stats["numberOfEntries"]) - int(stats["cursors"]["s"]["messagesConsumedCounter"])


@scenario
async def expiry_takes_the_message_along_and_excluded_the_entry_behind_it(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create(topic)
        await admin.topics.create_subscription(topic, "s")
        ids = await _filled(client, topic)
        first, last = (MessageId(each.ledger, each.entry) for each in (ids[0], ids[5]))
        assert await _first_after_expiry(admin, topic, first, excluded=False) == 2
        assert await _first_after_expiry(admin, topic, first, excluded=True) == 1
        try:
            await admin.topics.expire_upto(topic, "s", last, excluded=True)
        except Conflict:
            return
        raise AssertionError("nothing is behind the last entry")


@scenario
async def statistics_leave_out_publishers_and_consumers(cluster: Cluster) -> None:
    async with administered(cluster) as (client, admin):
        topic = new_topic()
        await admin.topics.create_partitioned(topic, 2)
        await client.subscribe(topic, "s")
        await client.create_producer(topic)
        for publishers, consumers in ((False, False), (True, False), (False, True), (True, True)):
            left_out = {"exclude_publishers": publishers, "exclude_consumers": consumers}
            whole = await admin.topics.partitioned_stats(topic, per_partition=True, **left_out)
            single = await admin.topics.stats(f"{topic}-partition-0", **left_out)
            assert len(whole["partitions"]) == 2
            for stats in (whole, single, *whole["partitions"].values()):
                assert bool(stats["publishers"]) != publishers
                assert bool(stats["subscriptions"]["s"]["consumers"]) != consumers
