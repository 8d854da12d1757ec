"""Reads of the log ahead of one subscription, and deliveries made from their entries.

The feed's position is *after* the last consumed entry. Cached entries are returned immediately; others are read in a
reader thread, one read at a time, and the dispatcher is called back afterwards. The feed acknowledges markers itself,
and omits acknowledged entries.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Protocol

from interpulse.broker.live.api import Delivery, KeyRange
from interpulse.broker.live.compaction.log_positions import horizon_ahead, read_on
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.sticky_keys import within
from interpulse.broker.live.entry_metadata import EntryMetadataCache, sticky_slot_of, waiting_in
from interpulse.broker.live.shared_reads import SharedReads
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.storage.api import CompactedLedger, Log, LogEntry, NotReadableNow
from interpulse.wire.ack_sets import words_of

log = logging.getLogger(__name__)

READ_ENTRIES_MAX = 1000
"""Entries of one read; consumers grant 1000 permits by default."""

READ_BYTES_MAX = 5 * 1024 * 1024
"""Bytes of one read (dispatcherMaxReadSizeBytes)."""

AGAIN_S = 1.0
"""Seconds between attempts to read temporarily unreadable entries."""

_new = tuple.__new__
_position, _entry = itemgetter(0), itemgetter(1)


class FeedSource(Protocol):
    """The interface of the topic for its feeds."""

    log: Log
    entry_metadata: EntryMetadataCache
    reads: SharedReads

    def read_failed(self, error: PulsarError) -> None:
        """Fail the topic: entries cannot be read until it is loaded again."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that ends with the topic."""


class EntryFeed:
    """The entries ahead of one subscription."""

    def __init__(self, source: FeedSource, cursor: Cursor, on_ready: Callable[[], None]) -> None:
        self._source = source
        self._cursor = cursor
        self._on_ready = on_ready
        self.after = cursor.mark_delete
        self.read_compacted = False
        """True to read the compacted ledger instead of the log after it."""
        self.key_ranges: Sequence[KeyRange] = ()
        """Key ranges of delivered entries; () = all."""
        self._ahead: list[LogEntry] = []
        self._held = -1
        """The number of the entries ahead in the read buffer limiter."""
        self._reads_ahead = True
        """False after the limiter freed the entries ahead: from then on only wanted entries are read."""
        self._reading = False
        self._round = 0
        """The number of rewinds, by which an earlier read is recognised."""
        self._skipped_upto: Position | None = None

    @property
    def reading(self) -> bool:
        """True during a read; the dispatcher is called back."""
        return self._reading

    def peek(self, messages_max: int) -> list[Delivery]:
        """Return the next deliveries, in order, with about ``messages`` messages.

        Returns nothing at the end of the log, and during a read.
        """
        while True:
            raw = self._raw(min(messages_max, READ_ENTRIES_MAX))
            if not raw:
                return []
            deliveries, last = self._deliveries(raw, messages_max)
            if deliveries:
                self._skipped_upto = last if last > deliveries[-1].position else None
                return deliveries
            self._move(raw[-1].position)

    def consumed(self, batch: Sequence[Delivery], number: int) -> None:
        """Consume the first ``number`` deliveries of a `peek`."""
        if number == len(batch) and self._skipped_upto is not None:
            self._move(self._skipped_upto)
        elif number:
            self._move(batch[number - 1].position)
        self._skipped_upto = None

    def rewind(self, after: Position) -> None:
        """Restart after the position ``after``."""
        self.after = after
        self._cursor.begin(compacted=self.read_compacted)
        self._look_ahead([])
        self._reads_ahead = True
        self._skipped_upto = None
        self._round += 1

    def _move(self, to: Position) -> None:
        self.after = to
        if self._ahead:
            del self._ahead[: bisect_right(self._ahead, to, key=_position)]
            if not self._ahead:
                self._look_ahead([])

    def _look_ahead(self, entries: list[LogEntry]) -> None:
        limiter = self._source.reads.limiter
        limiter.free(self._held)
        self._ahead = entries
        self._held = limiter.hold(sum(map(len, map(_entry, entries))), self._let_go) if entries else -1

    def _let_go(self, number: int) -> None:
        """Free the entries ahead for the read buffer limiter; they are read again later."""
        if number == self._held:
            self._look_ahead([])
            self._reads_ahead = False

    def _raw(self, entries_max: int) -> list[LogEntry]:
        if self._ahead:
            return self._ahead[:entries_max]
        if self._reading:
            return []
        start = Position(self.after.ledger, self.after.entry + 1)
        log = self._source.log
        compacted = horizon_ahead(log, start) if self.read_compacted else None
        if compacted is None:
            if self.read_compacted:
                self._cursor.compacted_read()
            cached = self._source.reads.read_cached(start, entries_max=entries_max, bytes_max=READ_BYTES_MAX)
            if cached is not None:
                return cached
        self._reading = True
        wanted = READ_ENTRIES_MAX if self._reads_ahead else entries_max
        self._source.spawn(self._read(start, self._round, compacted, wanted))
        return []

    async def _read(self, start: Position, round_: int, compacted: CompactedLedger | None, entries_max: int) -> None:
        topic_log, limits = self._source.log, {"entries_max": entries_max, "bytes_max": READ_BYTES_MAX}

        async def read() -> list[LogEntry]:
            if compacted is None:
                return await self._source.reads.read(start, **limits)
            return await read_on(topic_log, compacted, start, **limits)

        try:
            entries = await read_patiently(read, lambda: round_ == self._round)
        except PulsarError as error:
            self._source.read_failed(error)
            return
        finally:
            self._reading = False
        if round_ == self._round:
            self._source.entry_metadata.learn(entries)
            self._look_ahead(entries)
            if compacted is not None:
                first = topic_log.first_position
                positions = map(_position, entries)
                self._cursor.hand_out_compacted(position for position in positions if first is None or position < first)
                if not entries:
                    self.after = compacted.horizon
        self._on_ready()

    def _deliveries(self, raw: Sequence[LogEntry], messages_max: int) -> tuple[list[Delivery], Position]:
        """Return deliveries with enough messages, and the position up to which entries were examined."""
        first, last = raw[0].position, raw[-1].position
        if self.key_ranges:
            raw = [log_entry for log_entry in raw if within(self.key_ranges, sticky_slot_of(log_entry.entry))]
        untouched = self._cursor.untouched_from(first)
        if untouched and self._source.entry_metadata.all_ordinary_since(first):
            rows = zip(map(_position, raw), map(_entry, raw), repeat(0), repeat(()), repeat(1), strict=False)
            return list(map(_new, repeat(Delivery), rows)), last
        deliveries: list[Delivery] = []
        looked_upto = first
        for log_entry in raw:
            delivery = self._delivery(log_entry, untouched=untouched)
            if delivery is None:
                looked_upto = log_entry.position
            elif messages_max <= 0:
                return deliveries, looked_upto
            else:
                deliveries.append(delivery)
                messages_max -= delivery.message_count
                looked_upto = log_entry.position
        return deliveries, last

    def _delivery(self, log_entry: LogEntry, *, untouched: bool) -> Delivery | None:
        position, entry = log_entry
        cursor = self._cursor
        metadata = self._source.entry_metadata.get(position, entry)
        if metadata.is_marker:
            cursor.acknowledge(position)
            return None
        if untouched:
            return Delivery(position, entry, 0, (), metadata.message_count)
        if cursor.is_acknowledged(position):
            return None
        mask = cursor.waiting_mask(position)
        if not mask:
            return Delivery(position, entry, 0, (), metadata.message_count)
        waiting = waiting_in(entry, mask)
        return Delivery(position, entry, 0, words_of(waiting), waiting.bit_count())


async def read_patiently(
    read: Callable[[], Awaitable[list[LogEntry]]], is_wanted: Callable[[], bool]
) -> list[LogEntry]:
    """Read, and retry each second while the entries are temporarily unreadable. Stop if they are unwanted."""
    reported = False
    while True:
        try:
            return await read()
        except NotReadableNow as error:
            if not reported:
                log.warning("entries are unreadable now, retrying every second error=%s", error)
                reported = True
        await asyncio.sleep(AGAIN_S)
        if not is_wanted():
            return []
