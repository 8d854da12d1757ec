"""What a broker weighs, idle and per loaded topic: the aims of the benchmarks, held here between their runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.contenders import Contender, Interpulse
from benchmarks.figures import ROWS, Samples, measure_start, measure_topic_memory

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("figure", "measure"), [("memory", measure_start), ("topic_memory", measure_topic_memory)])
def test_memory_when_measured_then_is_within_its_aim(
    tmp_path: Path, figure: str, measure: Callable[[Contender, int], Samples]
) -> None:
    aim = ROWS[figure].aim
    assert aim is not None
    assert aim.at_most is not None
    assert measure(Interpulse(tmp_path), 0)[figure].value <= aim.at_most
