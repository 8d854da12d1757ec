"""The declaration of a metric, and its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

__all__ = ["Attributes", "Figures", "Instrument"]

Attributes = Mapping[str, str | int]
Figures = Mapping[str, list[tuple[float, Attributes]]]
"""Values by metric name, each with its attributes."""


class Instrument(NamedTuple):
    """The declaration of one metric."""

    name: str
    kind: Literal["counter", "updown", "gauge"]
    unit: str
    text: str
