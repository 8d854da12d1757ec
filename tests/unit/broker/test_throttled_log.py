"""One line for a cluster that is away, not one for each of its topics."""

from __future__ import annotations

import pytest

from interpulse.broker.throttled_log import ThrottledLog
from interpulse.model.names import TopicName
from interpulse.replication.provision import ReplicationProblem
from tests.support.fake_clock import FakeTimers

AWAY = ReplicationProblem("DISCONNECTED", "Cannot reach http://west:8080", "see that west is up")
HELD = ReplicationProblem("HELD", "counts differ", "make them equal")


@pytest.fixture
def timers() -> FakeTimers:
    return FakeTimers()


def topic(number: int) -> TopicName:
    return TopicName.parse(f"t{number}")


def test_cluster_that_is_away_is_one_line_with_count_and_remedy(
    timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    told = ThrottledLog(later=timers.later)
    for number in range(1000):
        told.note("west", topic(number), AWAY)
    assert caplog.messages == []
    assert timers.run() == [1.0]
    assert caplog.messages == [
        "topics cannot be replicated cluster=west state=DISCONNECTED topics=1000 first=persistent://public/default/t0 "
        "reason=Cannot reach http://west:8080 remedy=see that west is up"
    ]


def test_what_comes_soon_after_waits_and_silence_ends_the_pause(
    timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    told = ThrottledLog(later=timers.later)
    told.note("west", topic(0), AWAY)
    timers.run()
    for number in (1, 2, 2):
        told.note("west", topic(number), AWAY)
    assert len(caplog.messages) == 1
    assert timers.run() == [60.0]
    assert "topics=2 first=persistent://public/default/t1" in caplog.messages[1]
    assert (timers.run(), timers.run(), len(caplog.messages)) == ([60.0], [], 2)
    told.note("west", topic(3), AWAY)
    assert timers.run() == [1.0]
    assert len(caplog.messages) == 3


def test_clusters_and_kinds_are_told_by_themselves(timers: FakeTimers, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=timers.later)
    told.note("west", topic(0), AWAY)
    told.note("north", topic(0), AWAY)
    told.note("west", topic(1), HELD)
    timers.run()
    assert len(caplog.messages) == 3


def test_nothing_is_told_after_the_end(timers: FakeTimers, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=timers.later)
    told.note("west", topic(0), AWAY)
    told.close()
    timers.run()
    assert caplog.messages == []
