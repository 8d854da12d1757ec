"""The decision for or against a console, and the reason that visitors read."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, NamedTuple

from interpulse.model.extras import pip_install

__all__ = ["MISSING_EXTRA", "TURNED_OFF", "Availability", "extra_installed"]

MISSING_EXTRA: Final = f"the console needs its extra: {pip_install('console')}"
TURNED_OFF: Final = "the console is off (consoleEnabled=false)"


class Availability(NamedTuple):
    """``reason`` is empty where there is a console."""

    on: bool
    reason: str = ""


def extra_installed() -> bool:
    """Return True if jinja2 is installed, without loading it."""
    return find_spec("jinja2") is not None
