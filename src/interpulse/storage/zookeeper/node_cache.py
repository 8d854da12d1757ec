"""The cache of a store, kept up to date by notifications.

A notification comes before every answer that could show the change, so the cache is never older than the session's
reads. But an answer may come behind a notification and be older than it. Therefore an answer is cached only if no
change of its key was reported since the request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from interpulse.storage.api import Versioned
from interpulse.storage.zookeeper.records import Stat

_VALUE_BYTES_REMEMBERED: Final = 4096  # larger values are read each time
_KEY_LENGTH_REMEMBERED: Final = 1000
_NAMES_MAX: Final = 200_000  # in all cached lists
_CHANGES_MAX: Final = 10_000  # keys whose last change is remembered


class CachedNode(NamedTuple):
    """A cached node, or its absence.

    The version of ``stored`` is the node's ``mzxid``, ``version`` is ZooKeeper's own. ``owner`` is the session of an
    ephemeral node, 0 for others.
    """

    stored: Versioned | None
    version: int
    owner: int = 0


class _Change(NamedTuple):
    number: int
    zxid: int


ABSENT: Final = CachedNode(None, -1)
NOT_CACHED: Final = CachedNode(Versioned(b"", -1), -1)


def cached_node(value: bytes, stat: Stat) -> CachedNode:
    """Return the node of an answer."""
    return CachedNode(Versioned(value, stat.mzxid), stat.version, stat.ephemeral_owner)


class NodeCache:
    """The nodes and lists of children that were last read or written, below watched nodes."""

    def __init__(self, roots: Sequence[str], nodes_max: int) -> None:
        self._roots = tuple(root.rstrip("/") for root in roots)
        self._nodes_max = nodes_max
        self._nodes: OrderedDict[str, CachedNode] = OrderedDict()
        self._lists: OrderedDict[str, list[str]] = OrderedDict()
        self._names = 0  # names in the lists
        self._changes: OrderedDict[str, _Change] = OrderedDict()  # the last change of a key
        self._number = 0  # number of the last change
        self._forgotten = 0  # changes up to this number may be missing in _changes

    @property
    def now(self) -> int:
        """The current moment, to pass to `remember` with an answer to a request made now."""
        return self._number

    def covers(self, key: str) -> bool:
        """Return True if the key is watched."""
        return any(key == root or key.startswith(root + "/") for root in self._roots)

    def node(self, key: str) -> CachedNode:
        """Return the cached node, `NOT_CACHED` if there is none."""
        return self._nodes.get(key, NOT_CACHED)

    def names(self, key: str) -> list[str] | None:
        """Return the sorted names of the cached children, None if they are not cached."""
        return self._lists.get(key)

    def remember(self, key: str, node: CachedNode, asked: int) -> None:
        """Cache the answer to a request that was made at ``asked``."""
        if self.unchanged_since(key, asked) and self.covers(key):
            self._keep(key, node)

    def remember_committed(self, key: str, node: CachedNode, zxid: int) -> None:
        """Cache the result of an own commit, if its notification was the last one of the key."""
        change = self._changes.get(key)
        if change is not None and change.zxid == zxid:
            self._keep(key, node)

    def remember_names(self, key: str, names: list[str], asked: int) -> None:
        """Cache the sorted names of the children, requested at ``asked``."""
        if self.unchanged_since(_listing(key), asked) and self.covers(key) and len(names) <= _NAMES_MAX:
            self._forget_names(key)
            self._lists[key] = names
            self._names += len(names)
            while self._names > _NAMES_MAX:
                self._names -= len(self._lists.popitem(last=False)[1])

    def unchanged_since(self, key: str, asked: int) -> bool:
        """Return True if no change of the key was reported since ``asked``; False if that is not certain."""
        change = self._changes.get(key)
        return asked >= (self._forgotten if change is None else change.number)

    def changed(self, key: str, zxid: int, *, came_or_went: bool) -> None:
        """Drop what a notification makes outdated."""
        self._note(key, zxid)
        self._nodes.pop(key, None)
        if came_or_went:
            above = key.rpartition("/")[0] or "/"
            self._note(_listing(above), zxid)
            self._forget_names(above)

    def forget(self, key: str) -> None:
        """Drop the node, so that it is read again."""
        self._nodes.pop(key, None)

    def clear(self) -> None:
        """Drop everything, since anything may have changed."""
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
    return f"{key}//"  # no node has this name
