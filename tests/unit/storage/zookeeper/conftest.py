"""ZooKeepers to test with: scripted ones, and a real one that is started once per run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.session import SessionEvent
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper

Connect = Callable[..., Awaitable[ZooKeeperClient]]


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedZooKeeper]:
    async with scripted_zookeeper() as zookeeper:
        yield zookeeper


@pytest.fixture
async def connect(scripted: ScriptedZooKeeper) -> AsyncIterator[Connect]:
    """`await connect(path, **LinkConfig)`: a client of a server of its own, closed at the end."""
    async with AsyncExitStack() as clients:

        async def open_client(path: str = "", servers: str | None = None, **config: float) -> ZooKeeperClient:
            where = servers or await scripted.listen()
            client = await ZooKeeperClient.connect(where + path, LinkConfig(**config))  # type: ignore[arg-type]
            clients.push_async_callback(client.close)
            return client

        yield open_client


class Events:
    """What a client tells of its session."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self.seen: list[SessionEvent] = []
        client.on_session(self.seen.append)
