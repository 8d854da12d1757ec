"""Brokers of ours that answer REST calls: one, or two clusters."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call


@pytest.fixture
async def east() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="east")) as broker:
        yield broker


@pytest.fixture
async def west() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="west")) as broker:
        yield broker


@pytest.fixture
async def broker() -> AsyncIterator[RestBroker]:
    """A broker of cluster ``standalone`` that answers REST calls."""
    async with rest_broker() as started:
        yield started


@pytest.fixture
async def demo_namespace(broker: RestBroker) -> None:
    """The namespace ``demo/a`` on that broker."""
    await call(broker.web_url, "PUT", "tenants/demo", {"allowedClusters": ["standalone"]})
    await call(broker.web_url, "PUT", "namespaces/demo/a")
