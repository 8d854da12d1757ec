"""The words in which dashboards are described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["Dashboard", "Panel", "Query", "Row", "Variable"]


class Query(NamedTuple):
    """One line, or one for each series: an expression of PromQL, and what stands in the legend."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart. ``unit`` is one of Grafana's: ``short``, ``bytes``, ``s``, ``ms``, ``ops``, ``Bps``, ``percentunit``."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    about: str = ""
    number: bool = False
    """The newest value as a number instead of a chart."""


class Row(NamedTuple):
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


class Variable(NamedTuple):
    """A choice above the panels: the values that a label has in a metric, all of them by default."""

    label: str
    metric: str


_CLUSTER: Final = Variable("cluster", "pulsar_version_info")


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of rows. Expressions may name the variables: ``{cluster=~"$cluster"}``."""

    name: str
    title: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = (_CLUSTER,)

    @property
    def panels(self) -> list[Panel]:
        """All panels."""
        return [panel for row in self.rows for panel in row.panels]
