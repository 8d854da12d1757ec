"""Our client against our broker."""

import pytest

from interpulse.testing.broker import InProcessBroker
from tests.scenarios.client import Cluster, Scenario
from tests.scenarios.client_all import SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_client_on_our_broker(scenario: Scenario, pulsar_broker: InProcessBroker) -> None:
    await scenario(Cluster(pulsar_broker.service_url, pulsar_broker.web_url))
