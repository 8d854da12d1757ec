"""How often each of many looks."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from interpulse.console.polling import PollingRate
from interpulse.model.errors import ServiceNotReady


@pytest.mark.parametrize(("watchers", "seconds"), [(0, 1), (1, 1), (200, 1), (201, 1.005), (1000, 5)])
def test_seconds_when_so_many_watch_then_all_together_look_no_more_often(watchers: int, seconds: float) -> None:
    pace = PollingRate("charts", every_seconds=1, per_second_max=200, most=1000)
    with ExitStack() as stack:
        for _ in range(watchers):
            stack.enter_context(pace.watching())
        assert pace.seconds == seconds
    assert pace.seconds == 1


def test_room_when_as_many_watch_as_may_then_one_more_is_refused_until_one_leaves() -> None:
    pace = PollingRate("tails of topics", every_seconds=1, per_second_max=1, most=2)
    with pace.watching():
        with pace.watching(), pytest.raises(ServiceNotReady, match="2 tails of topics are watched already"):
            pace.check_room()
        pace.check_room()


def test_watching_when_others_came_since_there_was_room_then_is_refused_and_not_counted() -> None:
    pace = PollingRate("charts", every_seconds=1, per_second_max=1, most=1)
    pace.check_room()
    with pace.watching():
        with pytest.raises(ServiceNotReady), pace.watching():
            pass
        assert pace.watchers == 1
