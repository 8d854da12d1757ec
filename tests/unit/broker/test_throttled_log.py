"""One line for a cluster that is away, not one for each of its topics."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interpulse.broker.throttled_log import ThrottledLog
from interpulse.model.names import TopicName
from interpulse.replication.provision import ReplicationProblem

AWAY = ReplicationProblem("DISCONNECTED", "Cannot reach http://west:8080", "see that west is up")
HELD = ReplicationProblem("HELD", "counts differ", "make them equal")


class Clock:
    """Timers that run when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None], Clock.Timer]] = []

    class Timer:
        cancelled = False

        def cancel(self) -> None:
            self.cancelled = True

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Clock.Timer()
        self.waiting.append((seconds, call, timer))
        return timer

    def run(self) -> list[float]:
        """What was put off, and for how long."""
        due, self.waiting = self.waiting, []
        for _, call, timer in due:
            if not timer.cancelled:
                call()
        return [seconds for seconds, _, _ in due]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def topic(number: int) -> TopicName:
    return TopicName.parse(f"t{number}")


def test_cluster_that_is_away_is_one_line_with_count_and_remedy(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=clock.later)
    for number in range(1000):
        told.note("west", topic(number), AWAY)
    assert caplog.messages == []
    assert clock.run() == [1.0]
    assert caplog.messages == [
        "topics cannot be replicated cluster=west state=DISCONNECTED topics=1000 first=persistent://public/default/t0 "
        "reason=Cannot reach http://west:8080 remedy=see that west is up"
    ]


def test_what_comes_soon_after_waits_and_silence_ends_the_pause(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=clock.later)
    told.note("west", topic(0), AWAY)
    clock.run()
    for number in (1, 2, 2):
        told.note("west", topic(number), AWAY)
    assert len(caplog.messages) == 1
    assert clock.run() == [60.0]
    assert "topics=2 first=persistent://public/default/t1" in caplog.messages[1]
    assert (clock.run(), clock.run(), len(caplog.messages)) == ([60.0], [], 2)
    told.note("west", topic(3), AWAY)
    assert clock.run() == [1.0]
    assert len(caplog.messages) == 3


def test_clusters_and_kinds_are_told_by_themselves(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=clock.later)
    told.note("west", topic(0), AWAY)
    told.note("north", topic(0), AWAY)
    told.note("west", topic(1), HELD)
    clock.run()
    assert len(caplog.messages) == 3


def test_nothing_is_told_after_the_end(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=clock.later)
    told.note("west", topic(0), AWAY)
    told.close()
    clock.run()
    assert caplog.messages == []
