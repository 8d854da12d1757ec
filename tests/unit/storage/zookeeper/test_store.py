"""What the store on ZooKeeper promises beyond the suite of all stores: faults, memory, other brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interpulse.storage.api import CommitConflict, Delete, Put, scan_pages
from interpulse.storage.cas import advance_counter
from interpulse.storage.sessions import SessionState
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import SessionExpired, Unusable
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.records import CREATE, EPHEMERAL, MULTI, Create
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper
from tests.support.waiting import eventually
from tests.unit.storage.zookeeper.conftest import Connect


@pytest.fixture
async def store(connect: Connect) -> AsyncIterator[ZooKeeperMetadataStore]:
    opened = await ZooKeeperMetadataStore.open(await connect(), watched=["/t"])
    await opened.commit([Put("/t/any", b"")])
    yield opened
    await opened.close()


@pytest.fixture
async def other(connect: Connect) -> ZooKeeperClient:
    """Another broker."""
    return await connect()


async def value(store: ZooKeeperMetadataStore, key: str) -> bytes | None:
    found = await store.get(key)
    return found.value if found else None


async def version(store: ZooKeeperMetadataStore, key: str) -> int:
    found = await store.get(key)
    assert found is not None
    return found.version


@pytest.mark.parametrize("lost", ["reply", "request"])
async def test_commit_when_the_connection_breaks_then_it_is_applied_once(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore, lost: str
) -> None:
    for number in range(3):  # the mark is new, then it is there
        expect = {"/t/n": await version(store, "/t/n") if number else None}
        (scripted.losing if lost == "reply" else scripted.dropping)["commit"] = 1
        await store.commit([Put("/t/n", b"%d" % number), Put(f"/t/made{number}", b"")], expect)
        assert await value(store, "/t/n") == b"%d" % number
        assert scripted.nodes["/t/n"].version == number
    await store.commit([Delete("/t/made0")], {"/t/made0": await version(store, "/t/made0")})
    assert await store.children("/t") == ["any", "made1", "made2", "n"]


async def test_commit_when_its_answer_is_lost_and_others_wrote_since_then_applied_all_the_same(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/t/n", b"0")])
    scripted.losing["commit"] = 1
    scripted.silent = False
    commit = asyncio.create_task(store.commit([Put("/t/n", b"1")], {"/t/n": await version(store, "/t/n")}))
    await eventually(lambda: scripted.nodes["/t/n"].value == b"1")
    await other.set("/t/n", b"2")
    await commit
    assert await value(store, "/t/n") == b"2"


async def test_counter_when_two_brokers_would_write_the_same_value_then_no_number_comes_twice(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore, connect: Connect
) -> None:
    rival = await ZooKeeperMetadataStore.open(await connect(), watched=["/t"])
    await store.commit([Put("/t/n", b"5")])
    await store.get("/t/n")
    scripted.dropping["commit"] = 1  # ours, and the rival writes what we would have written
    ours = asyncio.create_task(advance_counter(store, "/t/n", 10, start=0))
    await eventually(lambda: not scripted.dropping["commit"])
    numbers = [await advance_counter(rival, "/t/n", 10, start=0), await ours]
    assert sorted(numbers) == [5, 15]
    assert await value(store, "/t/n") == b"25"


async def test_commit_when_the_session_ends_before_the_answer_then_it_fails_and_is_not_sent_again(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore
) -> None:
    scripted.dropping["commit"] = 1
    scripted.shut = True
    commit = asyncio.create_task(store.commit([Put("/t/n", b"1")]))
    await eventually(lambda: not store.client.connected)
    scripted.expire(store.client.session.id)
    scripted.shut = False
    with pytest.raises(SessionExpired, match="before it answered: committing /t/n"):
        await commit
    assert await store.get("/t/n") is None
    await store.commit([Put("/t/n", b"2")])
    assert await value(store, "/t/n") == b"2"


async def test_get_when_asked_again_then_answered_from_memory_until_another_broker_writes(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/t/a", b"1"), Delete("/t/any")])
    asked = len(scripted.requests)
    assert await value(store, "/t/a") == b"1"  # what was committed is known
    assert await value(store, "/t/any") is None
    assert len(scripted.requests) == asked
    assert await store.get("/t/none") is None
    assert await store.children("/t") == ["a"]
    asked = len(scripted.requests)
    assert await store.get_many(["/t/none", "/t/a"]) == {"/t/a": await store.get("/t/a")}
    assert await store.children("/t") == ["a"]
    assert len(scripted.requests) == asked
    await other.set("/t/a", b"2")
    await other.create("/t/none", b"3")
    await store.client.sync("/t")
    assert (await value(store, "/t/a"), await value(store, "/t/none")) == (b"2", b"3")
    assert await store.children("/t") == ["a", "none"]


async def test_get_when_the_key_is_not_watched_then_read_each_time(
    store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/u/a", b"1")])
    seen = await version(store, "/u/a")
    await other.set("/u/a", b"2")
    assert await value(store, "/u/a") == b"2"
    assert not store.unchanged({"/u/a": seen})
    with pytest.raises(ValueError, match="/u/ is not below /t, which this store watches"):
        store.watch("/u/", print)


async def test_cache_when_the_connection_breaks_then_empty_and_watches_are_called(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/t/a", b"1")])
    seen = await version(store, "/t/a")
    told: list[str] = []
    store.watch("/t/a", told.append)
    scripted.shut = True
    scripted.cut()
    await eventually(lambda: not store.client.connected)
    assert not store.unchanged({"/t/a": seen})
    scripted.nodes["/t/a"].value = b"2"  # as another broker may, while nobody tells us
    scripted.shut = False
    assert await value(store, "/t/a") == b"2"
    assert told == ["/t/a"]
    await other.set("/t/a", b"3")
    await store.client.sync("/t")
    assert told == ["/t/a", "/t/a"]


async def test_commit_when_this_server_lags_behind_then_the_next_read_shows_the_conflict(
    store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/t/a", b"1")])
    seen = await version(store, "/t/a")
    store.client._on_watch_event = lambda event: None  # the notification is late
    await other.set("/t/a", b"2")
    with pytest.raises(CommitConflict, match="/t/a"):
        await store.commit([Put("/t/a", b"3")], {"/t/a": seen})
    assert (await other.get("/t/a")).value == b"2"


async def test_version_when_another_broker_creates_the_key_again_then_a_conflict(
    store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/t/a", b"1")])
    seen = await version(store, "/t/a")
    await other.delete("/t/a")
    await other.create("/t/a", b"2")
    await store.client.sync("/t")
    with pytest.raises(CommitConflict):
        await store.commit([Put("/t/a", b"3")], {"/t/a": seen})


async def test_version_when_the_notification_of_a_new_key_is_still_under_way_then_taken_for_the_old_one(
    store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    """What ZooKeeper cannot promise: its versions count from the creation of a node."""
    await store.commit([Put("/t/a", b"1")])
    seen = await version(store, "/t/a")
    store.client._on_watch_event = lambda event: None
    await other.delete("/t/a")
    await other.create("/t/a", b"2")
    await store.commit([Put("/t/a", b"3")], {"/t/a": seen})
    assert (await other.get("/t/a")).value == b"3"


@pytest.mark.parametrize("late", ["notification", "request"])
async def test_version_when_the_owner_of_an_ephemeral_key_expired_and_another_broker_created_it_then_a_conflict(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore, other: ZooKeeperClient, late: str
) -> None:
    earlier = await ZooKeeperMetadataStore.open(await ZooKeeperClient.connect(await scripted.listen()))
    await earlier.commit([Put("/t/lock", b"earlier", ephemeral=True)])
    seen = await version(store, "/t/lock")
    successor = Create("/t/lock", b"other's", flags=EPHEMERAL)
    write = scripted.write

    def change_owner() -> None:
        scripted.expire(earlier.session.id)
        write(CREATE, successor, other.session.id)

    def write_late(operation: Any, request: Any, session_id: int) -> Any:
        if operation is MULTI and scripted.nodes["/t/lock"].value == b"earlier":
            change_owner()
        return write(operation, request, session_id)

    if late == "notification":
        store.client._on_watch_event = lambda event: None
        change_owner()
    else:
        scripted.write = write_late  # type: ignore[method-assign]
    with pytest.raises(CommitConflict, match="/t/lock"):
        await store.commit([Delete("/t/lock")], {"/t/lock": seen})
    assert (await other.get("/t/lock")).value == b"other's"
    await earlier.close()


async def test_ephemeral_when_another_session_is_expected_then_its_owner_may_be_any_software(
    store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await other.create("/t/lock", b"other's", ephemeral=True)
    await store.commit([Delete("/t/lock")], {"/t/lock": await version(store, "/t/lock")})
    assert await store.get("/t/lock") is None


async def test_put_when_the_cache_is_outdated_then_tried_again(
    store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/t/a", b"1")])
    assert await store.get("/t/new") is None
    store.client._on_watch_event = lambda event: None
    await other.delete("/t/a")
    await other.create("/t/new")
    await store.commit([Put("/t/a", b"2"), Put("/t/new", b"3"), Delete("/t/any")])
    assert ((await other.get("/t/a")).value, (await other.get("/t/new")).value) == (b"2", b"3")


async def test_get_many_when_a_remembered_key_changes_meanwhile_then_all_are_read_again(
    store: ZooKeeperMetadataStore, other: ZooKeeperClient
) -> None:
    await store.commit([Put("/t/a", b"1"), Put("/t/b", b"1")])
    store._cache.forget("/t/b")
    store.client._on_watch_event, notify = lambda event: None, store.client._on_watch_event
    await other.set("/t/a", b"2")
    await other.set("/t/b", b"2")
    await store.client.sync("/t")
    store.client._on_watch_event = notify
    await other.set("/t/a", b"3")
    found = await store.get_many(["/t/a", "/t/b"])
    assert {key: each.value for key, each in found.items()} == {"/t/a": b"3", "/t/b": b"2"}


async def test_get_many_when_there_are_thousands_then_asked_in_parts(store: ZooKeeperMetadataStore) -> None:
    keys = [f"/t/{number:04d}" for number in range(2500)]
    for begin in range(0, 2500, 500):
        await store.commit([Put(key, b"x") for key in keys[begin : begin + 500]])
    store._cache.clear()
    assert list(await store.get_many(keys)) == keys
    assert [key for key, _ in await store.scan("/t/", limit=3000)] == [*keys, "/t/any"]


async def test_scan_when_it_goes_on_page_by_page_then_names_are_listed_once(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore
) -> None:
    await store.commit([Put(f"/t/{number:03d}", b"") for number in range(100)])
    scripted.requests.clear()
    found = [key async for page in scan_pages(store, "/t/0", limit=30) for key, _ in page]
    assert found == [f"/t/{number:03d}" for number in range(100)]
    # Each page after the first one asks whether something lies below the last key of the page before.
    assert scripted.requests == ["list", "read"] * 4


async def test_open_when_the_server_does_not_let_us_read_then_unusable(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    scripted.refusing["read"] = -102
    with pytest.raises(Unusable, match="no permission; nodes with access control are not supported"):
        await ZooKeeperMetadataStore.open(client, watched=["/t"])


async def test_open_when_the_server_is_older_than_3_6_then_unusable(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    scripted.refusing["watch"] = -6
    with pytest.raises(Unusable, match=r"3\.6 or newer is needed"):
        await ZooKeeperMetadataStore.open(client)


async def test_commits_when_they_are_many_at_once_then_few_marks_serve_them(
    scripted: ScriptedZooKeeper, store: ZooKeeperMetadataStore
) -> None:
    await asyncio.gather(*(store.commit([Put(f"/t/{number}", b"")]) for number in range(500)))
    assert len(scripted.nodes["/interpulse/commits"].children) <= 64
    session_id = store.client.session.id
    assert all(node.owner == session_id for path, node in scripted.nodes.items() if "/commits/" in path)


CONNECTED, SUSPENDED, LOST = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.LOST


@asynccontextmanager
async def opened(timeout_ms: int = 30_000) -> AsyncIterator[tuple[ScriptedZooKeeper, ZooKeeperMetadataStore]]:
    async with scripted_zookeeper() as zookeeper:
        client = await ZooKeeperClient.connect(await zookeeper.listen(), LinkConfig(session_timeout_ms=timeout_ms))
        store = await ZooKeeperMetadataStore.open(client, watched=["/t"])
        try:
            yield zookeeper, store
        finally:
            await store.close()


async def test_session_when_the_connection_breaks_then_suspended_and_connected_with_the_same_id() -> None:
    async with opened() as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        await store.commit([Put("/t/lock", b"", ephemeral=True)])
        before = store.session.id
        zookeeper.shut = True
        zookeeper.cut()
        await eventually(lambda: told == [SUSPENDED])
        assert store.session.state is SUSPENDED
        assert store.session.holds()
        zookeeper.shut = False
        await eventually(lambda: told == [SUSPENDED, CONNECTED])
        assert store.session.id == before
        assert await store.get("/t/lock") is not None


async def test_session_when_no_server_answers_in_time_then_lost_by_the_clock() -> None:
    async with opened(timeout_ms=300) as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        zookeeper.shut = True
        zookeeper.cut()
        await eventually(lambda: told == [SUSPENDED, LOST])
        assert store.session.state is LOST
        assert not store.session.holds()
        zookeeper.shut = False
        await eventually(lambda: told == [SUSPENDED, LOST, CONNECTED])
        assert store.session.holds()


async def test_session_when_the_server_ended_it_then_lost_and_another_id() -> None:
    async with opened() as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        before = store.session.id
        zookeeper.expire(before)
        await eventually(lambda: told == [SUSPENDED, LOST, CONNECTED])
        assert store.session.id != before
        assert store.session.holds()


async def test_session_when_the_servers_become_unusable_then_reported_as_lost() -> None:
    async with opened() as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        zookeeper.refusing["watch again"] = -6
        zookeeper.cut()
        await eventually(lambda: told == [SUSPENDED, LOST])
        assert store.session.state is LOST


async def test_sequential_when_the_answer_is_lost_then_another_number() -> None:
    async with opened() as (zookeeper, store):
        await store.create_sequential("/t/n-")
        zookeeper.losing["create"] = 1
        made = await store.create_sequential("/t/n-")
        assert made.removeprefix("/t/").removeprefix("n-") == "0000000002"
        assert len(await store.children("/t")) == 3
