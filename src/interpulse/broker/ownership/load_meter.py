"""The load of this broker, for the report by which other brokers place bundles.

Source: docs/reference/cluster-protocol.md#load-report.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, Protocol

from interpulse.model.brokers import BrokerLoad, BundleLoad
from interpulse.model.names import TopicName
from interpulse.model.topics import TopicMeasure

_AT_ONCE: Final = 200  # topics between two yields
_MIB: Final = 1 << 20
_MEMORY_IN_USE: Final = Path("/proc/self/statm")


class _Measured(Protocol):
    @property
    def topic(self) -> TopicMeasure: ...


class _Topic(Protocol):
    def measure(self) -> _Measured: ...


class LoadMeter:
    """Measures the load at each call; the CPU usage covers the time since the previous call."""

    def __init__(
        self, topics: Callable[[], Mapping[str, Collection[TopicName]]], loaded: Callable[[TopicName], _Topic | None]
    ) -> None:
        """Create a meter; ``topics`` returns the topics of this broker by bundle."""
        self._topics = topics
        self._loaded = loaded
        self._cpu_s, self._at_s = time.process_time(), time.monotonic()

    async def __call__(self) -> BrokerLoad:
        """Return the load now. Yields to other work between topics, so the numbers are not of a single moment."""
        bundles = {bundle: await self._bundle(list(names)) for bundle, names in self._topics().items()}
        cpu_s, at_s = time.process_time(), time.monotonic()
        elapsed_s = at_s - self._at_s
        percent = 100 * (cpu_s - self._cpu_s) / elapsed_s if elapsed_s else 0.0
        self._cpu_s, self._at_s = cpu_s, at_s
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _MIB
        return BrokerLoad(bundles, percent, os.cpu_count() or 1, _memory_mib(), limit)

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
