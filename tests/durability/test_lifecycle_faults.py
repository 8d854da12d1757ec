"""The broker dies, or a write fails, at every step of creating or removing topics: it is done or not, never half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.live.cursor import CursorRecord
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.requests import ProducerRequest
from interpulse.broker.topics import deletion
from interpulse.model.errors import MetadataError, NotEmpty, PulsarError
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName
from interpulse.model.policies import NamespacePolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Requester
from interpulse.storage.api import Delete, Put
from interpulse.storage.memory import MemoryJournal, MemoryMetadataStore
from tests.durability.lifecycle_room import MortalStore, Room, copy_of, disorder, named, picture

TRIAL = NamespaceName("public", "trial")
X, Y = named("x"), named("y")
SCHEMA = SchemaInfo(SchemaType.STRING)

Step = Callable[[Room], Awaitable[Any]]


async def nothing(room: Room) -> None:
    """The bare namespace."""


async def subscribed(room: Room) -> None:
    """A partitioned topic with subscriptions, entries, schemas and policies, and a plain one."""
    await room.lifecycle.create_partitioned(X, 2, properties={"k": "v"})
    await room.lifecycle.create_plain(Y)
    for name in (X.partition(0), X.partition(1), Y):
        topic = await room.topic(name)
        await topic.create_subscription("s", properties={"p": "1"})
        await room.registry.unload(name)
    for name in (X, Y):
        await room.schemas.register(name, SCHEMA, by=Requester.ADMIN)
        await room.store.commit([Put(keys.topic_policies(name), b"{}")])


async def orphaned(room: Room) -> None:
    """Stored partitions 0 and 2 without metadata."""
    await room.lifecycle.create_partitioned(X, 3)
    await room.deletion.topic(X.partition(1), force=True)
    metadata = await room.store.get(keys.partitioned_topic(X))
    assert metadata is not None
    await room.store.commit([Delete(keys.partitioned_topic(X))])


async def with_surplus(room: Room) -> None:
    """Two partitions, and a third one that the metadata does not know."""
    await room.lifecycle.create_partitioned(X, 2)
    await room.store.commit(
        [
            Put(f"{keys.topic_record(X.partition(0))}/s", CursorRecord(Position(1, 1)).dump()),
            Put(keys.topic_record(X.partition(2)), b'{"ledgers": [], "properties": {}}'),
        ]
    )


async def with_a_gap(room: Room) -> None:
    """Partition 1 of 3 is gone."""
    await room.lifecycle.create_partitioned(X, 3)
    await room.deletion.topic(X.partition(1), force=True)


async def without_partitions(room: Room) -> None:
    """Metadata whose partitions are all gone."""
    await room.lifecycle.create_partitioned(X, 1)
    await room.schemas.register(X, SCHEMA, by=Requester.ADMIN)
    await room.deletion.topic(X.partition(0), force=True)


async def half_deleted(room: Room) -> None:
    """What an older broker left behind when it died while it deleted: marked, and one partition gone."""
    await subscribed(room)
    await room.deletion.topic(X.partition(1), force=True)
    metadata = await room.lifecycle.metadata(X)
    assert metadata is not None
    marked = type(metadata)(metadata.partitions, deleted=True)
    await room.store.commit([Put(keys.partitioned_topic(X), marked.dump())])


async def delete_in_use(room: Room) -> None:
    topic = await room.topic(X.partition(1))
    await topic.add_producer(ProducerRequest(1, name="p"), _Sink())  # type: ignore[arg-type]
    await room.deletion.partitioned_topic(X, force=True)


class _Sink:
    def producer_closed(self, producer_id: int) -> None:
        """Sent away."""


CASES: dict[str, tuple[Step, Step]] = {
    "create-plain": (nothing, lambda room: room.lifecycle.create_plain(Y, properties={"k": "v"})),
    "create-by-opening": (nothing, lambda room: room.topic(Y)),
    "create-partitioned": (nothing, lambda room: room.lifecycle.create_partitioned(X, 3, properties={"k": "v"})),
    "create-partitioned-over-orphans": (orphaned, lambda room: room.lifecycle.create_partitioned(X, 4)),
    "restore-one-partition": (with_a_gap, lambda room: room.lifecycle.create_plain(X.partition(1))),
    "create-missed-partitions": (with_a_gap, lambda room: room.lifecycle.create_missed_partitions(X)),
    "expand": (subscribed, lambda room: room.lifecycle.expand(X, 5)),
    "expand-by-force": (with_surplus, lambda room: room.lifecycle.expand(X, 4, force=True)),
    "set-properties": (subscribed, lambda room: room.lifecycle.set_properties(X, lambda old: {**old, "n": "1"})),
    "delete-plain": (subscribed, lambda room: room.deletion.topic(Y, force=False)),
    "delete-one-partition": (subscribed, lambda room: room.deletion.topic(X.partition(1), force=False)),
    "delete-partitioned": (subscribed, lambda room: room.deletion.partitioned_topic(X, force=False)),
    "delete-partitioned-in-use": (subscribed, delete_in_use),
    "delete-partitioned-with-a-gap": (with_a_gap, lambda room: room.deletion.partitioned_topic(X, force=False)),
    "delete-half-deleted": (half_deleted, lambda room: room.deletion.partitioned_topic(X, force=False)),
    "delete-orphaned": (without_partitions, lambda room: room.deletion.orphaned_metadata(X)),
    "delete-empty-namespace": (nothing, lambda room: room.deletion.namespace(TRIAL, force=False)),
    "delete-namespace-by-force": (subscribed, lambda room: room.deletion.namespace(TRIAL, force=True)),
    "delete-namespace-in-order": (orphaned, lambda room: room.deletion.namespace(TRIAL, force=True)),
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
        room = await Room.first()
        await room.namespaces.create(TRIAL, NamespacePolicies())
        for step in steps:
            await step(room)
        return cls(copy_of(room.store))

    def fresh(self) -> MemoryMetadataStore:
        return copy_of(self._store)

    async def picture(self) -> dict[str, Any]:
        return await picture(self._store)


async def next_life(store: MemoryMetadataStore) -> dict[str, Any]:
    """What is there when the next broker has started."""
    await Room(store).deletion.resume()
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
            await step(Room(mortal))
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
        room = Room(mortal)
        try:
            await step(room)
        except MetadataError:
            found = await picture(store)
            assert found == before or (begun and fatal > 2) or case == "create-by-opening", f"failed at commit {fatal}"
            await step(room)
        hit = mortal.hit
        assert await picture(store) == after


async def test_empty_namespace_when_its_deletion_fails_then_it_can_be_used() -> None:
    store = (await World.after(nothing)).fresh()
    room = Room(MortalStore(store, fatal=2, applied=False, dies=False))
    await room.schemas.register(X, SCHEMA, by=Requester.ADMIN)
    room = Room(MortalStore(store, fatal=2, applied=False, dies=False))
    with pytest.raises(MetadataError):
        await room.deletion.namespace(TRIAL, force=False)
    assert await disorder(store) == []
    await room.lifecycle.create_plain(Y)


async def test_full_namespace_when_the_broker_dies_before_it_refuses_then_it_comes_back() -> None:
    store = (await World.after(subscribed)).fresh()
    before = await picture(store)
    room = Room(MortalStore(store, fatal=2, applied=False, dies=True))
    with pytest.raises(PulsarError):
        await room.deletion.namespace(TRIAL, force=False)
    assert (await room.namespaces.get_policies(TRIAL)).deleted
    assert await next_life(store) == before


async def test_full_namespace_is_refused_and_left_as_it_was() -> None:
    store = (await World.after(subscribed)).fresh()
    before = await picture(store)
    with pytest.raises(NotEmpty):
        await Room(store).deletion.namespace(TRIAL, force=False)
    assert await picture(store) == before


async def test_what_was_left_half_deleted_is_gone_after_the_next_start() -> None:
    store = (await World.after(half_deleted)).fresh()
    await next_life(store)
    room = Room(store)
    assert await room.lifecycle.metadata(X) is None
    assert await room.lifecycle.list_topics(TRIAL, "persistent", include_system=True) == [Y]
    assert not await room.schemas.has_schema(X)
    assert await room.schemas.has_schema(Y)
    assert await disorder(store) == []


@pytest.mark.parametrize("applied", [False, True], ids=["before-the-write", "after-the-write"])
async def test_truncate_when_the_broker_dies_anywhere_then_every_entry_is_there_or_none(applied: bool) -> None:
    fatal, hit, seen = 0, True, set()
    world = await World.after(subscribed)
    while hit:
        fatal += 1
        store, journal = world.fresh(), MemoryJournal()
        mortal = MortalStore(store, fatal=10_000, applied=applied, dies=True)
        topic = await Room(mortal, journal).topic(Y)
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
        again = await Room(store, journal).topic(Y)
        entries = again.internal_stats()["numberOfEntries"]
        assert entries == 0 or (entries == 4 and hit)
        assert again.stats()["subscriptions"]["s"]["msgBacklog"] == entries
        seen.add(entries)
    assert seen == {0, 4}
