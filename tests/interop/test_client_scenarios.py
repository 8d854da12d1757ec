"""Our client against a real Pulsar."""

import pytest

from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster, Scenario
from tests.scenarios.client_all import SCENARIOS

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_client_on_a_real_pulsar(scenario: Scenario, real_pulsar: Address) -> None:
    await scenario(Cluster(real_pulsar.service_url, real_pulsar.web_url))
