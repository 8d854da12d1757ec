"""A ZooKeeper in the process, with a session of a client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper


@pytest.fixture
async def zookeeper() -> AsyncIterator[ScriptedZooKeeper]:
    async with scripted_zookeeper() as started:
        yield started


@pytest.fixture
async def nodes(zookeeper: ScriptedZooKeeper) -> AsyncIterator[ZooKeeperClient]:
    client = await ZooKeeperClient.connect(await zookeeper.listen())
    yield client
    await client.close()
