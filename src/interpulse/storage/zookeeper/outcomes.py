"""The outcome of a commit whose answer was lost.

Every commit also writes its number into a small ephemeral node of this process, a *mark*. If the connection breaks
before the answer, the commit was applied if the mark holds its number. The written keys themselves prove nothing, since
another broker may have written the same values, or later ones. A mark serves one commit
at a time, so there are as many marks as there were commits in flight at once.

The name of a mark begins with its session, and the servers remove all ephemeral nodes of a session together. So while
a mark exists, every ephemeral node that was committed in its session is still the one of that session.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import NoNode, SessionExpired, StepsRefused
from interpulse.storage.zookeeper.records import CREATE, EPHEMERAL, SET, Create, Set, Step
from interpulse.storage.zookeeper.session import Session

_ABOVE: Final = "/interpulse/commits"
_MARKS: Final = 64  # commits in flight at once; others wait
_NO_NODE, _NODE_EXISTS = -101, -110


class Mark:
    """The node for one commit at a time."""

    def __init__(self, client: ZooKeeperClient, name: str) -> None:
        self._client = client
        self._name = name
        self._path = ""  # in the session of the last attempt
        self._number = 0
        self._made_in: Session | None = None
        self._sent_in: Session = client.session

    def next_step(self) -> Step:
        """Return the step to add to the next attempt of a commit."""
        self._number += 1
        self._sent_in = self._client.session
        self._path = f"{_ABOVE}/{_hexadecimal(self._sent_in.id)}-{self._name}"
        value = b"%d" % self._number
        if self._made_in is self._sent_in:
            return Step(SET, Set(self._path, value))
        return Step(CREATE, Create(self._path, value, flags=EPHEMERAL))

    def written(self) -> None:
        """Note that the attempt was applied."""
        self._made_in = self._sent_in

    async def repair(self, refused: StepsRefused) -> None:
        """Adapt to the refusal of the mark's own step: the node exists unexpectedly, is missing, or has no parent."""
        if refused.code == _NODE_EXISTS:
            self._made_in = self._sent_in
        elif refused.code == _NO_NODE and self._made_in is self._sent_in:
            self._made_in = None
        elif refused.code == _NO_NODE:
            await self._client.create_parents(self._path)
        else:
            raise refused

    async def applied(self, what: str) -> bool:
        """Return True if the attempt whose answer was lost was applied.

        Raise `SessionExpired` if the mark was removed with its session.
        """
        await self._client.sync(self._path)
        try:
            applied = int((await self._client.get(self._path)).value) == self._number
        except NoNode:
            applied = False
        if not applied and self._client.session is not self._sent_in:
            raise SessionExpired(self._sent_in.id, what)
        if applied:
            self.written()
        return applied


class Marks:
    """All marks of one store."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client
        name = uuid.uuid4().hex
        self._free: asyncio.LifoQueue[Mark] = asyncio.LifoQueue()
        for number in reversed(range(_MARKS)):
            self._free.put_nowait(Mark(client, f"{name}-{number}"))

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Mark]:
        """Lend a mark that no other commit uses meanwhile."""
        mark = await self._free.get()
        try:
            yield mark
        finally:
            self._free.put_nowait(mark)

    async def of_sessions(self, session_ids: Collection[int]) -> list[str]:
        """Return the path of one mark of each session that has any, which proves that the session is not over."""
        try:
            names = (await self._client.children(_ABOVE)).names
        except NoNode:
            return []
        marks = {name.partition("-")[0]: f"{_ABOVE}/{name}" for name in names}
        return [marks[session] for session in sorted(map(_hexadecimal, session_ids)) if session in marks]


def _hexadecimal(session_id: int) -> str:
    return f"{session_id & 0xFFFFFFFFFFFFFFFF:x}"
