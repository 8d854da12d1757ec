from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from interpulse.storage.api import Put
from interpulse.storage.sessions import SessionState
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper
from tests.support.waiting import eventually

CONNECTED, SUSPENDED, LOST = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.LOST


@asynccontextmanager
async def opened(timeout_ms: int = 30_000) -> AsyncIterator[tuple[ScriptedZooKeeper, ZooKeeperMetadataStore]]:
    async with scripted_zookeeper() as zookeeper:
        client = await ZooKeeperClient.connect(await zookeeper.listen(), LinkConfig(session_timeout_ms=timeout_ms))
        store = await ZooKeeperMetadataStore.open(client, watched=["/t"])
        try:
            yield zookeeper, store
        finally:
            await store.close()


async def test_session_when_the_connection_breaks_then_suspended_and_connected_with_the_same_id() -> None:
    async with opened() as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        await store.commit([Put("/t/lock", b"", ephemeral=True)])
        before = store.session.id
        zookeeper.shut = True
        zookeeper.cut()
        await eventually(lambda: told == [SUSPENDED])
        assert store.session.state is SUSPENDED
        assert store.session.holds()
        zookeeper.shut = False
        await eventually(lambda: told == [SUSPENDED, CONNECTED])
        assert store.session.id == before
        assert await store.get("/t/lock") is not None


async def test_session_when_no_server_answers_in_time_then_lost_by_the_clock() -> None:
    async with opened(timeout_ms=300) as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        zookeeper.shut = True
        zookeeper.cut()
        await eventually(lambda: told == [SUSPENDED, LOST])
        assert store.session.state is LOST
        assert not store.session.holds()
        zookeeper.shut = False
        await eventually(lambda: told == [SUSPENDED, LOST, CONNECTED])
        assert store.session.holds()


async def test_session_when_the_server_ended_it_then_lost_and_another_id() -> None:
    async with opened() as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        before = store.session.id
        zookeeper.expire(before)
        await eventually(lambda: told == [SUSPENDED, LOST, CONNECTED])
        assert store.session.id != before
        assert store.session.holds()


async def test_session_when_the_servers_become_unusable_then_reported_as_lost() -> None:
    async with opened() as (zookeeper, store):
        told: list[SessionState] = []
        store.session.on_change(told.append)
        zookeeper.refusing["watch again"] = -6
        zookeeper.cut()
        await eventually(lambda: told == [SUSPENDED, LOST])
        assert store.session.state is LOST


async def test_sequential_when_the_answer_is_lost_then_another_number() -> None:
    async with opened() as (zookeeper, store):
        await store.create_sequential("/t/n-")
        zookeeper.losing["create"] = 1
        made = await store.create_sequential("/t/n-")
        assert made.removeprefix("/t/").removeprefix("n-") == "0000000002"
        assert len(await store.children("/t")) == 3
