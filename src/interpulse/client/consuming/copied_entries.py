"""Entries of a topic or partition that name their origin, and the place there of what a reader was given elsewhere.

Replicators mark their copies with the position of the original. Along a topic the positions of one origin ascend, so
the last copy up to a position is found by halving. Where copies have no marks, publish times are compared instead.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final, NamedTuple, TypeVar

from interpulse.client.consuming.entry_reader import Entry, EntryReader, ask_last_position
from interpulse.client.session import Session
from interpulse.model.errors import TopicNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.wire.stamps import source_positions

_BUFFER_BYTES: Final = 1 << 20
_FIRST_STEP: Final = 64


class CopiedEntry(NamedTuple):
    """A replicated entry, with its positions here and on its original cluster."""

    there: Position
    source: Position
    origin: str
    producer: str
    published_ms: int = 0


Arrival = Callable[[int, int], Awaitable[None]]
"""Function that takes the number and the bytes of entries that have arrived. More is read when it returns."""


async def copied_entries(
    session: Session,
    topic: TopicName,
    after: Position,
    upto: Position,
    *,
    buffer_bytes: int = _BUFFER_BYTES,
    on_arrival: Arrival | None = None,
) -> AsyncGenerator[CopiedEntry]:
    """Yield the entries of ``(after, upto]`` that name their origin: our copies, and those of Pulsar 4 and later.

    ``on_arrival`` is called with all entries that were read, to limit their rate.
    """
    async for entry in _entries(session, topic, after, upto, buffer_bytes, on_arrival):
        if copy := _copy_of(entry):
            yield copy


async def first_copy(
    session: Session,
    topic: TopicName,
    after: Position,
    upto: Position,
    is_wanted: Callable[[CopiedEntry], bool],
    *,
    buffer_bytes: int = _BUFFER_BYTES,
) -> CopiedEntry | None:
    """Return the first wanted copy in ``(after, upto]``; None if there is none."""
    async with aclosing(copied_entries(session, topic, after, upto, buffer_bytes=buffer_bytes)) as copies:
        async for copy in copies:
            if is_wanted(copy):
                return copy
    return None


TAILS: Final = (100, 10_000, None)
"""Numbers of last entries to look at, None for all: others may have published behind the last copy."""


async def last_source(
    session: Session,
    topic: TopicName,
    end: Position,
    is_wanted: Callable[[CopiedEntry], bool],
    *,
    tails: Sequence[int | None] = TAILS,
) -> Position | None:
    """Return the source position of the last wanted copy up to ``end``; None if the last entries have none."""
    if end.entry < 0:
        return None
    for tail in tails:
        after = EARLIEST if tail is None else Position(end.ledger, max(-1, end.entry - tail))
        last = EARLIEST
        async for copy in copied_entries(session, topic, after, end):
            if is_wanted(copy):
                last = max(last, copy.source)
        if last > EARLIEST:
            return last
    return None


async def _entries(
    session: Session,
    topic: TopicName,
    after: Position,
    upto: Position,
    buffer_bytes: int = _BUFFER_BYTES,
    on_arrival: Arrival | None = None,
) -> AsyncGenerator[Entry]:
    async with EntryReader(
        session, topic, after=after, upto=upto, buffer_bytes=buffer_bytes, subscription_prefix="interpulse-lag"
    ) as reader:
        await reader.open()
        while batch := await reader.read_batch():
            if on_arrival is not None:
                await on_arrival(len(batch), sum(len(entry.raw) for entry in batch))
            for entry in batch:
                yield entry


def _copy_of(entry: Entry) -> CopiedEntry | None:
    metadata = entry.parsed.metadata
    positions = source_positions(metadata)
    if not positions:
        return None
    origin, published_ms = metadata.replicated_from, metadata.publish_time
    return CopiedEntry(entry.position, positions[-1], origin, metadata.producer_name, published_ms)


E = TypeVar("E")
Probe = Callable[[Position, Position], Awaitable[tuple[Position, E] | None]]
"""Function that returns the first wanted entry in ``(after, upto]`` with its position, or None."""


async def last_before(end: Position, probe: Probe[E], is_before: Callable[[E], bool]) -> tuple[Position, E] | None:
    """Return the last wanted entry up to ``end`` that is before a place; None if the first one is not.

    ``is_before`` is true for the entries up to that place and for none after it. No list of ledgers is needed: the
    number of a ledger is halved first, then the number of an entry.
    """
    newest: tuple[Position, E] | None = None
    low, high, step = EARLIEST, end, _FIRST_STEP
    while low < high:
        middle = _middle(low, high, step)
        entry = await probe(middle, high)
        if entry is None or not is_before(entry[1]):
            high = middle
        else:
            step = step * 2 if entry[0].ledger == low.ledger else _FIRST_STEP
            newest, low = entry, entry[0]
    return newest


def _middle(low: Position, high: Position, step: int) -> Position:
    """Return a position from ``low`` up to but not including ``high``, near the middle where this is known."""
    if low.ledger == high.ledger:
        return Position(low.ledger, (low.entry + high.entry) // 2)
    if high.ledger - low.ledger > 1:
        return Position((low.ledger + high.ledger + 1) // 2, -1)
    if high.entry >= 0:
        return Position(high.ledger, -1)
    return low if low.ledger < 0 else Position(low.ledger, low.entry + step)  # the length of that ledger is unknown


class CopySearch:
    """Search in one topic or partition for the entries that a client was given on another site."""

    def __init__(self, session: Session, topic: TopicName) -> None:
        self._session = session
        self._topic = topic
        self._end = EARLIEST
        self._origins: set[str] = set()

    async def open(self) -> None:
        """Find the end of the topic. One that does not exist yet is empty."""
        with suppress(TopicNotFound):
            last = await ask_last_position(self._session, self._topic)
            self._end = EARLIEST if last.entry < 0 else last

    async def last_copy(self, source: Position, published_ms: int | None) -> CopiedEntry | None:
        """Return the last copy of the entries of one other cluster up to ``source``.

        If the search meets copies of several clusters, it is the one whose copy of ``source`` has that publish time.
        None if there is no copy, or none that can be distinguished from those of other clusters.
        """
        self._origins.clear()
        copy = await self._last_copy(source, None)
        if len(self._origins) <= 1:
            return copy
        each = [await self._last_copy(source, origin) for origin in sorted(self._origins)]
        exact = [copy for copy in each if copy and copy.source == source and copy.published_ms == published_ms]
        return exact[0] if len(exact) == 1 else None

    async def _last_copy(self, source: Position, origin: str | None) -> CopiedEntry | None:
        def wanted(entry: Entry) -> CopiedEntry | None:
            copy = _copy_of(entry)
            if copy is None or not copy.origin or origin not in (None, copy.origin):
                return None
            self._origins.add(copy.origin)
            return copy

        last = await last_before(self._end, self._probe(wanted), lambda copy: copy.source <= source)
        return last and last[1]

    async def last_before_time(self, time_ms: int) -> Position:
        """Return the last entry that was published before a time, as far as publish times ascend; EARLIEST if none."""
        probe = self._probe(lambda entry: entry.parsed.metadata)
        last = await last_before(self._end, probe, lambda metadata: metadata.publish_time < time_ms)
        return EARLIEST if last is None else last[0]

    def _probe(self, wanted: Callable[[Entry], E | None]) -> Probe[E]:
        async def probe(after: Position, upto: Position) -> tuple[Position, E] | None:
            entries = _entries(self._session, self._topic, after, self._end)
            try:
                async for entry in entries:
                    if entry.position > upto:
                        return None
                    if (found := wanted(entry)) is not None:
                        return entry.position, found
            finally:
                await entries.aclose()
            return None

        return probe
