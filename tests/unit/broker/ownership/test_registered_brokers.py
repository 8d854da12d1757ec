"""What a broker says of its load: sums over its bundles, and what the process takes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from interpulse.broker.ownership.registered_brokers import LoadMeter, ProcessUsage
from interpulse.model.brokers import BundleLoad
from interpulse.model.names import TopicName

NAMES = [TopicName.parse(f"persistent://t/n/{number}") for number in range(450)]


class Topic:
    def measure(self) -> Any:
        figures = {"rate_in": 1.0, "throughput_in": 10.0, "rate_out": 2.0, "throughput_out": 20.0}
        return SimpleNamespace(topic=SimpleNamespace(producers=1, consumers=2, **figures))


async def test_load_when_topics_are_loaded_then_is_summed_by_bundle_and_other_work_goes_on() -> None:
    loaded = {name: Topic() for name in NAMES[:-1]}
    load = LoadMeter(lambda: {"a": NAMES, "b": []}, loaded.get)
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.ensure_future(other_work())
    measured = await load()
    other.cancel()
    assert measured.bundles == {"a": BundleLoad(449, 449, 898, 449.0, 4490.0, 898.0, 8980.0), "b": BundleLoad()}
    assert measured.all.topics == 449
    assert turns >= 2


async def test_load_when_measured_then_has_what_the_process_takes() -> None:
    load = LoadMeter(dict, {}.get)  # type: ignore[arg-type]
    sum(range(200_000))
    measured = await load()
    assert measured.cpu_percent > 0
    assert 1 < measured.memory_mib < measured.memory_limit_mib
    assert measured.usage > 0
    assert measured.cores >= 1
    assert measured.all == BundleLoad()


async def test_load_when_the_usage_is_given_then_has_its_figures() -> None:
    usages = [ProcessUsage(10.0, 4, 100.0, 1000.0), ProcessUsage(1e9, 4, 200.0, 1000.0)]
    load = LoadMeter(dict, {}.get, lambda: usages.pop(0))  # type: ignore[arg-type]
    measured = await load()
    assert measured.cpu_percent > 1e6, "a billion seconds in a moment"
    assert (measured.cores, measured.memory_mib, measured.memory_limit_mib) == (4, 200.0, 1000.0)
