"""What subscriptions do, on a real Pulsar."""

from __future__ import annotations

import pytest

from tests.interop.real_pulsar import Address
from tests.scenarios.subscriptions import SCENARIOS, Addresses, Scenario

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_subscriptions_of_a_real_pulsar(scenario: Scenario, real_pulsar: Address) -> None:
    scenario(Addresses(real_pulsar.service_url, real_pulsar.web_url))
