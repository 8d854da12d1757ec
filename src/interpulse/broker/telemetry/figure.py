"""A figure of a metric, and how a metric is declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

__all__ = ["Attributes", "Figures", "Instrument"]

Attributes = Mapping[str, str | int]
Figures = Mapping[str, list[tuple[float, Attributes]]]
"""By the name of each metric: the values, and what each is of."""


class Instrument(NamedTuple):
    """One metric."""

    name: str
    kind: Literal["counter", "updown", "gauge"]
    unit: str
    text: str
