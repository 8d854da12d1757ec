"""Cases: runs that are kept as files of TOML, with the faults that are left after minimising."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.simulation.faults import Fault
from tests.simulation.runs import Order
from tests.simulation.world import Never, Reductions

FOUND: Final = Path(__file__).parent / "found"
"""Cases of findings that are fixed, each with its story as a comment, and with the planted bug that brings it back."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run, and the property that it broke."""

    order: Order
    property: str


def read_case(path: Path) -> Case:
    """Read a case from its file."""
    table = tomllib.loads(path.read_text())
    reductions = Reductions(table.get("fault_seconds", Never), tuple(table.get("plain", ())))
    faults = tuple(Fault(**each) for each in table.get("faults", ()))
    order = Order(table["seed"], table["scenario"], table.get("bug", 0), faults, reductions, file=str(path))
    return Case(order, table["property"])


def render_case(case: Case) -> str:
    """Return the text of the file of a case."""
    order, reductions = case.order, case.order.reductions
    table: dict[str, Any] = {"scenario": order.scenario, "seed": order.seed, "property": case.property}
    if order.bug:
        table["bug"] = order.bug
    if reductions.fault_seconds != Never:
        table["fault_seconds"] = reductions.fault_seconds
    if reductions.plain:
        table["plain"] = list(reductions.plain)
    return "\n[[faults]]\n".join(map(_render_table, [table, *map(_without_defaults, order.faults or ())]))


def _without_defaults(fault: Fault) -> dict[str, Any]:
    return {key: value for key, value in asdict(fault).items() if key == "at" or value not in ("", 0)}


def _render_table(table: dict[str, Any]) -> str:
    # strings, numbers and lists of them are the same in JSON and TOML
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
