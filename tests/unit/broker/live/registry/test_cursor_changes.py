"""The order in which subscriptions changed, as a call for them sees it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker.live.registry import cursor_changes
from interpulse.broker.live.registry.cursor_changes import Journal
from interpulse.model.errors import ServiceNotReady
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import NamespaceName, TopicName

NAMESPACE = NamespaceName("public", "default")
ANY = MessageId(*EARLIEST)
OTHER = TopicName.parse("persistent://public/default/other")
FAR = TopicName.parse("persistent://public/far/t")


async def begin(bench: Any, *, marked: bool = True) -> Journal:
    journal: Journal = await bench.registry.cursor_changes.begin(NAMESPACE, frozenset(), marked=marked)
    return journal


def names_after(bench: Any, journal: Journal, number: int) -> list[str]:
    bench.registry.cursor_changes.look()
    return [f"{change.topic.local_name}/{change.subscription.name}" for change in journal.after(number)]


async def subscribed(bench: Any, *names: str, topic: TopicName | None = None, marked: bool = True) -> Any:
    opened = await (bench.topic() if topic is None else bench.topic(topic))
    for name in names:
        await opened.create_subscription(name, position=ANY, replicate_state=marked)
    return opened


async def test_changes_when_noted_then_come_in_the_order_of_the_last_one(bench: Any) -> None:
    topic = await subscribed(bench, "a", "b", "c")
    await bench.publish(topic, *range(4))
    journal = await begin(bench)
    assert names_after(bench, journal, 0) == ["t/a", "t/b", "t/c"]
    number = journal.number
    topic.subscription("c").skip_to(Position(1, 0))
    assert names_after(bench, journal, number) == ["t/c"]
    topic.subscription("a").skip_to(Position(1, 0))
    assert names_after(bench, journal, number) == ["t/c", "t/a"]
    topic.subscription("c").skip_to(Position(1, 1))
    assert names_after(bench, journal, number) == ["t/a", "t/c"]
    assert names_after(bench, journal, 0) == ["t/b", "t/a", "t/c"]
    assert names_after(bench, journal, journal.number) == []


async def test_changes_when_stored_before_the_next_look_then_are_noted(bench: Any) -> None:
    topic = await subscribed(bench, "a")
    await bench.publish(topic, 0)
    journal = await begin(bench)
    number = journal.number
    topic.subscription("a").skip_to(Position(1, 0))
    await bench.registry.flush()
    assert names_after(bench, journal, number) == ["t/a"]


async def test_changes_of_unmarked_subscriptions_readers_and_other_namespaces_are_left_out(bench: Any) -> None:
    topic = await subscribed(bench, "plain", "interpulse.x", marked=False)
    await subscribed(bench, "s", topic=FAR)
    await bench.consumer(topic, "reader", durable=False, start_message_id=ANY)
    assert names_after(bench, await begin(bench), 0) == []
    assert names_after(bench, await begin(bench, marked=False), 0) == ["t/plain"]


async def test_change_of_the_mark_then_is_noted(bench: Any) -> None:
    topic = await subscribed(bench, "a")
    journal = await begin(bench)
    number = journal.number
    topic.subscription("a").replicate_state_changed(False)
    assert names_after(bench, journal, number) == ["t/a"]
    number = journal.number
    topic.subscription("a").replicate_state_changed(True)
    assert names_after(bench, journal, number) == ["t/a"]


async def test_topic_when_loaded_or_created_later_then_is_noted(bench: Any) -> None:
    journal = await begin(bench)
    await subscribed(bench, "a", topic=OTHER)
    assert names_after(bench, journal, 0) == ["other/a"]
    number = journal.number
    await bench.registry.unload(OTHER)
    assert (names_after(bench, journal, 0), journal.unloaded) == ([], {OTHER})
    await bench.topic(OTHER)
    assert names_after(bench, journal, number) == ["other/a"]


async def test_topic_without_subscriptions_when_unloaded_then_needs_no_load(bench: Any) -> None:
    journal = await begin(bench)
    await bench.topic(OTHER)
    assert names_after(bench, journal, 0) == []
    await bench.registry.unload(OTHER)
    assert journal.unloaded == set()


async def test_subscription_when_deleted_then_is_noted_with_the_next_change_of_its_topic(bench: Any) -> None:
    topic = await subscribed(bench, "a", "b")
    await bench.publish(topic, 0)
    journal = await begin(bench)
    await topic.delete_subscription("a")
    topic.subscription("b").skip_to(Position(1, 0))
    assert names_after(bench, journal, 0) == ["t/a", "t/b"]


async def test_wait_when_something_changes_then_ends(bench: Any) -> None:
    topic = await subscribed(bench, "a")
    await bench.publish(topic, 0)
    journal, changes = await begin(bench), bench.registry.cursor_changes
    waits = [asyncio.create_task(changes.wait(journal, journal.number, 20)) for _ in range(2)]
    await asyncio.sleep(0)
    topic.subscription("a").skip_to(Position(1, 0))
    async with asyncio.timeout(5):
        await asyncio.gather(*waits)
    assert [change.subscription.name for change in journal.after(1)] == ["a"]


async def test_wait_when_the_broker_stops_then_ends(bench: Any) -> None:
    journal, changes = await begin(bench), bench.registry.cursor_changes
    waiting = asyncio.create_task(changes.wait(journal, journal.number, 20))
    await asyncio.sleep(0)
    changes.stop_waiting()
    async with asyncio.timeout(5):
        with pytest.raises(ServiceNotReady, match="shutting down"):
            await waiting


async def test_journal_when_nobody_asks_any_more_then_ends(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = bench.registry.cursor_changes
    journal = await begin(bench)
    await bench.registry.flush()
    assert changes.journal(NAMESPACE, marked=True) is journal
    monkeypatch.setattr(cursor_changes, "JOURNAL_SECONDS", -1.0)
    await bench.registry.flush()
    assert changes.journal(NAMESPACE, marked=True) is None
