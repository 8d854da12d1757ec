"""Metrics of the broker besides its topics, read by each scrape."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from types import TracebackType
from typing import Final, NamedTuple

from interpulse.authentication.authentication import AccessMeter
from interpulse.broker.inconsistencies import InconsistencyCounters
from interpulse.clock import SystemClock
from interpulse.storage.logs.journal import JournalStatistics
from interpulse.storage.meters import Histogram, MetadataMeter, WriteMeter
from interpulse.storage.segments.disk_space import DiskSpace

LAG_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_EACH_SECONDS: Final = 0.2

_REMEMBERED: Final = 1000


class LoopLag:
    """A probe of the clock, five times a second between `start` and `stop`."""

    def __init__(self, each_seconds: float = _EACH_SECONDS) -> None:
        self.seconds = Histogram(LAG_SECONDS)
        self._each_seconds = each_seconds
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due(loop, loop.time())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _due(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = loop.time()
        self.seconds.add(max(0.0, now - due))
        due = now + self._each_seconds
        self._timer = loop.call_at(due, self._due, loop, due)


class LatencyMeter:
    """Metrics of one kind of work: pieces in progress, successes, failures and latency.

    Each piece runs inside ``with meter.timed():``, or in hot places between `begin` and `end`. ``now`` returns the
    seconds of a monotonic clock.
    """

    __slots__ = ("_latest_ms", "_now", "ended", "failed", "ms", "under_way")

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.under_way = self.ended = self.failed = 0
        """Pieces in progress. ``ended`` includes failures."""
        self.ms = 0.0
        self._latest_ms: deque[float] = deque(maxlen=_REMEMBERED)
        self._now = now

    @property
    def answered(self) -> int:
        """The number of successful pieces."""
        return self.ended - self.failed

    def timed(self) -> _Timed:
        """Return a context manager for one piece of work."""
        return _Timed(self)

    def quantiles(self, *wanted: float) -> dict[float, float]:
        """Return quantiles of the recent latencies in ms, nothing if there are none; 1.0 is the longest."""
        return quantiles_of(self._latest_ms, *wanted)

    def begin(self) -> float:
        self.under_way += 1
        return self._now()

    def note_instants(self, count: int) -> None:
        """Count pieces that succeeded faster than a look at the clock takes."""
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
    """Return the quantiles of these values, nothing if there are none; 1.0 is the largest."""
    ordered = sorted(values)
    return {quantile: ordered[min(int(quantile * len(ordered)), len(ordered) - 1)] for quantile in wanted if ordered}


class _Timed:
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
    """Clients accepted since the start."""
    refused: int = 0
    """Clients refused since the start."""
    throttled: int = 0
    """Connections whose reading is paused now, because their clients publish too fast."""
    dropped: int = 0
    """Connections that the broker closed because of their clients."""


class SchemaMeter:
    """Metrics of schema requests in one namespace."""

    def __init__(self) -> None:
        self.gets, self.puts, self.deletions = LatencyMeter(), LatencyMeter(), LatencyMeter()
        self.compatible = self.incompatible = 0
        """New schemas that were compatible with the earlier ones, and those that were not."""


@dataclass(frozen=True, slots=True)
class Instruments:
    """All metrics that belong to no single topic. The callables are called by each scrape."""

    inconsistencies: InconsistencyCounters = field(default_factory=lambda: InconsistencyCounters(SystemClock().now_ms))
    lookups: LatencyMeter = field(default_factory=LatencyMeter)
    lookups_redirected: Callable[[], int] = lambda: 0
    """Lookups redirected to another broker."""
    synced_acknowledgements: Counter[str] = field(default_factory=Counter)
    """Entries acknowledged because consumers of another cluster acknowledged them, by namespace."""
    topic_loads: LatencyMeter = field(default_factory=LatencyMeter)
    lookups_pending: Callable[[], int] = lambda: 0
    """Lookups and metadata queries that hold a permit."""
    lookups_rejected: Callable[[], int] = lambda: 0
    """Lookups and metadata queries refused for lack of a permit since the broker started."""
    connections: Callable[[], ConnectionCounts] = ConnectionCounts
    writes: WriteMeter = field(default_factory=WriteMeter)
    logs_open: Callable[[], int] = lambda: 0
    metadata: MetadataMeter | None = None
    schemas: Mapping[str, SchemaMeter] = field(default_factory=dict)
    """Metrics of schemas, by namespace."""
    loop_lag: Histogram = field(default_factory=lambda: Histogram(LAG_SECONDS))
    """The delay of the event loop, in seconds."""
    journal: JournalStatistics = field(default_factory=JournalStatistics)
    access: AccessMeter | None = None
    disk_space: DiskSpace | None = None
