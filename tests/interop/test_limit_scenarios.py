"""What clients meet at the limits that policies set, on a real Pulsar."""

from __future__ import annotations

import pytest

from tests.interop.conftest import RealPulsarFactory
from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster
from tests.scenarios.limits import QUOTA_SCENARIOS, QUOTA_SETTINGS, SCENARIOS, Scenario

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_limits_of_a_real_pulsar(scenario: Scenario, real_pulsar: Address) -> None:
    scenario(Cluster(real_pulsar.service_url, real_pulsar.web_url))


def test_backlog_quotas_of_a_real_pulsar(start_real_pulsar: RealPulsarFactory) -> None:
    """One cluster for all: the period of its checks is a setting, and so is that it looks at single messages."""
    pulsar = start_real_pulsar(settings={**QUOTA_SETTINGS, "preciseTimeBasedBacklogQuotaCheck": "true"})
    for scenario in QUOTA_SCENARIOS:
        scenario(Cluster(pulsar.service_url, pulsar.web_url))
