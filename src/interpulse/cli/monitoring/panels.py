"""Parts that dashboards are described with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


class Query(NamedTuple):
    """A PromQL expression, drawn as one line per series, and its legend."""

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
    """True to show the newest value as a number instead of a chart."""


class Row(NamedTuple):
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


class Variable(NamedTuple):
    """A selection above the panels: the values of a label of a metric, all by default."""

    label: str
    metric: str


_CLUSTER: Final = Variable("cluster", "pulsar_version_info")


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of rows. Expressions may use the variables: ``{cluster=~"$cluster"}``."""

    name: str
    title: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = (_CLUSTER,)

    @property
    def panels(self) -> list[Panel]:
        """Return the panels of all rows."""
        return [panel for row in self.rows for panel in row.panels]
