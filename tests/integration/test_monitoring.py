"""Every expression of dashboards and alerts asks for metrics, and labels, that a broker has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from interpulse.cli.monitoring.alerts import ALERTS
from interpulse.cli.monitoring.dashboards import DASHBOARDS
from interpulse.testing import InProcessBroker
from interpulse.testing.cluster_pair import ClusterPair
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB
from tests.support.rest_client import call
from tests.support.watched_brokers import show_replication, show_tokens

PROMETHEUS_OWN = {"up": {"job", "instance"}}
ADDED_WHEN_SCRAPED = {"instance", "job"}
WORDS = {"and", "by", "or", "time", "unless", "without"}
STRING = r'"(?:[^"\\]|\\.)*"'


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics of an expression, with the labels that they are chosen by."""
    bare = re.sub(r"\b(by|without)\s*\([^)]*\)", "", expression)
    bare = re.sub(r"\[[0-9a-z]+\]", "", bare)
    for name, matchers in re.findall(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?!\s*\(|\w)(\{[^}]*\})?", re.sub(STRING, '""', bare)):
        if name not in WORDS and not re.search(rf"\{{[^}}]*\b{name}\s*[=!]~?", bare):
            yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|=|!=)", matchers))


EXPRESSIONS = [
    *(
        pytest.param(query.expression, id=f"{name}: {panel.title}")
        for name, dashboard in DASHBOARDS.items()
        for panel in dashboard.panels
        for query in panel.queries
    ),
    *(pytest.param(each.expression, id=each.name) for each in ALERTS),
]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("up", [("up", set())]),
        ('sum by (a, b) (rate(x_total{l=~"$v",m!="n{"}[5m])) > 0', [("x_total", {"l", "m"})]),
        ('topk(10, time() - (x{a="y"} > 0) / 1000)', [("x", {"a"})]),
        ("(x > 0) and (y == 0)", [("x", set()), ("y", set())]),
    ],
)
def test_names_of_an_expression_are_found(expression: str, found: list[tuple[str, set[str]]]) -> None:
    assert list(asked(expression)) == found


async def test_expressions_ask_for_what_brokers_show(pulsar_cluster_pair: ClusterPair, tmp_path: Path) -> None:
    await show_replication(pulsar_cluster_pair)
    shown = await labels_of(pulsar_cluster_pair.east.web_url)
    with InProcessBroker(tmp_path / "guarded", access.settings(tmp_path) | NO_JOB) as guarded:
        await show_tokens(guarded)
        for name, labels in (await labels_of(guarded.web_url)).items():
            shown.setdefault(name, labels)
    wrong = {
        (expression, name): labels
        for (expression,) in (each.values for each in EXPRESSIONS)
        for name, labels in asked(str(expression))
        if not labels <= shown.get(name, PROMETHEUS_OWN.get(name, set())) | ADDED_WHEN_SCRAPED
        or name not in shown | PROMETHEUS_OWN
    }
    assert not wrong
    for dashboard in DASHBOARDS.values():
        for label, metric in dashboard.variables.items():
            assert label in shown[metric] | ADDED_WHEN_SCRAPED, label


async def labels_of(web_url: str) -> dict[str, set[str]]:
    """The labels of every sample of one scrape."""
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families((await call(web_url, "GET", "/metrics/")).body.decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels
