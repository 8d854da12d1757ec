"""What the client promises, on a scripted ZooKeeper with faults."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from interpulse.storage.api import CommitTooLarge
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    NotConnected,
    NotEmpty,
    OutcomeUnknown,
    Refused,
    SessionExpired,
    StepsRefused,
    Unusable,
    ZooKeeperError,
)
from interpulse.storage.zookeeper.link import Link, LinkConfig
from interpulse.storage.zookeeper.protocol import WatchEvent
from interpulse.storage.zookeeper.records import CHECK, CREATE, DELETE, SET, Check, Create, Delete, Set, Step
from interpulse.storage.zookeeper.session import SessionEvent, parse_servers
from tests.support.scripted_zookeeper import ScriptedZooKeeper
from tests.support.waiting import eventually
from tests.unit.storage.zookeeper.conftest import Connect, Events


async def test_read_when_the_connection_breaks_then_it_is_asked_again_in_the_same_session(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    await client.create("/a", b"1")
    events, session_id = Events(client), client.session.id
    scripted.losing["get"] = 2
    assert (await client.get("/a")).value == b"1"
    assert client.session.id == session_id
    assert events.seen == [SessionEvent.DISCONNECTED, SessionEvent.RESUMED] * 2


async def test_write_when_the_connection_breaks_before_the_answer_then_its_outcome_is_unknown(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    await client.create("/a", b"1")
    scripted.losing["set"] = 1
    with pytest.raises(OutcomeUnknown, match=r"server 127\.0\.0\.1:\d+ ended before it answered: writing /a"):
        await client.set("/a", b"2")
    assert (await client.get("/a")).value == b"2"
    scripted.dropping["set"] = 1
    with pytest.raises(OutcomeUnknown):
        await client.set("/a", b"3")
    assert (await client.get("/a")).value == b"2"


async def test_write_when_there_is_no_connection_then_waits_for_one(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    scripted.shut = True
    scripted.cut()
    await eventually(lambda: not client.connected)
    created = asyncio.create_task(client.create("/a"))
    await asyncio.sleep(0)
    scripted.shut = False
    assert (await created).path == "/a"
    assert scripted.requests.count("create") == 1


async def test_requests_when_no_server_comes_back_then_fail_after_the_operation_timeout(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect(operation_timeout_s=0.2)
    scripted.shut = True
    scripted.cut()
    await eventually(lambda: not client.connected)
    with pytest.raises(NotConnected, match=rf"{client.servers} answered for 0\.2 s, so this was not done: creating /a"):
        await client.create("/a")
    with pytest.raises(NotConnected):
        await client.get("/a")
    scripted.shut = False
    await eventually(lambda: client.connected)
    assert await client.exists("/a") is None


async def test_session_when_expired_then_reported_and_renewed(scripted: ScriptedZooKeeper, connect: Connect) -> None:
    client = await connect()
    await client.create("/mine", ephemeral=True)
    events, old = Events(client), client.session
    scripted.shut = True
    scripted.cut()
    await eventually(lambda: not client.connected)
    write = asyncio.create_task(client.create("/late"))
    read = asyncio.create_task(client.exists("/mine"))
    await asyncio.sleep(0)
    scripted.expire(old.id)
    scripted.shut = False
    with pytest.raises(SessionExpired, match=f"ended session 0x{old.id:x} before it answered: creating /late"):
        await write
    assert await read is None
    assert events.seen == [SessionEvent.DISCONNECTED, SessionEvent.EXPIRED, SessionEvent.RENEWED]
    assert not old.holds()
    assert client.session.holds()
    assert client.session.id != old.id
    await client.create("/late")


@pytest.mark.parametrize("reports_changes", [False, True])
async def test_session_when_the_server_is_silent_then_suspect_and_another_server_is_asked(
    scripted: ScriptedZooKeeper, connect: Connect, reports_changes: bool
) -> None:
    scripted.session_timeout_ms = 300
    servers = f"{await scripted.listen()},{await scripted.listen()}"
    client = await connect(servers=servers, session_timeout_ms=300)
    await client.create("/a")
    await client.watch("/a")
    events, session = Events(client), client.session
    assert session.holds()
    scripted.silent = True

    def is_suspect() -> bool:
        if reports_changes:
            scripted.write(SET, Set("/a", b""), 0)
        return SessionEvent.SUSPECT in events.seen

    await eventually(is_suspect)
    assert not session.holds()
    scripted.silent = False
    await eventually(lambda: SessionEvent.RESUMED in events.seen)
    assert client.session is session
    assert session.holds()


async def test_connect_when_a_starting_server_never_answers_then_tried_again_long_before_the_session_ends(
    scripted: ScriptedZooKeeper, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(session_timeout_ms=240_000)
    session_id = client.session.id
    monkeypatch.setattr("interpulse.storage.zookeeper.link._CONNECT_SECONDS_MAX", 0.1)
    scripted.silent = True
    scripted.cut()
    await eventually(lambda: not client.connected and scripted.connection_count == 1)
    scripted.silent = False  # that connection stays without an answer
    await eventually(lambda: client.connected)
    assert client.session.id == session_id


async def test_session_when_idle_then_pings_keep_it(scripted: ScriptedZooKeeper, connect: Connect) -> None:
    scripted.session_timeout_ms = 300
    client = await connect(session_timeout_ms=300)
    before = client.session.deadline
    await eventually(lambda: scripted.requests.count("ping") >= 2 and client.session.deadline > before)
    assert client.session.holds()


async def test_servers_when_one_is_away_then_the_next_is_asked(scripted: ScriptedZooKeeper, connect: Connect) -> None:
    alive = await scripted.listen()
    for _ in range(4):  # whichever comes first
        client = await connect(servers=f"127.0.0.1:1,{alive}")
        assert await client.exists("/a") is None


async def test_connect_when_no_server_answers_then_the_error_names_them_and_the_problem() -> None:
    with pytest.raises(
        NotConnected, match=r"127\.0\.0\.1:1 answered for 0\.2 s.*beginning a session \(127\.0\.0\.1:1: "
    ):
        await ZooKeeperClient.connect("127.0.0.1:1", LinkConfig(operation_timeout_s=0.2))


async def test_connect_when_the_server_speaks_another_protocol_then_the_error_says_so() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NotConnected, match="is this a ZooKeeper server"):
            await ZooKeeperClient.connect(f"127.0.0.1:{port}", LinkConfig(operation_timeout_s=0.2))


async def test_watch_when_the_server_is_older_than_3_6_then_unusable(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    scripted.refusing["watch"] = -6
    with pytest.raises(Unusable, match=r"ZooKeeper 3\.6 or newer is needed"):
        await client.watch("/")


async def test_watch_when_the_next_server_is_older_than_3_6_then_the_client_ends(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    await client.watch("/")
    scripted.refusing["watch again"] = -6
    scripted.cut()
    await eventually(lambda: not client.connected)
    with pytest.raises(Unusable, match=r"no recursive watches; 3\.6 or newer is needed"):
        await client.get("/")


async def test_session_when_a_callback_is_wrong_then_requests_fail_instead_of_waiting(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    session = client.session

    def fail(event: SessionEvent) -> None:
        raise LookupError(event.name)

    client.on_session(fail)
    scripted.cut()
    await eventually(lambda: session.over)
    with pytest.raises(ZooKeeperError, match=r"failed: LookupError\('DISCONNECTED'\)"):
        await client.get("/")


async def test_watch_when_connected_again_then_goes_on(scripted: ScriptedZooKeeper, connect: Connect) -> None:
    client = await connect("/root")
    other = await connect("/root")
    await other.create_parents("/a/b")
    seen: list[WatchEvent] = []
    client.on_watch_event(seen.append)
    await client.watch("/a")
    scripted.cut()
    await client.sync("/a")
    await other.create("/a/b", b"")
    await client.sync("/a")
    assert [event.path for event in seen] == ["/a/b"]
    scripted.expire(client.session.id)
    await client.sync("/a")
    await other.set("/a/b", b"2")
    await client.sync("/a")
    assert [event.path for event in seen] == ["/a/b", "/a/b"]


@pytest.mark.parametrize("code", [-118, -119], ids=["session moved", "read-only"])
async def test_write_when_the_server_is_the_wrong_one_then_asked_elsewhere(
    scripted: ScriptedZooKeeper, connect: Connect, code: int
) -> None:
    client = await connect()
    events = Events(client)
    scripted.refusing["create"] = code
    created = asyncio.create_task(client.create("/a"))
    await eventually(lambda: SessionEvent.DISCONNECTED in events.seen)
    del scripted.refusing["create"]
    assert (await created).path == "/a"


async def test_request_when_too_large_then_refused_and_the_connection_stays(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    events = Events(client)
    with pytest.raises(CommitTooLarge, match=r"exceed the limit of one ZooKeeper request, 921600: creating /a"):
        await client.create("/a", bytes(1_000_000))
    await client.create("/a", bytes(900_000))
    assert events.seen == []


async def test_requests_when_they_are_more_than_the_budget_then_wait_for_each_other(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect(pending_bytes_max=200)
    scripted.silent = True
    waiting = [asyncio.create_task(client.create(f"/a{number}", bytes(60))) for number in range(20)]
    await asyncio.sleep(0.05)
    assert len(client._link._sent) == 1
    waiting[0].cancel()
    waiting[5].cancel()
    scripted.silent = False
    scripted.cut()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [each for each in results if isinstance(each, Exception) and not isinstance(each, OutcomeUnknown)] == []
    assert sum(isinstance(each, asyncio.CancelledError) for each in results) == 2


async def test_close_when_the_session_lives_then_its_ephemeral_nodes_go(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client, other = await connect(), await connect()
    await client.create("/mine", ephemeral=True)
    await client.close()
    await client.close()
    assert await other.exists("/mine") is None
    assert len(scripted.sessions) == 1
    with pytest.raises(ZooKeeperError, match="is closed"):
        await client.get("/")


async def test_close_when_there_is_no_connection_then_what_waits_fails(
    scripted: ScriptedZooKeeper, connect: Connect
) -> None:
    client = await connect()
    scripted.shut = True
    scripted.cut()
    await eventually(lambda: not client.connected)
    waiting = asyncio.create_task(client.get("/"))
    await asyncio.sleep(0)
    await client.close()
    with pytest.raises(ZooKeeperError, match="is closed"):
        await waiting


async def test_session_when_time_passes_without_an_answer_then_no_longer_relied_on(scripted: ScriptedZooKeeper) -> None:
    now = 1000.0
    link = await Link.open(
        parse_servers(await scripted.listen()), LinkConfig(session_timeout_ms=10_000), clock=lambda: now
    )
    assert link.session.deadline == 1008
    now = 1007.9
    assert link.session.holds()
    now = 1008.0
    assert not link.session.holds()
    await link.close()


async def test_session_when_answered_again_after_a_pause_then_both_are_reported(scripted: ScriptedZooKeeper) -> None:
    now = 1000.0
    link = await Link.open(
        parse_servers(await scripted.listen()), LinkConfig(session_timeout_ms=10_000), clock=lambda: now
    )
    told: list[SessionEvent] = []
    link.session_events.add(told.append)
    now = 1007.0
    await link.watch("/a")
    assert not told
    now = 1015.0  # not relied on any more, and the connection stands
    assert not link.session.holds()
    await link.watch("/b")
    assert told == [SessionEvent.SUSPECT, SessionEvent.RESUMED]
    assert link.session.holds()
    await link.close()


@pytest.fixture
async def client(zookeeper_address: str) -> AsyncIterator[ZooKeeperClient]:
    opened = await ZooKeeperClient.connect(f"{zookeeper_address}/{uuid.uuid4()}")
    await opened.create_parents("/any")
    yield opened
    await opened.close()


async def test_node_when_created_written_and_deleted_then_read_as_it_is(client: ZooKeeperClient) -> None:
    assert await client.exists("/a") is None
    with pytest.raises(NoNode):
        await client.get("/a")
    made = await client.create("/a", b"1")
    assert (made.path, made.stat.version, made.stat.ephemeral_owner) == ("/a", 0, 0)
    with pytest.raises(NodeExists):
        await client.create("/a")
    written = await client.set("/a", b"", 0)
    assert written.version == 1
    assert written.mzxid > made.stat.mzxid
    assert await client.get("/a") == (b"", written)
    with pytest.raises(BadVersion, match="the node has another version"):
        await client.set("/a", b"3", 0)
    with pytest.raises(BadVersion):
        await client.delete("/a", 0)
    await client.delete("/a", 1)
    with pytest.raises(NoNode):
        await client.set("/a", b"")


async def test_node_when_recreated_then_its_version_starts_again(client: ZooKeeperClient) -> None:
    first = await client.create("/a")
    await client.delete("/a")
    second = await client.create("/a")
    assert (first.stat.version, second.stat.version) == (0, 0)
    assert second.stat.czxid > first.stat.czxid


async def test_children_when_nodes_nest_then_only_the_direct_ones(client: ZooKeeperClient) -> None:
    await client.create_parents("/a/b/c")
    await client.create_parents("/a/b/c")
    await client.create("/a/b/c")
    assert (await client.children("/a")).names == ["b"]
    assert (await client.children("/a")).stat.children == 1
    assert (await client.children("/a/b/c")).names == []
    with pytest.raises(NoNode):
        await client.children("/none")
    with pytest.raises(NotEmpty):
        await client.delete("/a/b")


async def test_node_when_sequential_then_numbers_rise_and_none_comes_twice(client: ZooKeeperClient) -> None:
    await client.create("/s")
    first = await client.create("/s/-", sequential=True, ephemeral=True)
    assert first.path == "/s/-0000000000"
    assert first.stat.ephemeral_owner == client.session.id
    await client.delete(first.path)
    second = await client.create("/s/-", sequential=True)
    assert second.path > first.path
    with pytest.raises(Refused, match="ephemeral node cannot have children"):
        await client.create((await client.create("/e", ephemeral=True)).path + "/a")


async def test_multi_when_every_step_fits_then_all_are_applied(client: ZooKeeperClient) -> None:
    await client.create("/a", b"1")
    checked, written, created, child, deleted = await client.multi(
        [
            Step(CHECK, Check("/a", 0)),
            Step(SET, Set("/a", b"2", 0)),
            Step(CREATE, Create("/b", b"b")),
            Step(CREATE, Create("/b/c", b"c")),
            Step(DELETE, Delete("/b/c", 0)),
        ]
    )
    assert (checked, deleted) == (None, None)
    assert written.version == 1
    assert created.stat.mzxid == child.stat.mzxid == written.mzxid
    found = await client.get_many(["/b", "/none", "/a", "/b/c"])
    assert [each and each.value for each in found] == [b"b", None, b"2", None]


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (Step(CHECK, Check("/a", 7)), -103),
        (Step(SET, Set("/a", b"", 7)), -103),
        (Step(CREATE, Create("/a")), -110),
        (Step(CREATE, Create("/none/a")), -101),
        (Step(DELETE, Delete("/none")), -101),
        (Step(DELETE, Delete("/p")), -111),
    ],
    ids=["check", "set", "create", "no parent", "no node", "not empty"],
)
async def test_multi_when_one_step_does_not_fit_then_it_is_named_and_none_is_applied(
    client: ZooKeeperClient, refused: Step, code: int
) -> None:
    await client.create("/a", b"1")
    await client.create("/p")
    await client.create("/p/c")
    with pytest.raises(
        StepsRefused, match=rf"{refused.request.path}, in committing /b, {refused.request.path}"
    ) as caught:
        await client.multi([Step(CREATE, Create("/b")), refused, Step(SET, Set("/a", b"2"))])
    assert (caught.value.code, caught.value.index) == (code, 1)
    assert await client.exists("/b") is None
    assert (await client.get("/a")).value == b"1"


async def test_watch_when_a_node_below_changes_then_reported_before_the_answer(client: ZooKeeperClient) -> None:
    seen: list[WatchEvent] = []
    client.on_watch_event(seen.append)
    await client.watch("/w")
    await client.create("/other")
    await client.create("/w")
    made = await client.create("/w/a")
    assert [(event.kind, event.path) for event in seen] == [(1, "/w"), (1, "/w/a")]
    assert seen[1].zxid in (made.stat.mzxid, -1)
    await client.multi([Step(SET, Set("/w", b"2")), Step(DELETE, Delete("/w/a")), Step(CREATE, Create("/w/b"))])
    assert [(event.kind, event.path) for event in seen[2:]] == [(3, "/w"), (2, "/w/a"), (1, "/w/b")]


async def test_watch_when_on_the_root_then_reports_every_change(client: ZooKeeperClient) -> None:
    seen: list[WatchEvent] = []
    client.on_watch_event(seen.append)
    await client.watch("/")
    await client.create("/a")
    assert [event.path for event in seen] == ["/a"]


async def test_ephemeral_when_its_session_is_closed_then_others_are_notified(zookeeper_address: str) -> None:
    path = f"/{uuid.uuid4()}"
    first = await ZooKeeperClient.connect(zookeeper_address + path)
    second = await ZooKeeperClient.connect(zookeeper_address + path)
    await first.create_parents("/e")
    seen: list[WatchEvent] = []
    second.on_watch_event(seen.append)
    await second.watch("/")
    await first.create("/e", b"x", ephemeral=True)
    await second.sync("/e")
    assert (await second.get("/e")).stat.ephemeral_owner == first.session.id
    await first.close()
    await second.sync("/e")
    assert await second.exists("/e") is None
    assert [(event.kind, event.path) for event in seen] == [(1, "/e"), (2, "/e")]
    await second.close()
