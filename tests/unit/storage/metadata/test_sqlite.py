"""What only the SQLite store has: durability, grouping, the memory of reads, errors. The rest is in the twin suite."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from interpulse.storage.api import CommitConflict, Delete, MetadataUnavailable, Put
from interpulse.storage.metadata import sqlite
from interpulse.storage.metadata.sqlite import SqliteMetadataStore


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata.sqlite"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteMetadataStore]:
    opened = await SqliteMetadataStore.open(path)
    yield opened
    await opened.close()


async def test_open_when_file_exists_then_values_and_versions_go_on(path: Path, store: SqliteMetadataStore) -> None:
    await store.commit([Put("/a", b"1"), Put("/b", b"1")])
    before = await store.get("/a")
    await store.commit([Delete("/b")])
    await store.close()
    again = await SqliteMetadataStore.open(path)
    assert await again.get("/a") == before
    await again.commit([Put("/b", b"2")])
    after = await again.get("/b")
    assert before is not None
    assert after is not None
    assert after.version == before.version + 2
    await again.close()


async def test_open_when_wal_is_used_then_every_commit_is_synced(path: Path, store: SqliteMetadataStore) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    assert mode == "wal"
    (synchronous,) = store._writer._connection.execute("PRAGMA synchronous").fetchone()
    assert synchronous == 2


async def test_commit_when_many_wait_then_they_share_transactions(store: SqliteMetadataStore) -> None:
    transactions: list[str] = []
    all_submitted = threading.Event()

    def trace(statement: str) -> None:
        if statement.startswith("BEGIN"):
            transactions.append(statement)
            all_submitted.wait()

    store._writer._connection.set_trace_callback(trace)
    commits = [asyncio.ensure_future(store.commit([Put(f"/{number}", b"")])) for number in range(500)]
    await asyncio.sleep(0)
    all_submitted.set()
    await asyncio.gather(*commits)
    assert len(transactions) <= 2


async def test_commit_when_waiting_with_a_conflict_then_only_that_one_fails(store: SqliteMetadataStore) -> None:
    expectations: list[dict[str, int | None]] = [{"/x": 7} if number == 3 else {} for number in range(8)]
    results = await asyncio.gather(
        *(store.commit([Put(f"/{number}", b"")], expect) for number, expect in enumerate(expectations)),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [CommitConflict if n == 3 else type(None) for n in range(8)]
    assert await store.children("/") == ["0", "1", "2", "4", "5", "6", "7"]


async def test_commit_when_one_cannot_be_stored_then_the_others_are(store: SqliteMetadataStore) -> None:
    bad = [Put("/\ud800", b""), Put("/later", b"")]  # half a surrogate pair is no text
    results = await asyncio.gather(
        store.commit([Put("/1", b"")]), store.commit(bad), store.commit([Put("/2", b"")]), return_exceptions=True
    )
    assert results[0] is None
    assert isinstance(results[1], UnicodeError)
    assert results[2] is None
    assert await store.children("/") == ["1", "2"]


async def test_commit_when_database_is_full_then_typed_error_and_works_again_later(store: SqliteMetadataStore) -> None:
    await store.commit([Put("/a", b"1")])
    (pages,) = store._writer._connection.execute("PRAGMA page_count").fetchone()
    store._writer._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(MetadataUnavailable, match="full"):
        await store.commit([Put("/big", b"x" * 100_000)])
    assert await store.get("/big") is None
    store._writer._connection.execute("PRAGMA max_page_count = 1000000")
    await store.commit([Put("/big", b"x" * 100_000)])


async def test_commit_when_caller_is_cancelled_then_store_goes_on(store: SqliteMetadataStore) -> None:
    waiting = asyncio.ensure_future(store.commit([Put("/a", b"1")]))
    await asyncio.sleep(0)
    waiting.cancel()
    await store.commit([Put("/b", b"1")])
    assert await store.children("/") == ["a", "b"]


async def test_get_when_value_was_read_or_committed_then_no_query(store: SqliteMetadataStore) -> None:
    queries: list[str] = []
    store._reader.set_trace_callback(queries.append)
    for value in (b"1", b"2"):
        await store.commit([Put("/a", value), Delete("/b")])
        for _ in range(3):
            found = await store.get("/a")
            assert found is not None
            assert found.value == value
            assert await store.get("/absent") is None
            assert await store.get_many(["/a", "/b", "/absent"]) == {"/a": found}
    assert sum("SELECT" in query for query in queries) == 1


async def test_get_when_commits_are_under_way_then_never_an_older_value_after_a_newer(
    store: SqliteMetadataStore,
) -> None:
    await store.commit([Put("/a", b"0")])
    commits = [asyncio.ensure_future(store.commit([Put("/a", str(number).encode())])) for number in range(200)]
    seen = []
    while not all(commit.done() for commit in commits):
        one, many = await store.get("/a"), (await store.get_many(["/b", "/a"])).get("/a")
        assert one is not None
        assert many is not None
        seen += [one.version, many.version]
        await asyncio.sleep(0)
    assert seen == sorted(seen)
    await asyncio.gather(*commits)
    last = await store.get("/a")
    assert last is not None
    assert last.value == b"199"
    assert not store._changing


async def test_get_when_last_commit_failed_then_value_of_the_one_before(store: SqliteMetadataStore) -> None:
    results = await asyncio.gather(
        store.commit([Put("/a", b"1")]), store.commit([Put("/a", b"2")], {"/a": None}), return_exceptions=True
    )
    assert [type(result) for result in results] == [type(None), CommitConflict]
    found = await store.get("/a")
    assert found is not None
    assert found.value == b"1"


async def test_commit_when_its_transaction_changed_an_expected_key_then_conflict(
    store: SqliteMetadataStore,
) -> None:
    await store.commit([Put("/a", b"1")])
    first = await store.get("/a")
    assert first is not None
    results = await asyncio.gather(
        store.commit([Delete("/a")], {"/a": first.version}),
        store.commit([Put("/a", b"2")], {"/a": first.version}),
        store.commit([Put("/a", b"3")], {"/a": None}),
        store.commit([Put("/a", b"4"), Put("/b", b"4")], {"/a": None}),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), CommitConflict, type(None), CommitConflict]
    found = await store.get_many(["/a", "/b"])
    assert {key: (value.value, value.version) for key, value in found.items()} == {"/a": (b"3", first.version + 2)}


async def test_get_when_value_is_large_then_not_cached(store: SqliteMetadataStore) -> None:
    await store.commit([Put("/large", b"x" * 5000)])
    found = await store.get("/large")
    assert found is not None
    assert len(found.value) == 5000
    assert "/large" not in store._cache


@pytest.mark.parametrize("count", [49, 50, 51, 200])
async def test_children_when_few_or_many_then_the_same_way_of_naming(store: SqliteMetadataStore, count: int) -> None:
    names = [f"{number:03d}" for number in range(count)]
    await store.commit([Put(f"/a/{name}/below", b"") for name in names] + [Put("/ab", b""), Put("/a", b"")])
    assert await store.children("/a") == names


async def test_cache_when_bound_is_reached_then_oldest_are_forgotten(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, cache_entries_max=3)
    await store.get_many([f"/{number}" for number in range(10)])
    assert list(store._cache) == ["/7", "/8", "/9"]
    await store.close()


async def test_get_many_when_more_keys_than_one_query_takes_then_all_are_found(store: SqliteMetadataStore) -> None:
    keys = [f"/{number}" for number in range(1200)]
    await store.commit([Put(key, key.encode()) for key in keys])
    assert {key: found.value.decode() for key, found in (await store.get_many(keys)).items()} == {k: k for k in keys}


async def test_close_when_commits_wait_then_they_are_finished(path: Path, store: SqliteMetadataStore) -> None:
    commits = [asyncio.ensure_future(store.commit([Put(f"/{number}", b"")])) for number in range(20)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*commits)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (20,)
    connection.close()


@pytest.fixture
def junk(tmp_path: Path) -> Path:
    path = tmp_path / "junk.sqlite"
    path.write_bytes(b"no database, but long enough to be looked at" * 100)
    return path


async def test_open_when_not_a_database_then_typed_error_naming_the_file(junk: Path) -> None:
    with pytest.raises(MetadataUnavailable, match=r"junk\.sqlite"):
        await SqliteMetadataStore.open(junk)


async def test_open_when_directory_is_absent_then_typed_error(path: Path) -> None:
    with pytest.raises(MetadataUnavailable, match="unable to open"):
        await SqliteMetadataStore.open(path.parent / "absent" / "metadata.sqlite")


async def test_open_when_format_is_newer_then_refused(path: Path, store: SqliteMetadataStore) -> None:
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {sqlite._FORMAT + 1}")
    connection.close()
    with pytest.raises(MetadataUnavailable, match="format 2"):
        await SqliteMetadataStore.open(path)
