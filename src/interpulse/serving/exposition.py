"""Prometheus text format: families of samples, each family in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram", "summary"]

_LINES_AT_ONCE: Final = 1000  # lines joined per turn, about 0.2 ms; a larger family has its own turn

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labelled(**labels: str) -> str:
    """Return the labels of a sample in their form between the braces."""
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in labels.items()])


def _escaped(value: str) -> str:
    if '"' in value or "\\" in value or "\n" in value:  # rare, and checking costs less than translating
        return value.translate(_ESCAPES)
    return value


class Exposition:
    """Page of metrics, with families in the order in which they were added."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def family(self, name: str, kind: Kind, text: str) -> list[str]:
        """Return the lines of a family, to which samples are appended (`sample`).

        The list is the same for later calls.
        """
        return self._families.setdefault(name, [f"# HELP {name} {text}\n# TYPE {name} {kind}\n"])

    def add(self, name: str, kind: Kind, text: str, labels: str, value: float) -> None:
        """Add one sample to a family."""
        self.family(name, kind, text).append(f"{name}{{{labels}}} {value}\n")

    def add_histogram(
        self, name: str, text: str, labels: str, bounds: Sequence[float], counts: Sequence[int], total: float
    ) -> None:
        """Add one histogram. ``counts`` are the values up to each bound and above the one before, then the rest."""
        lines = self.family(name, "histogram", text)
        front = f"{labels}," if labels else ""
        for bound, count in zip((*bounds, "+Inf"), accumulate(counts), strict=True):
            lines.append(f'{name}_bucket{{{front}le="{bound}"}} {count}\n')
        lines.append(f"{name}_count{{{labels}}} {sum(counts)}\n{name}_sum{{{labels}}} {round(total, 6)}\n")

    def render(self) -> bytes:
        """Return the page. A family without samples is omitted."""
        return b"".join("".join(lines).encode() for lines in self._families.values() if len(lines) > 1)

    async def render_in_turns(self) -> bytes:
        """Return the page, letting other tasks run between families."""
        parts = []
        for lines in self._families.values():
            if len(lines) > 1:
                parts.append("".join(lines).encode())
            if len(lines) > _LINES_AT_ONCE:
                await asyncio.sleep(0)
        return b"".join(parts)
