"""An asyncio client of ZooKeeper: nodes, commits of several steps, lasting watches, and one session.

Paths start with a slash and are relative to the path of the connect string. Every method raises a `ZooKeeperError`:
`NotConnected` if nothing was done, `OutcomeUnknown` or `SessionExpired` if a write may have been applied, `Refused` or
one of its subclasses if the server refused it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from interpulse.storage.zookeeper import records as zk
from interpulse.storage.zookeeper.errors import NodeExists, NoNode, StepsRefused, refusal
from interpulse.storage.zookeeper.link import Link, LinkConfig
from interpulse.storage.zookeeper.protocol import WatchEvent
from interpulse.storage.zookeeper.records import ANY_VERSION, Created, Failed, Listing, Node, Read, Stat, Step
from interpulse.storage.zookeeper.session import Session, SessionEvent, parse_servers

_NO_NODE = -101
_NOT_TO_BLAME = (0, -2)  # codes of steps before and after the refused one


class ZooKeeperClient:
    """One session with ZooKeeper. Create it with `connect`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._chroot = link.servers.chroot
        self._on_watch_event: Callable[[WatchEvent], None] = lambda event: None
        link.on_watch_event = self._take_watch_event

    @classmethod
    async def connect(cls, servers: str, config: LinkConfig | None = None) -> Self:
        """Begin a session with one of the servers, ``host1:2181,host2:2181/path``.

        Raise ValueError if the text names none, and `NotConnected` if none answers.
        """
        return cls(await Link.open(parse_servers(servers), config or LinkConfig()))

    @property
    def servers(self) -> str:
        """The servers, as errors name them."""
        return str(self._link.servers)

    @property
    def session(self) -> Session:
        """The current session."""
        return self._link.session

    @property
    def connected(self) -> bool:
        """True while a server answers and reports changes."""
        return self._link.connected

    def on_session(self, callback: Callable[[SessionEvent], None]) -> Callable[[], None]:
        """Call back with events of the session, and return the function that ends this. Must not raise."""
        return self._link.session_events.add(callback)

    def on_watch_event(self, callback: Callable[[WatchEvent], None]) -> None:
        """Call back with every change of a watched node, before an answer that could show it. Must not raise."""
        self._on_watch_event = callback

    async def get(self, path: str) -> Node:
        """Return value and `Stat` of a node."""
        return await self._link.ask(zk.GET, Read(self._full(path)), f"reading {path}", once=False)

    async def exists(self, path: str) -> Stat | None:
        """Return the `Stat` of a node, None if it does not exist."""
        try:
            return await self._link.ask(zk.EXISTS, Read(self._full(path)), f"looking for {path}", once=False)
        except NoNode:
            return None

    async def children(self, path: str) -> Listing:
        """Return the names of a node's children, unordered, and its `Stat`."""
        return await self._link.ask(zk.GET_CHILDREN, Read(self._full(path)), f"listing {path}", once=False)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """Return several nodes as of one moment, None for those that do not exist."""
        steps = [Step(zk.GET, Read(self._full(path))) for path in paths]
        what = f"reading {paths[0] if paths else 'nothing'} and {max(len(paths) - 1, 0)} others"
        answers = await self._link.ask(zk.MULTI_READ, steps, what, once=False)
        for path, answer in zip(paths, answers, strict=True):
            if isinstance(answer, Failed) and answer.code != _NO_NODE:
                raise refusal(answer.code, f"reading {path}")
        return [None if isinstance(answer, Failed) else answer for answer in answers]

    async def create(
        self, path: str, value: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> Created:
        """Create a node below an existing one.

        A sequential node gets ten digits behind its path. An ephemeral one is removed with the session.
        """
        flags = (zk.EPHEMERAL if ephemeral else zk.PERSISTENT) + (zk.SEQUENTIAL if sequential else 0)
        request = zk.Create(self._full(path), value, flags=flags)
        made = await self._link.ask(zk.CREATE, request, f"creating {path}", once=True)
        return Created(self._cut(made.path), made.stat)

    async def create_parents(self, path: str) -> None:
        """Create the missing nodes above this path, with empty values."""
        parts = self._full(path).split("/")[1:-1]
        above = ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if above and await self._exists_full(above[-1]):
            return
        for parent in above:
            if not await self._exists_full(parent):
                await self._create_parent(parent)

    async def set(self, path: str, value: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the value of a node with this version."""
        return await self._link.ask(zk.SET, zk.Set(self._full(path), value, version), f"writing {path}", once=True)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node with this version. It must have no children."""
        await self._link.ask(zk.DELETE, zk.Delete(self._full(path), version), f"deleting {path}", once=True)

    async def multi(self, steps: Sequence[Step]) -> list[Any]:
        """Apply all steps or none, and return the answer of each. Raise `StepsRefused` with the refused step."""
        full = [Step(operation, request._replace(path=self._full(request.path))) for operation, request in steps]
        what = f"committing {_named(steps)}"
        answers = await self._link.ask(zk.MULTI, full, what, once=True)
        for index, answer in enumerate(answers):
            if isinstance(answer, Failed) and answer.code not in _NOT_TO_BLAME:
                path = steps[index].request.path
                raise StepsRefused(answer.code, f"{steps[index].operation.name} {path}, in {what}", index)
        return answers

    async def sync(self, path: str) -> None:
        """Make later reads at least as new as this moment, even from a server that lags behind."""
        await self._link.ask(zk.SYNC, zk.Child(self._full(path)), f"syncing {path}", once=False)

    async def watch(self, path: str) -> None:
        """Report every change of the node and of nodes below it to `on_watch_event`, until the client is closed.

        Changes during a lost connection are not reported: on `SessionEvent` RESUMED or RENEWED, anything may have
        changed.
        """
        await self._link.watch(self._full(path))

    async def close(self) -> None:
        """End the session, and with it the ephemeral nodes."""
        await self._link.close()

    async def _exists_full(self, path: str) -> bool:
        """Return True if a node has this path, which is absolute and not relative to the connect string."""
        try:
            await self._link.ask(zk.EXISTS, Read(path), f"looking for {path}", once=False)
        except NoNode:
            return False
        return True

    async def _create_parent(self, full: str) -> None:
        try:
            await self._link.ask(
                zk.CREATE, zk.Create(full), f"creating {full}", once=False
            )  # repeating it does no harm
        except NodeExists:
            return

    def _full(self, path: str) -> str:
        return self._chroot + path if path != "/" else self._chroot or "/"

    def _cut(self, path: str) -> str:
        return path[len(self._chroot) :] or "/"

    def _take_watch_event(self, event: WatchEvent) -> None:
        self._on_watch_event(event._replace(path=self._cut(event.path)))


def _named(steps: Sequence[Step]) -> str:
    paths = [step.request.path for step in steps]
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} others" if len(paths) > 3 else "")
