"""Two clusters of ours, for whoever asks for them by name."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interpulse.broker.config import BrokerConfig
from tests.integration.rest_broker import RestBroker, rest_broker


@pytest.fixture
async def east() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="east")) as broker:
        yield broker


@pytest.fixture
async def west() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="west")) as broker:
        yield broker
