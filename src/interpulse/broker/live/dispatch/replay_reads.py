"""The entries of one subscription's replays: held ones are cached for a while, others are read again.

The cache is optional: it has a bound of its own, shares one with all other reads of the broker, and missing entries are
read from the log. Entries in the log's memory are returned immediately; others are read in a reader thread, one read at
a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.entry_feed import READ_BYTES_MAX, FeedSource, read_patiently
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry

KEPT_BYTES_MAX = READ_BYTES_MAX
"""Bytes of cached entries; the oldest ones are dropped first."""

_position, _entry = itemgetter(0), itemgetter(1)

_GAP_MAX = 32
"""The largest gap between replays that are read together with the entries between them."""


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
        self._kept: dict[Position, Delivery] = {}
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
                self._bytes -= len(self._kept.pop(next(iter(self._kept))).entry)
            self._hold()

    def forget_upto(self, position: Position) -> None:
        self.take_out([cached for cached in self._kept if cached <= position])

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
                [cached for cached in self._kept if cached not in needed]
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
        if not self._kept:
            return []
        taken = list(filter(None, map(self._kept.pop, positions, repeat(None))))
        self._bytes -= sum(map(len, map(_entry, taken)))
        self._limiter.shrink(self._held, self._bytes)
        return taken

    def _add(self, held: Sequence[Delivery]) -> None:
        self._kept.update(zip(map(_position, held), held, strict=True))
        self._bytes += sum(map(len, map(_entry, held)))

    def _hold(self) -> None:
        """Register the new size of the cache; all of it then counts as read last."""
        self._limiter.free(self._held)
        self._held = self._limiter.hold(self._bytes, self._let_go) if self._kept else -1

    def _let_go(self, number: int) -> None:
        """Drop the cache for the read buffer limiter; its entries are read again later."""
        if number == self._held:
            self._kept.clear()
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
