"""The held locks after the session or a lock changed.

Invariants that this module keeps:

* A lock that changed or went is in doubt until it is read again (`HeldBundle.sure`). Nothing is written under it.
* If the lock is or was another broker's, the topics of the bundle are closed without writing.
* A bundle that was being released or divided when the session changed is not taken again. Its topics are closed without
  writing before the broker serves again.
* If the bundle was free all the time, the lock is taken again. Topics whose records no other broker touched meanwhile
  go on; the others are closed without writing.
* Bundles that were taken again, and that isolation policies keep from this broker by then, are released in order.

Source: docs/reference/cluster-protocol.md#lost-session. Model: docs/models/bundle_takeover.tla.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.bundle_locks import BundleLocks, HeldBundle, HeldBundles
from interpulse.broker.ownership.bundle_placement import TAKEN_AT_ONCE
from interpulse.broker.ownership.registered_brokers import RegisteredBrokers
from interpulse.model.errors import MetadataError, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.storage.api import MetadataStore, Versioned
from interpulse.storage.sessions import SessionState

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0


class HeldTopics(Protocol):
    """The loaded topics of this broker."""

    async def unload_all(self, names: Sequence[TopicName]) -> None:
        """Close them in order; their clients look up again."""

    def forsake(self, names: Sequence[TopicName]) -> None:
        """Close these topics without writing anything: another broker may own them."""

    async def recheck(self, names: Sequence[TopicName]) -> None:
        """Close without writing the topics whose records another broker changed while their bundle was free."""


class LockSettlement:
    """Reads locks in doubt again, one run at a time. `start` before the first change, `stop` at the end."""

    def __init__(
        self,
        store: MetadataStore,
        locks: BundleLocks,
        held: HeldBundles,
        brokers: RegisteredBrokers,
        release_excluded: Callable[[NamespaceName], Awaitable[None]],
    ) -> None:
        """Create a settlement. ``release_excluded`` releases bundles of a namespace that policies exclude from here."""
        self.on_resumed: Callable[[], None] = lambda: None
        """Callback for the moment at which the broker serves again."""
        self.on_lost: Callable[[], None] = lambda: None
        """Callback for the loss of the session."""
        self._store = store
        self._session = store.session
        self._locks = locks
        self._held = held
        self._brokers = brokers
        self._release_excluded = release_excluded
        self._topics: HeldTopics | None = None
        self._unsettled = False
        self._settling: asyncio.Task[None] | None = None
        self._taken_again: set[NamespaceName] = set()
        self._giving: asyncio.Task[None] | None = None
        self._cancel: list[Callable[[], None]] = []

    def start(self, topics: HeldTopics) -> None:
        """Start watching the session and the locks."""
        self._topics = topics
        self._cancel.append(self._store.watch(keys.LOCKS, self.on_lock))
        self._cancel.append(self._session.on_change(self._on_session))

    def stop(self) -> None:
        """Stop watching the session and the locks."""
        for cancel in self._cancel:
            cancel()
        self._cancel.clear()
        for task in (self._settling, self._giving):
            if task is not None:
                task.cancel()

    def on_lock(self, key: str) -> None:
        """Doubt the lock of this key if it changed. The key above all locks means all of them."""
        by_key = self._held.by_key
        concerned = [by_key[key]] if key in by_key else self._held.all() if key == keys.LOCKS else []
        for held in concerned:
            if held.sure and not held.leaving and not self._store.unchanged({held.key: held.version}):
                held.sure = False
                self._settle_soon()

    def _on_session(self, state: SessionState) -> None:
        log.warning("metadata session changed state=%s session=%d", state.value, self._session.id)
        if state is SessionState.CONNECTED:
            self._settle_soon()
        elif state is SessionState.LOST and not self._held.leaving:
            self.on_lost()

    def _settle_soon(self) -> None:
        self._unsettled = True
        if self._settling is None:
            self._settling = asyncio.get_running_loop().create_task(self._settle())
            self._settling.add_done_callback(self._settled)

    def _settled(self, done: asyncio.Task[None]) -> None:
        self._settling = None
        if not done.cancelled() and done.exception() is not None:
            log.error("locks not settled", exc_info=done.exception())

    async def _settle(self) -> None:
        """Read the locks until none has changed meanwhile, or the session is lost again."""
        while self._unsettled and not self._held.leaving:
            self._unsettled = False
            session_id = self._session.id
            try:
                await self.settle_held(self._held.all(), session_id)
                if session_id != self._held.settled_id:
                    await self._brokers.renew()
            except MetadataError as error:
                if not self._session.holds():
                    return  # its recovery starts this again
                log.warning("locks cannot be read, will retry error=%s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                self._unsettled = True
                continue
            if session_id == self._session.id:
                self._held.settled_id = session_id
                self.on_resumed()
                if self._taken_again and (self._giving is None or self._giving.done()):
                    self._giving = asyncio.get_running_loop().create_task(self._give_excluded())

    async def _give_excluded(self) -> None:
        """Release bundles that were taken again against isolation policies, so that their topics end in order."""
        while self._taken_again:
            namespace = self._taken_again.pop()
            try:
                await self._release_excluded(namespace)
            except PulsarError as error:
                log.warning("isolation policies not read namespace=%s error=%s", namespace, error)

    async def settle_held(self, held: Sequence[HeldBundle], session_id: int) -> None:
        """Read the doubtful locks of these bundles again, and keep or close their topics. Raise MetadataError."""
        assert self._topics is not None, "started"
        for bundle in held:
            if bundle.leaving and bundle.session_id != session_id:
                self._topics.forsake(list(bundle.topics))
        unsure = [
            bundle for bundle in held if not bundle.leaving and not (bundle.sure and bundle.session_id == session_id)
        ]
        stored = await self._store.get_many([bundle.key for bundle in unsure])
        permits = asyncio.Semaphore(TAKEN_AT_ONCE)

        async def settle(bundle: HeldBundle) -> None:
            async with permits:
                await self._settle_one(bundle, stored.get(bundle.key), session_id)

        await asyncio.gather(*map(settle, unsure))

    async def _settle_one(self, held: HeldBundle, stored: Versioned | None, session_id: int) -> None:
        same_session = session_id == held.session_id
        if stored is not None and same_session and stored.version == held.version:
            held.sure = True
            return
        held.sure = False
        assert self._topics is not None, "started"
        lock, version = await self._locks.create(held.key)
        if lock is not self._locks.own:
            log.warning("bundle lost bundle=%s owner=%s", held.bundle, lock.broker.broker_id)
            self._held.remove(held)
            self._topics.forsake(list(held.topics))
            return
        new = held.version < 0
        held.version, held.session_id = version, session_id
        if not new:
            log.warning("bundle taken again bundle=%s topics=%d", held.bundle, len(held.topics))
            await self._topics.recheck(list(held.topics))
            self._taken_again.add(held.bundle.namespace)
        held.sure = True
