"""A real Prometheus scrapes brokers, and answers what every panel and every alert asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.cli.monitoring.alerts import ALERTS
from interpulse.cli.monitoring.dashboards import DASHBOARDS
from interpulse.testing import InProcessBroker
from interpulse.testing.cluster_pair import ClusterPair
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB
from tests.interop.prometheus import Prometheus, check_rules, running_prometheus
from tests.support.waiting import until
from tests.support.watched_brokers import keep_busy, show_replication, show_tokens

pytestmark = [pytest.mark.interop, pytest.mark.slow]

EMPTY: Final = {"topics: Slow writes": "writes are quick"}
FIRING: Final = {
    "InterpulseReplicationLag",
    "InterpulseTokensExpired",
    "InterpulseTokensRunningOut",
    "InterpulseTopicsHeld",
}
SILENT: Final = {"InterpulseBrokerDown", "InterpulseDiskFull", "InterpulseJournalFailed"}
"""The others may be true of a machine that is busy with tests."""


def install(directory: Path, *brokers: InProcessBroker) -> Path:
    """What the command writes, scraped and evaluated each second."""
    targets = [part for broker in brokers for part in ("-t", urlsplit(broker.web_url).netloc)]
    result = CliRunner().invoke(main, ["dashboards", "install", "-d", str(directory), *targets])
    assert result.exit_code == 0, result.output
    path = directory / "prometheus.yml"
    path.write_text(path.read_text().replace('"15s"', '"1s"'))
    return path


def unanswered(prometheus: Prometheus) -> set[str]:
    """The panels with an expression that has no result; dashboards show everything."""
    empty = set()
    for name, dashboard in DASHBOARDS.items():
        for panel in dashboard.panels:
            for query in panel.queries:
                expression = query.expression
                for label in dashboard.variables:
                    expression = expression.replace(f"${label}", ".*")
                if not prometheus.query(expression):
                    empty.add(f"{name}: {panel.title}")
    return empty


async def test_every_panel_and_every_alert_has_an_answer(pulsar_cluster_pair: ClusterPair, tmp_path: Path) -> None:
    east = pulsar_cluster_pair.east
    await show_replication(pulsar_cluster_pair)
    with InProcessBroker(tmp_path / "guarded", access.settings(tmp_path) | NO_JOB) as guarded:
        await show_tokens(guarded)
        configuration = install(tmp_path / "monitoring", east, guarded)
        check_rules(tmp_path / "monitoring" / "interpulse-alerts.yml")
        with running_prometheus(configuration, tmp_path) as prometheus:
            await asyncio.to_thread(until, lambda: len(prometheus.query("pulsar_version_info")) == 2)
            await show_tokens(guarded)  # counters have to grow to be seen
            await keep_busy(east)
            await asyncio.to_thread(until, lambda: unanswered(prometheus) <= EMPTY.keys())
            assert {rule["name"] for rule in prometheus.rules()} == {alert.name for alert in ALERTS}
            await asyncio.to_thread(until, lambda: firing(prometheus) >= FIRING)
            assert not firing(prometheus) & SILENT


def firing(prometheus: Prometheus) -> set[str]:
    return {alert.name for alert in ALERTS if prometheus.query(alert.expression)}
