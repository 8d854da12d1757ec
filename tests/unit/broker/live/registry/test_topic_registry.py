from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any
from weakref import ref

import pytest

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.topic.non_persistent import NonPersistentTopic
from interpulse.model.errors import MetadataError, PreconditionFailed, ServiceNotReady, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.topics import Requester
from interpulse.storage.api import CommitConflict, MetadataFull
from interpulse.storage.metadata.session_bounded import SessionLost, session_lost

OTHER = TopicName.parse("persistent://public/other/t")


async def test_open_when_many_ask_then_the_topic_is_loaded_once(bench: Any) -> None:
    topics = await asyncio.gather(*(bench.topic() for _ in range(20)))
    assert len(set(map(id, topics))) == 1
    assert len(bench.opened) == 1
    assert bench.registry.get(topics[0].name) is topics[0]
    assert list(bench.registry.names) == [topics[0].name]


async def test_open_when_the_first_may_not_create_then_the_next_may(bench: Any, topic_name: Any) -> None:
    asked = await asyncio.gather(
        bench.registry.open(topic_name, by=Requester.CLIENT, create=False),
        bench.registry.open(topic_name, by=Requester.CLIENT, create=True),
        return_exceptions=True,
    )
    assert isinstance(asked[0], TopicNotFound)
    assert asked[1] is bench.registry.get(topic_name)


async def test_open_when_the_one_who_asked_is_cancelled_then_the_load_goes_on(bench: Any, topic_name: Any) -> None:
    asking = asyncio.create_task(bench.registry.open(topic_name))
    await asyncio.sleep(0)
    asking.cancel()
    assert await bench.topic() is bench.registry.get(topic_name)
    assert len(bench.opened) == 1


async def test_open_after_close_is_refused(bench: Any, topic_name: Any) -> None:
    await bench.registry.close()
    with pytest.raises(ServiceNotReady):
        await bench.registry.open(topic_name)


async def test_close_when_a_load_waits_for_another_then_it_is_given_up(
    bench: Any, topic_name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.broker.live.registry.executors._SETTLE_SECONDS", 0)
    monkeypatch.setattr(bench.registry, "_open_rule", lambda *_: asyncio.get_running_loop().create_future())
    opening = asyncio.create_task(bench.registry.open(topic_name))
    await bench.settle()
    await bench.registry.close()
    with pytest.raises(ServiceNotReady, match="shutting down"):
        await opening


async def test_unload_answers_what_is_pending_and_sends_clients_away(bench: Any, make_entry: Any) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    _, consumer_sink = await bench.consumer(topic)
    producer.publish([1], [make_entry(1)])
    await bench.registry.unload(topic.name)
    assert sink.received == [(1, -1, 1, 0)]
    assert (sink.closed, consumer_sink.closed) == ([1], [1])
    assert bench.registry.topics() == []
    assert await bench.topic() is not topic
    await bench.registry.unload(OTHER)


async def test_open_while_the_topic_is_being_unloaded_waits_and_loads_it_again(bench: Any, make_entry: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    producer.publish([1], [make_entry(1)])
    unloading = asyncio.create_task(bench.registry.unload(topic.name))
    await asyncio.sleep(0)
    again = await bench.topic()
    assert unloading.done()
    assert again is not topic
    assert again.internal_stats()["numberOfEntries"] == 1


async def test_delete_when_in_use_then_only_by_force(bench: Any) -> None:
    topic = await bench.topic()
    _, sink = await bench.producer(topic)
    with pytest.raises(PreconditionFailed):
        await bench.registry.delete(topic.name)
    await bench.registry.delete(topic.name, force=True)
    assert sink.closed == [1]
    assert bench.registry.topics() == []
    assert await bench.metadata.children("/managed-ledgers") == []


async def test_delete_of_several_when_one_is_in_use_then_all_stay_and_no_client_is_disconnected(bench: Any) -> None:
    topic, other = await bench.topic(), await bench.topic(OTHER)
    _, sink = await bench.producer(topic)
    with pytest.raises(PreconditionFailed):
        await bench.registry.delete(other.name, topic.name)
    assert set(bench.registry.names) == {topic.name, other.name}
    await bench.consumer(other)
    assert sink.closed == []


async def test_names_of_a_namespace_when_topics_are_loaded_then_in_the_order_of_their_loading(bench: Any) -> None:
    names = [TopicName.parse(f"persistent://public/default/{number}") for number in range(10)]
    for name in names:
        await bench.topic(name)
    assert bench.registry.names_in(names[0].namespace_name) == names


async def test_open_while_several_are_deleted_waits_for_all_of_them(bench: Any, topic_name: Any) -> None:
    await bench.topic(OTHER)
    deleting = asyncio.create_task(bench.registry.delete(OTHER, topic_name, force=True))
    await asyncio.sleep(0)
    assert set(bench.registry.names_in(topic_name.namespace_name)) == {topic_name}
    opened = await bench.topic(topic_name)
    assert deleting.done()
    assert bench.registry.topics() == [opened]


async def test_delete_when_another_was_faster_then_the_topic_is_there_and_can_be_opened(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 1)
    with pytest.raises(CommitConflict):
        await bench.registry.delete(topic.name, expect={"/somewhere": 7})
    assert (await bench.topic()).internal_stats()["numberOfEntries"] == 1


async def test_delete_when_it_fails_then_nothing_that_was_acknowledged_comes_again(bench: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 2)
    await bench.settle()
    upto = topic.positions.durable
    consumer.acknowledge_cumulative(upto)
    with pytest.raises(CommitConflict):
        await bench.registry.delete(topic.name, force=True, expect={"/somewhere": 7})
    assert (await bench.topic()).mark_delete_position("s") == upto


async def test_delete_when_cursors_wait_to_be_stored_then_none_comes_back(bench: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)
    consumer.close()
    await bench.registry.delete(topic.name)
    await bench.registry.flush()
    assert await bench.metadata.children("/managed-ledgers") == []


async def test_delete_of_a_topic_that_is_not_loaded_removes_its_record(bench: Any) -> None:
    topic = await bench.topic()
    await bench.registry.unload(topic.name)
    await bench.registry.delete(topic.name)
    assert await bench.metadata.children("/managed-ledgers") == []


async def test_policies_changed_then_loaded_topics_of_the_namespace_follow(bench: Any) -> None:
    topic, other = await bench.topic(), await bench.topic(OTHER)
    bench.settings = TopicSettings(deduplication_enabled=True)
    await bench.registry.policies_changed(NamespaceName("public", "default"))
    assert (topic.publishing.deduplication is not None, other.publishing.deduplication is not None) == (True, False)
    await bench.registry.policies_changed()
    assert other.publishing.deduplication is not None


async def test_policies_that_are_told_of_twice_are_applied_once_and_later_ones_again(bench: Any) -> None:
    topic, applied = await bench.topic(), list[TopicSettings]()
    apply = topic.apply

    async def noted(settings: TopicSettings) -> None:
        applied.append(settings)
        await apply(settings)

    topic.apply = noted
    for ttl in (7, 8):
        bench.settings = TopicSettings(message_ttl_seconds=ttl)
        bench.registry.begin_applying()
        await bench.registry.policies_changed()
    assert [each.message_ttl_seconds for each in applied] == [7, 8]


async def test_policies_that_cannot_be_applied_are_told_to_the_caller_and_logged_once(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    await bench.topic()

    async def settings(name: TopicName) -> TopicSettings:
        raise MetadataError("damaged")

    monkeypatch.setattr(bench.registry._settings, "_read", settings)
    for _ in range(2):
        with pytest.raises(MetadataError, match="damaged"):
            await bench.registry.policies_changed()
        (logged,) = caplog.messages
        assert logged.startswith("policies not applied topic=")
        caplog.clear()
    bench.registry.begin_applying()
    await bench.settle()
    assert len(caplog.messages) == 1


async def test_policies_when_the_session_is_lost_then_they_are_applied_after_it_without_an_error(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    topic, read = await bench.topic(), bench.registry._settings._read
    bench.settings = TopicSettings(message_ttl_seconds=7)

    async def settings(name: TopicName) -> TopicSettings:
        raise session_lost()

    monkeypatch.setattr(bench.registry._settings, "_read", settings)
    with pytest.raises(SessionLost):
        await bench.registry.policies_changed()
    assert caplog.messages == []
    monkeypatch.setattr(bench.registry._settings, "_read", read)
    bench.registry.begin_applying()  # a store that answers again calls back every watch
    await bench.settle()
    assert topic.settings.message_ttl_seconds == 7


@pytest.mark.parametrize("work", ["maintain", "policies_changed", "flush"])
async def test_work_on_all_topics_when_there_are_many_then_others_get_their_turn_in_between(
    bench: Any, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("topic_registry", "topic_tasks"):
        monkeypatch.setattr(f"interpulse.broker.live.registry.{module}.TOPICS_AT_ONCE", 10)
    monkeypatch.setattr("interpulse.in_turns._TURN_SECONDS", 0.0)
    names = [TopicName.parse(f"t{number}") for number in range(50)]
    for name in names:
        bench.registry.cursors_changed(await bench.topic(name))
    owner = bench.registry.topic_tasks if work == "maintain" else bench.registry
    working = asyncio.create_task(getattr(owner, work)())
    turns = 0
    while not working.done():
        await asyncio.sleep(0)
        turns += 1
    await working
    assert 5 <= turns <= 2 * len(names)


async def test_topic_that_goes_while_all_are_worked_on_is_left_alone(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = await bench.topic(), await bench.topic(OTHER)
    before, changed = other.settings, TopicSettings(message_ttl_seconds=7)

    async def settings(name: TopicName) -> TopicSettings:
        await bench.registry.unload(OTHER)
        return changed

    monkeypatch.setattr(bench.registry._settings, "_read", settings)
    await bench.registry.policies_changed()
    assert (first.settings, other.settings) == (changed, before)


async def test_policies_that_concern_many_topics_are_stored_together(bench: Any) -> None:
    """Not one after the other, each waiting for the disk."""
    for number in range(50):
        await bench.topic(TopicName.parse(f"t{number}"))
    commit, under_way, most = bench.metadata.commit, 0, 0

    async def counted(*arguments: Any) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        await commit(*arguments)
        under_way -= 1

    bench.metadata.commit = counted
    bench.settings = TopicSettings(remote_clusters=("west",))
    await bench.registry.policies_changed()
    assert most == 50


async def test_settings_that_change_while_a_topic_is_loaded_are_not_missed(bench: Any, topic_name: Any) -> None:
    asked = 0

    async def settings(name: TopicName) -> TopicSettings:
        nonlocal asked
        asked += 1
        return TopicSettings(deduplication_enabled=asked > 1)

    bench.registry._settings._read = settings
    topic = await bench.topic()
    assert topic.publishing.deduplication is not None


async def test_flush_stores_only_what_changed(bench: Any) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)
    seen: list[str] = []
    bench.metadata.watch("/managed-ledgers", seen.append)
    await bench.registry.flush()
    await bench.registry.flush()
    assert seen == [f"/managed-ledgers/{topic.name.log_name}/s"]


async def test_flush_when_it_fails_in_an_unforeseen_way_then_the_next_one_stores_the_cursor(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)

    async def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as failing:
        failing.setattr(bench.metadata, "commit", fail)
        with pytest.raises(ExceptionGroup):
            await bench.registry.flush()
    seen: list[str] = []
    bench.metadata.watch("/managed-ledgers", seen.append)
    await bench.registry.flush()
    assert seen == [f"/managed-ledgers/{topic.name.log_name}/s"]


@pytest.mark.parametrize(
    ("task", "part", "what"),
    [
        ("maintain", "subscription_set.drop_idle_readers", "upkeep"),
        ("check_backlogs", "backlog_keeper.check", "backlog check"),
        ("compact_due", "compaction.begin_if_due", "compaction"),
    ],
)
async def test_periodic_task_when_one_topic_fails_in_an_unforeseen_way_then_the_others_are_looked_after(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, task: str, part: str, what: str
) -> None:
    topics = [await bench.topic(), await bench.registry.open(OTHER)]
    for topic in topics:
        owner, method = part.split(".")
        monkeypatch.setattr(getattr(topic, owner), method, lambda: 1 / 0)
    await getattr(bench.registry.topic_tasks, task)()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [
        f"periodic task failed for a topic task={what} topic={topic.name}" for topic in topics
    ]


async def test_unload_when_cursors_cannot_be_stored_then_the_old_topic_never_writes_again(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    subscription = topic.subscription("s")
    await bench.publish(topic, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)

    async def refuse(*_: Any) -> None:
        raise MetadataError("disk full")

    with monkeypatch.context() as failing:
        failing.setattr(bench.metadata, "commit", refuse)
        with pytest.raises(MetadataError):
            await bench.registry.unload(topic.name)
    again = await bench.topic()
    assert again is not topic
    seen: list[str] = []
    bench.metadata.watch("/managed-ledgers", seen.append)
    topic.cursors_changed()
    await bench.registry.flush()
    with pytest.raises(ServiceNotReady):
        await topic.store_cursor(subscription)
    assert seen == []


async def test_topic_when_it_is_forsaken_while_it_is_unloaded_then_the_unloading_ends_and_writes_nothing(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)
    monkeypatch.setattr(bench.journal, "enqueue", lambda client: None)  # entries wait for the disk
    await bench.publish(topic, 2)
    unloading = asyncio.create_task(bench.registry.unload(topic.name))
    await bench.settle()
    assert not unloading.done()
    written: list[str] = []
    bench.metadata.watch("/", written.append)
    bench.registry.forsake([topic.name])
    await bench.settle()
    assert unloading.done()
    await unloading
    assert written == []


@pytest.mark.parametrize("way", ["unload", "delete", "forsake"])
async def test_topic_when_it_is_gone_then_its_memory_is_free_without_a_search_for_garbage(
    bench: Any, topic_name: Any, way: str
) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 1)
    await bench.consumer(topic)
    subscription = ref(topic.subscription("s"))
    kept = ref(topic)
    del topic
    gc.collect()
    gc.disable()
    try:
        if way == "forsake":
            bench.registry.forsake([topic_name])
        else:
            await getattr(bench.registry, way)(topic_name, **({"force": True} if way == "delete" else {}))
        await bench.settle()
        assert (kept(), subscription()) == (None, None)
    finally:
        gc.enable()


async def test_non_persistent_topics_are_loaded_by_the_same_rules(bench: Any) -> None:
    name = TopicName.parse("non-persistent://public/default/n")
    topic = await bench.registry.open(name)
    assert isinstance(topic, NonPersistentTopic)
    assert bench.opened == [name]
    await bench.registry.topic_tasks.maintain()
    await bench.registry.unload(name)
    assert bench.registry.topics() == []


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_clients_that_come_while_the_topic_is_unloaded_are_sent_to_the_next_one(
    bench: Any, monkeypatch: pytest.MonkeyPatch, domain: str
) -> None:
    topic = await bench.registry.open(TopicName.parse(f"{domain}://public/default/t"))
    _, consumer_sink = await bench.consumer(topic)
    _, producer_sink = await bench.producer(topic)
    answered = asyncio.get_running_loop().create_future()
    for sink in (consumer_sink, producer_sink):
        monkeypatch.setattr(sink, "is_alive", lambda: asyncio.shield(answered))
    coming = [asyncio.create_task(bench.consumer(topic)), asyncio.create_task(bench.producer(topic))]
    await bench.settle()
    await bench.registry.unload(topic.name)
    answered.set_result(False)
    for task in coming:
        with pytest.raises(ServiceNotReady):
            await task
    assert not topic.clients.connected


async def test_seek_when_the_topic_is_unloaded_meanwhile_then_it_is_refused(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    found = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(topic.positions, "before_time", lambda _, **__: asyncio.shield(found))
    seeking = asyncio.create_task(consumer.seek_to_time(1))
    await bench.settle()
    await bench.registry.unload(topic.name)
    found.set_result(topic.positions.before_first())
    with pytest.raises(ServiceNotReady):
        await seeking


async def test_cursor_that_waits_for_its_store_then_those_of_other_topics_are_stored_and_it_is_not_asked_twice(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, other = await bench.topic(), await bench.topic(TopicName.parse("other"))
    for topic in (slow, other):
        consumer, _ = await bench.consumer(topic)
        await bench.publish(topic, 1)
        consumer.acknowledge_cumulative(topic.positions.durable)
    may_store, asked, flush = asyncio.Event(), [], slow.flush

    async def wait() -> None:
        asked.append(1)
        await may_store.wait()
        await flush()

    monkeypatch.setattr(slow, "flush", wait)
    seen: list[str] = []
    bench.metadata.watch("/managed-ledgers", seen.append)
    for _ in range(3):
        slow.cursors_changed()
        await bench.registry.flush(within_seconds=0.0)
        await bench.settle()
    assert (len(asked), seen) == (1, [f"/managed-ledgers/{other.name.log_name}/s"])
    may_store.set()
    await bench.settle()
    assert seen[1:] == [f"/managed-ledgers/{slow.name.log_name}/s"]
    await bench.registry.flush(within_seconds=0.0)
    assert len(asked) == 2


async def test_cursors_that_cannot_be_stored_since_the_topic_was_closed_meanwhile_are_told_and_forgotten(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)

    async def fail_when_closed(*_: Any) -> None:
        del bench.registry._topics[topic.name]
        raise MetadataFull("database or disk is full")

    caplog.set_level("INFO")
    caplog.clear()
    monkeypatch.setattr(bench.metadata, "commit", fail_when_closed)
    await bench.registry.flush()
    assert [message.partition(" topic=")[0] for message in caplog.messages] == [
        "cursors not stored, the topic is closed"
    ]
    assert topic not in {*bench.registry._flushes.changed, *bench.registry._flushes.unstored}


async def test_cursors_that_cannot_be_stored_are_told_once_and_once_more_when_they_are(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await bench.topic()
    consumer, _ = await bench.consumer(topic)
    await bench.publish(topic, 1)
    consumer.acknowledge_cumulative(topic.positions.durable)

    async def fail(*_: Any) -> None:
        raise MetadataFull("database or disk is full")

    caplog.set_level("INFO")
    caplog.clear()
    with monkeypatch.context() as failing:
        failing.setattr(bench.metadata, "commit", fail)
        for _ in range(3):
            await bench.registry.flush()
    await bench.registry.flush()
    await bench.registry.flush()
    assert [message.partition(" topic=")[0] for message in caplog.messages] == [
        "cursors not stored, retrying every second",
        "cursors stored again",
    ]
