"""What is measured besides topics."""

from __future__ import annotations

import time

import pytest

from interpulse.broker.instruments import LAG_SECONDS, LatencyMeter, LoopLag
from tests.support.waiting import eventually


async def test_lag_when_the_loop_is_held_then_is_counted_until_the_end() -> None:
    lag = LoopLag(each_seconds=0.001)
    lag.start()
    await eventually(lambda: lag.seconds.count > 2)
    assert lag.seconds.bounds == LAG_SECONDS
    time.sleep(0.3)  # noqa: ASYNC251  # this is what is measured
    before = lag.seconds.count
    await eventually(lambda: lag.seconds.count > before)
    lag.stop()
    assert sum(lag.seconds.counts[LAG_SECONDS.index(0.25) + 1 :]) >= 1
    assert lag.seconds.sum >= 0.25


def test_lag_when_never_started_then_can_be_stopped() -> None:
    LoopLag().stop()


class Watch:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_work_is_under_way_until_it_ends_and_failures_count_as_ended() -> None:
    watch = Watch()
    meter = LatencyMeter(watch)

    def fail() -> None:
        with meter.timed():
            assert meter.under_way == 2
            watch.now += 0.25
            raise LookupError

    with meter.timed():
        with pytest.raises(LookupError):
            fail()
        watch.now += 0.5
    assert (meter.under_way, meter.ended, meter.failed) == (0, 2, 1)
    assert meter.ms == pytest.approx(1000.0)


def test_quantiles_are_those_of_the_latest_work() -> None:
    watch = Watch()
    meter = LatencyMeter(watch)
    assert meter.quantiles(0.5, 1.0) == {}
    for number in range(2000):
        with meter.timed():
            watch.now += number / 1000
    assert meter.quantiles(0.5, 0.99, 1.0) == pytest.approx({0.5: 1500.0, 0.99: 1990.0, 1.0: 1999.0})
    assert meter.ended == 2000
