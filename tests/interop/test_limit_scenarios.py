"""What clients meet at the limits that policies set, on a real Pulsar."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.conftest import RealPulsarFactory
from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster
from tests.scenarios.limits import PERIODIC_SCENARIOS, PERIODS, SCENARIOS, Scenario

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PERIODS_OF_REAL = {
    "preciseTimeBasedBacklogQuotaCheck": "true",  # it looks at single messages
    "statsUpdateInitialDelayInSecs": "1",
    "statsUpdateFrequencyInSecs": "5",  # the rates of producers, else once a minute
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_limits_of_a_real_pulsar(scenario: Scenario, real_pulsar: Address) -> None:
    scenario(Cluster(real_pulsar.service_url, real_pulsar.web_url))


def test_limits_of_a_real_pulsar_that_are_checked_from_time_to_time(start_real_pulsar: RealPulsarFactory) -> None:
    """One cluster for all, at once: they wait for its checks, whose periods are settings."""
    pulsar = start_real_pulsar(settings={**PERIODS, **PERIODS_OF_REAL})
    cluster = Cluster(pulsar.service_url, pulsar.web_url)
    with ThreadPoolExecutor(len(PERIODIC_SCENARIOS)) as players:
        for played in [players.submit(scenario, cluster) for scenario in PERIODIC_SCENARIOS]:
            played.result()
