"""Nodes, commits and watches: the same tests on the scripted ZooKeeper and on a real one."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import BadVersion, NodeExists, NoNode, NotEmpty, Refused, StepsRefused
from interpulse.storage.zookeeper.protocol import WatchEvent
from interpulse.storage.zookeeper.records import CHECK, CREATE, DELETE, SET, Check, Create, Delete, Set, Step


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
