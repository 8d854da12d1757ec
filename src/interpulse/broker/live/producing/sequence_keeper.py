"""The sequence ids of one topic, kept through restarts by snapshots and a replay of the entries after them."""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from interpulse.broker.live.entry_metadata import entry_metadata_in, last_sequence_id_of, message_metadata_of
from interpulse.broker.live.producing.deduplication import Deduplication, DeduplicationSnapshot
from interpulse.broker.live.settings import TopicSettings
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import Position
from interpulse.replication.copy import replicator_position
from interpulse.rules.replication import replicator_name
from interpulse.storage.api import Log, LogEntry
from interpulse.storage.cursors.cursor_records import DEDUPLICATION_CURSOR, CursorRecord

__all__ = ["SequenceKeeper"]

_REPLAY_ENTRIES = 1000
_REPLAY_BYTES = 5 * 1024 * 1024


class SequenceOwner(Protocol):
    """The topic, as its sequence ids see it."""

    def snapshot_is_due(self) -> None:
        """The snapshot is to be stored soon."""


class SequenceKeeper:
    """While de-duplication is on, every entry with a receipt is known after any restart.

    A snapshot is due after some number of entries, or some time after an entry; it is stored together with the cursors.
    """

    def __init__(
        self, log: Log, state: TopicStateStore, owner: SequenceOwner, *, replicator_prefix: str, cluster: str
    ) -> None:
        """``replicator_prefix`` begins the names of replicators, which end with ``cluster``, the local one."""
        self.deduplication: Deduplication | None = None
        self.snapshot_due = False
        self.entries_interval = 1000
        """Entries between two snapshots (brokerDeduplicationEntriesInterval)."""
        self.snapshot_ms = 0
        """Time an entry may be without one; 0 = any."""
        self._log = log
        self._state = state
        self._owner = owner
        self._replicator_prefix = replicator_prefix
        self._cluster = cluster
        self._entries_since = 0
        self._complete_ms = 0

    async def begin(self) -> None:
        """De-duplicate from here on; entries that came before are not known."""
        self.deduplication = Deduplication(DeduplicationSnapshot(self._log.last_position))
        await self._state.write_cursors({DEDUPLICATION_CURSOR: self.snapshot(self._log.last_position)})

    async def resume(self, stored: CursorRecord, now_ms: int) -> None:
        """Know everything up to the end of the log, from a stored snapshot and the entries after it."""
        snapshot = DeduplicationSnapshot.of(stored, now_ms, replicator_prefix=self._replicator_prefix)
        deduplication = Deduplication(snapshot)
        position = snapshot.position
        while position < self._log.last_position:
            start = Position(position.ledger, position.entry + 1)
            entries = await self._log.read(start, entries_max=_REPLAY_ENTRIES, bytes_max=_REPLAY_BYTES)
            if not entries:
                break
            for entry in entries:
                self._replay(deduplication, entry, now_ms)
            self._entries_since += len(entries)
            position = entries[-1].position
        self.deduplication = deduplication

    async def end(self) -> None:
        """De-duplicate no more, and forget."""
        self.deduplication = None
        self.snapshot_due = False
        await self._state.delete_cursor(DEDUPLICATION_CURSOR)

    def follow(self, settings: TopicSettings) -> None:
        """Take snapshots as often as the policies want them."""
        self.entries_interval = settings.deduplication_entries_interval
        self.snapshot_ms = settings.deduplication_snapshot_seconds * 1000

    def count(self, entries: int) -> None:
        """So many entries became durable."""
        self._entries_since += entries
        if self._entries_since >= self.entries_interval:
            self.request_snapshot()

    def tick(self, now_ms: int) -> None:
        """Called from time to time."""
        if not self._entries_since:
            self._complete_ms = now_ms
        elif self.snapshot_ms and now_ms - self._complete_ms >= self.snapshot_ms:
            self.request_snapshot()

    def request_snapshot(self) -> None:
        """Store a snapshot with the next cursors, if there is anything new."""
        if self._entries_since and self.deduplication is not None:
            self.snapshot_due = True
            self._owner.snapshot_is_due()

    def forget_inactive(self, before_ms: int, connected: Container[str]) -> None:
        """Drop names without a producer that were last active before ``before_ms``."""
        if self.deduplication is not None and self.deduplication.forget_inactive(before_ms, connected):
            self._entries_since += 1
            self.request_snapshot()

    def snapshot(self, position: Position) -> CursorRecord:
        """The snapshot to store, when everything up to ``position`` and nothing else is durable."""
        assert self.deduplication is not None
        self.snapshot_due = False
        self._entries_since = 0
        return self.deduplication.snapshot(position).record()

    def stored(self, position: Position) -> None:
        """The snapshot of this position is durable."""
        if self.deduplication is not None:
            self.deduplication.snapshot_position = position

    @property
    def needed_from(self) -> Position | None:
        """Entries after this position are needed after a restart; None = none are."""
        return self.deduplication.snapshot_position if self.deduplication is not None else None

    def _replay(self, deduplication: Deduplication, found: LogEntry, now_ms: int) -> None:
        try:
            metadata = message_metadata_of(found.entry)
        except PersistenceError:
            return  # bytes that are no message have no producer either
        kind = entry_metadata_in(metadata)
        position = None if kind.is_marker else replicator_position(metadata)
        if position is not None:
            name = replicator_name(self._replicator_prefix, metadata.replicated_from, self._cluster)
            deduplication.replay_source(name, position)
        elif kind.ends_message:
            deduplication.replay(metadata.producer_name, last_sequence_id_of(metadata), now_ms)
