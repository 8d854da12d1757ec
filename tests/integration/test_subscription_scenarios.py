"""What subscriptions do, on our broker."""

from __future__ import annotations

import pytest

from interpulse.testing.broker import InProcessBroker
from tests.scenarios.subscriptions import SCENARIOS, Addresses, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.slow
def test_subscriptions_of_our_broker(scenario: Scenario, pulsar_broker: InProcessBroker) -> None:
    scenario(Addresses(pulsar_broker.service_url, pulsar_broker.web_url))
