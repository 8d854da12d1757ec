"""The broker dies, or a write fails, at every step of creating or removing topics: it is done or not, never half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.live.api import ProducerRequest
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.topics import deletion
from interpulse.model.errors import MetadataError, NotEmpty, PulsarError
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Requester
from interpulse.storage.api import Delete, Put
from interpulse.storage.cursors import JSON_CURSORS, CursorRecord
from tests.support.lifecycle_bench import LifecycleBench, MortalStore, copy_of, disorder, named, picture
from tests.support.memory_storage import MemoryJournal, MemoryMetadataStore

TRIAL = NamespaceName("public", "trial")
X, Y = named("x"), named("y")
SCHEMA = SchemaInfo(SchemaType.STRING)

Step = Callable[[LifecycleBench], Awaitable[Any]]


async def nothing(bench: LifecycleBench) -> None:
    """The bare namespace."""


async def subscribed(bench: LifecycleBench) -> None:
    """A partitioned topic with subscriptions, entries, schemas and policies, and a plain one."""
    await bench.lifecycle.create_partitioned(X, 2, properties={"k": "v"})
    await bench.lifecycle.create_plain(Y)
    for name in (X.partition(0), X.partition(1), Y):
        topic = await bench.topic(name)
        await topic.create_subscription("s", properties={"p": "1"})
        await bench.registry.unload(name)
    for name in (X, Y):
        await bench.schemas.register(name, SCHEMA, by=Requester.ADMIN)
        await bench.store.commit([Put(keys.topic_policies(name), b"{}")])


async def orphaned(bench: LifecycleBench) -> None:
    """Stored partitions 0 and 2 without metadata."""
    await bench.lifecycle.create_partitioned(X, 3)
    await bench.deletion.topic(X.partition(1), force=True)
    metadata = await bench.store.get(keys.partitioned_topic(X))
    assert metadata is not None
    await bench.store.commit([Delete(keys.partitioned_topic(X))])


async def with_surplus(bench: LifecycleBench) -> None:
    """Two partitions, and a third one that the metadata does not know."""
    await bench.lifecycle.create_partitioned(X, 2)
    await bench.store.commit(
        [
            Put(f"{keys.topic_record(X.partition(0))}/s", JSON_CURSORS.encode("sub", CursorRecord(Position(1, 1)))),
            Put(keys.topic_record(X.partition(2)), b'{"ledgers": [], "properties": {}}'),
        ]
    )


async def with_a_gap(bench: LifecycleBench) -> None:
    """Partition 1 of 3 is gone."""
    await bench.lifecycle.create_partitioned(X, 3)
    await bench.deletion.topic(X.partition(1), force=True)


async def without_partitions(bench: LifecycleBench) -> None:
    """Metadata whose partitions are all gone."""
    await bench.lifecycle.create_partitioned(X, 1)
    await bench.schemas.register(X, SCHEMA, by=Requester.ADMIN)
    await bench.deletion.topic(X.partition(0), force=True)


async def half_deleted(bench: LifecycleBench) -> None:
    """What an older broker left behind when it died while it deleted: marked, and one partition gone."""
    await subscribed(bench)
    await bench.deletion.topic(X.partition(1), force=True)
    metadata = await bench.lifecycle.metadata(X)
    assert metadata is not None
    marked = type(metadata)(metadata.partitions, deleted=True)
    await bench.store.commit([Put(keys.partitioned_topic(X), marked.dump())])


async def delete_in_use(bench: LifecycleBench) -> None:
    topic = await bench.topic(X.partition(1))
    await topic.add_producer(ProducerRequest(1, name="p"), _Sink())  # type: ignore[arg-type]
    await bench.deletion.partitioned_topic(X, force=True)


class _Sink:
    def producer_closed(self, producer_id: int) -> None:
        """Disconnected."""


CASES: dict[str, tuple[Step, Step]] = {
    "create-plain": (nothing, lambda bench: bench.lifecycle.create_plain(Y, properties={"k": "v"})),
    "create-by-opening": (nothing, lambda bench: bench.topic(Y)),
    "create-partitioned": (nothing, lambda bench: bench.lifecycle.create_partitioned(X, 3, properties={"k": "v"})),
    "create-partitioned-over-orphans": (orphaned, lambda bench: bench.lifecycle.create_partitioned(X, 4)),
    "restore-one-partition": (with_a_gap, lambda bench: bench.lifecycle.create_plain(X.partition(1))),
    "create-missed-partitions": (with_a_gap, lambda bench: bench.lifecycle.create_missed_partitions(X)),
    "expand": (subscribed, lambda bench: bench.lifecycle.expand(X, 5)),
    "expand-by-force": (with_surplus, lambda bench: bench.lifecycle.expand(X, 4, force=True)),
    "set-properties": (subscribed, lambda bench: bench.lifecycle.set_properties(X, lambda old: {**old, "n": "1"})),
    "delete-plain": (subscribed, lambda bench: bench.deletion.topic(Y, force=False)),
    "delete-one-partition": (subscribed, lambda bench: bench.deletion.topic(X.partition(1), force=False)),
    "delete-partitioned": (subscribed, lambda bench: bench.deletion.partitioned_topic(X, force=False)),
    "delete-partitioned-in-use": (subscribed, delete_in_use),
    "delete-partitioned-with-a-gap": (with_a_gap, lambda bench: bench.deletion.partitioned_topic(X, force=False)),
    "delete-half-deleted": (half_deleted, lambda bench: bench.deletion.partitioned_topic(X, force=False)),
    "delete-orphaned": (without_partitions, lambda bench: bench.deletion.orphaned_metadata(X)),
    "delete-empty-namespace": (nothing, lambda bench: bench.deletion.namespace(TRIAL, force=False)),
    "delete-namespace-by-force": (subscribed, lambda bench: bench.deletion.namespace(TRIAL, force=True)),
    "delete-namespace-in-order": (orphaned, lambda bench: bench.deletion.namespace(TRIAL, force=True)),
}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace takes several commits to be emptied."""
    monkeypatch.setattr(deletion, "_KEYS_AT_ONCE", 2)


class World:
    """Metadata as a step finds it, as often as wanted."""

    def __init__(self, store: MemoryMetadataStore) -> None:
        self._store = store

    @classmethod
    async def after(cls, *steps: Step) -> World:
        """What these steps leave behind."""
        bench = await LifecycleBench.first()
        await bench.namespaces.create(TRIAL, NamespacePolicies())
        for step in steps:
            await step(bench)
        return cls(copy_of(bench.store))

    def fresh(self) -> MemoryMetadataStore:
        return copy_of(self._store)

    async def picture(self) -> dict[str, Any]:
        return await picture(self._store)


async def next_life(store: MemoryMetadataStore) -> dict[str, Any]:
    """What is there when the next broker has started."""
    await LifecycleBench(store).deletion.resume()
    return await picture(store)


@pytest.mark.parametrize("applied", [False, True], ids=["before-the-write", "after-the-write"])
@pytest.mark.parametrize("case", CASES)
async def test_step_when_the_broker_dies_anywhere_then_it_is_done_or_was_never_begun(case: str, applied: bool) -> None:
    prepare, step = CASES[case]
    world = await World.after(prepare)
    before, after = await world.picture(), await (await World.after(prepare, step)).picture()
    fatal, hit = 0, True
    while hit:
        fatal += 1
        store = world.fresh()
        mortal = MortalStore(store, fatal=fatal, applied=applied, dies=True)
        try:
            await step(LifecycleBench(mortal))
        except PulsarError:
            assert mortal.hit
        hit = mortal.hit
        restarted = await next_life(store)
        assert restarted == after or (restarted == before and hit), f"died at commit {fatal}"
    assert fatal > 1, "the step stores nothing"


@pytest.mark.parametrize("case", CASES)
async def test_step_when_one_write_fails_then_nothing_has_happened_and_it_can_be_repeated(case: str) -> None:
    prepare, step = CASES[case]
    world = await World.after(prepare)
    before, after = await world.picture(), await (await World.after(prepare, step)).picture()
    begun = case in ("delete-namespace-by-force", "delete-namespace-in-order")  # goes on from where it was
    fatal, hit = 0, True
    while hit:
        fatal += 1
        store = world.fresh()
        mortal = MortalStore(store, fatal=fatal, applied=False, dies=False)
        bench = LifecycleBench(mortal)
        try:
            await step(bench)
        except MetadataError:
            found = await picture(store)
            assert found == before or (begun and fatal > 2) or case == "create-by-opening", f"failed at commit {fatal}"
            await step(bench)
        hit = mortal.hit
        assert await picture(store) == after


async def test_empty_namespace_when_its_deletion_fails_then_it_can_be_used() -> None:
    store = (await World.after(nothing)).fresh()
    bench = LifecycleBench(MortalStore(store, fatal=2, applied=False, dies=False))
    await bench.schemas.register(X, SCHEMA, by=Requester.ADMIN)
    bench = LifecycleBench(MortalStore(store, fatal=2, applied=False, dies=False))
    with pytest.raises(MetadataError):
        await bench.deletion.namespace(TRIAL, force=False)
    assert await disorder(store) == []
    await bench.lifecycle.create_plain(Y)


async def test_full_namespace_when_the_broker_dies_before_it_refuses_then_it_comes_back() -> None:
    store = (await World.after(subscribed)).fresh()
    before = await picture(store)
    bench = LifecycleBench(MortalStore(store, fatal=2, applied=False, dies=True))
    with pytest.raises(PulsarError):
        await bench.deletion.namespace(TRIAL, force=False)
    assert (await bench.namespaces.get_policies(TRIAL)).deleted
    assert await next_life(store) == before


async def test_full_namespace_is_refused_and_left_as_it_was() -> None:
    store = (await World.after(subscribed)).fresh()
    before = await picture(store)
    with pytest.raises(NotEmpty):
        await LifecycleBench(store).deletion.namespace(TRIAL, force=False)
    assert await picture(store) == before


async def test_what_was_left_half_deleted_is_gone_after_the_next_start() -> None:
    store = (await World.after(half_deleted)).fresh()
    await next_life(store)
    bench = LifecycleBench(store)
    assert await bench.lifecycle.metadata(X) is None
    assert await bench.lifecycle.list_topics(TRIAL, "persistent", include_system=True) == [Y]
    assert not await bench.schemas.has_schema(X)
    assert await bench.schemas.has_schema(Y)
    assert await disorder(store) == []


@pytest.mark.parametrize("applied", [False, True], ids=["before-the-write", "after-the-write"])
async def test_truncate_when_the_broker_dies_anywhere_then_every_entry_is_there_or_none(applied: bool) -> None:
    fatal, hit, seen = 0, True, set()
    world = await World.after(subscribed)
    while hit:
        fatal += 1
        store, journal = world.fresh(), MemoryJournal(first_ledger=1000)
        mortal = MortalStore(store, fatal=10_000, applied=applied, dies=True)
        topic = await LifecycleBench(mortal, journal).topic(Y)
        for _ in range(3):
            topic.log.append(b"entry")
        await topic.log.roll()
        topic.log.append(b"entry")
        mortal._fatal = mortal.commits + fatal
        try:
            await backlog_operations.truncate(topic)
        except PulsarError:
            assert mortal.hit
        hit = mortal.hit
        again = await LifecycleBench(store, journal).topic(Y)
        entries = again.internal_stats()["numberOfEntries"]
        assert entries == 0 or (entries == 4 and hit)
        assert again.stats()["subscriptions"]["s"]["msgBacklog"] == entries
        seen.add(entries)
    assert seen == {0, 4}
