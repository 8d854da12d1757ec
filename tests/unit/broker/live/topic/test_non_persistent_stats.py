"""Statistics of topics that store nothing."""

from __future__ import annotations

from typing import Any

from interpulse.model.names import TopicName

NAME = TopicName.parse("non-persistent://public/default/n")


async def test_counters_when_clients_are_gone_then_keep_what_they_counted(bench: Any) -> None:
    topic = await bench.registry.open(NAME)
    producer, _ = await bench.producer(topic)
    consumers = [(await bench.consumer(topic, name))[0] for name in ("a", "b")]
    for number in range(3):
        producer.publish([number], [bench.entry(number)])
    before = topic.stats()
    assert (before["msgInCounter"], before["msgOutCounter"]) == (3, 6)
    assert [each["msgOutCounter"] for each in before["subscriptions"].values()] == [3, 3]
    for client in (producer, *consumers):
        client.close()
    after = topic.stats()
    counters = [key for key in before if key.endswith("Counter")]
    assert {key: after[key] for key in counters} == {key: before[key] for key in counters}
    assert (after["subscriptions"], after["publishers"]) == ({}, [])


async def test_internal_stats_when_asked_for_then_name_subscriptions_and_count_entries(bench: Any) -> None:
    topic = await bench.registry.open(NAME)
    producer, _ = await bench.producer(topic)
    await bench.consumer(topic, "b")
    await bench.consumer(topic, "a")
    producer.publish([0], [bench.entry(0, num_messages_in_batch=5)], num_messages=5)
    internal = topic.internal_stats()
    assert (internal["entriesAddedCounter"], internal["numberOfEntries"]) == (1, 0)
    assert list(internal["cursors"]) == ["a", "b"]
