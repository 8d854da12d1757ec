"""Backlogs under operators. Truncating: each entry goes, no client is disconnected, a crash leaves all or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import InitialPosition, TopicSettings
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.registry.backlog_operations import expire_everywhere, expire_older, expire_upto
from interpulse.model.errors import Conflict, MetadataError, NotFound, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import RetentionPolicies


async def test_peek_skip_and_clear_count_what_is_not_acknowledged(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(10))
    topic.subscription("s").cursor.acknowledge(Position(1, 1))
    assert (await backlog_operations.peek(topic, "s", 2)).position == Position(1, 2)
    with pytest.raises(NotFound):
        await backlog_operations.peek(topic, "s", 10)
    assert backlog_operations.skip(topic, "s", 2) == 2
    assert topic.mark_delete_position("s") == Position(1, 2)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 7
    assert backlog_operations.clear(topic, "s") == 7
    assert backlog_operations.clear(topic, "s") == 0
    with pytest.raises(SubscriptionNotFound):
        backlog_operations.clear(topic, "other")


async def test_peek_without_the_subscription_shows_what_a_new_one_would_get_and_creates_nothing(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 0, 1)
    await topic.log.roll()
    await bench.publish(topic, 2)
    found = [await backlog_operations.peek(topic, "new", number) for number in (1, 2, 3)]
    assert [entry.position for entry in found] == [Position(1, 0), Position(1, 1), Position(2, 0)]
    with pytest.raises(NotFound, match="Message not found"):
        await backlog_operations.peek(topic, "new", 4)
    with pytest.raises(SubscriptionNotFound):
        await backlog_operations.peek(topic, "pulsar.repl.west", 1)
    assert topic.subscription_names() == []


async def test_bytes_behind_a_message_are_counted_and_a_place_of_no_ledger_has_everything_behind_it(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 0, 1, 2)
    await topic.log.roll()
    await bench.publish(topic, 3)
    size = topic.log.ledgers[1].size
    ledgers = [each.ledger_id for each in topic.log.ledgers]
    behind = [backlog_operations.bytes_behind(topic, Position(ledgers[0], entry)) for entry in (-1, 0, 2, 99)]
    assert behind == [4 * size, 3 * size, size, size]
    assert backlog_operations.bytes_behind(topic, Position(ledgers[1], 0)) == 0
    for unknown in (EARLIEST, Position(99, 0), LATEST):
        assert backlog_operations.bytes_behind(topic, unknown) == 4 * size


LIMITS = backlog_operations.ScanLimits(entries_max=10, time_ms_max=1000)


async def test_analysis_counts_what_waits_from_the_next_message_on_or_from_a_given_one(
    bench: Any, publish: Any
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    producer, _ = await bench.producer(topic)
    await publish(producer, *range(4))
    await publish(producer, 4, num_messages_in_batch=3)
    await publish(producer, 5, marker_type=10)
    cursor = topic.subscription("s").cursor
    ledger = topic.positions.durable.ledger
    cursor.acknowledge(Position(ledger, 0))
    cursor.acknowledge(Position(ledger, 2))
    cursor.acknowledge_part(Position(ledger, 4), 0b110)
    found = (await backlog_operations.analyze(topic, "s", None, LIMITS)).to_json()
    assert (found["entries"], found["messages"], found["markerMessages"], found["aborted"]) == (4, 6, 1, False)
    assert (found["firstMessageId"], found["lastMessageId"]) == (f"{ledger}:1", f"{ledger}:5")
    assert (found["filterAcceptedEntries"], found["filterAcceptedMessages"]) == (4, 6)
    from_the_first = await backlog_operations.analyze(topic, "s", EARLIEST, LIMITS)
    assert (from_the_first.entries, from_the_first.first) == (5, Position(ledger, 0))
    from_a_later_one = await backlog_operations.analyze(topic, "s", Position(ledger, 4), LIMITS)
    assert (from_a_later_one.entries, from_a_later_one.messages) == (2, 4)
    for behind in (LATEST, Position(99, 0)):
        assert "firstMessageId" not in (await backlog_operations.analyze(topic, "s", behind, LIMITS)).to_json()
    with pytest.raises(SubscriptionNotFound):
        await backlog_operations.analyze(topic, "other", None, LIMITS)


@pytest.mark.parametrize(
    ("limits", "entries", "aborted"),
    [((3, 1000), 3, True), ((4, 1000), 4, False), ((10, -1), 0, True)],
    ids=["too-many", "just-as-many", "too-long"],
)
async def test_analysis_ends_at_its_limits_and_says_so(
    bench: Any, limits: tuple[int, int], entries: int, aborted: bool
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(4))
    found = await backlog_operations.analyze(topic, "s", None, backlog_operations.ScanLimits(*limits))
    assert (found.entries, found.aborted) == (entries, aborted)


async def test_truncate_then_every_entry_is_gone_and_subscriptions_stand_at_the_end(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0, 1)
    await topic.log.roll()
    await bench.publish(topic, 2, 3)
    await backlog_operations.truncate(topic)
    assert topic.log.first_position is None
    assert topic.internal_stats()["numberOfEntries"] == 0
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 0
    with pytest.raises(NotFound):
        await backlog_operations.peek(topic, "s", 1)
    await bench.publish(topic, 4)
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == [4]


async def test_truncate_of_an_empty_topic_changes_nothing(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await backlog_operations.truncate(topic)
    await backlog_operations.truncate(topic)
    await bench.publish(topic, 1)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "FAILOVER", "SHARED", "KEY_SHARED"])
async def test_truncate_while_clients_are_connected_then_they_stay_and_get_what_comes_next(
    bench: Any, kind: str, settle: Any
) -> None:
    topic = await bench.topic()
    sub_type = type(bench.SHARED)[kind]
    consumer, sink = await bench.consumer(topic, permits=2, sub_type=sub_type)
    producer, receipts = await bench.producer(topic)
    for number in range(5):
        producer.publish([number], [bench.entry(number)])
    await settle()
    producer.publish([5], [bench.entry(5)])  # still on its way to the disk
    await backlog_operations.truncate(topic)
    assert [each[0] for each in receipts.received] == [0, 1, 2, 3, 4, 5]
    assert (sink.closed, receipts.closed) == ([], [])
    assert sink.numbers() == [0, 1]
    consumer.acknowledge(Position(1, 0))
    consumer.redeliver([Position(1, 1)])
    consumer.flow(10)
    producer.publish([6], [bench.entry(6)])
    await settle()
    assert sink.numbers() == [6]
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1


async def test_truncate_then_a_crash_brings_nothing_back(bench: Any) -> None:
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    topic.subscription("s").cursor.acknowledge(Position(1, 3))
    await backlog_operations.truncate(topic)
    await bench.crash()
    topic = await bench.topic()
    assert topic.internal_stats()["numberOfEntries"] == 0
    assert topic.publishing.deduplication.last_sequence_id("filler") == 4
    await bench.publish(topic, 5)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1


async def test_truncate_when_cursors_were_not_stored_then_a_crash_brings_nothing_back(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    topic.subscription("s").cursor.acknowledge(Position(1, 3))
    topic.cursors_changed()
    await bench.registry.flush()
    monkeypatch.setattr(topic.subscription("s"), "skip_to", _crash)
    with pytest.raises(_Crash):
        await backlog_operations.truncate(topic)
    await bench.crash()
    topic = await bench.topic()
    await bench.publish(topic, 5)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 1
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == [5]


async def test_truncate_when_the_record_cannot_be_written_then_everything_is_there(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await topic.log.roll()

    async def refuse(*_: Any) -> None:
        raise MetadataError("disk full")

    with monkeypatch.context() as failing:
        failing.setattr(bench.metadata, "commit", refuse)
        with pytest.raises(MetadataError):
            await backlog_operations.truncate(topic)
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == [0, 1, 2, 3, 4]
    await bench.crash()
    assert (await bench.topic()).internal_stats()["numberOfEntries"] == 5


async def test_truncate_of_a_terminated_topic_leaves_its_end(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=1)
    await bench.publish(topic, 1, 2)
    end = await topic.terminate()
    await backlog_operations.truncate(topic)
    assert (sink.numbers(), sink.ended) == ([1], 1)
    assert topic.internal_stats()["numberOfEntries"] == 0
    consumer.close()
    await bench.restart()
    topic = await bench.topic()
    assert (topic.log.terminated, topic.positions.durable) == (True, end)
    assert topic.stats()["subscriptions"]["s"]["msgBacklog"] == 0
    _, sink = await bench.consumer(topic)
    assert (sink.numbers(), sink.ended) == ([], 1)


class _Crash(Exception):
    """The process is gone."""


def _crash(*_: Any) -> int:
    raise _Crash


def backlog(topic: Any, name: str = "s") -> int:
    return int(topic.stats()["subscriptions"][name]["msgBacklog"])


async def filled(bench: Any) -> Any:
    """A topic with five entries, published at 1000 to 1004, and two subscriptions that wait for all of them."""
    topic = await bench.topic()
    for name in ("s", "t"):
        await topic.create_subscription(name, position=MessageId(*EARLIEST))
    await bench.publish(topic, *range(5))
    return topic


async def test_by_time_then_what_is_older_goes_and_an_empty_backlog_is_a_conflict(bench: Any) -> None:
    topic = await filled(bench)
    await expire_older(topic, "s", 10**9)
    assert backlog(topic) == 5
    await expire_older(topic, "s", 0)
    assert (backlog(topic), backlog(topic, "t")) == (0, 5)
    with pytest.raises(Conflict, match="it has no backlog"):
        await expire_older(topic, "s", 0)


async def test_by_position_then_everything_up_to_it_goes_and_nothing_comes_back(bench: Any) -> None:
    topic = await filled(bench)
    expire_upto(topic, "s", Position(1, 1))
    assert backlog(topic) == 3
    expire_upto(topic, "s", EARLIEST)
    expire_upto(topic, "s", Position(1, 0))
    assert backlog(topic) == 3


@pytest.mark.parametrize("position", [Position(1, 5), Position(2, 0), LATEST])
async def test_by_position_when_it_is_behind_the_end_then_is_a_conflict(bench: Any, position: Position) -> None:
    topic = await filled(bench)
    with pytest.raises(Conflict, match="is behind the last message, 1:4"):
        expire_upto(topic, "s", position)
    assert backlog(topic) == 5


async def test_when_there_is_no_such_subscription_then_says_so(bench: Any) -> None:
    topic = await filled(bench)
    with pytest.raises(SubscriptionNotFound):
        expire_upto(topic, "none", Position(1, 1))
    with pytest.raises(SubscriptionNotFound):
        await expire_older(topic, "none", 1)


async def test_everywhere_then_a_conflict_does_not_keep_the_others_from_being_done() -> None:
    done: list[int] = []

    def step(number: int) -> Any:
        async def expire() -> None:
            done.append(number)
            if number in (1, 2):
                raise Conflict(f"conflict {number}")

        return expire

    with pytest.raises(Conflict, match="conflict 1"):
        await expire_everywhere(step(number) for number in range(4))
    assert done == [0, 1, 2, 3]


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
    await backlog_operations.maintain(topic)
    assert topic.stats()["replication"]["west"]["replicationBacklog"] == 3
    assert "expired" not in caplog.text
    bench.clock.time_ms = 6_003
    await backlog_operations.maintain(topic)
    west = topic.stats()["replication"]["west"]
    assert (west["replicationBacklog"], west["msgExpiredCount"]) == (0, 3)
    assert f"expired before they were replicated topic={topic.name} cluster=west entries=3 messageTTL=5" in caplog.text
    topic.tick(10)
    assert topic.stats()["replication"]["west"]["msgRateExpired"] == 0.3
