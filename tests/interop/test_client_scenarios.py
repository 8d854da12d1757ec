"""Our client against a real Pulsar."""

import pytest

import tests.scenarios.client_admin  # adds its scenarios to the list
import tests.scenarios.client_compaction
import tests.scenarios.client_consuming  # noqa: F401
from tests.interop.real_pulsar import Address
from tests.scenarios.client import SCENARIOS, Cluster, Scenario

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_client_on_a_real_pulsar(scenario: Scenario, real_pulsar: Address) -> None:
    await scenario(Cluster(real_pulsar.service_url, real_pulsar.web_url))
