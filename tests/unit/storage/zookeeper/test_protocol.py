"""The protocol against exchanges recorded from a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interpulse.storage.zookeeper.errors import BrokenConnection
from interpulse.storage.zookeeper.jute import Source
from interpulse.storage.zookeeper.protocol import ClientProtocol, Pong, Reply, WatchesSet, WatchEvent
from interpulse.storage.zookeeper.records import (
    ADD_WATCH,
    CHECK,
    CONNECT_REQUEST,
    CONNECT_RESPONSE,
    CREATE,
    DELETE,
    EPHEMERAL,
    EXISTS,
    GET,
    GET_CHILDREN,
    MULTI,
    MULTI_READ,
    NEW_SESSION,
    OPERATIONS,
    REPLY_HEADER,
    REQUEST_HEADER,
    SEQUENTIAL,
    SET,
    SYNC,
    AddWatch,
    Check,
    Child,
    ConnectRequest,
    ConnectResponse,
    Create,
    Created,
    Delete,
    Failed,
    Node,
    Operation,
    Read,
    Set,
    Step,
)

RECORDED: dict[str, dict[str, Any]] = {
    each["name"]: each for each in json.loads(Path(__file__).with_name("exchanges.json").read_text())["exchanges"]
}
CONNECTS = [name for name in RECORDED if name.startswith("connect")]
REQUESTS = [name for name in RECORDED if name not in CONNECTS and name not in ("ping", "setWatches2")]

SENT: dict[str, tuple[Operation[Any, Any], Any]] = {
    "create2": (CREATE, Create("/golden", b"v")),
    "addWatch recursive": (ADD_WATCH, AddWatch("/golden")),
    "create2 ephemeral": (CREATE, Create("/golden/e", b"x", flags=EPHEMERAL)),
    "create2 ephemeral sequential": (CREATE, Create("/golden/s-", b"", flags=EPHEMERAL + SEQUENTIAL)),
    "set": (SET, Set("/golden/a", b"2", 0)),
    "set badversion": (SET, Set("/golden/a", b"2", 0)),
    "get": (GET, Read("/golden/a")),
    "get nonode": (GET, Read("/golden/zz")),
    "exists": (EXISTS, Read("/golden/a")),
    "getChildren2": (GET_CHILDREN, Read("/golden")),
    "sync": (SYNC, Child("/golden")),
    "multi ok": (
        MULTI,
        [
            Step(CHECK, Check("/golden/a", 1)),
            Step(SET, Set("/golden/a", b"3", 1)),
            Step(CREATE, Create("/golden/n", b"n")),
            Step(DELETE, Delete("/golden/e")),
        ],
    ),
    "multi failed": (
        MULTI,
        [
            Step(CHECK, Check("/golden/a", 2)),
            Step(CHECK, Check("/golden/n", 7)),
            Step(SET, Set("/golden/a", b"4", 2)),
        ],
    ),
    "delete": (DELETE, Delete("/golden/n", 0)),
    "create again": (CREATE, Create("/golden/n", b"n2")),
    "set re-created with old version 0": (SET, Set("/golden/n", b"n3", 0)),
    "delete notempty": (DELETE, Delete("/golden")),
    "set (watch after setWatches2)": (SET, Set("/golden/a", b"5")),
}


def connected() -> ClientProtocol:
    protocol = ClientProtocol()
    protocol.connect(ConnectRequest(0, 0, 6000, 0, NEW_SESSION, False))
    (granted,) = protocol.receive(bytes.fromhex(RECORDED[CONNECTS[0]]["reply"]))
    assert isinstance(granted, ConnectResponse)
    return protocol


@pytest.mark.parametrize("name", REQUESTS)
def test_request_when_encoded_then_as_recorded_and_its_reply_is_understood(name: str) -> None:
    exchange, (operation, request) = RECORDED[name], SENT[name]
    recorded = bytes.fromhex(exchange["request"])
    protocol = connected()
    for _ in range(REQUEST_HEADER.read(Source(recorded[4:])).xid - 1):  # those before it
        protocol.request(SYNC, b"")
    protocol._waiting.clear()
    assert protocol.request(operation, operation.request.encode(request)) == recorded

    told = [bytes.fromhex(each) for each in exchange.get("events_before_reply", ())]
    *events, reply = protocol.receive(b"".join(told) + bytes.fromhex(exchange["reply"]))
    assert len(events) == len(told)
    assert all(isinstance(event, WatchEvent) and event.path.startswith("/golden/") for event in events)
    assert isinstance(reply, Reply)
    assert (reply.answer is None) == (reply.error != 0 or operation in (DELETE, ADD_WATCH))


@pytest.mark.parametrize("name", [*REQUESTS, "setWatches2"])
def test_request_when_a_server_reads_it_then_nothing_is_lost(name: str) -> None:
    recorded = bytes.fromhex(RECORDED[name]["request"])
    source = Source(recorded[4:])
    header = REQUEST_HEADER.read(source)
    operation = OPERATIONS[header.code]
    request: Any = operation.request.read(source)
    assert source.left == 0
    assert recorded[4:] == REQUEST_HEADER.encode(header) + operation.request.encode(request)


def test_replies_when_read_then_say_what_the_server_said() -> None:
    def answer(name: str) -> Any:
        source = Source(bytes.fromhex(RECORDED[name]["reply"])[4:])
        REPLY_HEADER.read(source)
        return SENT[name][0].answer.read(source)

    node = answer("get")
    assert isinstance(node, Node)
    assert (node.value, node.stat.czxid, node.stat.mzxid, node.stat.version) == (b"2", 0x322D, 0x322E, 1)
    made = answer("create2 ephemeral sequential")
    assert isinstance(made, Created)
    assert made.path == "/golden/s-0000000001"
    assert made.stat.ephemeral_owner == 0x100003565740036
    assert sorted(answer("getChildren2").names) == ["a", "e", "s-0000000001"]
    checked, written, created, deleted = answer("multi ok")
    assert (checked, deleted) == (None, None)
    assert (written.version, created.path) == (2, "/golden/n")
    assert answer("multi failed") == [Failed(0), Failed(-103), Failed(-2)]


def test_connect_when_encoded_then_as_recorded() -> None:
    for name in CONNECTS:
        asked, answered = (bytes.fromhex(RECORDED[name][part])[4:] for part in ("request", "reply"))
        assert CONNECT_REQUEST.encode(CONNECT_REQUEST.decode(asked)) == asked
        assert CONNECT_RESPONSE.encode(CONNECT_RESPONSE.decode(answered)) == answered
    granted = CONNECT_RESPONSE.decode(bytes.fromhex(RECORDED["connect, new session (asked 1000 ms)"]["reply"])[4:])
    assert (granted.timeout_ms, granted.session_id) == (1000, 0x100003565740037)


def test_ping_and_watches_when_asked_in_between_then_answered_apart_from_requests() -> None:
    protocol = connected()
    protocol.request(GET, GET.request.encode(Read("/golden/a")))
    assert protocol.ping().hex() == RECORDED["ping"]["request"]
    protocol.last_zxid = 0
    assert protocol.watch_again(["/golden"]).hex() == RECORDED["setWatches2"]["request"]
    both = bytes.fromhex(RECORDED["ping"]["reply"] + RECORDED["setWatches2"]["reply"])
    assert list(protocol.receive(both)) == [Pong(), WatchesSet(0)]
    assert protocol.last_zxid == 0x3235


def test_bytes_when_they_come_one_by_one_then_mean_the_same() -> None:
    raw = b"".join(bytes.fromhex(RECORDED[name]["reply"]) for name in (CONNECTS[0], "ping"))
    protocol = ClientProtocol()
    events = [event for at in range(len(raw)) for event in protocol.receive(raw[at : at + 1])]
    assert [type(event) for event in events] == [ConnectResponse, Pong]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is this a ZooKeeper server"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (bytes.fromhex(RECORDED["get"]["reply"]), "request 8, which is not the one"),
        (bytes.fromhex("00000004 00000001"), "a field of 16 bytes"),
        (bytes.fromhex("00000018 ffffffff 0000000000000001 00000000 00000001 00000003"), "a field of 4 bytes"),
    ],
    ids=["another protocol", "negative length", "reply to nothing", "half a header", "half a notification"],
)
def test_bytes_when_no_answer_of_zookeeper_then_the_connection_is_broken(raw: bytes, problem: str) -> None:
    with pytest.raises(BrokenConnection, match=problem):
        list(connected().receive(raw))


def test_multi_read_when_one_read_fails_then_the_others_do_not() -> None:
    steps = [Step(GET, Read("/a")), Step(GET, Read("/b"))]
    assert MULTI_READ.request.decode(MULTI_READ.request.encode(steps)) == steps
    assert MULTI_READ.answer.decode(MULTI_READ.answer.encode([Failed(-101), Failed(-101)])) == [Failed(-101)] * 2
