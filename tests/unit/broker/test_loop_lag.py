"""How late the event loop comes."""

from __future__ import annotations

import time

from interpulse.broker.loop_lag import LAG_SECONDS, LoopLag
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
