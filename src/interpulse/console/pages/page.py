"""What a page is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from interpulse.console.visit import Visit

__all__ = ["Page"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page at ``/console/NAME``, its model at ``/console/NAME.json``, shown by the template ``NAME.html``."""

    name: str
    title: str
    build: Callable[[Visit], Awaitable[Any]]
    """Makes the model, a frozen dataclass of plain values. Raises what the admin API refuses."""

    in_menu: bool = True
    template: str = ""
    """Its template where that has another name."""

    takes_forms: bool = False
    """What it is asked may be too long for an address: it is read from a form as well. Nothing is changed by it."""
