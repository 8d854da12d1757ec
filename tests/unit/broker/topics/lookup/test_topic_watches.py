"""Lists of topics that follow the metadata."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.lookup import topic_watches
from interpulse.broker.topics.lookup.topic_watches import TopicPattern, TopicWatch, TopicWatches
from interpulse.model.errors import InvalidTopicName, MetadataError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.storage.api import Delete, Put, Versioned
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.waiting import eventually

NAMESPACE = NamespaceName("public", "default")


@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        pytest.param("persistent://a/b/foo.*", "persistent://a/b/foo-1", True, id="complete"),
        pytest.param("a/b/foo.*", "persistent://a/b/foo-1", True, id="without-domain"),
        pytest.param("foo.*", "persistent://a/b/foo-1", False, id="topic-alone"),
        pytest.param("non-persistent://a/b/foo.*", "persistent://a/b/foo-1", True, id="domain-plays-no-part"),
        pytest.param("^persistent://a/b/foo-1$", "persistent://a/b/foo-1", True, id="anchors"),
        pytest.param("a/b/foo", "persistent://a/b/foo-1", False, id="whole-name"),
        pytest.param("a/b/foo-p", "persistent://a/b/foo-p-partition-0", True, id="partition-has-its-topics-name"),
        pytest.param("a/b/foo-p-partition-0", "persistent://a/b/foo-p-partition-0", False, id="partition-itself"),
        pytest.param(".*", "persistent://a/b/x", True, id="everything"),
        pytest.param("", "persistent://a/b/x", False, id="empty"),
        pytest.param("a/b/ü{2}", "persistent://a/b/üü", True, id="letters-beyond-ascii"),
    ],
)
def test_pattern_when_asked_for_a_topic_then_answers_as_pulsar(pattern: str, topic: str, matches: bool) -> None:
    assert TopicPattern(pattern).matches(TopicName.parse(topic)) is matches


@pytest.mark.parametrize("text", ["(", "a/b/(?=x).*", r"(a)\1", "a{1,100000}", "(((a{100}){100}){100})"])
def test_pattern_when_it_cannot_be_matched_in_linear_time_then_refused_with_the_reason(text: str) -> None:
    with pytest.raises(InvalidTopicName) as refused:
        TopicPattern(text)
    assert str(refused.value).startswith(f"Invalid topics pattern: {text}: ")


def test_pattern_when_it_would_ruin_a_backtracking_engine_then_answers_at_once() -> None:
    topic = TopicName.parse("persistent://a/b/" + "x" * 5000 + "!")
    assert not TopicPattern("a/b/(x+x+)+(x|xx)*y").matches(topic)


def test_pattern_when_refused_then_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidTopicName):
        TopicPattern("(")
    assert capfd.readouterr() == ("", "")


def topic(name: str) -> TopicName:
    return TopicName.parse(f"persistent://public/default/{name}")


def created(*names: str) -> list[Put]:
    return [Put(keys.topic_record(topic(name)), b"{}") for name in names]


def deleted(*names: str) -> list[Delete]:
    return [Delete(keys.topic_record(topic(name))) for name in names]


def complete(*names: str) -> list[str]:
    return [str(topic(name)) for name in names]


class Names:
    """The part of the lifecycle that lists topics."""

    def __init__(self, store: MemoryMetadataStore) -> None:
        self.store = store
        self.listed_count = 0
        self.asked = asyncio.Event()
        self.gate: asyncio.Event | None = None
        self.failure: MetadataError | None = None

    async def list_topics(self, namespace: NamespaceName, domain: str, *, include_system: bool) -> list[TopicName]:
        self.listed_count += 1
        self.asked.set()
        if self.failure is not None:
            raise self.failure
        found = await self.store.children(keys.topic_records(namespace, "persistent"))
        if self.gate is not None:
            await self.gate.wait()
        return [name for name in map(topic, found) if include_system or not name.is_system]


class WatchesBench:
    def __init__(self) -> None:
        self.store = MemoryMetadataStore()
        self.names = Names(self.store)
        self.tasks: set[asyncio.Task[None]] = set()
        self.watches = TopicWatches(self.store, self.names, self.spawn)  # type: ignore[arg-type]
        self.told = 0

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.add(asyncio.ensure_future(work))

    def on_change(self) -> None:
        self.told += 1

    async def watch(self, pattern: str = ".*") -> TopicWatch:
        return await self.watches.watch(NAMESPACE, TopicPattern(pattern), self.on_change)

    async def commit(self, *changes: Put | Delete) -> None:
        await self.store.commit(changes)
        await self.settled()

    async def settled(self) -> None:
        while self.tasks:
            task = self.tasks.pop()
            await task


@pytest.fixture
async def bench() -> AsyncIterator[WatchesBench]:
    bench = WatchesBench()
    yield bench
    await bench.settled()
    await bench.store.close()


async def test_watch_when_begun_then_has_what_matches(bench: WatchesBench) -> None:
    await bench.commit(*created("a1", "a2", "b", "__change_events"))
    watch = await bench.watch("public/default/a.*")
    assert watch.names == complete("a1", "a2")
    assert not watch.has_changes


async def test_watch_when_topics_come_and_go_then_tells_those_that_match(bench: WatchesBench) -> None:
    watch = await bench.watch("public/default/a.*")
    await bench.commit(*created("a1", "b1"))
    assert (bench.told, watch.take_changes()) == (1, (complete("a1"), []))
    await bench.commit(*created("b2"))
    assert bench.told == 1
    await bench.commit(*deleted("a1", "b1"))
    assert (watch.take_changes(), watch.names) == (([], complete("a1")), [])
    await bench.commit(*created("a1"))
    assert watch.take_changes() == (complete("a1"), [])


async def test_watch_when_the_store_lost_sight_of_its_server_then_tells_what_came_and_went(bench: WatchesBench) -> None:
    await bench.commit(*created("a1", "a2", "b1"))
    watch = await bench.watch("public/default/a.*")
    with bench.store.out_of_sight():
        await bench.store.commit([*created("a3", "b2"), *deleted("a1")])
    await bench.settled()
    assert watch.take_changes() == (complete("a3"), complete("a1"))
    assert watch.names == complete("a2", "a3")


async def test_watch_when_many_come_in_one_commit_then_told_once(bench: WatchesBench) -> None:
    watch = await bench.watch("public/default/p")
    await bench.commit(*created(*(f"p-partition-{index}" for index in range(100))))
    assert bench.told == 1
    assert len(watch.take_changes()[0]) == 100


async def test_watch_when_what_came_goes_before_it_is_taken_then_neither(bench: WatchesBench) -> None:
    await bench.commit(*created("stays"))
    watch = await bench.watch()
    await bench.commit(*created("a"))
    await bench.commit(*deleted("a", "stays"))
    await bench.commit(*created("stays"))
    assert not watch.has_changes
    assert watch.take_changes() == ([], [])


async def test_watch_when_a_record_is_written_again_or_has_cursors_then_silent(bench: WatchesBench) -> None:
    await bench.commit(*created("a"))
    await bench.watch()
    await bench.commit(*created("a"), Put(f"{keys.topic_record(topic('a'))}/cursor", b"{}"))
    assert bench.told == 0


async def test_watch_when_other_namespaces_and_system_topics_change_then_silent(bench: WatchesBench) -> None:
    watch = await bench.watch()
    other = TopicName.parse("persistent://public/default2/a")
    await bench.commit(Put(keys.topic_record(other), b"{}"), *created("__change_events"))
    assert (bench.told, watch.names) == (0, [])


async def test_watch_when_topics_change_while_it_begins_then_nothing_is_missed(bench: WatchesBench) -> None:
    await bench.commit(*created("a", "b"))
    bench.names.gate = asyncio.Event()
    beginning = asyncio.create_task(bench.watch())
    await bench.names.asked.wait()
    await bench.store.commit([*created("late"), *deleted("a")])
    bench.names.gate.set()
    watch = await beginning
    await bench.settled()
    assert watch.names == complete("b", "late")


async def test_watches_when_several_look_at_one_namespace_then_listed_once_and_forgotten_with_the_last(
    bench: WatchesBench,
) -> None:
    first, second = await asyncio.gather(bench.watch(), bench.watch("public/default/a"))
    assert bench.names.listed_count == 1
    bench.watches.end(NAMESPACE, first)
    await bench.commit(*created("a"))
    assert (first.names, second.names) == ([], complete("a"))
    bench.watches.end(NAMESPACE, second)
    await bench.commit(*created("b"))
    assert bench.told == 1
    assert (await bench.watch()).names == complete("a", "b")
    assert bench.names.listed_count == 2


async def test_watch_when_the_names_cannot_be_read_then_refused_and_tried_anew_the_next_time(
    bench: WatchesBench,
) -> None:
    await bench.commit(*created("a"))
    bench.names.failure = MetadataError("no disk")
    with pytest.raises(MetadataError):
        await bench.watch()
    bench.names.failure = None
    assert (await bench.watch()).names == complete("a")


async def test_topics_when_they_cannot_be_read_for_a_while_then_the_change_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, bench: WatchesBench
) -> None:
    monkeypatch.setattr(topic_watches, "_RETRY_SECONDS", 0)
    watch = await bench.watch()
    reading, failures = bench.store.get_many, [MetadataError("no answer in time")] * 3

    async def read(keys: Sequence[str]) -> dict[str, Versioned]:
        if failures:
            raise failures.pop()
        return await reading(keys)

    monkeypatch.setattr(bench.store, "get_many", read)
    await bench.store.commit(created("a"))
    await eventually(lambda: watch.names == complete("a"))
    assert not failures
