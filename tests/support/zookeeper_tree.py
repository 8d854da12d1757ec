"""The nodes of a ZooKeeper in memory, without IO: transactions that check, change and announce."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from interpulse.storage.zookeeper.records import (
    CHECK,
    CREATE,
    DELETE,
    EXISTS,
    GET,
    GET_CHILDREN,
    SET,
    Create,
    Created,
    Delete,
    Failed,
    Listing,
    Node,
    Operation,
    Stat,
    Step,
)

CREATED, DELETED, CHANGED = 1, 2, 3

NO_NODE: Final = -101
BAD_VERSION: Final = -103
NO_CHILDREN_FOR_EPHEMERALS: Final = -108
NODE_EXISTS: Final = -110
NOT_EMPTY: Final = -111
_NOT_TRIED: Final = -2

_EPHEMERAL, _SEQUENTIAL = 1, 2
_OF_ONE_VERSION = (DELETE, SET, CHECK)


class Refusal(Exception):
    """A request that the server answers with an error."""

    def __init__(self, code: int) -> None:
        self.code = code


class Event(NamedTuple):
    """A change that watches report."""

    kind: int
    path: str


@dataclass
class Znode:
    """One node."""

    value: bytes
    czxid: int
    mzxid: int
    version: int = 0
    owner: int = 0  # the session that it is removed with
    made: int = 0  # children ever created
    children: set[str] = field(default_factory=set)

    def stat(self) -> Stat:
        return Stat(
            self.czxid, self.mzxid, 0, 0, self.version, self.made, 0, self.owner, len(self.value), len(self.children), 0
        )

    def copy(self) -> Znode:
        return replace(self, children=set(self.children))


Nodes = dict[str, Znode]


def read(nodes: Nodes, operation: Operation[Any, Any], path: str) -> Any:
    """Return the answer to a read of one node, or raise `Refusal`."""
    node = nodes.get(path)
    if node is None:
        raise Refusal(NO_NODE)
    return _answer(operation, node)


def copied(nodes: Nodes, paths: Collection[str]) -> dict[str, Znode | None]:
    """Return these nodes as they are now, None for those that do not exist."""
    return {path: nodes[path].copy() if path in nodes else None for path in paths}


def restore(nodes: Nodes, copies: dict[str, Znode | None]) -> None:
    """Replace nodes by their copies."""
    for path, node in copies.items():
        if node is None:
            nodes.pop(path, None)
        else:
            nodes[path] = node


class Transaction:
    """Changes of one request, applied at once. `undo` takes them back."""

    def __init__(self, nodes: Nodes, zxid: int, session_id: int) -> None:
        self.zxid = zxid
        self.events: list[Event] = []
        self._nodes = nodes
        self._session_id = session_id
        self._before: dict[str, Znode | None] = {}

    @property
    def touched(self) -> Collection[str]:
        """The paths of nodes that may have changed."""
        return self._before.keys()

    def undo(self) -> None:
        restore(self._nodes, self._before)
        self._before, self.events = {}, []

    def multi(self, steps: Sequence[Step]) -> list[Any]:
        """Apply all steps or none, and return the answer of each."""
        answers: list[Any] = []
        for index, (operation, request) in enumerate(steps):
            try:
                answers.append((operation, self.step(operation, request)))
            except Refusal as refusal:
                self.undo()
                return [Failed(0)] * index + [Failed(refusal.code)] + [Failed(_NOT_TRIED)] * (len(steps) - index - 1)
        return answers

    def step(self, operation: Operation[Any, Any], request: Any) -> Any:
        """Apply one request and return its answer, or raise `Refusal` without a change."""
        if operation is CREATE:
            return self._create(request)
        node = self._nodes.get(request.path)
        if node is None:
            raise Refusal(NO_NODE)
        if operation in _OF_ONE_VERSION and request.version not in (-1, node.version):
            raise Refusal(BAD_VERSION)
        if operation is DELETE:
            self._delete(request, node)
        if operation is SET:
            self._touch(request.path)
            node = self._nodes[request.path]
            node.value, node.mzxid, node.version = request.value, self.zxid, node.version + 1
            self.events.append(Event(CHANGED, request.path))
        return _answer(operation, node)

    def remove_ephemerals(self) -> None:
        """Remove the nodes of the session."""
        for path in [path for path, node in self._nodes.items() if node.owner == self._session_id]:
            self._delete(Delete(path), self._nodes[path])

    def _create(self, request: Create) -> Created:
        above = parent_of(request.path)
        parent = self._nodes.get(above)
        if parent is None:
            raise Refusal(NO_NODE)
        if parent.owner:
            raise Refusal(NO_CHILDREN_FOR_EPHEMERALS)
        path = request.path + (f"{parent.made:010d}" if request.flags & _SEQUENTIAL else "")
        if path in self._nodes:
            raise Refusal(NODE_EXISTS)
        self._touch(above, path)
        parent.made += 1
        parent.children.add(path.rpartition("/")[2])
        owner = self._session_id if request.flags & _EPHEMERAL else 0
        self._nodes[path] = Znode(request.value, self.zxid, self.zxid, owner=owner)
        self.events.append(Event(CREATED, path))
        return Created(path, self._nodes[path].stat())

    def _delete(self, request: Delete, node: Znode) -> None:
        if node.children:
            raise Refusal(NOT_EMPTY)
        above = parent_of(request.path)
        self._touch(above, request.path)
        del self._nodes[request.path]
        self._nodes[above].children.remove(request.path.rpartition("/")[2])
        self.events.append(Event(DELETED, request.path))

    def _touch(self, *paths: str) -> None:
        self._before = copied(self._nodes, [path for path in paths if path not in self._before]) | self._before


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _answer(operation: Operation[Any, Any], node: Znode) -> Any:
    answers: dict[Operation[Any, Any], Callable[[], Any]] = {
        EXISTS: node.stat,
        SET: node.stat,
        GET: lambda: Node(node.value, node.stat()),
        GET_CHILDREN: lambda: Listing(sorted(node.children, reverse=True), node.stat()),
    }
    return answers[operation]() if operation in answers else None
