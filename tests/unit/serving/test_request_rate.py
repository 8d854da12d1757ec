"""Which of several requests are answered."""

import pytest

from interpulse.serving.request_rate import RequestRate


@pytest.mark.parametrize(
    ("per_second", "times", "outcome"),
    [
        pytest.param(2, [0, 0, 0], [True, True, False], id="at the limit, and one above"),
        pytest.param(2, [0, 0, 0.5, 0.5], [True, True, True, False], id="half a second later there is one more"),
        pytest.param(2, [0, 0, 60, 60, 60], [True, True, True, True, False], id="nothing is saved up"),
        pytest.param(1.5, [0, 0, 1 / 3, 2 / 3], [True, False, True, False], id="fractions"),
    ],
)
def test_requests_when_they_come_then_those_above_the_rate_are_refused(
    per_second: float, times: list[float], outcome: list[bool]
) -> None:
    clock = iter([0.0, *times])
    rate = RequestRate(per_second, lambda: next(clock))
    assert [rate.take() for _ in times] == outcome
