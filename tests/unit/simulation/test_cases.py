"""Files of cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.cases import Case, read_case, render_case
from tests.simulation.faults import Fault
from tests.simulation.runs import Order
from tests.simulation.world import Reductions

CUT = Fault(0.691727, "cut", "broker", other="producers")
POWER_OFF = Fault(2.5, "power off", "broker", 0.01)


@pytest.mark.parametrize(
    "order",
    [
        Order(7, "single", faults=()),
        Order(7, "single", bug=8, faults=(CUT, POWER_OFF), reductions=Reductions(2.51, ("network", "disk"))),
    ],
    ids=["without faults", "with everything"],
)
def test_case_when_written_and_read_then_it_is_the_same(order: Order, tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(render_case(Case(order, "L1")))
    assert read_case(path) == Case(replace(order, file=str(path)), "L1")


def test_case_when_written_then_a_person_can_read_it() -> None:
    text = render_case(Case(Order(7, "single", faults=(POWER_OFF,)), "L1"))
    assert text == (
        'scenario = "single"\nseed = 7\nproperty = "L1"\n'
        '\n[[faults]]\nat = 2.5\nkind = "power off"\nnode = "broker"\nseconds = 0.01\n'
    )
