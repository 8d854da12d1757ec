"""The sequence ids of one topic, restored after restarts from snapshots and the entries after them."""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from interpulse.broker.live.api import TopicHost, TopicSettings
from interpulse.broker.live.entry_metadata import entry_metadata_in, last_sequence_id_of, message_metadata_of
from interpulse.broker.live.producing.deduplication import Deduplication
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import Position
from interpulse.replication.copy import replicator_position
from interpulse.rules.replication import replicator_name
from interpulse.storage.api import Log, LogEntry
from interpulse.storage.cursors import DEDUPLICATION_CURSOR, CursorRecord

_REPLAY_ENTRIES = 1000
_REPLAY_BYTES = 5 * 1024 * 1024


class SequenceOwner(Protocol):
    """The interface of the topic for its sequence ids."""

    def cursors_changed(self) -> None: ...


class SequenceKeeper:
    """The sequence ids of one topic. While de-duplication is on, a restart loses none that has a receipt.

    A snapshot is due after some number of entries, or some time after an entry; it is stored together with the cursors.
    """

    def __init__(
        self, owner: SequenceOwner, log: Log, state: TopicStateStore, host: TopicHost, settings: TopicSettings
    ) -> None:
        self.deduplication: Deduplication | None = None
        self.snapshot_due = False
        self.settings = settings
        self._log = log
        self._state = state
        self._owner = owner
        self._host = host
        self._entries_since = 0
        self._complete_ms = 0

    async def begin(self) -> None:
        """Start to de-duplicate; earlier entries are unknown."""
        self.deduplication = Deduplication(self._log.last_position)
        await self._state.write_cursors({DEDUPLICATION_CURSOR: self.snapshot(self._log.last_position)})

    async def resume(self, stored: CursorRecord, now_ms: int) -> None:
        """Restore the sequence ids up to the end of the log, from a stored snapshot and the entries after it."""
        deduplication = Deduplication.restored(stored, now_ms, replicator_prefix=self._host.replicator_prefix)
        position = stored.mark_delete
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
        """Stop to de-duplicate, and forget all sequence ids."""
        self.deduplication = None
        self.snapshot_due = False
        await self._state.delete_cursor(DEDUPLICATION_CURSOR)

    def count(self, entries: int) -> None:
        self._entries_since += entries
        if self._entries_since >= self.settings.deduplication_entries_interval:
            self.request_snapshot()

    def tick(self, now_ms: int) -> None:
        """Request a snapshot if its time has come. Call it periodically."""
        if not self._entries_since:
            self._complete_ms = now_ms
        elif (seconds := self.settings.deduplication_snapshot_seconds) and now_ms - self._complete_ms >= seconds * 1000:
            self.request_snapshot()

    def request_snapshot(self) -> None:
        """Store a snapshot with the next cursors, if anything changed."""
        if self._entries_since and self.deduplication is not None:
            self.snapshot_due = True
            self._owner.cursors_changed()

    def forget_inactive(self, before_ms: int, connected: Container[str]) -> None:
        """Drop names without a producer that were last active before ``before_ms``."""
        if self.deduplication is not None and self.deduplication.forget_inactive(before_ms, connected):
            self._entries_since += 1
            self.request_snapshot()

    def snapshot(self, position: Position) -> CursorRecord:
        """Return the snapshot to store when exactly the entries up to ``position`` are durable."""
        assert self.deduplication is not None
        self.snapshot_due = False
        self._entries_since = 0
        return self.deduplication.record(position)

    def stored(self, position: Position) -> None:
        """Note that the snapshot of this position is durable."""
        if self.deduplication is not None:
            self.deduplication.snapshot_position = position

    @property
    def needed_from(self) -> Position | None:
        """Return the position after which a restart needs all entries; None = it needs none."""
        return self.deduplication.snapshot_position if self.deduplication is not None else None

    def _replay(self, deduplication: Deduplication, entry: LogEntry, now_ms: int) -> None:
        try:
            metadata = message_metadata_of(entry.entry)
        except PersistenceError:
            return  # an unreadable entry has no producer
        kind = entry_metadata_in(metadata)
        position = None if kind.is_marker else replicator_position(metadata)
        if position is not None:
            name = replicator_name(self._host.replicator_prefix, metadata.replicated_from, self._host.cluster)
            deduplication.replay_source(name, position)
        elif kind.ends_message:
            deduplication.replay(metadata.producer_name, last_sequence_id_of(metadata), now_ms)
