"""The registered brokers of a cluster, and this broker among them.

A broker exists for the others while its load report does: until it removes the report or its session ends.
The age of a report does not matter. Source: docs/reference/cluster-protocol.md#load-report.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol, Self

from interpulse.broker import metadata_paths as keys
from interpulse.broker.periodic import run_periodically
from interpulse.clock import Clock
from interpulse.model.brokers import BrokerLoad, BundleLoad, LoadReport, leader_in
from interpulse.model.errors import MetadataError, PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.model.topics import TopicMeasure
from interpulse.rules.placement import BrokersView, is_load_change
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, Put, Versioned
from interpulse.storage.cas import retry_on_conflict
from interpulse.storage.metadata.session_bounded import SessionLost

_AT_ONCE: Final = 200  # topics between two yields
_MIB: Final = 1 << 20
_MEMORY_IN_USE: Final = Path("/proc/self/statm")

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 5.0


class _Measured(Protocol):
    @property
    def topic(self) -> TopicMeasure: ...


class _Topic(Protocol):
    def measure(self) -> _Measured: ...


class ProcessUsage(NamedTuple):
    """The share of the machine that this process uses."""

    cpu_s: float
    """Processor time since the start of the process."""
    cores: int
    memory_mib: float
    memory_limit_mib: float

    @classmethod
    def now(cls) -> Self:
        """Return the usage that the system reports."""
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _MIB
        return cls(time.process_time(), os.cpu_count() or 1, _memory_mib(), limit)


class LoadMeter:
    """Measures the load of this broker at each call; the CPU usage covers the time since the previous call."""

    def __init__(
        self,
        topics: Callable[[], Mapping[str, Collection[TopicName]]],
        loaded: Callable[[TopicName], _Topic | None],
        usage: Callable[[], ProcessUsage] = ProcessUsage.now,
    ) -> None:
        """Create a meter; ``topics`` returns the topics of this broker by bundle."""
        self._topics = topics
        self._loaded = loaded
        self._usage = usage
        self._cpu_s, self._at_s = usage().cpu_s, time.monotonic()

    async def __call__(self) -> BrokerLoad:
        """Return the load now. Yields to other work between topics, so the numbers are not of a single moment."""
        bundles = {bundle: await self._bundle(list(names)) for bundle, names in self._topics().items()}
        usage, at_s = self._usage(), time.monotonic()
        elapsed_s = at_s - self._at_s
        percent = 100 * (usage.cpu_s - self._cpu_s) / elapsed_s if elapsed_s else 0.0
        self._cpu_s, self._at_s = usage.cpu_s, at_s
        return BrokerLoad(bundles, percent, usage.cores, usage.memory_mib, usage.memory_limit_mib)

    async def _bundle(self, names: list[TopicName]) -> BundleLoad:
        topics = producers = consumers = 0
        rate_in = throughput_in = rate_out = throughput_out = 0.0
        for index, name in enumerate(names):
            if not index % _AT_ONCE:
                await asyncio.sleep(0)
            topic = self._loaded(name)
            if topic is None:
                continue
            figures = topic.measure().topic
            topics += 1
            producers += figures.producers
            consumers += figures.consumers
            rate_in += figures.rate_in
            throughput_in += figures.throughput_in
            rate_out += figures.rate_out
            throughput_out += figures.throughput_out
        return BundleLoad(topics, producers, consumers, rate_in, throughput_in, rate_out, throughput_out)


def _memory_mib() -> float:
    """Return the memory of this process, or its peak where the system reports only that."""
    try:
        return int(_MEMORY_IN_USE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / _MIB
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (_MIB if sys.platform == "darwin" else 1024)


class RegisteredBrokers:
    """The registered brokers with their load reports, and the registration of this one."""

    def __init__(self, store: MetadataStore, own: LoadReport, clock: Clock) -> None:
        self.own = own
        self.registered = False
        """This broker's report is written, and refreshed."""
        self.on_extensible: Callable[[], None] = lambda: None
        """Callback for the arrival of a broker beside which this one must not serve; see `check_others`."""
        self._store = store
        self._load: Callable[[], Awaitable[BrokerLoad]] = _nothing
        self._now_ms = clock.now_ms
        self._started_ms = clock.now_ms()
        self._key = keys.load_report(own.broker.broker_id)
        self._written: Mapping[str, float] = {}
        self._written_ms = 0
        self._parsed: dict[str, tuple[int, LoadReport]] = {}

    async def view(self) -> BrokersView:
        """Return the brokers that are registered now. Unreadable reports are left out."""
        names = await self._store.children(keys.LOAD_REPORTS)
        records = await self._store.get_many([keys.LEADER, *map(keys.load_report, names)])
        reports = {}
        for name in names:
            stored = records.get(keys.load_report(name))
            report = None if stored is None else self._parse(name, stored)
            if report is not None:
                reports[name] = report
        leader = records.get(keys.LEADER)
        return BrokersView(self.own.broker.broker_id, reports, leader_in(leader.value) if leader else None)

    async def check_others(self) -> None:
        """Raise PreconditionFailed if another broker does not keep ownership in locks."""
        view = await self.view()
        if view.extensible is not None:
            raise PreconditionFailed(
                f"broker {view.extensible} of this cluster has loadManagerClassName "
                f"{view.reports[view.extensible].load_manager}, which keeps the owners of bundles in a system topic: "
                f"set ModularLoadManagerImpl on every broker of the cluster"
            )

    async def register(self, load: Callable[[], Awaitable[BrokerLoad]]) -> None:
        """Register this broker, or take its earlier registration over. ``load`` is called for each report."""
        self._load = load
        self.registered = True
        await self._write(await self._load())
        log.info("broker registered broker=%s", self.own.broker.broker_id)

    async def renew(self) -> None:
        """Write the report in a new session, if this broker is registered."""
        if self.registered:
            await self._write(await self._load())

    async def leave(self) -> None:
        """Remove the registration; the first step of stopping."""
        if not self.registered:
            return
        self.registered = False
        try:
            await self._store.commit([Delete(self._key)])
        except MetadataError as error:  # it ends with the session
            log.warning("load report not removed broker=%s error=%s", self.own.broker.broker_id, error)

    async def keep_fresh(self) -> None:
        """Write the report again whenever it is due, until cancelled."""
        await run_periodically("load report", lambda: _LOOK_SECONDS, self.refresh)

    async def refresh(self) -> None:
        """Write the report again if it is due, and check the other brokers."""
        if not (self.registered and self._store.session.holds()):
            return
        try:
            await self.check_others()
        except PreconditionFailed as error:
            log.error("this broker must stop reason=%s", error)
            self.on_extensible()
            return
        except SessionLost:  # `renew` follows
            return
        seconds = (self._now_ms() - self._written_ms) / 1000
        load = await self._load()
        if is_load_change(self._written, _figures(load), seconds=seconds):
            await self._write(load)

    async def _write(self, load: BrokerLoad) -> None:
        now_ms = self._now_ms()
        value = self.own.dump(load, started_ms=self._started_ms, now_ms=now_ms)

        async def attempt() -> None:
            stored = await self._store.get(self._key)
            if not self.registered:  # it deregistered meanwhile
                return
            version = stored.version if stored else None
            try:
                await self._store.commit([Put(self._key, value, ephemeral=True)], {self._key: version})
            except CommitConflict:
                if version is not None:  # of an earlier process whose session has not ended yet
                    await self._store.commit([Delete(self._key)], {self._key: version})
                raise

        await retry_on_conflict(attempt)
        self._written, self._written_ms = _figures(load), now_ms

    def _parse(self, name: str, stored: Versioned) -> LoadReport | None:
        version, report = self._parsed.get(name, (None, None))
        if report is None or version != stored.version:
            try:
                report = LoadReport.load(name, stored.value)
            except ValueError as error:
                log.warning("load report ignored broker=%s error=%s", name, error)
                return None
            self._parsed[name] = (stored.version, report)
        return report


async def _nothing() -> BrokerLoad:
    return BrokerLoad()


def _figures(load: BrokerLoad) -> dict[str, float]:
    served = load.all
    return {
        "topics": served.topics,
        "bundles": len(load.bundles),
        "producers": served.producers,
        "consumers": served.consumers,
        "messages per second": served.rate_in + served.rate_out,
        "tenths of the usage": round(10 * load.usage),
    }
