"""A task that one broker of a cluster does for all: the first broker that creates an ephemeral key.

The task ends as soon as the session of the key may be over, which is before another broker can create the key.
Source: docs/reference/cluster-protocol.md#tasks-of-one-broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.model.errors import MetadataError
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, Put

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
"""Interval of checks for an expired session. A watch reports other changes immediately."""


class SoleTask:
    """Work of one broker of a cluster at a time. `start` once, and `stop` at the end to hand it over."""

    def __init__(
        self,
        store: MetadataStore,
        name: str,
        broker_id: str,
        *,
        begin: Callable[[], Awaitable[None]],
        end: Callable[[], Awaitable[None]],
    ) -> None:
        self.chosen = False
        """This broker does the work."""
        self._store = store
        self._name = name
        self._key = keys.sole_task(name)
        self._value = broker_id.encode()
        self._begin = begin
        self._end = end
        self._created: tuple[int, int] | None = None  # version of the key and session at its creation here
        self._changed = asyncio.Event()
        self._look = asyncio.Event()  # wakes a pending election check to look at the session
        self._task: asyncio.Task[None] | None = None
        self._cancel: list[Callable[[], None]] = []

    def start(self) -> None:
        """Start doing the work whenever this broker is elected."""
        self._cancel.append(self._store.watch(self._key, lambda key: self._changed.set()))
        self._cancel.append(self._store.session.on_change(lambda state: self._on_session()))
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the work, then let another broker be chosen."""
        for cancel in self._cancel:
            cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._follow(chosen=False)
        if self._created is not None:
            with contextlib.suppress(MetadataError, CommitConflict):
                await self._store.commit([Delete(self._key)], {self._key: self._created[0]})

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            await self._follow(chosen=await self._find_out())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()

    def _on_session(self) -> None:
        self._changed.set()
        self._look.set()

    async def _find_out(self) -> bool:
        """Return True if this broker is elected. If the session is over, the work ends while the answer is pending."""
        asking = asyncio.get_running_loop().create_task(self._is_chosen())
        asking.add_done_callback(lambda done: self._look.set())
        try:
            while not asking.done():
                self._look.clear()
                if not self._store.session.holds():
                    await self._follow(chosen=False)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self._look.wait()
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def _follow(self, *, chosen: bool) -> None:
        """Start or stop the work. `chosen` stays True if stopping is cancelled."""
        if chosen is self.chosen:
            return
        log.info("elected for task task=%s here=%s", self._name, chosen)
        if chosen:
            self.chosen = True
            await self._begin()
        else:
            await self._end()
            self.chosen = False

    async def _is_chosen(self) -> bool:
        session = self._store.session
        if not session.holds():
            return False
        try:
            stored = await self._store.get(self._key)
            if stored is not None and (stored.version, session.id) == self._created:
                return session.holds()
            if stored is not None and stored.value != self._value:
                return False
            version = None if stored is None else stored.version
            try:
                await self._store.commit([Put(self._key, self._value, ephemeral=True)], {self._key: version})
            except CommitConflict:
                if version is not None:  # of an earlier process of this broker
                    await self._store.commit([Delete(self._key)], {self._key: version})
                return False
            created = await self._store.get(self._key)
        except (MetadataError, CommitConflict) as error:
            log.debug("elected broker unknown task=%s error=%s", self._name, error)
            return self.chosen and session.holds()
        if created is None or created.value != self._value:
            return False
        self._created = created.version, session.id
        return session.holds()
