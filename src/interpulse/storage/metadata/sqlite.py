"""`MetadataStore` on the standard library's sqlite3.

One thread writes. It takes all waiting commits, checks and applies them one after another in a single transaction, and
answers them after the one sync of that transaction. A conflict fails only its own commit. Single keys are read in the
event loop, from a bounded cache of recent values or from the database (microseconds; in WAL mode readers never wait for
the writer).

Invariants:

* The cache holds the newest values of the database, and never a key that a commit under way changes; such a key is read
  from the database. So a key never goes back to an older value, and cached keys together with the keys of one query are
  one consistent read.
* ``counter.version`` grows with every commit and is never set back, so versions never repeat.
* ``ephemerals`` names the keys that are removed when the store is opened again.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from interpulse.storage.api import Change, CommitConflict, MetadataFull, MetadataUnavailable, Put, Versioned, sizes_of
from interpulse.storage.cas import create_numbered
from interpulse.storage.meters import MetadataMeter
from interpulse.storage.sessions import LastingSession, Watches

_FORMAT = 1
_GROUP_MAX = 1000  # commits in one transaction; bounds the wait of the first one
_KEYS_PER_QUERY = 500  # below the limit of bound variables of every SQLite
_BEHIND_ALL = "\U0010ffff"  # follows every other character, and occurs in no name
_KEY_LENGTH_REMEMBERED = 1_000  # longer keys are not cached: names of 64 KB would fill the cache
_VALUE_BYTES_REMEMBERED = 4096  # larger values are read each time
_KEYS_LISTED_AT_ONCE = 50  # longer lists are read in the lister's thread

_UNKNOWN = Versioned(b"", -1)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ephemerals (key TEXT PRIMARY KEY) WITHOUT ROWID;
DELETE FROM entries WHERE key IN (SELECT key FROM ephemerals);
DELETE FROM ephemerals;
CREATE TABLE IF NOT EXISTS counter (version INTEGER NOT NULL);
INSERT INTO counter (version) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM counter);
"""
_CHILDREN = """
SELECT DISTINCT CASE instr(substr(key, :skip), '/') WHEN 0 THEN substr(key, :skip)
       ELSE substr(key, :skip, instr(substr(key, :skip), '/') - 1) END
FROM entries WHERE key >= :low AND key < :high
"""
_SCAN = "SELECT key, value, version FROM entries WHERE key {after} ? AND key < ? ORDER BY key LIMIT ?"
_TAKEN = "SELECT 1 FROM entries WHERE key = :key AND key NOT IN (SELECT key FROM ephemerals)"
_BELOW = "SELECT key FROM entries WHERE key >= ? AND key < ? LIMIT ?"


@dataclass(slots=True)
class _Commit:
    changes: Sequence[Change]
    expect: Mapping[str, int | None]
    done: asyncio.Future[None]
    version: int = 0
    error: Exception | None = None


class SqliteMetadataStore:
    """The metadata of one data directory, in one SQLite file. Create it with `open`."""

    def __init__(
        self, path: Path, loop: asyncio.AbstractEventLoop, cache_entries_max: int, on_full: Callable[[str], None]
    ) -> None:
        self._path = path
        self._on_full = on_full
        self._loop = loop
        self._cache_entries_max = cache_entries_max
        self._cache: OrderedDict[str, Versioned | None] = OrderedDict()
        self._changing: Counter[str] = Counter()  # commits under way, by the key that they change
        self._watches = Watches()
        self.meter = MetadataMeter()
        self.session = LastingSession()
        self._closed = False
        self._reader: sqlite3.Connection
        self._list_reader: sqlite3.Connection  # used in the lister's thread only
        self._lister = ThreadPoolExecutor(1, thread_name_prefix="metadata-lister")
        self._writer: _Writer

    @classmethod
    async def open(
        cls, path: Path, *, cache_entries_max: int = 50_000, on_full: Callable[[str], None] = lambda problem: None
    ) -> SqliteMetadataStore:
        """Open or create the file; its directory must exist. Raise `MetadataUnavailable`.

        ``on_full`` is called with the problem when a commit fails because the disk is full.
        """
        loop = asyncio.get_running_loop()
        store = cls(path, loop, cache_entries_max, on_full)
        try:
            await loop.run_in_executor(store._lister, _prepare, path)
            store._reader, store._list_reader = _connect(path), _connect(path)
            store._writer = _Writer(path, lambda group: loop.call_soon_threadsafe(store._finish, group))
        except MetadataUnavailable:
            store._lister.shutdown()
            raise
        return store

    async def get(self, key: str) -> Versioned | None:
        try:
            return self._cache[key]
        except KeyError:
            return self._read([key]).get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        self._check_open()
        cached = {key: self._cache[key] for key in keys if key in self._cache}
        present = {key: value for key, value in cached.items() if value is not None}
        missing = [key for key in keys if key not in cached]
        return present | self._read(missing) if missing else present

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        cached = self._cache.get
        for key, version in versions.items():
            value = cached(key, _UNKNOWN)
            if (value and value[1]) != version:  # None: the key is absent; value[1] is faster than value.version
                return False
        return True

    async def children(self, key: str) -> list[str]:
        self._check_open()
        prefix = key.rstrip("/") + "/"
        with _as_unavailable(self._path):
            below = self._reader.execute(_BELOW, (*_bounds(prefix), _KEYS_LISTED_AT_ONCE + 1)).fetchall()
        if len(below) <= _KEYS_LISTED_AT_ONCE:
            return sorted({key[len(prefix) :].partition("/")[0] for (key,) in below})
        return await self._loop.run_in_executor(self._lister, _children, self._list_reader, self._path, prefix)

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        self._check_open()
        page = _scan(self._reader, self._path, prefix, after, min(limit, _KEYS_LISTED_AT_ONCE))
        if len(page) == limit or len(page) < _KEYS_LISTED_AT_ONCE:
            return page
        arguments = (self._list_reader, self._path, prefix, page[-1][0], limit - len(page))
        return page + await self._loop.run_in_executor(self._lister, _scan, *arguments)

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        self._check_open()
        commit = _Commit(tuple(changes), dict(expect), self._loop.create_future())
        for change in commit.changes:
            self._changing[change.key] += 1
            self._cache.pop(change.key, None)
        with self.meter.committing(*sizes_of(commit.changes)):
            self._writer.submit(commit)
            await commit.done

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        return await create_numbered(self, prefix, value)

    async def sync(self, key: str) -> None:
        self._check_open()

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        return self._watches.add(prefix, callback)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.session.lose()
        await self._loop.run_in_executor(self._lister, self._writer.stop)
        self._lister.shutdown()
        self._cache.clear()
        self._reader.close()
        self._list_reader.close()

    def _check_open(self) -> None:
        if self._closed:
            raise MetadataUnavailable(f"metadata store {self._path} is closed")

    def _read(self, keys: Sequence[str]) -> dict[str, Versioned]:
        self._check_open()
        with self.meter.reading(len(keys)), _as_unavailable(self._path):
            if len(keys) <= _KEYS_PER_QUERY:
                rows = self._select(keys)  # one statement is a consistent read by itself
            else:
                with _transaction(self._reader, "DEFERRED"):
                    rows = {}
                    for begin in range(0, len(keys), _KEYS_PER_QUERY):
                        rows |= self._select(keys[begin : begin + _KEYS_PER_QUERY])
        for key in keys:
            if key not in self._changing:
                self._remember(key, rows.get(key))
        return rows

    def _remember(self, key: str, value: Versioned | None) -> None:
        if len(key) <= _KEY_LENGTH_REMEMBERED and (value is None or len(value.value) <= _VALUE_BYTES_REMEMBERED):
            self._cache[key] = value
            if len(self._cache) > self._cache_entries_max:
                self._cache.popitem(last=False)

    def _select(self, keys: Sequence[str]) -> dict[str, Versioned]:
        marks = ",".join("?" * len(keys))
        rows = self._reader.execute(f"SELECT key, value, version FROM entries WHERE key IN ({marks})", keys).fetchall()
        return {key: Versioned(value, version) for key, value, version in rows}

    def _finish(self, group: list[_Commit]) -> None:
        """Answer the commits of a finished transaction."""
        full = next((commit.error for commit in group if isinstance(commit.error, MetadataFull)), None)
        if full is not None:
            self._on_full(str(full))
        for commit in group:
            for change in commit.changes:
                self._settle(commit, change)
            if commit.done.done():
                continue  # its caller was cancelled
            if commit.error is None:
                commit.done.set_result(None)
            else:
                commit.done.set_exception(commit.error)
        for commit in group:
            if commit.error is None:
                self._watches.announce(change.key for change in commit.changes)

    def _settle(self, commit: _Commit, change: Change) -> None:
        """Finish one change. After the last change of its key, a successful commit's value is the newest."""
        key = change.key
        self._changing[key] -= 1
        if not self._changing[key]:
            del self._changing[key]
            if commit.error is None:
                self._remember(key, Versioned(change.value, commit.version) if isinstance(change, Put) else None)


class _Writer:
    """The thread that writes."""

    def __init__(self, path: Path, finish: Callable[[list[_Commit]], object]) -> None:
        self._path = path
        self._finish = finish
        self._waiting: queue.SimpleQueue[_Commit | None] = queue.SimpleQueue()
        self._connection = _connect(path)
        self._thread = threading.Thread(target=self._run, name="metadata-writer", daemon=True)
        self._thread.start()

    def submit(self, commit: _Commit) -> None:
        self._waiting.put(commit)

    def stop(self) -> None:
        """Finish the submitted commits, and return when the thread has ended."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        running = True
        while running:
            group, running = self._next_group()
            if group:
                self._write(group)
                self._finish(group)
        self._connection.close()

    def _next_group(self) -> tuple[list[_Commit], bool]:
        group: list[_Commit] = []
        item = self._waiting.get()
        while item is not None:
            group.append(item)
            if len(group) == _GROUP_MAX or self._waiting.empty():
                return group, True
            item = self._waiting.get()
        return group, False

    def _write(self, group: list[_Commit]) -> None:
        try:
            with _as_unavailable(self._path), _transaction(self._connection, "IMMEDIATE"):
                _apply_all(self._connection, group)
        except (MetadataUnavailable, UnicodeError) as error:
            self._write_apart(group, error)

    def _write_apart(self, group: list[_Commit], error: Exception) -> None:
        """Try each commit alone after a failure, so that one that cannot be stored does not stop the others."""
        if len(group) == 1:
            group[0].error = error
            return
        for commit in group:
            commit.error = None
            self._write([commit])


def _apply_all(connection: sqlite3.Connection, group: list[_Commit]) -> None:
    (version,) = connection.execute("SELECT version FROM counter").fetchone()
    for commit in group:
        key = _first_conflict(connection, commit.expect) or _first_taken(connection, commit.changes)
        if key is not None:
            commit.error = CommitConflict(key)
            continue
        commit.version = version = version + 1
        for change in commit.changes:
            if isinstance(change, Put):
                row = (change.key, change.value, version)
                connection.execute("INSERT OR REPLACE INTO entries (key, value, version) VALUES (?, ?, ?)", row)
                if change.ephemeral:
                    connection.execute("INSERT OR IGNORE INTO ephemerals (key) VALUES (?)", (change.key,))
            else:
                connection.execute("DELETE FROM entries WHERE key = ?", (change.key,))
                connection.execute("DELETE FROM ephemerals WHERE key = ?", (change.key,))
    connection.execute("UPDATE counter SET version = ?", (version,))


def _first_conflict(connection: sqlite3.Connection, expect: Mapping[str, int | None]) -> str | None:
    for key, version in expect.items():
        row = connection.execute("SELECT version FROM entries WHERE key = ?", (key,)).fetchone()
        if (row[0] if row else None) != version:
            return key
    return None


def _first_taken(connection: sqlite3.Connection, changes: Sequence[Change]) -> str | None:
    """Return a key that is to become ephemeral but exists as an ordinary one."""
    for change in changes:
        if isinstance(change, Put) and change.ephemeral and connection.execute(_TAKEN, {"key": change.key}).fetchone():
            return change.key
    return None


def _prepare(path: Path) -> None:
    """Create the tables, and make the file itself durable."""
    with _as_unavailable(path):
        with suppress(OSError):  # SQLite reports what is wrong, and gives the files beside it the same mode
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = _connect(path)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > _FORMAT:
                raise MetadataUnavailable(f"metadata store {path} has format {version}, this program knows {_FORMAT}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
        finally:
            connection.close()
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _connect(path: Path) -> sqlite3.Connection:
    with _as_unavailable(path):
        # Each connection stays with one thread, although not with the thread that creates it.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


def _children(connection: sqlite3.Connection, path: Path, prefix: str) -> list[str]:
    low, high = _bounds(prefix)
    with _as_unavailable(path):
        names = connection.execute(_CHILDREN, {"low": low, "high": high, "skip": len(prefix) + 1})
        return sorted(name for (name,) in names)


def _scan(
    connection: sqlite3.Connection, path: Path, prefix: str, after: str, limit: int
) -> list[tuple[str, Versioned]]:
    query = _SCAN.format(after=">" if after >= prefix else ">=")
    with _as_unavailable(path):
        rows = connection.execute(query, (max(prefix, after), prefix + _BEHIND_ALL, limit)).fetchall()
    return [(key, Versioned(value, version)) for key, value, version in rows]


def _bounds(prefix: str) -> tuple[str, str]:
    """Return the first key below ``prefix``, which ends with a slash, and the first key behind all of them."""
    return prefix, prefix[:-1] + "0"  # "0" follows "/"


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def _as_unavailable(path: Path) -> Iterator[None]:
    """Translate errors of SQLite into those of the seam, with the name of the file."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError) as error:
        kind = MetadataFull if getattr(error, "sqlite_errorcode", None) in _FULL else MetadataUnavailable
        raise kind(f"metadata store {path}: {error}") from error
