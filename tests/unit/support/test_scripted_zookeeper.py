"""The scripted ZooKeeper where it has to be like a real ensemble: sessions, several servers, late servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.connection import Connection
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.protocol import Reply, WatchEvent
from interpulse.storage.zookeeper.records import GET, NEW_SESSION, ConnectRequest, ConnectResponse, Read
from interpulse.storage.zookeeper.session import Server, SessionEvent, boot_clock, parse_servers
from tests.support import scripted_zookeeper as scripted
from tests.support.scripted_zookeeper import ScriptedZooKeeper, ZooKeeperServer, scripted_zookeeper
from tests.support.waiting import eventually

Connect = Callable[[str], Awaitable[ZooKeeperClient]]


@pytest.fixture
async def zookeeper(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedZooKeeper]:
    """One that ends the sessions of silent clients."""
    monkeypatch.setattr(scripted, "_TICK_S", 0.01)
    async with scripted_zookeeper(ends_sessions=True) as running:
        yield running


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """`await connect(servers)`: a client, closed at the end."""
    async with AsyncExitStack() as clients:

        async def open_client(servers: str) -> ZooKeeperClient:
            client = await ZooKeeperClient.connect(servers, LinkConfig(session_timeout_ms=20_000))
            clients.push_async_callback(client.close)
            return client

        yield open_client


class Raw:
    """A connection that sends no pings and does not connect again."""

    def __init__(self) -> None:
        self.errors: list[int] = []
        self.connection: Connection
        self.session: ConnectResponse

    async def open(self, address: str, timeout_ms: int, session: ConnectResponse | None = None) -> Raw:
        def on_reply(reply: Reply) -> None:
            self.errors.append(reply.error)

        (server,) = parse_servers(address).servers
        self.connection = await Connection.open(Server(*server), on_reply, lambda event: None, boot_clock)
        session_id, password = (session.session_id, session.password) if session else (0, NEW_SESSION)
        request = ConnectRequest(0, 0, timeout_ms, session_id, password, read_only=False)
        self.session = await self.connection.begin(request)
        return self

    def ask(self) -> None:
        self.connection.send(GET, GET.request.encode(Read("/")))


async def test_session_when_its_client_is_silent_then_ends_with_its_nodes(
    zookeeper: ScriptedZooKeeper, connect: Connect
) -> None:
    servers = await zookeeper.listen()
    client = await connect(servers)
    silent = await Raw().open(servers, 100)
    zookeeper.nodes["/"].children.add("mine")
    zookeeper.nodes["/mine"] = scripted.Znode(b"", 1, 1, owner=silent.session.session_id)
    seen: list[WatchEvent] = []
    client.on_watch_event(seen.append)
    await client.watch("/")
    await eventually(lambda: silent.session.session_id not in zookeeper.sessions)
    await silent.connection.lost
    assert await client.exists("/mine") is None
    assert [event.path for event in seen] == ["/mine"]
    again = await Raw().open(servers, 100, silent.session)
    assert again.session.session_id == 0, "it is told that the session is over"
    assert client.session.id in zookeeper.sessions


async def test_session_when_its_client_goes_to_another_server_then_the_old_connection_is_refused(
    zookeeper: ScriptedZooKeeper,
) -> None:
    first = await Raw().open(await zookeeper.listen(), 20_000)
    second = await Raw().open(await zookeeper.listen(), 20_000, first.session)
    assert second.session.session_id == first.session.session_id
    first.ask()
    await first.connection.lost
    assert first.errors == []
    second.ask()
    await eventually(lambda: second.errors == [0])


async def test_client_when_its_server_is_killed_then_keeps_its_session_at_another(
    zookeeper: ScriptedZooKeeper, connect: Connect
) -> None:
    servers = [await zookeeper.start_server() for _ in range(2)]
    client = await connect(",".join(server.address for server in servers))
    await client.create("/mine", ephemeral=True)
    session_id, events = client.session.id, list[SessionEvent]()
    client.on_session(events.append)
    (used,) = (server for server in servers if server.connections)
    await used.stop()
    await eventually(lambda: SessionEvent.RESUMED in events)
    assert client.session.id == session_id
    assert await client.exists("/mine") is not None


async def test_request_when_its_session_is_over_then_the_error_says_so(zookeeper: ScriptedZooKeeper) -> None:
    client = await Raw().open(await zookeeper.listen(), 20_000)
    del zookeeper.sessions[client.session.session_id]
    client.ask()
    await client.connection.lost
    assert client.errors == [-112]


async def test_sessions_when_no_server_runs_then_wait_for_one_and_get_their_whole_timeout(
    zookeeper: ScriptedZooKeeper,
) -> None:
    server = await zookeeper.start_server()
    client = await Raw().open(server.address, 20_000)
    await server.stop()
    session = zookeeper.sessions[client.session.session_id]
    session.deadline = 0.0  # long ago
    await zookeeper.start_server()
    zookeeper.end_overdue(asyncio.get_running_loop().time())
    assert client.session.session_id in zookeeper.sessions


@pytest.fixture
async def late(zookeeper: ScriptedZooKeeper) -> ZooKeeperServer:
    """A server that learns of changes an hour late."""
    server = await zookeeper.start_server()
    server.fall_behind(3600)
    return server


async def test_server_when_behind_then_reads_are_old_until_it_syncs(
    zookeeper: ScriptedZooKeeper, late: ZooKeeperServer, connect: Connect
) -> None:
    writer, reader = await connect(await zookeeper.listen()), await connect(late.address)
    seen: list[WatchEvent] = []
    reader.on_watch_event(seen.append)
    await reader.watch("/")
    await writer.create("/a")
    assert await reader.exists("/a") is None
    assert await reader.get_many(["/a"]) == [None]
    assert (await reader.children("/")).names == []
    assert seen == []
    await reader.sync("/")
    assert [event.path for event in seen] == ["/a"]
    assert await reader.exists("/a") is not None


async def test_server_when_behind_and_writing_then_has_caught_up_with_its_own_write(
    zookeeper: ScriptedZooKeeper, late: ZooKeeperServer, connect: Connect
) -> None:
    writer, reader = await connect(await zookeeper.listen()), await connect(late.address)
    await writer.create("/a", b"1")
    await reader.create("/b")
    assert (await reader.get("/a")).value == b"1"
    await writer.delete("/a")
    late.fall_behind(0)
    assert await reader.exists("/a") is None


async def test_server_when_a_little_behind_then_reports_the_change_in_time(
    zookeeper: ScriptedZooKeeper, late: ZooKeeperServer, connect: Connect
) -> None:
    late.fall_behind(0.05)
    writer, reader = await connect(await zookeeper.listen()), await connect(late.address)
    seen: list[WatchEvent] = []
    reader.on_watch_event(seen.append)
    await reader.watch("/")
    await writer.create("/a")
    await eventually(lambda: [event.path for event in seen] == ["/a"])
    assert await reader.exists("/a") is not None


async def test_report_when_lost_then_with_its_connection(zookeeper: ScriptedZooKeeper, connect: Connect) -> None:
    writer, watcher = await connect(await zookeeper.listen()), await connect(await zookeeper.listen())
    seen, events = list[WatchEvent](), list[SessionEvent]()
    watcher.on_watch_event(seen.append)
    watcher.on_session(events.append)
    await watcher.watch("/")
    zookeeper.losing_events = 1
    await writer.create("/a")
    await eventually(lambda: SessionEvent.RESUMED in events)
    assert seen == []
    await writer.create("/b")
    await eventually(lambda: [event.path for event in seen] == ["/b"])


def test_servers_when_in_different_event_loops_then_reach_each_other_through_them() -> None:
    zookeeper = ScriptedZooKeeper()
    here, there = asyncio.new_event_loop(), asyncio.new_event_loop()
    watcher = here.run_until_complete(_connected(zookeeper))
    writer = there.run_until_complete(_connected(zookeeper))
    seen: list[WatchEvent] = []
    watcher.on_watch_event(seen.append)
    here.run_until_complete(watcher.watch("/"))
    there.run_until_complete(writer.create("/a"))
    assert seen == []
    here.run_until_complete(eventually(lambda: [event.path for event in seen] == ["/a"]))
    for loop, client, server in zip((here, there), (watcher, writer), list(zookeeper.servers), strict=True):
        loop.run_until_complete(client.close())
        loop.run_until_complete(server.stop())
        loop.close()


async def _connected(zookeeper: ScriptedZooKeeper) -> ZooKeeperClient:
    return await ZooKeeperClient.connect(await zookeeper.listen())
