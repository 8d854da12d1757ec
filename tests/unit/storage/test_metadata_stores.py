"""One suite over every metadata store: memory and sqlite must not be told apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpulse.storage.api import CommitConflict, Delete, MetadataStore, MetadataUnavailable, Put, Versioned
from interpulse.storage.memory import MemoryMetadataStore
from interpulse.storage.sqlite import SqliteMetadataStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MetadataStore]:
    opened: MetadataStore = (
        MemoryMetadataStore() if request.param == "memory" else await SqliteMetadataStore.open(tmp_path / "m.sqlite")
    )
    yield opened
    await opened.close()


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
    assert await store.children("/") == ["t", "t0", "tt"]
    await store.commit([Delete("/t/only/below")])
    assert "only" not in await store.children("/t")


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


async def test_scan_when_there_are_many_then_every_limit_gives_as_many(store: MetadataStore) -> None:
    keys = [f"/t/{number:04d}" for number in range(200)]
    await store.commit([Put(key, b"") for key in [*keys, "/s", "/u"]])
    for limit in (1, 49, 50, 51, 100, 199, 200, 201):
        assert [key for key, _ in await store.scan("/t/", limit=limit)] == keys[:limit]
    assert [key for key, _ in await store.scan("/t/", after=keys[99], limit=70)] == keys[100:170]


async def test_watch_when_keys_change_then_called_after_the_commit_until_cancelled(store: MetadataStore) -> None:
    seen: list[str] = []
    cancel = store.watch("/a", seen.append)
    await store.commit([Put("/a/1", b""), Put("/b", b""), Delete("/a/2")])
    assert seen == ["/a/1", "/a/2"]
    with pytest.raises(CommitConflict):
        await store.commit([Put("/a/3", b"")], {"/a/3": 1})
    cancel()
    cancel()
    await store.commit([Put("/a/4", b"")])
    assert seen == ["/a/1", "/a/2"]


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
