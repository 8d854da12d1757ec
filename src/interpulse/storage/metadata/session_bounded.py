"""A metadata store whose reads never wait longer than its session lives.

A read then raises `SessionLost`, and the caller may repeat it. While the session is lost, a read that would have to
wait raises immediately. Commits wait for the session, and so do reads within `with_waiting_reads`. Source:
docs/reference/cluster-protocol.md#session-deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, Final, TypeVar

from interpulse.eager_start import start_eagerly
from interpulse.model.errors import ServiceNotReady
from interpulse.storage.api import MetadataStore, MetadataUnavailable, Versioned
from interpulse.storage.sessions import Session, SessionState

T = TypeVar("T")

_waiting: Final[ContextVar[bool]] = ContextVar("_waiting", default=False)


class SessionLost(ServiceNotReady, MetadataUnavailable):
    """The store does not answer, and the session may be over. Ask again."""


def session_lost() -> SessionLost:
    """Return the refusal of a request that depends on the session."""
    return SessionLost("The metadata store does not answer; the broker serves again when it does")


async def with_waiting_reads(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` with reads that wait for the store. For cleanup that must finish once it has started."""
    context = copy_context()
    context.run(_waiting.set, True)
    return await asyncio.get_running_loop().create_task(work, context=context)


async def leave_if_session_lost(work: Coroutine[Any, Any, None]) -> None:
    """Run ``work``, and leave its rest undone if the session is lost.

    For work that begins again once the store answers, such as that of a watch or of an election.
    """
    with suppress(SessionLost):
        await work


async def until_session_lost(session: Session, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of ``work``. Raise `SessionLost` if it has to wait and the session is lost by then."""
    result: list[T] = []

    async def run() -> None:
        result.append(await work)

    rest = start_eagerly(run())
    if rest is not None:
        await _until_lost(session, rest)
    return result[0]


async def _until_lost(session: Session, work: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()
    task, changed = loop.create_task(work), loop.create_future()

    def look(state: SessionState) -> None:
        if not changed.done():
            changed.set_result(None)

    cancel = session.on_change(look)
    try:
        while not task.done():
            if session.state is SessionState.LOST:
                raise session_lost()
            changed = loop.create_future()
            await asyncio.wait([task, changed], return_when=asyncio.FIRST_COMPLETED)
        try:
            task.result()
        # the store gave up in the turn of the event loop in which the session was lost
        except MetadataUnavailable as error:
            if session.state is SessionState.LOST:
                raise session_lost() from error
            raise
    finally:
        cancel()
        if not task.done():
            try:
                await asyncio.sleep(0)  # a task that is cancelled before it begins leaves what it waits for
            finally:
                task.cancel()
            await asyncio.wait([task])


class SessionBoundedMetadata:
    """A `MetadataStore` for the requests of clients and operators to one broker among several. See the module."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.session, self.watch, self.unchanged = store.session, store.watch, store.unchanged
        self.commit, self.create_sequential, self.close = store.commit, store.create_sequential, store.close

    async def get(self, key: str) -> Versioned | None:
        return await self._asked(self._store.get(key))

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        return await self._asked(self._store.get_many(keys))

    async def children(self, key: str) -> list[str]:
        return await self._asked(self._store.children(key))

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        return await self._asked(self._store.scan(prefix, after=after, limit=limit))

    async def sync(self, key: str) -> None:
        await self._asked(self._store.sync(key))

    async def _asked(self, read: Coroutine[Any, Any, T]) -> T:
        return await read if _waiting.get() else await until_session_lost(self.session, read)
