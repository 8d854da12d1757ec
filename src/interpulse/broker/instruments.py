"""Measurements of the broker besides its topics, and where a scrape of the metrics reads them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from types import TracebackType
from typing import Final, NamedTuple

from interpulse.authentication.access_meter import AccessMeter
from interpulse.broker.inconsistencies import InconsistencyCounters
from interpulse.broker.loop_lag import LAG_SECONDS
from interpulse.clock import SystemClock
from interpulse.storage.logs.journal import JournalStatistics
from interpulse.storage.meters.histogram import Histogram
from interpulse.storage.meters.metadata_meter import MetadataMeter
from interpulse.storage.meters.write_meter import WriteMeter
from interpulse.storage.segments.disk_space import DiskSpace

__all__ = [
    "ConnectionCounts",
    "Instruments",
    "LatencyMeter",
    "SchemaMeter",
    "quantiles_of",
]

_REMEMBERED: Final = 1000


class LatencyMeter:
    """Work of one kind: how much is under way, how much ended well or not, and how long it took.

    Each piece runs inside ``with meter.timed():``, or in hot places between `begin` and `end`.
    ``now`` gives seconds of a clock that never goes back.
    """

    __slots__ = ("_latest_ms", "_now", "ended", "failed", "ms", "under_way")

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.under_way = self.ended = self.failed = 0
        """``ended`` counts what failed as well."""
        self.ms = 0.0
        self._latest_ms: deque[float] = deque(maxlen=_REMEMBERED)
        self._now = now

    @property
    def answered(self) -> int:
        """What ended well."""
        return self.ended - self.failed

    def timed(self) -> _Timed:
        """A context manager around one piece of work."""
        return _Timed(self)

    def quantiles(self, *wanted: float) -> dict[float, float]:
        """Times in ms of the latest pieces of work, none if there was none; 1.0 is the longest."""
        return quantiles_of(self._latest_ms, *wanted)

    def begin(self) -> float:
        self.under_way += 1
        return self._now()

    def note_instants(self, count: int) -> None:
        """So many pieces of work ended well, so fast that looking at the clock would have taken as long."""
        self.ended += count
        self._latest_ms.extend(repeat(0.0, min(count, _REMEMBERED)))

    def end(self, begun: float, *, failed: bool) -> None:
        ms = (self._now() - begun) * 1000
        self.under_way -= 1
        self.ended += 1
        self.failed += failed
        self.ms += ms
        self._latest_ms.append(ms)


def quantiles_of(values: Iterable[float], *wanted: float) -> dict[float, float]:
    """Those of these values, none if there is none; 1.0 is the largest."""
    ordered = sorted(values)
    return {each: ordered[min(int(each * len(ordered)), len(ordered) - 1)] for each in wanted if ordered}


class _Timed:
    """One piece of work."""

    __slots__ = ("_begun", "_meter")

    def __init__(self, meter: LatencyMeter) -> None:
        self._meter = meter

    def __enter__(self) -> None:
        self._begun = self._meter.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._meter.end(self._begun, failed=error is not None)


class ConnectionCounts(NamedTuple):
    """Connections of the binary protocol."""

    active: int = 0
    created: int = 0
    accepted: int = 0
    """Clients that were let in since the start."""
    refused: int = 0
    """Those that were not."""
    throttled: int = 0
    """Connections that are not read from now, because their clients publish too fast."""
    dropped: int = 0
    """Connections that the broker ended because of their clients."""


class SchemaMeter:
    """Work on the schemas of one namespace."""

    def __init__(self) -> None:
        self.gets, self.puts, self.deletions = LatencyMeter(), LatencyMeter(), LatencyMeter()
        self.compatible = self.incompatible = 0
        """New schemas that fitted the earlier ones, or did not."""


@dataclass(frozen=True, slots=True)
class Instruments:
    """Everything metrics read that belongs to no single topic. The callables are asked with each scrape."""

    inconsistencies: InconsistencyCounters = field(default_factory=lambda: InconsistencyCounters(SystemClock().now_ms))
    lookups: LatencyMeter = field(default_factory=LatencyMeter)
    lookups_redirected: Callable[[], int] = lambda: 0
    """Lookups answered with another broker to ask."""
    topic_loads: LatencyMeter = field(default_factory=LatencyMeter)
    lookups_pending: Callable[[], int] = lambda: 0
    """Lookups and metadata queries that hold a permit."""
    lookups_rejected: Callable[[], int] = lambda: 0
    """Those that got none since the broker started."""
    connections: Callable[[], ConnectionCounts] = ConnectionCounts
    writes: WriteMeter = field(default_factory=WriteMeter)
    logs_open: Callable[[], int] = lambda: 0
    metadata: MetadataMeter | None = None
    schemas: Mapping[str, SchemaMeter] = field(default_factory=dict)
    """By namespace."""
    loop_lag: Histogram = field(default_factory=lambda: Histogram(LAG_SECONDS))
    """How late the event loop came to what was due, in seconds."""
    journal: JournalStatistics = field(default_factory=JournalStatistics)
    access: AccessMeter | None = None
    disk_space: DiskSpace | None = None
