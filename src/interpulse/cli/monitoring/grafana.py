"""Dashboards as the JSON that Grafana imports."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from interpulse.cli.monitoring.panels import Dashboard, Panel, Row, Variable

_SCHEMA_VERSION: Final = 38  # of Grafana 10; later ones bring it up to date by themselves
_WIDTH: Final = 24
_CHART: Final = (8, 8)  # width and height in units of the grid
_NUMBER: Final = (6, 4)
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


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
        "templating": {"list": [_datasource(), *_variables(dashboard.variables)]},
        "panels": list(_panels(dashboard)),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _variables(variables: tuple[Variable, ...]) -> Iterator[dict[str, Any]]:
    """Return the variables. The options of each depend on the choices before it."""
    chosen: list[str] = []
    for variable in variables:
        matchers = ",".join(f'{label}=~"${label}"' for label in chosen)
        query = f"label_values({variable.metric}{{{matchers}}}, {variable.label})"
        yield {
            "name": variable.label,
            "label": variable.label.capitalize(),
            "type": "query",
            "datasource": _DATASOURCE,
            "query": {"query": query, "refId": variable.label},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }
        chosen.append(variable.label)


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    numbers, top = count(1), 0
    for row in dashboard.rows:
        place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        yield {"id": next(numbers), "type": "row", "title": row.title, "gridPos": place, "panels": []}
        placed, top = _placed(row, top + 1)
        for panel, place in placed:
            yield {"id": next(numbers), "gridPos": place, **_panel_json(panel)}


def _placed(row: Row, top: int) -> tuple[list[tuple[Panel, dict[str, int]]], int]:
    """Lay out the panels of a row from left to right. Return them with the position of the next row."""
    placed: list[tuple[Panel, dict[str, int]]] = []
    left = height = 0
    for panel in row.panels:
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
