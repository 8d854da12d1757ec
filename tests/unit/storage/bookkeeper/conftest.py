"""A ZooKeeper and bookies in the process, and clients of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import fields
from typing import Any

import pytest

from interpulse.storage.bookkeeper.client import BookKeeperClient, BookKeeperConfig
from interpulse.storage.bookkeeper.connection import ConnectionConfig
from interpulse.storage.bookkeeper.replica import ReplicaConfig
from interpulse.storage.bookkeeper.writer import WriterConfig
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.scripted_bookie import ScriptedBookies, scripted_bookies
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper

Connect = Callable[..., Awaitable[BookKeeperClient]]


@pytest.fixture
async def zookeeper() -> AsyncIterator[ScriptedZooKeeper]:
    async with scripted_zookeeper() as started:
        await started.listen()
        yield started


@pytest.fixture
async def nodes(zookeeper: ScriptedZooKeeper) -> AsyncIterator[ZooKeeperClient]:
    client = await ZooKeeperClient.connect(await zookeeper.listen())
    yield client
    await client.close()


@pytest.fixture
async def bookies(nodes: ZooKeeperClient) -> AsyncIterator[ScriptedBookies]:
    """Three of them."""
    async with scripted_bookies(nodes, 3) as started:
        yield started


@pytest.fixture
async def connect(nodes: ZooKeeperClient, bookies: ScriptedBookies) -> AsyncIterator[Connect]:
    """`await connect(**settings)`: a client with these settings of any of its parts, closed at the end."""
    async with AsyncExitStack() as clients:

        async def open_client(**settings: Any) -> BookKeeperClient:
            client = BookKeeperClient(nodes, config_of(**settings))
            clients.push_async_callback(client.close)
            return client

        yield open_client


def config_of(**settings: Any) -> BookKeeperConfig:
    """The settings, each in its part."""

    def of(part: type) -> dict[str, Any]:
        return {each.name: settings[each.name] for each in fields(part) if each.name in settings}

    writer = WriterConfig(**of(WriterConfig), replica=ReplicaConfig(**of(ReplicaConfig)))
    return BookKeeperConfig(**of(BookKeeperConfig), connection=ConnectionConfig(**of(ConnectionConfig)), writer=writer)
