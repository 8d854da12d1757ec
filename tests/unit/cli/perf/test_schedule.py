"""When messages of an open load are due."""

import pytest

from interpulse.cli.perf.schedule import Schedule


@pytest.mark.parametrize(
    ("schedule", "now", "due"),
    [
        (Schedule(10, 100.0), 99.9, 0),
        (Schedule(10, 100.0), 100.0, 1),
        (Schedule(10, 100.0), 100.25, 3),
        (Schedule(10, 100.0, count_max=2), 105.0, 2),
        (Schedule(10, 100.0, duration_s=1), 101.0, 10),
        (Schedule(10, 100.0, duration_s=0.95), 200.0, 10),
        (Schedule(10, 100.0, count_max=3, duration_s=1), 200.0, 3),
        (Schedule(0, 100.0, count_max=7), 100.0, 7),
    ],
)
def test_messages_when_time_passes_then_are_due_by_their_number(schedule: Schedule, now: float, due: int) -> None:
    assert schedule.due(now) == due


def test_time_of_a_message_when_others_are_late_then_does_not_move() -> None:
    schedule = Schedule(4, 100.0)
    assert [schedule.intended(index, 500.0) for index in range(3)] == [100.0, 100.25, 100.5]
    assert Schedule(0, 100.0).intended(9, 500.0) == 500.0


def test_schedule_when_enough_or_late_enough_then_is_over() -> None:
    assert Schedule(10, 0.0, count_max=2).is_over(2, 0.1)
    assert not Schedule(10, 0.0, count_max=2).is_over(1, 99.0)
    assert Schedule(10, 0.0, duration_s=1).is_over(3, 1.0)
    assert Schedule(10, 0.0, duration_s=1).missed(3, 1.0) == 7
    assert not Schedule(10, 0.0).is_over(10**9, 1e9)
