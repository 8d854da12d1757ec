"""Upkeep of topics: what expires, and what makes room when the disk is short."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import InitialPosition, TopicSettings
from interpulse.broker.live.registry import backlog_operations, upkeep
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import RetentionPolicies

MINUTE_MS = 60_000


@pytest.fixture
def expiring(bench: Any) -> None:
    bench.settings = TopicSettings(subscription_expiration_minutes=5)


async def names_after(bench: Any, topic: Any, minutes: float) -> set[str]:
    """The subscriptions there are after so many minutes and a run of the periodic task."""
    bench.clock.time_ms += int(minutes * MINUTE_MS)
    await bench.registry.topic_tasks.expire_subscriptions()
    return set(topic.subscriptions)


@pytest.mark.usefixtures("expiring")
async def test_subscription_goes_when_it_had_no_consumer_for_longer_than_that(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    assert await names_after(bench, topic, 5) == {"s"}
    assert await names_after(bench, topic, 0.001) == set()
    assert await bench.metadata.get(f"/managed-ledgers/{topic.name.log_name}/s") is None
    await bench.restart()
    assert set((await bench.topic()).subscriptions) == set()


@pytest.mark.usefixtures("expiring")
async def test_subscription_stays_while_a_consumer_is_connected_and_its_time_begins_when_the_last_one_goes(
    bench: Any, join: Any
) -> None:
    topic = await bench.topic()
    first, _ = await join(topic, "a")
    second, _ = await join(topic, "b")
    name = next(iter(topic.subscriptions))
    assert await names_after(bench, topic, 100) == {name}
    first.close()
    assert await names_after(bench, topic, 100) == {name}
    second.close()
    assert await names_after(bench, topic, 5) == {name}
    assert await names_after(bench, topic, 1) == set()


@pytest.mark.parametrize("minutes", [0, -1])
async def test_subscription_stays_where_no_time_is_set(bench: Any, minutes: int) -> None:
    bench.settings = TopicSettings(subscription_expiration_minutes=minutes)
    topic = await bench.topic()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    assert await names_after(bench, topic, 10_000) == {"s"}


@pytest.mark.usefixtures("expiring")
async def test_subscriptions_that_replicate_their_state_and_cursors_of_the_broker_stay(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("shared", initial=InitialPosition.EARLIEST, replicate_state=True)
    await topic.create_subscription("pulsar.repl.west", initial=InitialPosition.EARLIEST)
    await topic.create_subscription("__compaction", initial=InitialPosition.EARLIEST)
    await topic.create_subscription("plain", initial=InitialPosition.EARLIEST)
    assert await names_after(bench, topic, 10) == {"shared", "pulsar.repl.west", "__compaction"}


@pytest.mark.usefixtures("expiring")
async def test_time_goes_on_over_a_restart(bench: Any, topic_name: TopicName, join: Any) -> None:
    consumer, _ = await join(await bench.topic())
    consumer.close()
    bench.clock.time_ms += 3 * MINUTE_MS
    await bench.restart()
    topic = await bench.topic()
    name = next(iter(topic.subscriptions))
    assert await names_after(bench, topic, 2) == {name}
    assert await names_after(bench, topic, 1) == set()


@pytest.mark.usefixtures("expiring")
async def test_time_begins_anew_when_a_broker_was_killed_under_a_consumer(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await join(topic)
    consumer.close()
    await bench.registry.flush()
    bench.clock.time_ms += 3 * MINUTE_MS
    await join(topic)
    await bench.registry.flush()
    bench.clock.time_ms += 100 * MINUTE_MS
    await bench.crash()
    topic = await bench.topic()
    assert len(await names_after(bench, topic, 5)) == 1
    assert await names_after(bench, topic, 1) == set()


async def test_room_when_it_is_short_then_producers_go_and_the_current_ledger_when_all_have_acknowledged_it(
    bench: Any,
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    await topic.create_subscription("slow", initial=InitialPosition.EARLIEST)
    await bench.publish(topic, 0)
    backlog_operations.clear(topic, "s")
    await bench.registry.topic_tasks.free_disk_space()
    assert not topic.producers.by_name
    assert sum(ledger.entries for ledger in topic.log.ledgers) == 1
    backlog_operations.clear(topic, "slow")
    await bench.registry.topic_tasks.free_disk_space()
    assert [ledger.entries for ledger in topic.log.ledgers] == [0]
    ledgers = list(topic.log.ledgers)
    await bench.registry.topic_tasks.free_disk_space()
    assert list(topic.log.ledgers) == ledgers


@pytest.mark.parametrize("retained", [True, False])
async def test_room_when_it_is_short_then_what_retention_keeps_or_no_subscription_reads_stays(
    bench: Any, retained: bool
) -> None:
    if retained:
        bench.settings = TopicSettings(retention=RetentionPolicies(10, 10))
    topic = await bench.topic()
    if retained:
        await topic.create_subscription("s", initial=InitialPosition.LATEST)
    await bench.publish(topic, 0)
    if retained:
        backlog_operations.clear(topic, "s")
    await bench.registry.topic_tasks.free_disk_space()
    assert [ledger.entries for ledger in topic.log.ledgers] == [1]


async def test_replication_cursor_when_its_backlog_outlives_the_time_to_live_then_moves_and_the_log_says_so(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Pulsar since 4.0.4 (apache/pulsar#23975)."""
    bench.settings = TopicSettings(remote_clusters=("west",), message_ttl_seconds=5)
    topic = await bench.topic()
    await bench.publish(topic, 0, 1, 2)
    bench.clock.time_ms = 6_000  # what the bench publishes is of 1000 and later
    await upkeep.maintain(topic)
    assert topic.stats()["replication"]["west"]["replicationBacklog"] == 3
    assert "expired" not in caplog.text
    bench.clock.time_ms = 6_003
    await upkeep.maintain(topic)
    west = topic.stats()["replication"]["west"]
    assert (west["replicationBacklog"], west["msgExpiredCount"]) == (0, 3)
    assert f"expired before they were replicated topic={topic.name} cluster=west entries=3 messageTTL=5" in caplog.text
    topic.tick(10)
    assert topic.stats()["replication"]["west"]["msgRateExpired"] == 0.3
