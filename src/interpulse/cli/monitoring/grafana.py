"""Descriptions of dashboards, and the JSON that Grafana imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple

_SCHEMA_VERSION: Final = 38  # of Grafana 10; later ones bring it up to date by themselves
_WIDTH: Final = 24
_CHART: Final = (8, 8)  # width and height in units of the grid
_NUMBER: Final = (6, 4)
_DATASOURCE_CHOICE: Final = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


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


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of rows. Expressions may use the variables: ``{cluster=~"$cluster"}``."""

    name: str
    title: str
    rows: Mapping[str, tuple[Panel, ...]]
    """Panels by the headings of their rows."""

    variables: Mapping[str, str]
    """Selections above the panels: labels, each with a metric that has it. All values are selected by default."""

    @property
    def panels(self) -> list[Panel]:
        return [panel for panels in self.rows.values() for panel in panels]


def dashboard_json(dashboard: Dashboard) -> dict[str, Any]:
    """Return the JSON of a dashboard. Users select the Prometheus data source on its page."""
    return {
        "uid": f"interpulse-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["interpulse", "pulsar"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_DATASOURCE_CHOICE, *_variables(dashboard.variables)]},
        "panels": list(_panels(dashboard)),
    }


def _variables(variables: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Return the variables. The options of each depend on the choices before it."""
    chosen: list[str] = []
    for variable, metric in variables.items():
        matchers = ",".join(f'{label}=~"${label}"' for label in chosen)
        query = f"label_values({metric}{{{matchers}}}, {variable})"
        yield {
            "name": variable,
            "label": variable.capitalize(),
            "type": "query",
            "datasource": _DATASOURCE,
            "query": {"query": query, "refId": variable},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }
        chosen.append(variable)


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    numbers, top = count(1), 0
    for title, row in dashboard.rows.items():
        place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        yield {"id": next(numbers), "type": "row", "title": title, "gridPos": place, "panels": []}
        placed, top = _placed(row, top + 1)
        for panel, place in placed:
            yield {"id": next(numbers), "gridPos": place, **_panel_json(panel)}


def _placed(panels: tuple[Panel, ...], top: int) -> tuple[list[tuple[Panel, dict[str, int]]], int]:
    """Lay out the panels of a row from left to right. Return them with the position of the next row."""
    placed: list[tuple[Panel, dict[str, int]]] = []
    left = height = 0
    for panel in panels:
        wide, high = _NUMBER if panel.number else _CHART
        if left + wide > _WIDTH:
            left, top, height = 0, top + height, 0
        placed.append((panel, {"x": left, "y": top, "w": wide, "h": high}))
        left, height = left + wide, max(height, high)
    return placed, top + height


def _panel_json(panel: Panel) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "title": panel.title,
        "description": panel.about,
        "type": "stat" if panel.number else "timeseries",
        "datasource": _DATASOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _DATASOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for index, query in enumerate(panel.queries)
        ],
    }
    if not panel.number:
        shape["options"] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return shape
