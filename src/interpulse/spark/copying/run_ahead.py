"""Run-ahead: the tasks of a micro-batch go on copying what arrives behind their ranges, until the batch is to end.

A batch becomes a checkpoint: what arrives meanwhile waits for no plan. The position that a task has reached is recorded
in the state of its lane, and the next batch is planned from there. If the batch is repeated, its tasks find those
entries on the target, as they find any of an earlier attempt. Decision 0033 has the rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.state_disk import StateDisk
from interpulse.spark.state_files import HeldRange

FOLLOWED_WHOLE: Final = 16
"""Number of topic-partitions of a route up to which all are followed, also those that have been idle for a while."""
FOLLOWED_MAX: Final = 256
"""Number of active topic-partitions above which batches are planned without a run-ahead."""
_LOOK_SECONDS: Final = 0.05
_REPORT_SECONDS: Final = 1.0
_ENTRIES_MAX: Final = 200_000
"""Entries that a task copies behind its ranges at most, since a repeated batch reads them back."""


class RunAhead(NamedTuple):
    """The run-ahead of the tasks of one micro-batch."""

    length_ms: int
    """Time from the start of a task: the workers of a busy machine may start long after the plan."""
    topics: frozenset[str]
    """Topic-partitions to follow behind their ranges."""
    watched: Mapping[Path, Hashable] = {}
    """Versions of files on the driver's disk. A change of one ends the run-ahead."""
    attempt: int | None = None
    """Number under which tasks report what they have copied; None: they do not."""


def plan_run_ahead(
    topics: Mapping[str, bool],
    *,
    held: Mapping[str, HeldRange],
    rates: Mapping[str, Rate],
    now_ms: int,
    length_ms: int,
) -> RunAhead | None:
    """Return the run-ahead of a batch that is planned now, or None if its tasks end with their ranges.

    ``topics`` says of each topic-partition that may be copied if it is active, so that it does not rest. Those that are
    ``held`` or have a rate are not followed. The next attempt at one that is held, and the next permits of one with a
    rate, wait for the end of the batch, which therefore comes earlier. News of a topic-partition that rests and is not
    followed ends it too.
    """
    free = [topic for topic in topics if topic not in held and topic not in rates]
    active = free if len(free) <= FOLLOWED_WHOLE else [topic for topic in free if topics[topic]]
    limited = [rate.period_s * 1000 for topic, rate in rates.items() if topics.get(topic)]
    retries = [item.retry_at_ms - now_ms for topic, item in held.items() if topic in topics]
    length = min([length_ms, *limited, *retries])
    if not active or len(active) > FOLLOWED_MAX or length <= 0:
        return None
    return RunAhead(length, frozenset(active))


class RunAheadEnd:
    """The end of a run-ahead, as one task sees it."""

    def __init__(self, ahead: RunAhead, disk: StateDisk) -> None:
        """Set the end. Files that this machine does not have end nothing."""
        self._ahead = ahead
        self._disk = disk
        self._over = asyncio.Event()
        self._readers: set[EntryReader] = set()
        self._left = _ENTRIES_MAX

    @property
    def topics(self) -> frozenset[str]:
        return self._ahead.topics

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def end(self) -> None:
        """End the run-ahead of this task."""
        self._over.set()
        for reader in self._readers:
            reader.end()

    def note(self, entries: int) -> None:
        """Count entries that were copied. Too many end the run-ahead: a repeated batch has to read them back."""
        self._left -= entries
        if self._left <= 0:
            self.end()

    @contextmanager
    def ending(self, reader: EntryReader) -> Iterator[None]:
        """End a reader that has no end of its own together with the run-ahead."""
        self._readers.add(reader)
        if self.is_over:
            reader.end()
        try:
            yield
        finally:
            self._readers.discard(reader)

    async def watch(self, report: Callable[[], None]) -> None:
        """Return when the run-ahead is over, which this ends at its time, or when a watched file changes.

        ``report`` is called every second on the machine that has the files, unless tasks do not report.
        """
        loop, ahead = asyncio.get_running_loop(), self._ahead
        begin = loop.time()
        deadline = begin + ahead.length_ms / 1000
        is_here = any(self._disk.version(path) is not None for path in ahead.watched)
        watched = ahead.watched if is_here else {}
        reported_at = begin
        while not self.is_over:
            now = loop.time()
            if now >= deadline or any(self._disk.version(path) != version for path, version in watched.items()):
                self.end()
                return
            if watched and ahead.attempt is not None and now - reported_at >= _REPORT_SECONDS:
                reported_at = now
                report()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(deadline - now, _LOOK_SECONDS)):
                    await self._over.wait()
