"""The pace at which one of many topic-partitions is asked; time is an argument."""

from __future__ import annotations

from interpulse.spark.reading.source_cursor import PollPace


def due_times(pace, end, *, until):
    """When it is asked if it ends there all the time, to a tenth of a second; the last answer says that it may rest."""
    asked = []
    for tenth in range(until * 10):
        if pace.is_due(tenth / 10):
            asked.append(tenth / 10)
            if pace.note(end, tenth / 10):
                return asked, True
    return asked, False


def test_what_is_idle_is_asked_less_and_less_until_it_may_rest():
    assert due_times(PollPace(1.0), "1:2", until=60) == ([0.0, 1.0, 3.0, 7.0, 15.0], True)


def test_what_grows_is_asked_at_every_poll():
    pace = PollPace(1.0)
    assert not any(pace.note(second, second) for second in range(20))
    assert [pace.is_due(at) for at in (19.9, 20.0)] == [False, True]


def test_what_rests_is_asked_when_it_rings_and_after_minutes_all_the_same():
    pace = PollPace(1.0)
    pace.settle()
    assert not pace.is_due(1e9)
    pace.rest(10.0)
    assert (pace.is_due(150.0), pace.is_due(311.0)) == (False, True)
    pace.ring()
    assert pace.is_due(10.0)


def test_what_rings_while_it_settles_does_not_rest():
    pace = PollPace(1.0)
    pace.settle()
    pace.ring()
    pace.rest(10.0)
    assert pace.is_due(10.0)
