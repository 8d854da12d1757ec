"""What clients meet at the limits that policies set, on our broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.testing.broker import InProcessBroker
from tests.scenarios.client import Cluster
from tests.scenarios.limits import LONG_SCENARIOS, PERIODIC_SCENARIOS, PERIODS, SCENARIOS, Scenario

ALL = [*SCENARIOS, *PERIODIC_SCENARIOS]
MARKED = [pytest.param(each, marks=[pytest.mark.slow] if each in LONG_SCENARIOS else []) for each in ALL]


@pytest.mark.parametrize("scenario", MARKED, ids=[each.__name__ for each in ALL])
def test_limits_of_our_broker(scenario: Scenario, tmp_path: Path) -> None:
    with InProcessBroker(tmp_path, PERIODS) as broker:
        scenario(Cluster(broker.service_url, broker.web_url))
