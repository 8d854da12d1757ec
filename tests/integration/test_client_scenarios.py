"""Our client against our broker."""

import pytest

import tests.scenarios.client_admin  # adds its scenarios to the list
import tests.scenarios.client_compaction
import tests.scenarios.client_consuming  # noqa: F401
from interpulse.testing.broker import InProcessBroker
from tests.scenarios.client import SCENARIOS, Cluster, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_client_on_our_broker(scenario: Scenario, pulsar_broker: InProcessBroker) -> None:
    await scenario(Cluster(pulsar_broker.service_url, pulsar_broker.web_url))
