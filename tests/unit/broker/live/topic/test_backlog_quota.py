"""Topics are kept within their backlog quotas; the clock and the periodic tasks are the test's."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import QuotaExceededError, QuotaExceededException
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import BacklogQuota

HOLD, REFUSE, EVICT = "producer_request_hold", "producer_exception", "consumer_backlog_eviction"
ERRORS = {HOLD: QuotaExceededError, REFUSE: QuotaExceededException}


def sized(limit: int, policy: str) -> TopicSettings:
    return TopicSettings(backlog_quotas={"destination_storage": BacklogQuota(limit, -1, policy)})


def aged(seconds: int, policy: str) -> TopicSettings:
    return TopicSettings(backlog_quotas={"message_age": BacklogQuota(-1, seconds, policy)})


async def topic_with(bench: Any, count: int, *subscriptions: str) -> tuple[Topic, int]:
    """A topic with so many entries that these subscriptions wait for, and the size of one entry."""
    topic: Topic = await bench.topic()
    for name in subscriptions:
        await topic.create_subscription(name)
    await publish_now(bench, topic, count)
    return topic, len(bench.entry(1, publish_time=bench.clock.time_ms))


async def publish_now(bench: Any, topic: Topic, count: int) -> None:
    producer, _ = await bench.producer(topic, "filler")
    for number in range(count):
        producer.publish([number], [bench.entry(1, publish_time=bench.clock.time_ms)])
    await bench.settle()
    producer.close()


def backlogs(topic: Topic) -> dict[str, int]:
    last = topic.positions.durable
    return {name: each.cursor.backlog(last) for name, each in topic.subscriptions.items()}


@pytest.mark.parametrize("policy", [HOLD, REFUSE])
async def test_producers_are_sent_away_and_refused_at_the_limit_and_come_back_below_it(bench: Any, policy: str) -> None:
    topic, size = await topic_with(bench, 10, "s")
    _, sink = await bench.producer(topic, "p")
    await topic.apply(sized(10 * size + 1, policy))
    await bench.registry.topic_tasks.check_backlogs()
    assert sink.closed == []
    await topic.apply(sized(10 * size, policy))
    await bench.registry.topic_tasks.check_backlogs()
    assert sink.closed == [1]
    with pytest.raises(ERRORS[policy], match=f"destination_storage: {10 * size} bytes, {policy}"):
        await bench.producer(topic, "p")
    backlog_operations.clear(topic, "s")
    await bench.producer(topic, "p")


async def test_opening_is_refused_without_waiting_for_a_check(bench: Any) -> None:
    topic, size = await topic_with(bench, 3, "s")
    await topic.apply(sized(3 * size, HOLD))
    with pytest.raises(QuotaExceededError):
        await bench.producer(topic, "p")


@pytest.mark.parametrize("policy", [HOLD, REFUSE])
async def test_producers_are_held_back_while_a_message_is_too_old(bench: Any, policy: str) -> None:
    topic, _ = await topic_with(bench, 1, "s")
    await topic.apply(aged(10, policy))
    _, sink = await bench.producer(topic, "p")
    bench.clock.time_ms += 10_000
    await bench.registry.topic_tasks.check_backlogs()
    assert sink.closed == []
    assert topic.stats()["oldestBacklogMessageAgeSeconds"] == 10
    bench.clock.time_ms += 1
    await bench.registry.topic_tasks.check_backlogs()
    assert sink.closed == [1]
    with pytest.raises(ERRORS[policy], match=f"message_age: 10 seconds, {policy}"):
        await bench.producer(topic, "p")
    backlog_operations.clear(topic, "s")
    await bench.producer(topic, "p")


async def test_eviction_by_size_leaves_nine_tenths_of_the_limit(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    topic, size = await topic_with(bench, 10, "slow", "quick")
    topic.subscription("quick").skip_to(topic.positions.durable)
    await topic.apply(sized(5 * size, EVICT))
    _, sink = await bench.producer(topic, "p")
    with caplog.at_level(logging.WARNING):
        await bench.registry.topic_tasks.check_backlogs()
    assert backlogs(topic) == {"slow": 4, "quick": 0}
    assert sink.closed == []
    [line] = [each.getMessage() for each in caplog.records]
    assert "topic=persistent://public/default/t subscription=slow entries=6" in line
    assert f"quota=backlogQuota destination_storage: {5 * size} bytes, consumer_backlog_eviction" in line
    await bench.registry.topic_tasks.check_backlogs()
    assert topic.backlog_keeper.evictions == {"destination_storage": 1}


async def test_eviction_by_size_below_the_limit_does_nothing(bench: Any) -> None:
    topic, size = await topic_with(bench, 10, "s")
    await topic.apply(sized(10 * size + 1, EVICT))
    await bench.registry.topic_tasks.check_backlogs()
    assert backlogs(topic) == {"s": 10}


async def test_eviction_by_age_leaves_what_is_younger_than_nine_tenths(bench: Any) -> None:
    topic, _ = await topic_with(bench, 1, "s", "t")
    producer, _ = await bench.producer(topic, "p")
    for number in range(1, 11):
        bench.clock.time_ms += 1000
        producer.publish([number], [bench.entry(1, publish_time=bench.clock.time_ms)])
    await bench.settle()
    await topic.apply(aged(10, EVICT))
    await bench.registry.topic_tasks.check_backlogs()
    assert backlogs(topic) == {"s": 11, "t": 11}
    bench.clock.time_ms += 1
    await bench.registry.topic_tasks.check_backlogs()
    assert backlogs(topic) == {"s": 9, "t": 9}
    assert topic.backlog_keeper.evictions == {"message_age": 1}


async def test_evicted_consumer_goes_on_with_what_is_left(bench: Any) -> None:
    topic, size = await topic_with(bench, 10, "s")
    consumer, sink = await bench.consumer(topic, "s", permits=0)
    await topic.apply(sized(5 * size, EVICT))
    await bench.registry.topic_tasks.check_backlogs()
    consumer.flow(100)
    assert len(sink.take()) == 4


async def test_reader_does_not_count(bench: Any) -> None:
    topic = await bench.topic()
    await bench.consumer(topic, "reader", durable=False, permits=0)
    _, size = await topic_with(bench, 10)
    await topic.apply(sized(size, REFUSE))
    await bench.registry.topic_tasks.check_backlogs()
    await bench.producer(topic, "p")


async def test_what_waits_for_another_cluster_holds_producers_back_but_is_not_evicted(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("pulsar.repl.west")
    _, size = await topic_with(bench, 10, "s")
    await topic.apply(sized(5 * size, EVICT))
    await bench.registry.topic_tasks.check_backlogs()
    assert backlogs(topic) == {"pulsar.repl.west": 10, "s": 4}
    with caplog.at_level(logging.WARNING):
        await bench.registry.topic_tasks.check_backlogs()
    assert "backlog quota exceeded, nothing to evict" in caplog.text
    await topic.apply(sized(5 * size, HOLD))
    with pytest.raises(QuotaExceededError):
        await bench.producer(topic, "p")


async def test_topic_of_the_system_is_exempt(bench: Any) -> None:
    bench.settings = sized(1, REFUSE)
    topic = await bench.topic(TopicName.parse("persistent://pulsar/system/t"))
    await topic.create_subscription("s")
    await bench.publish(topic, 1, 2)
    await bench.registry.topic_tasks.check_backlogs()
    await bench.producer(topic, "p")


async def test_statistics_show_the_quotas_and_the_oldest_message_while_it_waits(bench: Any) -> None:
    topic, _ = await topic_with(bench, 2, "s")
    shown = ("backlogQuotaLimitSize", "backlogQuotaLimitTime", "oldestBacklogMessageAgeSeconds")
    stats = topic.stats()
    assert [stats[each] for each in shown] == [-1, -1, -1]
    assert "oldestBacklogMessageSubscriptionName" not in stats
    await topic.apply(
        TopicSettings(backlog_quotas={"destination_storage": BacklogQuota(10**6), "message_age": BacklogQuota(-1, 60)})
    )
    await bench.registry.topic_tasks.check_backlogs()
    bench.clock.time_ms += 7_900
    stats = topic.stats()
    assert [stats[each] for each in shown] == [10**6, 60, 7]
    assert stats["oldestBacklogMessageSubscriptionName"] == "s"
    backlog_operations.clear(topic, "s")
    assert topic.stats()["oldestBacklogMessageAgeSeconds"] == -1


async def test_topic_without_quotas_is_not_read(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, _ = await topic_with(bench, 2, "s")
    monkeypatch.setattr(topic.positions, "read_entry", None)
    await bench.registry.topic_tasks.check_backlogs()
    await bench.producer(topic, "p")


# --- the age of each subscription's backlog (PIP-492)

AGES = TopicSettings(backlog_ages_shown=True)


def ages(topic: Topic) -> dict[str, int]:
    shown = topic.stats()["subscriptions"]
    return {name: figures["oldestBacklogMessageAgeSeconds"] for name, figures in shown.items()}


async def test_age_when_it_is_not_asked_for_then_is_not_known_and_nothing_is_read(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, _ = await topic_with(bench, 2, "s")
    monkeypatch.setattr(topic.positions, "read_entry", None)
    await bench.registry.topic_tasks.check_backlogs()
    bench.clock.time_ms += 9_000
    assert (ages(topic), topic.measure().backlog_ages) == ({"s": -1}, {})


async def test_age_when_asked_for_then_is_that_of_the_first_message_of_each_subscription(bench: Any) -> None:
    topic, _ = await topic_with(bench, 1, "slow", "quick", "done", "outdated")
    bench.clock.time_ms += 5_000
    await publish_now(bench, topic, 2)
    await topic.apply(AGES)
    first = topic.log.next_position(topic.subscription("slow").cursor.mark_delete)
    topic.subscription("quick").skip_to(first)  # type: ignore[arg-type]
    backlog_operations.clear(topic, "done")
    assert ages(topic) == {"slow": -1, "quick": -1, "done": -1, "outdated": -1}
    await bench.registry.topic_tasks.check_backlogs()
    bench.clock.time_ms += 2_900
    assert ages(topic) == {"slow": 7, "quick": 2, "done": -1, "outdated": 7}
    assert topic.measure().backlog_ages == {"slow": 7, "quick": 2, "outdated": 7}
    topic.subscription("outdated").skip_to(first)  # type: ignore[arg-type]
    assert ages(topic)["outdated"] == 5, "what is not looked up yet is as old as at the last look"
    backlog_operations.clear(topic, "slow")
    assert ages(topic)["slow"] == -1
    await bench.registry.topic_tasks.check_backlogs()
    assert ages(topic) == {"slow": -1, "quick": 2, "done": -1, "outdated": 2}


async def test_age_when_a_subscription_stood_still_then_the_last_look_counts_once_it_moves(bench: Any) -> None:
    topic, _ = await topic_with(bench, 2, "s")
    await topic.apply(AGES)
    for _ in range(2):
        await bench.registry.topic_tasks.check_backlogs()
        bench.clock.time_ms += 60_000
    topic.subscription("s").skip_to(topic.log.next_position(topic.subscription("s").cursor.mark_delete))  # type: ignore[arg-type]
    assert ages(topic) == {"s": 60}


async def test_age_when_many_wait_at_one_place_then_it_is_read_once_until_they_move(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, _ = await topic_with(bench, 2, *(f"s{number}" for number in range(5)))
    await topic.apply(AGES)
    reads, read = [], topic.positions.read_entry

    async def counted(position: Any) -> Any:
        reads.append(position)
        return await read(position)

    monkeypatch.setattr(topic.positions, "read_entry", counted)
    for _ in range(3):
        await bench.registry.topic_tasks.check_backlogs()
    assert len(reads) == 1
    topic.subscription("s1").skip_to(reads[0])
    for _ in range(3):
        await bench.registry.topic_tasks.check_backlogs()
    assert len(reads) == 2


async def test_age_when_a_subscription_is_no_durable_one_or_of_replication_then_is_not_known(bench: Any) -> None:
    topic, _ = await topic_with(bench, 1, "pulsar.repl.west")
    await bench.consumer(topic, "reader", durable=False, permits=0)
    await bench.publish(topic, 2)
    await topic.apply(AGES)
    await bench.registry.topic_tasks.check_backlogs()
    assert ages(topic) == {"reader": -1}
    assert topic.measure().backlog_ages == {}


async def test_age_when_it_is_asked_for_no_longer_then_is_not_known(bench: Any) -> None:
    topic, _ = await topic_with(bench, 1, "s")
    await topic.apply(AGES)
    await bench.registry.topic_tasks.check_backlogs()
    assert ages(topic) == {"s": 0}
    await topic.apply(TopicSettings())
    await bench.registry.topic_tasks.check_backlogs()
    assert ages(topic) == {"s": -1}
