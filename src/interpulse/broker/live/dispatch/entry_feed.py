"""Reads of the log for one subscription: ahead of it, and of entries that are sent again.

The feed's position is *after* the last consumed entry. Entries in the log's memory are returned immediately; others are
read in a reader thread, one read at a time, and the dispatcher is called back afterwards. The feed acknowledges markers
itself, and omits acknowledged entries. Only tasks that copy the topic to another cluster get markers.

The entries of replays that are held are cached for a while. The cache is optional: it has a bound of its own, shares
one with all other reads of the broker, and missing entries are read from the log.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
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
from interpulse.wire.ids import words_of

log = logging.getLogger(__name__)

READ_ENTRIES_MAX = 1000
"""Entries of one read; consumers grant 1000 permits by default."""

READ_BYTES_MAX = 5 * 1024 * 1024
"""Bytes of one read (dispatcherMaxReadSizeBytes)."""

AGAIN_S = 1.0
"""Seconds between attempts to read temporarily unreadable entries."""

_new = tuple.__new__
_position, _entry = itemgetter(0), itemgetter(1)

KEPT_BYTES_MAX = READ_BYTES_MAX
"""Bytes of cached entries; the oldest ones are dropped first."""

_GAP_MAX = 32
"""The largest gap between replays that are read together with the entries between them."""


class FeedSource(Protocol):
    """The interface of the topic for its feeds."""

    log: Log
    entry_metadata: EntryMetadataCache
    reads: SharedReads

    def read_failed(self, error: PulsarError) -> None:
        """Fail the topic: entries cannot be read until it is loaded again."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


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
        self.markers_delivered = False
        """True for a task that copies the topic to another cluster, which some markers are meant for."""
        self._ahead: list[LogEntry] = []
        self._held = -1
        """The number of the entries ahead in the read buffer limiter."""
        self._reads_ahead = True
        """False after the limiter freed the entries ahead: from then on only wanted entries are read."""
        self.reading = False
        """True during a read; the dispatcher is called back."""
        self._round = 0
        """The number of rewinds, by which an earlier read is recognised."""
        self._skipped_upto: Position | None = None

    def peek(self, messages_max: int) -> list[Delivery]:
        """Return the next deliveries, in order, up to about ``messages_max``; none at the end and during a read."""
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
        if self.reading:
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
        self.reading = True
        wanted = READ_ENTRIES_MAX if self._reads_ahead else entries_max
        self._source.spawn(self._read(start, self._round, compacted, wanted))
        return []

    async def _read(self, start: Position, round_: int, compacted: CompactedLedger | None, entries_max: int) -> None:
        topic_log = self._source.log
        reader = self._source.reads.read if compacted is None else partial(read_on, topic_log, compacted)
        read = partial(reader, start, entries_max=entries_max, bytes_max=READ_BYTES_MAX)
        try:
            entries = await read_patiently(read, lambda: round_ == self._round)
        except PulsarError as error:
            self._source.read_failed(error)
            return
        finally:
            self.reading = False
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
            if self.markers_delivered:
                return Delivery(position, entry)
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


class ReplayReads:
    """The cached entries of replays."""

    def __init__(
        self,
        source: FeedSource,
        cursor: Cursor,
        deliveries: Callable[[Sequence[Position], Sequence[bytes]], list[Delivery]],
        on_gone: Callable[[Sequence[Position]], None],
        on_ready: Callable[[], None],
    ) -> None:
        """``deliveries`` makes deliveries of entries that were read.

        ``on_gone`` is called with replays that the log has dropped, ``on_ready`` after a read.
        """
        self._source = source
        self._cursor = cursor
        self._deliveries = deliveries
        self._on_gone = on_gone
        self._on_ready = on_ready
        self._cached: dict[Position, Delivery] = {}
        """Cached deliveries, in the order in which they came."""
        self._bytes = 0
        self._limiter = source.reads.limiter
        self._held = -1
        """The number of the cached entries in the read buffer limiter."""
        self.reading = False
        self._round = 0
        """The number of resets, by which an earlier read is recognised."""

    def keep(self, held: Sequence[Delivery]) -> None:
        if held:
            self._add(held)
            while self._bytes > KEPT_BYTES_MAX:
                self._bytes -= len(self._cached.pop(next(iter(self._cached))).entry)
            self._hold()

    def forget_upto(self, position: Position) -> None:
        self.take_out([cached for cached in self._cached if cached <= position])

    def forget_all(self) -> None:
        self._limiter.free(self._held)
        self._let_go(self._held)
        self._round += 1

    def take(self, wanted: Sequence[Position]) -> list[Delivery]:
        """Return the first of these entries, in order, that are in memory; if there are none, read them.

        They leave the cache; return unsent ones with `keep`.
        """
        at_hand = self.take_out(wanted)
        if len(at_hand) == len(wanted):
            return at_hand
        taken = set(map(_position, at_hand))
        runs, uncached = _runs([position for position in wanted if position not in taken] if taken else wanted), []
        deliveries: list[Delivery] = []
        for number, run in enumerate(runs):
            entries = self._source.log.read_cached(run[0], entries_max=_length(run), bytes_max=READ_BYTES_MAX)
            if entries is not None:
                self._gone(run, entries)
                deliveries += self._taken_in(run, entries)
            rest = run if entries is None else run[bisect_right(run, entries[-1].position) :] if entries else []
            if rest:
                uncached = [rest, *runs[number + 1 :]]
                break
        if at_hand:
            deliveries = sorted([*at_hand, *deliveries], key=_position)
            if uncached:
                end = bisect_left(deliveries, uncached[0][0], key=_position)
                self.keep(deliveries[end:])
                deliveries = deliveries[:end]
        if uncached and not deliveries:
            needed = set(wanted)
            self.take_out(
                [cached for cached in self._cached if cached not in needed]
            )  # for consumers that take nothing now
            self.reading = True
            self._source.spawn(self._read(uncached, self._round))
        return deliveries

    async def _read(self, runs: Sequence[Sequence[Position]], round_: int) -> None:
        """Read as much of these runs as one read may hold, at least one entry.

        All of it is registered together, right before it is wanted, so that no other read takes its bytes.
        """
        reads: list[tuple[Sequence[Position], list[LogEntry]]] = []
        bytes_left = READ_BYTES_MAX
        try:
            for run in runs:
                read = partial(self._source.log.read, run[0], entries_max=_length(run), bytes_max=bytes_left)
                entries = await read_patiently(read, lambda: round_ == self._round)
                reads.append((run, entries))
                bytes_left -= sum(len(entry.entry) for entry in entries)
                if bytes_left <= 0 or round_ != self._round:
                    break
        except PulsarError as error:
            self._source.read_failed(error)
            return
        finally:
            self.reading = False
        if round_ == self._round:
            for run, entries in reads:
                self._gone(run, entries)
                self._add(self._taken_in(self._cursor.unacknowledged_of(run), entries))
            self._hold()
        self._on_ready()

    def _gone(self, run: Sequence[Position], entries: Sequence[LogEntry]) -> None:
        """Report replays before the read entries, which the log has dropped."""
        self._on_gone(run[: bisect_left(run, entries[0].position)] if entries else run)

    def _taken_in(self, run: Sequence[Position], entries: Sequence[LogEntry]) -> list[Delivery]:
        """Cache the entries of a run of replays that were read."""
        if len(entries) == len(run) == _length(run) and entries[0].position == run[0]:
            return self._deliveries(run, list(map(_entry, entries)))
        expected = set(run)
        expected_entries = [entry for entry in entries if entry.position in expected]
        return (
            self._deliveries(list(map(_position, expected_entries)), list(map(_entry, expected_entries)))
            if expected_entries
            else []
        )

    def take_out(self, positions: Iterable[Position]) -> list[Delivery]:
        """Remove and return those of these entries that are cached."""
        if not self._cached:
            return []
        taken = list(filter(None, map(self._cached.pop, positions, repeat(None))))
        self._bytes -= sum(map(len, map(_entry, taken)))
        self._limiter.shrink(self._held, self._bytes)
        return taken

    def _add(self, held: Sequence[Delivery]) -> None:
        self._cached.update(zip(map(_position, held), held, strict=True))
        self._bytes += sum(map(len, map(_entry, held)))

    def _hold(self) -> None:
        """Register the new size of the cache; all of it then counts as read last."""
        self._limiter.free(self._held)
        self._held = self._limiter.hold(self._bytes, self._let_go) if self._cached else -1

    def _let_go(self, number: int) -> None:
        """Drop the cache for the read buffer limiter; its entries are read again later."""
        if number == self._held:
            self._cached.clear()
            self._bytes, self._held = 0, -1


def _runs(positions: Sequence[Position]) -> list[Sequence[Position]]:
    """Group close positions of one ledger into runs, each of which is one read of the log."""
    if positions[-1] == (positions[0].ledger, positions[0].entry + len(positions) - 1):
        return [positions]
    runs: list[list[Position]] = []
    for position in positions:
        last = runs[-1][-1] if runs else None
        if last is not None and last.ledger == position.ledger and position.entry - last.entry <= _GAP_MAX:
            runs[-1].append(position)
        else:
            runs.append([position])
    return [*runs]


def _length(run: Sequence[Position]) -> int:
    return run[-1].entry - run[0].entry + 1
