"""One suite over every metadata store: memory and sqlite must not be told apart, ZooKeeper where no test says so.

What the engines promise differently:

* Keys of ZooKeeper are nodes of a tree. A key brings those above it along, with empty values, and they stay; a key with
  others below it cannot be deleted before them; a deletion of nothing tells no watch. Beside them lie nodes that are
  not the broker's keys: ``/interpulse/commits``, ``/zookeeper``.
* One commit to ZooKeeper has at most 900 KiB.
* A page of a scan costs what it gives in memory and sqlite; in ZooKeeper also a list of the names beside it.
* Versions of keys that are deleted and created again are higher in all of them. Against brokers that do so at the same
  moment ZooKeeper promises less: `zookeeper/test_store.py` has the case.
* Ephemeral keys go with the process that has the store. Those in memory and sqlite are seen by that process alone, and
  its session is not lost before the store is closed; those of sqlite are in the file until it is opened again.
  ZooKeeper has no keys below an ephemeral one.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpulse.storage.api import (
    CommitConflict,
    CommitTooLarge,
    Delete,
    MetadataStore,
    MetadataUnavailable,
    Put,
    Versioned,
)
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.storage.sessions import SessionState
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.scripted_zookeeper import scripted_zookeeper

REAL = pytest.param("real zookeeper", marks=[pytest.mark.slow, pytest.mark.interop])


@pytest.fixture(params=["memory", "sqlite", "zookeeper", REAL])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of the store."""
    return str(request.param)


@pytest.fixture
async def store(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MetadataStore]:
    async with AsyncExitStack() as opened:
        if engine == "memory":
            yield MemoryMetadataStore()
        elif engine == "sqlite":
            sqlite = await SqliteMetadataStore.open(tmp_path / "m.sqlite")
            opened.push_async_callback(sqlite.close)
            yield sqlite
        elif engine == "zookeeper":
            zookeeper = await opened.enter_async_context(scripted_zookeeper())
            yield await _zookeeper_store(await zookeeper.listen(), opened)
        else:
            yield await _zookeeper_store(request.getfixturevalue("real_zookeeper_address"), opened)


async def _zookeeper_store(address: str, opened: AsyncExitStack) -> MetadataStore:
    client = await ZooKeeperClient.connect(f"{address}/{uuid.uuid4()}")
    store = await ZooKeeperMetadataStore.open(client, watched=["/"])
    opened.push_async_callback(store.close)
    return store


async def version(store: MetadataStore, key: str) -> int:
    found = await store.get(key)
    assert found is not None
    return found.version


async def test_get_when_key_is_absent_then_none(store: MetadataStore) -> None:
    assert await store.get("/a") is None
    assert await store.get_many(["/a", "/b"]) == {}


async def test_commit_when_it_returns_then_all_changes_are_seen(store: MetadataStore) -> None:
    assert await store.get("/a") is None
    await store.commit([Put("/a", b"1"), Put("/b", b"\0\xff"), Delete("/never")])
    found = await store.get_many(["/b", "/a", "/c"])
    assert {key: each.value for key, each in found.items()} == {"/a": b"1", "/b": b"\0\xff"}
    await store.commit([Delete("/a"), Put("/b", b"")])
    assert await store.get("/a") is None
    found_b = await store.get("/b")
    assert found_b is not None
    assert found_b.value == b""


async def test_commit_when_one_expectation_fails_then_nothing_is_applied(store: MetadataStore) -> None:
    await store.commit([Put("/a", b"1")])
    seen = await version(store, "/a")
    with pytest.raises(CommitConflict) as conflict:
        await store.commit([Put("/a", b"2"), Put("/b", b"2")], {"/a": seen, "/b": 17})
    assert conflict.value.key == "/b"
    assert await store.get("/b") is None
    assert await version(store, "/a") == seen
    with pytest.raises(CommitConflict):
        await store.commit([Put("/a", b"2")], {"/a": None})
    await store.commit([Put("/a", b"2"), Put("/b", b"2")], {"/a": seen, "/b": None})
    assert await version(store, "/a") > seen


async def test_version_when_key_is_deleted_and_created_then_higher(store: MetadataStore) -> None:
    await store.commit([Put("/a", b"1")])
    seen = await version(store, "/a")
    await store.commit([Delete("/a")])
    await store.commit([Put("/a", b"1")])
    assert await version(store, "/a") > seen
    with pytest.raises(CommitConflict):
        await store.commit([Delete("/a")], {"/a": seen})


async def test_children_when_names_nest_and_share_beginnings_then_each_once_and_sorted(store: MetadataStore) -> None:
    keys = ["/t/a", "/t/a/x", "/t/a-b", "/t/a/x/deep", "/t/only/below", "/t/z%2Fé", "/tt/other", "/t0"]
    await store.commit([Put(key, b"") for key in keys])
    assert await store.children("/t") == ["a", "a-b", "only", "z%2Fé"]
    assert await store.children("/t/") == ["a", "a-b", "only", "z%2Fé"]
    assert await store.children("/t/a") == ["x"]
    assert await store.children("/t/only") == ["below"]
    assert await store.children("/none") == []
    assert [name for name in await store.children("/") if name != "interpulse"] == ["t", "t0", "tt"]


async def test_children_when_the_last_key_below_is_deleted_then_gone_unless_keys_are_nodes(
    engine: str, store: MetadataStore
) -> None:
    await store.commit([Put("/t/only/below", b"")])
    await store.commit([Delete("/t/only/below")])
    above = ["only"] if "zookeeper" in engine else []
    assert await store.children("/t") == above
    assert [key for key, _ in await store.scan("/t/", limit=9)] == [f"/t/{name}" for name in above]
    assert [found.value for found in (await store.get_many(["/t/only"])).values()] == [b""] * len(above)


async def test_delete_when_others_are_below_then_only_that_key_goes_unless_keys_are_nodes(
    engine: str, store: MetadataStore
) -> None:
    await store.commit([Put("/t/a", b"1"), Put("/t/a/b", b"2")])
    if "zookeeper" in engine:
        with pytest.raises(CommitConflict, match="/t/a has keys below it"):
            await store.commit([Delete("/t/a")])
    else:
        await store.commit([Delete("/t/a")])
        assert list(await store.get_many(["/t/a", "/t/a/b"])) == ["/t/a/b"]
    await store.commit([Delete("/t/a"), Delete("/t/a/b")])
    assert await store.get_many(["/t/a", "/t/a/b"]) == {}


async def test_commit_when_larger_than_the_store_takes_then_refused_whole(engine: str, store: MetadataStore) -> None:
    changes = [Put(f"/t/{number}", bytes(100_000)) for number in range(10)]
    if "zookeeper" in engine:
        with pytest.raises(CommitTooLarge, match="/t/0, /t/1, /t/2 and 8 others"):
            await store.commit(changes)
        assert await store.children("/t") == []
        await store.commit([Put("/t/a", bytes(900_000))])
        found = await store.get("/t/a")
        assert found is not None
        assert len(found.value) == 900_000
    else:
        await store.commit(changes)
        assert len(await store.children("/t")) == 10


async def test_commit_when_a_key_changes_twice_then_the_last_change_counts(store: MetadataStore) -> None:
    await store.commit([Put("/a", b"1"), Delete("/a"), Put("/b", b"1"), Put("/b", b"2")])
    assert await store.get("/a") is None
    assert [found.value for found in (await store.get_many(["/b"])).values()] == [b"2"]


async def test_expectation_when_its_key_is_not_changed_then_checked_all_the_same(store: MetadataStore) -> None:
    await store.commit([Put("/a", b"1")])
    seen = await version(store, "/a")
    await store.commit([Put("/b", b"")], {"/a": seen, "/none": None})
    assert await store.get("/none") is None
    await store.commit([Put("/a", b"2")])
    for expect in ({"/a": seen}, {"/a": None}, {"/none": 1}, {"/b": None}):
        with pytest.raises(CommitConflict, match=next(iter(expect))):
            await store.commit([Delete("/b")], expect)
    await store.commit([Delete("/none")], {"/none": None})
    await store.commit([Put("/c", b"")], {"/c": None, "/c/d": None, "/n": None, "/n/e": None})
    assert list(await store.get_many(["/c", "/c/d", "/n", "/n/e"])) == ["/c"]


async def successor(engine: str, store: MetadataStore, path: Path, opened: AsyncExitStack) -> MetadataStore:
    """The metadata after the end of the store's session."""
    if isinstance(store, MemoryMetadataStore):
        store.expire_session()
        return store
    if engine == "sqlite":
        await store.close()
        sqlite = await SqliteMetadataStore.open(path / "m.sqlite")
        opened.push_async_callback(sqlite.close)
        return sqlite
    assert isinstance(store, ZooKeeperMetadataStore)
    other = await ZooKeeperMetadataStore.open(await ZooKeeperClient.connect(store.client.servers), watched=["/"])
    opened.push_async_callback(other.close)
    await store.close()
    await other.sync("/")
    return other


async def test_ephemeral_when_its_session_ends_then_gone_and_the_others_stay(
    engine: str, store: MetadataStore, tmp_path: Path
) -> None:
    await store.commit([Put("/t/lock", b"1", ephemeral=True), Put("/t/stays", b"1")])
    numbered = await store.create_sequential("/t/n-", b"1")
    session = store.session
    before = session.id
    assert session.holds()
    assert session.state is SessionState.CONNECTED
    assert sorted(await store.children("/t")) == sorted(["lock", "stays", numbered.removeprefix("/t/")])
    async with AsyncExitStack() as opened:
        left = await successor(engine, store, tmp_path, opened)
        assert await left.children("/t") == ["stays"]
        assert await left.get("/t/lock") is None
        await left.commit([Put("/t/lock", b"2", ephemeral=True)], {"/t/lock": None})
        assert left.session.holds()
    if engine == "memory":
        assert session.id != before
    else:
        assert session.state is SessionState.LOST
        assert not session.holds()


async def test_ephemeral_when_the_key_is_there_then_only_one_of_this_session_is_replaced(store: MetadataStore) -> None:
    await store.commit([Put("/t/lock", b"1", ephemeral=True)])
    await store.commit([Put("/t/lock", b"2", ephemeral=True)], {"/t/lock": await version(store, "/t/lock")})
    await store.commit([Put("/t/lock", b"3")])
    found = await store.get("/t/lock")
    assert found is not None
    assert found.value == b"3"
    await store.commit([Put("/t/stays", b"1")])
    with pytest.raises(CommitConflict, match="/t/stays"):
        await store.commit([Put("/t/stays", b"2", ephemeral=True), Put("/t/other", b"")])
    assert await store.children("/t") == ["lock", "stays"]
    await store.commit([Delete("/t/lock"), Delete("/t/stays")])
    await store.commit([Put("/t/lock", b"1"), Put("/t/stays", b"1", ephemeral=True)])
    assert await store.children("/t") == ["lock", "stays"]


async def test_sequential_when_created_again_and_again_then_each_number_once_and_higher(store: MetadataStore) -> None:
    made = [await store.create_sequential("/t/id/a-", b"v")]
    await store.commit([Delete(made[0])])
    made += await asyncio.gather(*(store.create_sequential("/t/id/a-") for _ in range(20)))
    numbers = [int(key.removeprefix("/t/id/a-")) for key in made]
    assert len(set(numbers)) == 21
    assert min(numbers[1:]) > numbers[0]
    assert all(len(key) == len("/t/id/a-") + 10 for key in made)
    assert await store.children("/t/id") == sorted(key.removeprefix("/t/id/") for key in made[1:])


async def test_sync_when_nothing_is_behind_then_reads_go_on(store: MetadataStore) -> None:
    await store.commit([Put("/a", b"1")])
    await store.sync("/a")
    await store.sync("/none")
    found = await store.get("/a")
    assert found is not None
    assert found.value == b"1"


async def test_session_when_watched_then_its_end_is_reported(store: MetadataStore) -> None:
    seen: list[SessionState] = []
    cancelled: list[SessionState] = []
    store.session.on_change(seen.append)
    store.session.on_change(cancelled.append)()
    await store.close()
    assert seen == [SessionState.LOST]
    assert cancelled == []


async def test_unchanged_when_true_then_get_returns_that_version(store: MetadataStore) -> None:
    await store.commit([Put("/a", b"1")])
    seen = await version(store, "/a")
    assert await store.get("/none") is None
    assert store.unchanged({"/a": seen, "/none": None})
    assert not store.unchanged({"/a": seen + 1})
    await store.commit([Put("/a", b"2"), Put("/none", b"")])
    assert not store.unchanged({"/a": seen})
    assert not store.unchanged({"/none": None})


async def test_scan_when_names_share_beginnings_then_those_in_order_page_by_page(store: MetadataStore) -> None:
    keys = ["/t/x", "/t/x-0", "/t/x-0/cursor", "/t/x-1", "/t/x-10", "/t/xé", "/t/y"]
    await store.commit([Put(key, key.encode()) for key in keys])
    found = await store.scan("/t/x-", limit=10)
    assert [key for key, _ in found] == ["/t/x-0", "/t/x-0/cursor", "/t/x-1", "/t/x-10"]
    assert dict(found) == await store.get_many([key for key, _ in found])
    assert [key for key, _ in await store.scan("/t/x", limit=2)] == ["/t/x", "/t/x-0"]
    assert [key for key, _ in await store.scan("/t/x", after="/t/x-0", limit=3)] == [
        "/t/x-0/cursor",
        "/t/x-1",
        "/t/x-10",
    ]
    assert [key for key, _ in await store.scan("/t/x", after="/t/x-10", limit=3)] == ["/t/xé"]
    assert await store.scan("/t/x", after="/u", limit=3) == []
    assert await store.scan("/t/z", limit=3) == []
    assert [key for key, _ in await store.scan("", after="/t/x-10", limit=9)] == ["/t/xé", "/t/y"]


async def test_scan_when_there_are_many_then_every_limit_is_reached(store: MetadataStore) -> None:
    keys = [f"/t/{number:04d}" for number in range(200)]
    await store.commit([Put(key, b"") for key in [*keys, "/s", "/u"]])
    for limit in (1, 49, 50, 51, 100, 199, 200, 201):
        assert [key for key, _ in await store.scan("/t/", limit=limit)] == keys[:limit]
    assert [key for key, _ in await store.scan("/t/", after=keys[99], limit=70)] == keys[100:170]


async def test_watch_when_keys_change_then_called_after_the_commit_until_cancelled(store: MetadataStore) -> None:
    seen: list[str] = []
    await store.commit([Put("/a", b""), Put("/a/2", b"")])
    cancel = store.watch("/a", seen.append)
    await store.commit([Put("/a/1", b""), Put("/b", b""), Delete("/a/2")])
    assert sorted(seen) == ["/a/1", "/a/2"]
    with pytest.raises(CommitConflict):
        await store.commit([Put("/a/3", b"")], {"/a/3": 1})
    cancel()
    cancel()
    await store.commit([Put("/a/4", b"")])
    assert sorted(seen) == ["/a/1", "/a/2"]


async def test_watch_when_called_then_the_new_value_is_there(store: MetadataStore) -> None:
    values: list[asyncio.Future[Versioned | None]] = []
    store.watch("/a", lambda key: values.append(asyncio.ensure_future(store.get(key))))
    assert await store.get("/a") is None
    await store.commit([Put("/a", b"new")])
    (found,) = await asyncio.gather(*values)
    assert found is not None
    assert found.value == b"new"


async def test_commit_when_many_race_for_one_key_then_exactly_one_wins(store: MetadataStore) -> None:
    commits = [store.commit([Put("/a", b"%d" % each)], {"/a": None}) for each in range(50)]
    results = await asyncio.gather(*commits, return_exceptions=True)
    assert sum(result is None for result in results) == 1
    assert sum(isinstance(result, CommitConflict) for result in results) == 49


async def test_counter_when_incremented_concurrently_then_no_increment_is_lost(store: MetadataStore) -> None:
    async def increment() -> None:
        while True:
            found = await store.get("/n")
            value = int(found.value) if found else 0
            try:
                await store.commit([Put("/n", b"%d" % (value + 1))], {"/n": found.version if found else None})
            except CommitConflict:
                continue
            return

    await asyncio.gather(*(increment() for _ in range(20)))
    found = await store.get("/n")
    assert found is not None
    assert found.value == b"20"


async def test_store_when_closed_then_calls_are_refused(store: MetadataStore) -> None:
    await store.close()
    await store.close()
    with pytest.raises(MetadataUnavailable):
        await store.get("/a")
    with pytest.raises(MetadataUnavailable):
        await store.commit([Put("/a", b"")])
    with pytest.raises(MetadataUnavailable):
        await store.children("/a")
    with pytest.raises(MetadataUnavailable):
        await store.scan("/a", limit=1)


def _keys(found: list[tuple[str, Versioned]]) -> list[str]:
    return [key for key, _ in found]


keys = st.lists(st.sampled_from("ab-"), min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
operations = st.lists(
    st.tuples(
        st.lists(st.one_of(st.builds(Put, keys, st.binary(max_size=3)), st.builds(Delete, keys)), max_size=4),
        st.none() | st.tuples(keys, st.booleans()),
    ),
    max_size=12,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(operations)
async def test_stores_when_given_the_same_history_then_answer_the_same(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[list[Put | Delete], tuple[str, bool] | None]]
) -> None:
    memory = MemoryMetadataStore()
    sqlite = await SqliteMetadataStore.open(tmp_path_factory.mktemp("twin") / "m.sqlite", cache_entries_max=2)
    for changes, guess in history:
        outcomes = []
        for each in (memory, sqlite):
            expect = {}
            if guess is not None:
                key, right = guess
                found = await each.get(key)
                expect = {key: (found.version if found else None) if right else -1}
            try:
                await each.commit(changes, expect)
                outcomes.append("applied")
            except CommitConflict as conflict:
                outcomes.append(conflict.key)
        assert outcomes[0] == outcomes[1]
        touched = [change.key for change in changes]
        assert {key: found.value for key, found in (await memory.get_many(touched)).items()} == {
            key: found.value for key, found in (await sqlite.get_many(touched)).items()
        }
        for key in ["/", "/a", "/a/b"]:
            assert await memory.children(key) == await sqlite.children(key)
            assert _keys(await memory.scan(key, limit=5)) == _keys(await sqlite.scan(key, limit=5))
    await sqlite.close()


leaves = st.sampled_from(["/a", "/t/a", "/t/a-b", "/t/b", "/t/c", "/u/x"])
histories = st.lists(
    st.tuples(
        st.lists(st.one_of(st.builds(Put, leaves, st.binary(max_size=3)), st.builds(Delete, leaves)), max_size=4),
        st.none() | st.tuples(leaves, st.booleans()),
    ),
    max_size=12,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(histories)
async def test_zookeeper_when_no_key_is_above_another_then_answers_as_memory(
    history: list[tuple[list[Put | Delete], tuple[str, bool] | None]],
) -> None:
    memory = MemoryMetadataStore()
    async with AsyncExitStack() as opened:
        zookeeper = await opened.enter_async_context(scripted_zookeeper())
        tree = await _zookeeper_store(await zookeeper.listen(), opened)
        for changes, guess in history:
            outcomes = [await _outcome(each, changes, guess) for each in (memory, tree)]
            assert outcomes[0] == outcomes[1]
            found = [await each.get_many(["/a", "/t/a", "/t/a-b", "/t/b", "/t/c", "/u/x"]) for each in (memory, tree)]
            assert {key: each.value for key, each in found[0].items()} == {
                key: each.value for key, each in found[1].items()
            }
            assert await memory.children("/t") == await tree.children("/t")
            assert _keys(await memory.scan("/t/a", limit=5)) == _keys(await tree.scan("/t/a", limit=5))


async def _outcome(store: MetadataStore, changes: list[Put | Delete], guess: tuple[str, bool] | None) -> str:
    expect: dict[str, int | None] = {}
    if guess is not None:
        key, right = guess
        found = await store.get(key)
        expect = {key: (found.version if found else None) if right else -1}
    try:
        await store.commit(changes, expect)
    except CommitConflict as conflict:
        return conflict.key
    return "applied"
