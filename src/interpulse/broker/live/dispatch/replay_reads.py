"""The entries of one subscription's replays: those that were held back are kept for a while, others are read again.

What is kept is of use, and never needed: it has a bound of its own, and one with all else that the broker has read, and
whatever is missing is read from the log. Entries in the log's memory are there at once; others are read in a reader
thread, one read at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.entry_feed import READ_BYTES_MAX, FeedSource
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry

__all__ = ["ReplayReads"]

KEPT_BYTES_MAX = READ_BYTES_MAX
"""Of entries that were held back; the oldest ones make room."""

_GAP_MAX = 32
"""Replays so close together are read with what lies between them: it costs less than to read twice."""


class ReplayReads:
    """See the module."""

    def __init__(
        self,
        source: FeedSource,
        cursor: Cursor,
        on_gone: Callable[[Collection[Position]], None],
        on_ready: Callable[[], None],
    ) -> None:
        """``on_gone`` hears of replays that the log has dropped; ``on_ready`` comes after a read."""
        self._source = source
        self._cursor = cursor
        self._on_gone = on_gone
        self._on_ready = on_ready
        self._entries: dict[Position, bytes] = {}
        """In the order in which they came."""
        self._bytes = 0
        self._limiter = source.reads.limiter
        self._held = -1
        """The number of all that is kept in the read buffer limiter."""
        self._reading = False
        self._round = 0
        """Grows whenever everything is forgotten, so that a read begun before it is recognised."""

    @property
    def reading(self) -> bool:
        """A read is under way."""
        return self._reading

    def keep(self, held: Sequence[Delivery]) -> None:
        """These are among the replays from now on, and were not before."""
        if not held:
            return
        for delivery in held:
            self._entries[delivery[0]] = delivery[1]
            self._bytes += len(delivery[1])
        while self._bytes > KEPT_BYTES_MAX:
            self._bytes -= len(self._entries.pop(next(iter(self._entries))))
        self._hold()

    def forget(self, positions: Iterable[Position]) -> None:
        """These are no replays any more. Nothing happens if they are not kept."""
        for position in positions:
            self._bytes -= len(self._entries.pop(position, b""))
        self._limiter.shrink(self._held, self._bytes)

    def forget_upto(self, position: Position) -> None:
        self.forget([each for each in self._entries if each <= position])

    def forget_all(self) -> None:
        self._limiter.free(self._held)
        self._let_go(self._held)
        self._round += 1

    def fetch(self, wanted: Sequence[Position]) -> list[LogEntry]:
        """The beginning of these entries that is in memory; if there is none it is being read."""
        runs = _runs([each for each in wanted if each not in self._entries])
        uncached: list[list[Position]] = []
        gone: set[Position] = set()
        for number, run in enumerate(runs):
            entries = self._source.log.read_cached(run[0], entries_max=_length(run), bytes_max=READ_BYTES_MAX)
            if entries is None:
                uncached = runs[number:]
                break
            gone |= self._take_in(run, entries)
        if len(uncached) < len(runs):
            self._hold()
        present = takewhile(self._entries.__contains__, [each for each in wanted if each not in gone])
        found = [LogEntry(each, self._entries[each]) for each in present]
        if uncached and not found:
            needed = set(wanted)
            self.forget([each for each in self._entries if each not in needed])  # for consumers that take nothing now
            self._reading = True
            self._source.spawn(self._read(uncached, self._round))
        return found

    async def _read(self, runs: Sequence[Sequence[Position]], round_: int) -> None:
        """Read as much of these runs as one read may hold, at least one entry.

        All of it is taken in at once, right before it is wanted, so that no other read takes its bytes.
        """
        found: list[tuple[Sequence[Position], list[LogEntry]]] = []
        bytes_left = READ_BYTES_MAX
        try:
            for run in runs:
                entries = await self._source.log.read(run[0], entries_max=_length(run), bytes_max=bytes_left)
                found.append((run, entries))
                bytes_left -= sum(len(each.entry) for each in entries)
                if bytes_left <= 0:
                    break
        except PulsarError as error:
            self._source.read_failed(error)
            return
        finally:
            self._reading = False
        if round_ == self._round:
            for run, entries in found:
                self._take_in(run, entries)
            self._hold()
        self._on_ready()

    def _take_in(self, run: Sequence[Position], entries: Sequence[LogEntry]) -> set[Position]:
        """Keep what was read of a run of replays. What should stand before it is gone: the log has dropped it."""
        expected = set(run)
        for found in entries:
            if found.position in expected and not self._cursor.is_acknowledged(found.position):
                self._bytes += len(found.entry) - len(self._entries.pop(found.position, b""))
                self._entries[found.position] = found.entry
        first = entries[0].position if entries else None
        gone = {each for each in run if first is None or each < first}
        self._on_gone(gone)
        return gone

    def _hold(self) -> None:
        """Something came to what is kept: all of it counts as read last."""
        self._limiter.free(self._held)
        self._held = self._limiter.hold(self._bytes, self._let_go) if self._entries else -1

    def _let_go(self, number: int) -> None:
        """The read buffer limiter wants its bytes back: what was kept will be read again."""
        if number == self._held:
            self._entries.clear()
            self._bytes, self._held = 0, -1


def _runs(positions: Sequence[Position]) -> list[list[Position]]:
    """Positions that lie close together in one ledger, so that each run is one look into the log."""
    runs: list[list[Position]] = []
    for position in positions:
        last = runs[-1][-1] if runs else None
        if last is not None and last.ledger == position.ledger and position.entry - last.entry <= _GAP_MAX:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def _length(run: Sequence[Position]) -> int:
    """How many entries there are from the first to the last of a run."""
    return run[-1].entry - run[0].entry + 1
