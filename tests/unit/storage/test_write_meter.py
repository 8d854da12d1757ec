"""Waits and sizes of written entries, per period."""

from __future__ import annotations

import pytest

from interpulse.storage.write_meter import ENTRY_BYTES, WAIT_MS, Histogram, WriteMeter


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def meter(watch: Watch) -> WriteMeter:
    return WriteMeter(watch, period_s=60.0)


@pytest.mark.parametrize("bounds", [WAIT_MS, ENTRY_BYTES])
def test_value_on_a_bound_belongs_below_it(bounds: tuple[float, ...]) -> None:
    histogram = Histogram(bounds)
    for bound in bounds:
        histogram.add(bound)
    assert histogram.counts == [1] * len(bounds) + [0]
    histogram.add(bounds[-1] + 1, 3)
    assert histogram.counts[-1] == 3
    assert histogram.sum == sum(bounds) + 3 * (bounds[-1] + 1)


def test_entries_are_counted_one_by_one_and_wait_as_long_as_the_first(watch: Watch, meter: WriteMeter) -> None:
    entries = [bytes(100), bytes(129), bytes(2_000_000)]
    meter.wrote(entries, sum(map(len, entries)), 0.0031)
    meter.wrote([bytes(600)], 600, 2.0)
    watch.now += 60
    written = meter.last_period
    assert written.sizes.counts == [1, 1, 1, 0, 0, 0, 0, 0, 1]
    assert (written.sizes.count, written.sizes.sum) == (4, 2_000_829)
    assert written.waits_ms.counts == [0, 0, 3, 0, 0, 0, 0, 0, 0, 1]
    assert written.waits_ms.sum == pytest.approx(2009.3)


def test_period_is_told_when_it_is_over_and_for_one_period(watch: Watch, meter: WriteMeter) -> None:
    meter.wrote([b"x"], 1, 0.0)
    watch.now += 59
    assert (meter.last_period.sizes.count, meter.is_idle) == (0, False)
    watch.now += 1
    assert (meter.last_period.sizes.count, meter.is_idle) == (1, False)
    watch.now += 60
    assert (meter.last_period.sizes.count, meter.is_idle) == (0, True)


def test_period_that_ended_long_ago_is_not_told_as_the_last_one(watch: Watch, meter: WriteMeter) -> None:
    meter.wrote([b"x"], 1, 0.0)
    watch.now += 150
    assert meter.last_period.sizes.count == 0
    watch.now += 29  # periods keep their rhythm
    meter.wrote([b"x"], 1, 0.0)
    watch.now += 1
    assert meter.last_period.sizes.count == 1
