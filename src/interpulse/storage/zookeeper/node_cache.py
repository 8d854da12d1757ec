"""What a store remembers of the tree, which notifications keep true.

A notification comes before every answer that could show the change, so what is remembered here is never behind what
the session reads. But an answer that was under way may come behind a notification and be older than it. Therefore an
answer is remembered only if its key was not told to have changed since the question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from interpulse.storage.api import Versioned
from interpulse.storage.zookeeper.records import Node, Stat

__all__ = ["NOT_CACHED", "CachedNode", "NodeCache", "cached_node"]

_VALUE_BYTES_REMEMBERED: Final = 4096  # a larger value is read each time
_KEY_LENGTH_REMEMBERED: Final = 1000
_NAMES_MAX: Final = 200_000  # in all remembered lists
_CHANGES_MAX: Final = 10_000  # keys whose last change is remembered


class CachedNode(NamedTuple):
    """A node or its absence. The version of ``found`` is its ``mzxid``, ``version`` is ZooKeeper's own.

    ``owner`` is the session it lives as long as, 0 for one that stays.
    """

    stored: Versioned | None
    version: int
    owner: int = 0


class _Change(NamedTuple):
    number: int
    zxid: int


ABSENT: Final = CachedNode(None, -1)
NOT_CACHED: Final = CachedNode(Versioned(b"", -1), -1)


def cached_node(node: Node | None) -> CachedNode:
    """What an answer says."""
    return ABSENT if node is None else _node(node.value, node.stat)


def _node(value: bytes, stat: Stat) -> CachedNode:
    return CachedNode(Versioned(value, stat.mzxid), stat.version, stat.ephemeral_owner)


class NodeCache:
    """Nodes and lists of children that were read or written last, below nodes that are watched."""

    def __init__(self, roots: Sequence[str], nodes_max: int) -> None:
        self._roots = tuple(root.rstrip("/") for root in roots)
        self._nodes_max = nodes_max
        self._nodes: OrderedDict[str, CachedNode] = OrderedDict()
        self._lists: OrderedDict[str, list[str]] = OrderedDict()
        self._names = 0  # in the lists
        self._changes: OrderedDict[str, _Change] = OrderedDict()  # the last one of a key
        self._number = 0  # of the last change of all
        self._forgotten = 0  # changes up to this number may not be among those remembered

    @property
    def now(self) -> int:
        """A moment, to be told to `remember` with what was asked then."""
        return self._number

    def covers(self, key: str) -> bool:
        """Whether the key is watched."""
        return any(key == root or key.startswith(root + "/") for root in self._roots)

    def node(self, key: str) -> CachedNode:
        """`NOT_CACHED` if it is not remembered."""
        return self._nodes.get(key, NOT_CACHED)

    def names(self, key: str) -> list[str] | None:
        """The children, sorted; None if they are not remembered."""
        return self._lists.get(key)

    def remember(self, key: str, node: CachedNode, asked: int) -> None:
        """The answer to what was asked at that moment."""
        if self.unchanged_since(key, asked) and self.covers(key):
            self._keep(key, node)

    def remember_written(self, key: str, value: bytes, stat: Stat) -> None:
        """What a commit of our own left: the newest if its own notification was the last one of the key."""
        change = self._changes.get(key)
        if change is not None and change.zxid == stat.mzxid:
            self._keep(key, _node(value, stat))

    def remember_deleted(self, key: str, zxid: int) -> None:
        """As `remember_written` for a node that is gone."""
        change = self._changes.get(key)
        if change is not None and change.zxid == zxid:
            self._keep(key, ABSENT)

    def remember_names(self, key: str, names: list[str], asked: int) -> None:
        """The sorted children, as they were asked for at that moment."""
        if self.unchanged_since(_listing(key), asked) and self.covers(key) and len(names) <= _NAMES_MAX:
            self._forget_names(key)
            self._lists[key] = names
            self._names += len(names)
            while self._names > _NAMES_MAX:
                self._names -= len(self._lists.popitem(last=False)[1])

    def unchanged_since(self, key: str, asked: int) -> bool:
        """Whether no change of the key was told since; False where that is not remembered."""
        change = self._changes.get(key)
        return asked >= (self._forgotten if change is None else change.number)

    def changed(self, key: str, zxid: int, *, came_or_went: bool) -> None:
        """A notification: what was remembered is not true any more."""
        self._note(key, zxid)
        self._nodes.pop(key, None)
        if came_or_went:
            above = key.rpartition("/")[0] or "/"
            self._note(_listing(above), zxid)
            self._forget_names(above)

    def forget(self, key: str) -> None:
        """Read the key anew."""
        self._nodes.pop(key, None)

    def clear(self) -> None:
        """Anything may have changed."""
        self._number += 1
        self._forgotten = self._number
        self._changes.clear()
        self._nodes.clear()
        self._lists.clear()
        self._names = 0

    def _keep(self, key: str, node: CachedNode) -> None:
        size = 0 if node.stored is None else len(node.stored.value)
        if len(key) <= _KEY_LENGTH_REMEMBERED and size <= _VALUE_BYTES_REMEMBERED:
            self._nodes[key] = node
            self._nodes.move_to_end(key)
            if len(self._nodes) > self._nodes_max:
                self._nodes.popitem(last=False)

    def _note(self, key: str, zxid: int) -> None:
        self._number += 1
        self._changes[key] = _Change(self._number, zxid)
        self._changes.move_to_end(key)
        if len(self._changes) > _CHANGES_MAX:
            self._forgotten = self._changes.popitem(last=False)[1].number

    def _forget_names(self, key: str) -> None:
        self._names -= len(self._lists.pop(key, ()))


def _listing(key: str) -> str:
    return f"{key}//"  # no node has such a name
