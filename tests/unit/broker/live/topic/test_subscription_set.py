"""How subscriptions come, are stored, and go."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from interpulse.broker.live.api import InitialPosition, TopicSettings
from interpulse.broker.live.registry import backlog_operations
from interpulse.model.errors import AlreadyExists, MetadataError, NotAllowed, PreconditionFailed, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.storage.api import Put

ANY = MessageId(*EARLIEST)


async def test_new_subscription_survives_a_crash_at_once(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    await bench.publish(topic, 1)
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == [1]


async def test_new_subscription_when_it_moves_while_it_is_stored_then_that_is_stored_too(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, commit = await bench.topic(), bench.metadata.commit
    await bench.publish(topic, 1)

    async def commit_and_move(*arguments: Any) -> None:
        monkeypatch.setattr(bench.metadata, "commit", commit)
        await commit(*arguments)
        backlog_operations.clear(topic, "s")
        flushes.append(asyncio.create_task(bench.registry.flush()))
        await bench.settle()

    flushes: list[asyncio.Task[None]] = []
    monkeypatch.setattr(bench.metadata, "commit", commit_and_move)
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    await asyncio.gather(*flushes)
    await bench.registry.flush()
    await bench.crash()
    _, sink = await bench.consumer(await bench.topic())
    assert sink.numbers() == []


async def test_damaged_cursor_record_then_the_topic_cannot_be_loaded(bench: Any) -> None:
    topic = await bench.topic()
    await bench.registry.unload(topic.name)
    await bench.metadata.commit([Put(f"/managed-ledgers/{topic.name.log_name}/s", b"{}")])
    with pytest.raises(MetadataError, match="cursor s of"):
        await bench.topic()


async def test_reader_that_never_came_back_is_dropped_after_a_minute(bench: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic, "r", durable=False)
    await consumer.seek(ANY)
    await backlog_operations.maintain(topic)
    assert "r" in topic.subscriptions
    bench.clock.time_ms += 61_000
    await backlog_operations.maintain(topic)
    assert topic.subscriptions == {}


async def test_reader_with_rollback_starts_so_long_ago(bench: Any) -> None:
    bench.clock.time_ms = 5_000
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    for number in range(5):
        producer.publish([number], [bench.entry(number, publish_time=number * 1000)])
    await bench.settle()
    _, sink = await bench.consumer(topic, "r", durable=False, start_rollback_seconds=2)
    assert sink.numbers() == [3, 4]


async def test_initial_position_counts_only_for_new_subscriptions(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 1)
    earliest = {"initial_position": InitialPosition.EARLIEST}
    consumer, sink = await bench.consumer(topic, "a", **earliest)
    assert sink.numbers() == [1]
    consumer.close()
    first, _ = await bench.consumer(topic, "b")
    first.close()
    _, sink = await bench.consumer(topic, "b", **earliest)
    assert sink.numbers() == []


async def test_subscription_of_the_other_kind_of_durability_is_refused(bench: Any) -> None:
    topic = await bench.topic()
    await bench.consumer(topic, "d")
    await bench.consumer(topic, "n", durable=False)
    with pytest.raises(NotAllowed, match=r"^Durable subscription with the same name already exists\.$"):
        await bench.consumer(topic, "d", durable=False)
    with pytest.raises(NotAllowed, match=r"^NonDurable subscription"):
        await bench.consumer(topic, "n")


@pytest.mark.parametrize("name", ["", " ", "pulsar.dedup"])
async def test_subscription_with_a_name_that_cannot_be_is_refused(bench: Any, name: str) -> None:
    topic = await bench.topic()
    with pytest.raises(NotAllowed):
        await bench.consumer(topic, name)
    with pytest.raises(NotAllowed):
        await topic.create_subscription(name)


async def test_subscription_when_creation_is_off_then_not_found_but_readers_work(bench: Any) -> None:
    bench.settings = TopicSettings(auto_subscription_creation_allowed=False)
    topic = await bench.topic()
    with pytest.raises(SubscriptionNotFound):
        await bench.consumer(topic)
    await bench.consumer(topic, "r", durable=False)


async def test_subscriptions_by_rest(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, *range(3))
    await topic.create_subscription("s", position=MessageId(1, 1), properties={"a": "b"})
    with pytest.raises(AlreadyExists):
        await topic.create_subscription("s")
    assert topic.subscription_names() == ["s"]
    assert topic.mark_delete_position("s") == Position(1, 0)
    assert topic.stats()["subscriptions"]["s"]["subscriptionProperties"] == {"a": "b"}
    consumer, _ = await bench.consumer(topic)
    with pytest.raises(PreconditionFailed):
        await topic.delete_subscription("s")
    await topic.delete_subscription("s", force=True)
    assert consumer.closed
    with pytest.raises(SubscriptionNotFound):
        await topic.delete_subscription("s")
    await bench.restart()
    assert (await bench.topic()).subscription_names() == []


class TestReplicationCursors:
    async def test_policy_opens_and_closes_them(self, bench: Any) -> None:
        topic = await bench.topic()
        await bench.publish(topic, 1)
        await topic.apply(replace(topic.settings, remote_clusters=("west", "north")))
        await bench.publish(topic, 2)
        stats = topic.stats()
        assert {name: each["replicationBacklog"] for name, each in stats["replication"].items()} == {
            "west": 1,
            "north": 1,
        }
        assert stats["subscriptions"] == {}
        assert topic.subscription_names() == []
        await topic.apply(replace(topic.settings, remote_clusters=("west",)))
        assert list(topic.stats()["replication"]) == ["west"]

    async def test_new_topic_has_them_before_anything_is_published(self, bench: Any) -> None:
        bench.settings = TopicSettings(remote_clusters=("west",))
        topic = await bench.topic()
        await bench.publish(topic, 1)
        await bench.crash()
        topic = await bench.topic()
        consumer, sink = await bench.consumer(topic, "pulsar.repl.west")
        assert topic.stats()["replication"]["west"]["connected"]
        [delivery] = sink.take()
        consumer.acknowledge_cumulative(delivery.position)
        assert topic.stats()["replication"]["west"]["replicationBacklog"] == 0

    async def test_system_topic_keeps_nothing_until_the_job_asks_and_lets_go_with_the_policy(self, bench: Any) -> None:
        bench.settings = TopicSettings(remote_clusters=("west",), replication_cursors_opened=False)
        topic = await bench.topic()
        await topic.apply(replace(bench.settings, message_ttl_seconds=1))
        assert topic.stats()["replication"] == {}
        await bench.consumer(topic, "pulsar.repl.west")
        assert list(topic.stats()["replication"]) == ["west"]
        await topic.apply(replace(bench.settings, remote_clusters=()))
        assert topic.stats()["replication"] == {}

    @pytest.mark.parametrize("end", ["restart", "crash"])
    @pytest.mark.parametrize("opened_by", ["policy", "job"])
    async def test_cluster_that_was_left_out_while_the_topic_was_not_loaded_holds_nothing_once_it_is(
        self, bench: Any, end: str, opened_by: str
    ) -> None:
        bench.settings = TopicSettings(remote_clusters=("west",), replication_cursors_opened=opened_by == "policy")
        topic = await bench.topic()
        await bench.consumer(topic, "pulsar.repl.west")
        await backlog_operations.maintain(topic)
        await getattr(bench, end)()
        bench.settings = TopicSettings()
        assert (await bench.topic()).subscriptions == {}
        await bench.crash()
        assert (await bench.topic()).subscriptions == {}

    @pytest.mark.parametrize("durable", [True, False])
    async def test_job_that_has_not_noticed_that_a_cluster_was_left_out_opens_no_cursor(
        self, bench: Any, durable: bool
    ) -> None:
        bench.settings = TopicSettings(remote_clusters=("west",))
        topic = await bench.topic()
        _, sink = await bench.consumer(topic, "pulsar.repl.west")
        await topic.apply(replace(topic.settings, remote_clusters=()))
        assert sink.closed
        with pytest.raises(SubscriptionNotFound, match=r"replication cursors are opened by the replication clusters"):
            await bench.consumer(topic, "pulsar.repl.west", durable=durable)
        assert topic.subscriptions == {}

    async def test_cursor_of_a_cluster_that_no_policy_listed_is_the_operators(self, bench: Any) -> None:
        topic = await bench.topic()
        await topic.create_subscription("pulsar.repl.west")
        await bench.consumer(topic, "pulsar.repl.west")
        await topic.apply(replace(topic.settings, remote_clusters=("north",)))
        await backlog_operations.maintain(topic)
        await bench.restart()
        topic = await bench.topic()
        await topic.apply(replace(topic.settings, message_ttl_seconds=1))
        await backlog_operations.maintain(topic)
        assert list(topic.stats()["replication"]) == ["west"]

    async def test_policies_that_failed_to_come_into_force_do_so_with_the_next_upkeep(
        self, bench: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = await bench.topic()
        await topic.apply(replace(topic.settings, remote_clusters=("west",)))
        with monkeypatch.context() as patched:
            patched.setattr(topic.sequences, "begin", self.fail)
            with pytest.raises(MetadataError):
                await topic.apply(TopicSettings(remote_clusters=("north",), deduplication_enabled=True))
        assert list(topic.stats()["replication"]) == ["west"]
        await backlog_operations.maintain(topic)
        assert list(topic.stats()["replication"]) == ["north"]

    async def fail(self) -> None:
        raise MetadataError("disk full")

    async def test_cursor_that_policies_took_over_is_stored_as_theirs_though_the_store_failed_first(
        self, bench: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = await bench.topic()
        await topic.create_subscription("pulsar.repl.west")
        bench.settings = replace(bench.settings, remote_clusters=("west",))
        with monkeypatch.context() as patched:
            patched.setattr(bench.metadata, "commit", self.refuse)
            with pytest.raises(MetadataError):
                await topic.apply(bench.settings)
        await backlog_operations.maintain(topic)
        await bench.crash()
        bench.settings = TopicSettings()
        assert (await bench.topic()).subscriptions == {}

    async def refuse(self, *_: object) -> None:
        raise MetadataError("disk full")
