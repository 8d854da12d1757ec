"""`MetadataStore` on ZooKeeper: keys are nodes, under the same paths that Pulsar's brokers use.

Differences from a store of our own (the suite over all stores tests each):

* A key needs the keys above it, so these are created with it, with empty values, and stay when it is deleted. A key
  with an empty value and a node that only has children are the same.
* A key with keys below it is not deleted before them: that is a `CommitConflict`.
* Versions are transaction ids, which never repeat. The servers compare only the number of writes since the creation: a
  key that was deleted, created again, and written as often *after* this session's last notification of it is taken for
  the old one. This does not happen to an ephemeral key of another store of ours that ends with its session: the commit
  also expects a mark of that session.
* A page of `scan` costs a list of all sibling names, unless they are cached.
* A commit is at most 900 KiB.

Brokers of one cluster see each other's commits as notifications. After a lost connection every watch is called back
with its own prefix, since anything may have changed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from interpulse.storage.api import Change, CommitConflict, MetadataUnavailable, Put, Versioned, sizes_of
from interpulse.storage.meters import MetadataMeter
from interpulse.storage.sessions import Callbacks, SessionState, Watches
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.commit_plan import Planned, last_changes, plan_commit, plan_marks
from interpulse.storage.zookeeper.errors import NoNode, OutcomeUnknown, StepsRefused
from interpulse.storage.zookeeper.node_cache import ABSENT, NOT_CACHED, CachedNode, NodeCache, cached_node
from interpulse.storage.zookeeper.outcomes import Mark, Marks
from interpulse.storage.zookeeper.paging import keys_after
from interpulse.storage.zookeeper.protocol import WatchEvent
from interpulse.storage.zookeeper.records import CREATE, DELETE, Created, Node, Stat, Step
from interpulse.storage.zookeeper.session import SessionEvent

WATCHED: Final = (
    "/admin",
    "/interpulse/destinations",
    "/interpulse/tasks",
    "/loadbalance",
    "/managed-ledgers",
    "/namespace",
    "/schemas",
)
"""Paths of Pulsar's brokers and ours that our broker reads again and again."""

_ATTEMPTS_MAX: Final = 100
_READ_BYTES_MAX: Final = 512 << 10  # of the keys of one request
_READ_KEYS_MAX: Final = 1000
_CREATED, _DELETED, _CHANGED = 1, 2, 3
_NO_NODE, _BAD_VERSION, _NODE_EXISTS, _NOT_EMPTY = -101, -103, -110, -111


class KeysBelow(CommitConflict):
    """A key cannot be deleted, since other keys are below it."""

    def __str__(self) -> str:
        return f"metadata key {self.key} has keys below it; delete those first"


class ZooKeeperMetadataStore:
    """The metadata of one cluster. Create it with `open`."""

    def __init__(self, client: ZooKeeperClient, watched: Sequence[str], cache_entries_max: int) -> None:
        self.client = client
        self.session = StoreSession(client)
        self.meter = MetadataMeter()
        self._watched = tuple(watched)
        self._cache = NodeCache(watched, cache_entries_max)
        self._watches = Watches()
        self._marks = Marks(client)
        client.on_watch_event(self._take_watch_event)
        client.on_session(self._take_session_event)

    @classmethod
    async def open(
        cls, client: ZooKeeperClient, *, watched: Sequence[str] = WATCHED, cache_entries_max: int = 50_000
    ) -> Self:
        """Return a store that caches everything below the watched keys, and closes the client when it is closed.

        Raise `Unusable` if the servers are too old, or do not permit reads there.
        """
        store = cls(client, watched, cache_entries_max)
        for root in watched:
            await client.watch(root)
            await store.get(root)
        return store

    async def get(self, key: str) -> Versioned | None:
        node = self._cache.node(key)
        if node is NOT_CACHED:
            node = (await self._read([key]))[key]
        return node.stored

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        nodes = await self._nodes(keys)
        return {key: node.stored for key, node in nodes.items() if node.stored is not None}

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        for key, version in versions.items():
            stored = self._cache.node(key).stored
            if (None if stored is None else stored.version) != version:
                return False
        return True

    async def children(self, key: str) -> list[str]:
        key = key.rstrip("/") or "/"
        names = self._cache.names(key)
        if names is None:
            asked = self._cache.now
            try:
                names = sorted((await self.client.children(key)).names)
            except NoNode:
                names = []
            self._cache.remember_names(key, names, asked)
        return list(names)

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        result: list[tuple[str, Versioned]] = []
        await self._scan(prefix.rpartition("/")[0], prefix, after, limit, result)
        return result

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        wanted = last_changes(changes)
        keys = list(dict.fromkeys([*expect, *wanted]))
        if not keys:
            return
        with self.meter.committing(*sizes_of(tuple(wanted.values()))):
            await self._commit(keys, wanted, expect)

    async def _commit(
        self, keys: Sequence[str], wanted: Mapping[str, Change], expect: Mapping[str, int | None]
    ) -> None:
        async with self._marks.one() as mark:
            for _ in range(_ATTEMPTS_MAX):
                nodes, marks = await self._nodes_and_marks(keys, expect)
                plan = plan_commit(wanted, expect, nodes, self.session.id)
                if await self._try([*plan_marks(marks), *plan] if plan else [], wanted, mark):
                    return
                for key in keys:
                    self._cache.forget(key)
        raise MetadataUnavailable(f"{keys[0]} keeps appearing and disappearing; gave up after {_ATTEMPTS_MAX} attempts")

    async def _nodes_and_marks(
        self, keys: Sequence[str], expect: Mapping[str, int | None]
    ) -> tuple[dict[str, CachedNode], list[str]]:
        """Return all keys, and marks of the other sessions that own an expected key."""
        nodes = await self._nodes(keys)
        owners = {nodes[key].owner for key in expect} - {0, self.session.id}
        if not owners:
            return nodes, []
        marks = await self._marks.of_sessions(owners)
        for key in expect:
            self._cache.forget(key)  # a key whose owner has no mark may be gone
        return await self._nodes(keys), marks

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        while True:
            try:
                return (await self.client.create(prefix, value, ephemeral=True, sequential=True)).path
            except NoNode:
                await self.client.create_parents(prefix)
            except OutcomeUnknown:
                continue  # if it was created, it is removed with the session, and its number is not assigned again

    async def sync(self, key: str) -> None:
        await self.client.sync(key)

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        if not self._cache.covers(prefix.rstrip("/")):
            raise ValueError(f"{prefix} is not below {', '.join(self._watched)}, which this store watches")
        return self._watches.add(prefix, callback)

    async def close(self) -> None:
        await self.client.close()
        self._cache.clear()
        self.session.close()

    async def _try(self, plan: list[Planned], wanted: Mapping[str, Change], mark: Mark) -> bool:
        """Apply the plan. Return False if it must be made again. Raise `CommitConflict`."""
        if not plan:
            return True
        steps = [planned.step for planned in plan]
        try:
            answers = await self.client.multi([*steps, mark.next_step()])
        except StepsRefused as refused:
            if refused.index == len(steps):
                await mark.repair(refused)
            else:
                await self._learn_from(refused, plan[refused.index])
            return False
        except OutcomeUnknown as unknown:
            return await mark.applied(unknown.what)
        mark.written()
        self._remember_written(steps, answers, wanted)
        return True

    async def _learn_from(self, refused: StepsRefused, planned: Planned) -> None:
        """Improve the next plan after a refusal. Raise `CommitConflict` if that is impossible."""
        operation, key = planned.step.operation, planned.step.request.path
        if refused.code == _NO_NODE and operation is CREATE:
            await self.client.create_parents(key)
            return
        if refused.code not in (_NO_NODE, _BAD_VERSION, _NODE_EXISTS, _NOT_EMPTY):
            raise refused
        # The next read shows the cause of the refusal, even if this server lags behind.
        await self.client.sync(key)
        if refused.code == _NOT_EMPTY:
            raise KeysBelow(key)
        if planned.expected:
            raise CommitConflict(key)

    def _remember_written(self, steps: Sequence[Step], answers: Sequence[Any], wanted: Mapping[str, Change]) -> None:
        zxid = 0
        for step, answer in zip(steps, answers[:-1], strict=True):
            stat = answer.stat if isinstance(answer, Created) else answer
            change = wanted.get(step.request.path)
            if isinstance(stat, Stat) and isinstance(change, Put):
                zxid = stat.mzxid
                self._cache.remember_committed(change.key, cached_node(change.value, stat), zxid)
        for step in steps:
            if step.operation is DELETE and zxid:
                self._cache.remember_committed(step.request.path, ABSENT, zxid)

    async def _nodes(self, keys: Sequence[str]) -> dict[str, CachedNode]:
        """Return all keys as of one moment, from the cache and from one request if it is large enough."""
        for _ in range(_ATTEMPTS_MAX):
            asked = self._cache.now
            nodes = {key: self._cache.node(key) for key in keys}
            unknown = [key for key, node in nodes.items() if node is NOT_CACHED]
            if not unknown:
                return nodes
            read = await self._read(unknown)
            one_question = len(list(_questions(unknown))) == 1
            moving = [key for key in nodes if key not in read or not one_question]
            if all(self._cache.unchanged_since(key, asked) for key in moving):
                return nodes | read
        raise MetadataUnavailable(f"{keys[0]} and others beside it keep changing; gave up after {_ATTEMPTS_MAX} reads")

    async def _read(self, keys: Sequence[str]) -> dict[str, CachedNode]:
        asked = self._cache.now
        answers = await self._ask_for(keys)
        nodes = {key: ABSENT if node is None else cached_node(*node) for key, node in answers.items()}
        for key, node in nodes.items():
            self._cache.remember(key, node, asked)
        return nodes

    async def _ask_for(self, keys: Sequence[str]) -> dict[str, Node | None]:
        questions = list(_questions(keys))
        with self.meter.reading(len(keys)):
            answers = await asyncio.gather(*map(self.client.get_many, questions))
        return {
            key: node
            for asked, answered in zip(questions, answers, strict=True)
            for key, node in zip(asked, answered, strict=True)
        }

    async def _scan(self, above: str, prefix: str, after: str, limit: int, result: list[tuple[str, Versioned]]) -> None:
        """Add the keys below ``above`` to the result, in the order of whole keys."""
        start = f"{above}/"
        if after > start and not after.startswith(start):
            return
        names = await self.children(above)
        nodes: dict[str, Node | None] = {}
        beginning = prefix[len(start) :]
        for key in keys_after(names, beginning, after[len(start) :]):
            if len(result) >= limit:
                return
            if key.endswith("/"):
                name = key[:-1]
                node = nodes.get(name)
                if name not in nodes or (node is not None and node.stat.children):
                    await self._scan(start + name, prefix, after, limit, result)
                continue
            if key not in nodes:
                at = bisect_left(names, key)
                page = [name for name in names[at : at + limit - len(result)] if name.startswith(beginning)]
                nodes |= dict(zip(page, (await self._ask_for([start + name for name in page])).values(), strict=True))
            if (node := nodes[key]) is not None:
                result.append((start + key, Versioned(node.value, node.stat.mzxid)))

    def _take_watch_event(self, event: WatchEvent) -> None:
        if event.kind in (_CREATED, _DELETED, _CHANGED):
            self._cache.changed(event.path, event.zxid, came_or_went=event.kind != _CHANGED)
            self._watches.announce([event.path])

    def _take_session_event(self, event: SessionEvent) -> None:
        if event in (SessionEvent.DISCONNECTED, SessionEvent.RESUMED, SessionEvent.RENEWED):
            self._cache.clear()
        if event in (SessionEvent.RESUMED, SessionEvent.RENEWED):
            self._watches.announce_all()


def _questions(keys: Sequence[str]) -> Iterator[list[str]]:
    """Split the keys into parts that fit into one request."""
    part: list[str] = []
    size = 0
    for key in keys:
        if part and (len(part) == _READ_KEYS_MAX or size + len(key) * 4 > _READ_BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(key)
        size += len(key) * 4 + 20
    if part:
        yield part


_STATES: Final = {
    SessionEvent.DISCONNECTED: SessionState.SUSPENDED,
    SessionEvent.SUSPECT: SessionState.LOST,
    SessionEvent.RESUMED: SessionState.CONNECTED,
    SessionEvent.EXPIRED: SessionState.LOST,
    SessionEvent.RENEWED: SessionState.CONNECTED,
    SessionEvent.ENDED: SessionState.LOST,
}


class StoreSession:
    """The client's session, lost from the moment at which the servers *may* remove its nodes."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client
        self._reported = SessionState.CONNECTED
        self._watches = Callbacks[SessionState]()
        client.on_session(self._take_event)

    @property
    def id(self) -> int:
        return self._client.session.id

    @property
    def state(self) -> SessionState:
        if not self.holds():
            return SessionState.LOST
        return SessionState.CONNECTED if self._client.connected else SessionState.SUSPENDED

    def holds(self) -> bool:
        return self._client.session.holds()

    def on_change(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        return self._watches.add(callback)

    def close(self) -> None:
        """End the session with its store."""
        self._report(SessionState.LOST)

    def _take_event(self, event: SessionEvent) -> None:
        state = _STATES[event]
        self._report(SessionState.LOST if state is SessionState.SUSPENDED and not self.holds() else state)

    def _report(self, state: SessionState) -> None:
        """Report a new state. A connection that ends once the session is lost is nothing new."""
        if state is self._reported or (self._reported is SessionState.LOST and state is SessionState.SUSPENDED):
            return
        self._reported = state
        self._watches.announce(state)
