"""Dashboards as Grafana reads them."""

from __future__ import annotations

from itertools import combinations

import pytest

from interpulse.cli.monitoring.dashboards import DASHBOARDS
from interpulse.cli.monitoring.grafana import Dashboard, Panel, Query, dashboard_json

ONE = Dashboard(
    "one",
    "One",
    {
        "first": (Panel("n", "short", (Query("a", "x"),), "told", number=True), Panel("c", "s", (Query("b"),))),
        "second": tuple(Panel(f"c{number}", "s", (Query("b"), Query("c"))) for number in range(4)),
    },
    {"cluster": "m", "topic": "n"},
)


def test_panels_stand_side_by_side_and_rows_below_each_other() -> None:
    panels = dashboard_json(ONE)["panels"]
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in panels]
    assert places == [
        (0, 0, 24, 1),
        (0, 1, 6, 4),
        (6, 1, 8, 8),
        (0, 9, 24, 1),
        (0, 10, 8, 8),
        (8, 10, 8, 8),
        (16, 10, 8, 8),
        (0, 18, 8, 8),
    ]
    assert [panel["type"] for panel in panels[:3]] == ["row", "stat", "timeseries"]
    assert (panels[1]["description"], panels[1]["targets"][0]["expr"]) == ("told", "a")
    assert [target["refId"] for target in panels[4]["targets"]] == ["A", "B"]


def test_choices_offer_what_the_choices_before_them_leave() -> None:
    variables = dashboard_json(ONE)["templating"]["list"]
    assert [variable["name"] for variable in variables] == ["datasource", "cluster", "topic"]
    assert [variable["definition"] for variable in variables[1:]] == [
        "label_values(m{}, cluster)",
        'label_values(n{cluster=~"$cluster"}, topic)',
    ]


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=list(DASHBOARDS))
def test_dashboards_have_no_panel_twice_and_none_over_another(dashboard: Dashboard) -> None:
    panels = dashboard_json(dashboard)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel.title for panel in dashboard.panels}) == len(dashboard.panels)
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        apart = [
            left[place] + left[size] <= right[place]
            for left, right in ((one, other), (other, one))
            for place, size in (("x", "w"), ("y", "h"))
        ]
        assert any(apart), (one, other)
