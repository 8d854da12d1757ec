"""ZooKeeper's records and operations as `jute` fields, each described once for both ends of a connection.

Only the part that a metadata store needs. The fields follow ZooKeeper's ``zookeeper.jute``, the numbers of operations
its ``ZooDefs.OpCode``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from interpulse.storage.zookeeper.jute import (
    BOOL,
    BUFFER,
    INT,
    LONG,
    NOTHING,
    STRING,
    Field,
    Malformed,
    Source,
    fixed,
    record,
    vector,
)

Q = TypeVar("Q")
A = TypeVar("A")

ANY_VERSION: Final = -1
PERSISTENT: Final = 0
EPHEMERAL: Final = 1
SEQUENTIAL: Final = 2  # added to one of the two
RECURSIVE: Final = 1  # mode of ADD_WATCH: the node and everything below it, until the connection ends


class Stat(NamedTuple):
    """The server's metadata of a node. Times are the server's milliseconds.

    ``czxid`` is the transaction that created the node, ``mzxid`` the one that wrote it last. ``version`` counts the
    writes since the creation. ``ephemeral_owner`` is the session that the node is removed with (0: none).
    """

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    length: int
    children: int
    pzxid: int


STAT = fixed(Stat, ">qqqqiiiqiiq")


class ConnectRequest(NamedTuple):
    """The first frame of a client. Session 0 asks for a new one."""

    protocol: int
    last_zxid: int
    timeout_ms: int
    session_id: int
    password: bytes
    read_only: bool


class ConnectResponse(NamedTuple):
    """The first frame of a server. Session 0 means that the requested one has expired."""

    protocol: int
    timeout_ms: int
    session_id: int
    password: bytes
    read_only: bool


NEW_SESSION: Final = b"\0" * 16
CONNECT_REQUEST = record(ConnectRequest, INT, LONG, INT, LONG, BUFFER, BOOL)
CONNECT_RESPONSE = record(ConnectResponse, INT, INT, LONG, BUFFER, BOOL)


class RequestHeader(NamedTuple):
    """The header of every request."""

    xid: int
    code: int


class ReplyHeader(NamedTuple):
    """The header of every reply and notification."""

    xid: int
    zxid: int
    error: int


REQUEST_HEADER = fixed(RequestHeader, ">ii")
REPLY_HEADER = fixed(ReplyHeader, ">iqi")


class Notification(NamedTuple):
    """A watched node was created (1), deleted (2) or changed (3)."""

    kind: int
    state: int
    path: str


NOTIFICATION = record(Notification, INT, INT, STRING)


class Acl(NamedTuple):
    """The permissions of an identity on a node."""

    permissions: int
    scheme: str
    identity: str


OPEN_ACL: Final = (Acl(31, "world", "anyone"),)
"""All permissions for everyone, which Pulsar's brokers write by default."""


class Create(NamedTuple):
    """Create a node; with `SEQUENTIAL` the server appends ten digits to the path."""

    path: str
    value: bytes = b""
    acl: Sequence[Acl] = OPEN_ACL
    flags: int = PERSISTENT


class Created(NamedTuple):
    """A created node, under its final name."""

    path: str
    stat: Stat


class Delete(NamedTuple):
    """Remove a node that has no children."""

    path: str
    version: int = ANY_VERSION


class Set(NamedTuple):
    """Replace the value of a node."""

    path: str
    value: bytes
    version: int = ANY_VERSION


class Check(NamedTuple):
    """A condition of a multi: nothing is applied if the node has another version."""

    path: str
    version: int


class Read(NamedTuple):
    """A request about one node."""

    path: str
    watch: bool = False


class Node(NamedTuple):
    """A node: its value and the server's metadata."""

    value: bytes
    stat: Stat


class Listing(NamedTuple):
    """The names of a node's children, unordered."""

    names: list[str]
    stat: Stat


class Child(NamedTuple):
    """A path alone, as SYNC sends and returns it."""

    path: str


class AddWatch(NamedTuple):
    """A watch on a node until the connection ends."""

    path: str
    mode: int = RECURSIVE


class SetWatches(NamedTuple):
    """The watches of an earlier connection, set on a new one."""

    last_zxid: int
    value_once: list[str]
    creation_once: list[str]
    children_once: list[str]
    persistent: list[str]
    recursive: list[str]


@dataclass(frozen=True, slots=True)
class Operation(Generic[Q, A]):
    """One kind of request: its number, and the fields of request and answer."""

    name: str
    code: int
    request: Field[Q]
    answer: Field[A]


_paths = vector(STRING)
_create = record(Create, STRING, BUFFER, vector(record(Acl, INT, STRING, STRING)), INT)
_read = record(Read, STRING, BOOL)

CREATE = Operation("create", 15, _create, record(Created, STRING, STAT))
DELETE = Operation("delete", 2, record(Delete, STRING, INT), NOTHING)
EXISTS = Operation("exists", 3, _read, STAT)
GET = Operation("get", 4, _read, record(Node, BUFFER, STAT))
SET = Operation("set", 5, record(Set, STRING, BUFFER, INT), STAT)
SYNC = Operation("sync", 9, record(Child, STRING), record(Child, STRING))
PING = Operation("ping", 11, NOTHING, NOTHING)
GET_CHILDREN = Operation("list", 12, _read, record(Listing, _paths, STAT))
CHECK = Operation("check", 13, record(Check, STRING, INT), NOTHING)
SET_WATCHES = Operation("watch again", 105, record(SetWatches, LONG, _paths, _paths, _paths, _paths, _paths), NOTHING)
ADD_WATCH = Operation("watch", 106, record(AddWatch, STRING, INT), NOTHING)
CLOSE_SESSION = Operation("close the session", -11, NOTHING, NOTHING)


class Step(NamedTuple):
    """One operation of a multi and its request."""

    operation: Operation[Any, Any]
    request: Any


class Failed(NamedTuple):
    """The error of one step of a multi. 0: none, but another step failed; -2: not tried."""

    code: int


class _MultiHeader(NamedTuple):
    code: int
    done: bool
    error: int


_MULTI_HEADER = fixed(_MultiHeader, ">i?i")
_END = _MultiHeader(-1, True, -1)
_IN_MULTI = {request.code: request for request in (CREATE, DELETE, SET, CHECK, GET)}


def _write_steps(out: bytearray, steps: Iterable[Step]) -> None:
    for operation, request in steps:
        _MULTI_HEADER.write(out, _MultiHeader(operation.code, False, -1))
        operation.request.write(out, request)
    _MULTI_HEADER.write(out, _END)


def _read_steps(source: Source) -> list[Step]:
    steps: list[Step] = []
    while not (header := _MULTI_HEADER.read(source)).done:
        operation = _in_multi(header.code)
        steps.append(Step(operation, operation.request.read(source)))
    return steps


def _write_results(out: bytearray, results: Iterable[tuple[Operation[Any, Any], Any] | Failed]) -> None:
    for result in results:
        if isinstance(result, Failed):
            _MULTI_HEADER.write(out, _MultiHeader(-1, False, result.code))
            INT.write(out, result.code)
        else:
            operation, answer = result
            _MULTI_HEADER.write(out, _MultiHeader(operation.code, False, 0))
            operation.answer.write(out, answer)
    _MULTI_HEADER.write(out, _END)


def _read_results(source: Source) -> list[Any]:
    results: list[Any] = []
    while not (header := _MULTI_HEADER.read(source)).done:
        results.append(Failed(INT.read(source)) if header.code == -1 else _in_multi(header.code).answer.read(source))
    return results


def _in_multi(code: int) -> Operation[Any, Any]:
    try:
        return _IN_MULTI[code]
    except KeyError:
        raise Malformed(f"operation {code} in a multi") from None


_steps: Field[Any] = Field(_write_steps, _read_steps)
_results: Field[Any] = Field(_write_results, _read_results)

MULTI: Operation[Sequence[Step], list[Any]] = Operation("commit", 14, _steps, _results)
"""All steps or none. The answer holds the answer of each step, or a `Failed` for each."""

MULTI_READ: Operation[Sequence[Step], list[Any]] = Operation("read", 22, _steps, _results)
"""Several `GET` requests, each of which fails alone."""

OPERATIONS: Final = {
    request.code: request
    for request in (
        CREATE, DELETE, EXISTS, GET, SET, SYNC, PING, GET_CHILDREN, CHECK, MULTI, MULTI_READ, SET_WATCHES, ADD_WATCH,
        CLOSE_SESSION,
    )
}  # fmt: skip
"""Operations by number, for a server that reads requests."""
