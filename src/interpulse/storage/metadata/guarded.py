"""A metadata store whose commits to the record of an open topic depend on a lock.

A broker that lost a topic without noticing must not write its record or cursors, however late the write is sent. Each
such commit therefore expects the version that the lock had when this broker took it. If the lock is gone or belongs to
another broker, nothing is applied. All other commits pass unchanged. Source:
docs/reference/cluster-protocol.md#fencing. Model: docs/models/bundle_takeover.tla.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from interpulse.storage.api import Change, CommitConflict, MetadataStore, MetadataUnavailable, Put, Versioned
from interpulse.storage.logs.topic_records import record_key

_PARTS: Final = record_key("tenant/namespace/persistent/topic").count("/") + 1
_ROOT: Final = record_key("")

LockVersion = Callable[[], Mapping[str, int]]
"""Returns the key of a lock and its version as this broker took it.

Raises `LockLost` while the broker is not sure of it.
"""


class LockLost(MetadataUnavailable):
    """The lock behind a write is no longer held; nothing was written."""


class GuardedMetadata:
    """A `MetadataStore` for the logs and topics of one broker among several. See the module."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._locks: dict[str, LockVersion] = {}
        self._left_as: dict[str, int | None] = {}
        self.session, self.watch, self.unchanged = store.session, store.watch, store.unchanged
        self.get, self.get_many, self.children, self.scan = store.get, store.get_many, store.children, store.scan
        self.create_sequential, self.sync, self.close = store.create_sequential, store.sync, store.close

    def bind(self, log_name: str, lock: LockVersion) -> None:
        """Write the record of this log, and everything below it, only under the lock from now on."""
        self._locks[record_key(log_name)] = lock

    def unbind(self, log_name: str) -> None:
        """Stop guarding a log that is no longer open."""
        self._locks.pop(record_key(log_name), None)
        self._left_as.pop(record_key(log_name), None)

    def is_bound(self, log_name: str) -> bool:
        """Return True if the record of this log is written under a lock."""
        return record_key(log_name) in self._locks

    async def remember(self, log_name: str) -> None:
        """Remember the record's version as the one that this broker left."""
        key = record_key(log_name)
        self._left_as[key] = _version(await self._store.get(key))

    async def is_as_left(self, log_name: str) -> bool:
        """Return True if only this broker has changed the record since it was opened here."""
        key = record_key(log_name)
        return key in self._left_as and self._left_as[key] == _version(await self._store.get(key))

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        """Apply the changes as the store does. Raise `LockLost` if one concerns an open topic whose lock is gone."""
        records = dict.fromkeys(record for change in changes if (record := _record_of(change.key)) in self._locks)
        locks: dict[str, int] = {}
        for record in records:
            locks |= self._locks[record]()
        try:
            await self._store.commit(changes, {**expect, **locks})
        except CommitConflict as conflict:
            if conflict.key in locks:
                raise LockLost(f"the lock {conflict.key} is not held any more, nothing was written") from conflict
            raise
        for change in changes:
            if isinstance(change, Put) and change.key in self._left_as:
                self._left_as[change.key] = _version(await self._store.get(change.key))


def _record_of(key: str) -> str:
    return "/".join(key.split("/", _PARTS)[:_PARTS]) if key.startswith(_ROOT) else ""


def _version(stored: Versioned | None) -> int | None:
    return None if stored is None else stored.version
