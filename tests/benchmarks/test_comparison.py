"""What is called worse, and what is called reached, decides what people work on."""

import pytest

from benchmarks.comparison import is_worse, judge, ratio
from benchmarks.figures import Aim, Sample


@pytest.mark.parametrize(
    ("ours", "before", "higher_is_better", "worse"),
    [
        pytest.param([100, 99], [100, 99], True, False, id="the same"),
        pytest.param([92, 91], [100, 99], True, False, id="less than a tenth"),
        pytest.param([80, 79], [100, 99], True, True, id="a fifth less"),
        pytest.param([80, 79], [100, 60], True, False, id="the release itself differs by more"),
        pytest.param([80, 40], [100, 99], True, False, id="ours differs by more"),
        pytest.param([120, 119], [100, 99], True, False, id="better"),
        pytest.param([1.3, 1.31], [1.0, 1.01], False, True, id="a third longer"),
        pytest.param([0.7, 0.71], [1.0, 1.01], False, False, id="shorter"),
        pytest.param([10], [100, 99], True, False, id="one round tells nothing"),
        pytest.param([0, 0], [1, 1], False, False, id="nothing to compare"),
    ],
)
def test_regression_when_rounds_are_compared_then_only_more_than_noise_counts(
    ours: list[float], before: list[float], higher_is_better: bool, worse: bool
) -> None:
    assert is_worse(ours, before, higher_is_better=higher_is_better) is worse


@pytest.mark.parametrize(
    ("aim", "ours", "real", "words"),
    [
        (Aim(2.5), Sample(500), Sample(200), ">= 2.5x: reached"),
        (Aim(2.5), Sample(499), Sample(200), ">= 2.5x: missed"),
        (Aim(2.5, times_less_cpu=4), Sample(500, 1.0), Sample(200, 3.0), ">= 2.5x, CPU >= 4x: missed"),
        (Aim(2.5, times_less_cpu=4), Sample(500, 1.0), Sample(200, 4.0), ">= 2.5x, CPU >= 4x: reached"),
        (Aim(2.5), Sample(500), None, ">= 2.5x"),
        (Aim(at_most=55), Sample(51.7), None, "<= 55: reached"),
        (Aim(cpu_of=("shared", 2)), Sample(1, 17.0), None, "CPU <= 2 x shared: missed"),
        (Aim(cpu_of=("shared", 2)), Sample(1, 16.0), None, "CPU <= 2 x shared: reached"),
    ],
)
def test_aim_when_judged_then_says_what_is_wanted_and_whether_it_is_reached(
    aim: Aim, ours: Sample, real: Sample | None, words: str
) -> None:
    assert judge(aim, ours, real, of_cpu_us=8.0, higher_is_better=True) == words


def test_ratio_when_lower_is_better_then_is_above_one_where_ours_is_lower() -> None:
    assert ratio(Sample(2, 3.0), Sample(8, 6.0), higher_is_better=False) == "4.00x (2.00x)"
    assert ratio(Sample(0), Sample(8), higher_is_better=False) == "-"
