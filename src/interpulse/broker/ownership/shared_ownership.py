"""The bundles of one broker among several of a cluster: taken, released and divided.

A broker owns a bundle while the lock of the bundle, an ephemeral key, is its own. Each part states its invariants:
`bundle_locks` (writes of locks, the bundles that count as owned), `bundle_placement` (answers to
lookups), `lock_settlement` (lost sessions and changed locks). This module keeps two more:

* Requests for one bundle share one attempt to take it.
* A bundle is released in order: its lock is marked first, so that no client is sent here, then its topics are closed,
  then the lock goes.

Model: docs/models/bundle_takeover.tla.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final

from interpulse.broker.ownership.bundle_locks import BundleLocks, HeldBundle, HeldBundles, lock_key
from interpulse.broker.ownership.bundle_placement import BundlePlacement
from interpulse.broker.ownership.lock_settlement import HeldTopics, LockSettlement
from interpulse.broker.ownership.ownership import Bundle, LookupOptions
from interpulse.broker.ownership.registered_brokers import RegisteredBrokers
from interpulse.model.brokers import BundleLock
from interpulse.model.errors import MetadataError, ServiceNotReady
from interpulse.model.isolation import IsolationPolicies
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.bundles import bundle_of
from interpulse.rules.isolation import exclusion
from interpulse.rules.lookup import Owner
from interpulse.storage.api import Change, CommitConflict, Delete, MetadataStore
from interpulse.storage.metadata.guarded import GuardedMetadata
from interpulse.storage.metadata.session_bounded import session_lost, with_waiting_reads

log = logging.getLogger(__name__)

_UNLOAD_SECONDS_MAX: Final = 60.0  # namespaceBundleUnloadingTimeoutMs
_RELEASED_AT_ONCE: Final = 8


class SharedOwnership:
    """Ownership that the brokers of a cluster share. Call `start` before the first use and `leave` at the end."""

    def __init__(
        self,
        store: MetadataStore,
        guarded: GuardedMetadata,
        brokers: RegisteredBrokers,
        boundaries: Callable[[NamespaceName], Awaitable[Sequence[str] | None]],
        isolation: Callable[[], Awaitable[IsolationPolicies]],
    ) -> None:
        """Create the ownership of one broker.

        ``boundaries`` returns the bundle boundaries of a namespace, None if it does not exist. ``isolation`` returns
        the isolation policies of the cluster.
        """
        self.brokers = brokers
        self.metadata = guarded
        """The metadata for writes of topics and their logs."""
        self._session = store.session
        self._boundaries = boundaries
        self._isolation = isolation
        self._topics: HeldTopics | None = None
        self._own_id = brokers.own.broker.broker_id
        self._locks = BundleLocks(store, brokers.own.broker)
        self._held = HeldBundles(store.session, guarded)
        self._placement = BundlePlacement(store, self._locks, self._held, brokers, isolation, self.take)
        self._settlement = LockSettlement(store, self._locks, self._held, brokers, self.release_excluded)
        self._attempts: dict[str, asyncio.Task[BundleLock]] = {}
        self._loading: dict[TopicName, int] = {}
        """The sessions under which topics that are being loaded were acquired."""

    def start(
        self,
        topics: HeldTopics,
        *,
        on_resumed: Callable[[], None] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Start watching session and locks. ``on_lost`` and ``on_resumed`` are called when `serving` changes."""
        self._topics = topics
        self._settlement.on_resumed = on_resumed
        self._settlement.on_lost = on_lost
        self._settlement.start(topics)

    async def leave(self) -> None:
        """Release everything in order: the load report first, then the bundles, some at a time.

        Source: docs/reference/cluster-protocol.md#unloading.
        """
        self._held.leaving = True
        await self.brokers.leave()
        permits = asyncio.Semaphore(_RELEASED_AT_ONCE)

        async def release(bundle: Bundle) -> None:
            async with permits:
                await self.release(bundle)

        await asyncio.gather(*map(release, self.owned))
        self._settlement.stop()

    # --- held bundles

    @property
    def owned(self) -> list[Bundle]:
        """The bundles of this broker."""
        return [held.bundle for held in self._held.all()]

    def topics(self) -> Mapping[str, Collection[TopicName]]:
        """Return the loaded topics of each bundle, by the path of the bundle."""
        return self._held.topics()

    async def bundles_of(self, namespace: NamespaceName) -> list[Bundle]:
        """Return all bundles of a namespace, of any owner; none if there is no such namespace."""
        boundaries = await self._boundaries(namespace) or ()
        return [Bundle(namespace, f"{lower}_{upper}") for lower, upper in pairwise(boundaries)]

    def serving(self) -> bool:
        """Return True if held bundles surely are this broker's: it may send entries and answer acknowledgements."""
        return self._held.serving()

    def holds(self, topic: TopicName) -> bool:
        """Return True if the bundle of an acquired topic is this broker's, as the clock says now."""
        return self._held.holds_topic(topic)

    # --- topics

    async def acquire(self, topic: TopicName) -> None:
        """Let a topic be loaded; until `forget` its record is written under the lock only.

        Raise ServiceNotReady if its bundle is not this broker's: clients look up before they open.
        """
        self._held.check_session()
        boundaries = await self._boundaries(topic.namespace_name)
        if boundaries is None:
            return  # the rules refuse it
        bundle = Bundle(topic.namespace_name, bundle_of(topic, boundaries))
        attempt = self._attempts.get(lock_key(bundle))
        if attempt is not None:
            await asyncio.wait([attempt])
        held = self._held.get(bundle)
        if held is None or not self._held.holds(held):
            raise ServiceNotReady(
                f"Namespace bundle ({bundle}) for topic ({topic}) not served by this "
                f"instance:{self._own_id}. Please redo the lookup."
            )
        self._held.bind(topic, held)
        self._loading[topic] = held.session_id

    def check(self, topic: TopicName) -> None:
        """Raise ServiceNotReady unless the bundle of a loaded topic is this broker's."""
        if not self.holds(topic):
            raise ServiceNotReady(
                f"Topic {topic} is not served by this instance:{self._own_id}. Please redo the lookup."
            )

    async def opened(self, topic: TopicName) -> None:
        """Note that the topic is loaded. Raise ServiceNotReady if its bundle was lost since.

        This holds also if the bundle was taken again: another broker may have served the topic in between, so a load
        that began before has read old records.
        """
        await self.metadata.remember(topic.log_name)
        if self._loading.pop(topic, None) != self._session.id:
            self._held.forget(topic)
        self.check(topic)

    async def is_as_left(self, topic: TopicName) -> bool:
        """Return True if only this broker has changed the record of the topic since it was loaded."""
        return await self.metadata.is_as_left(topic.log_name)

    def forget(self, topic: TopicName) -> None:
        """Note that a topic was closed, or not loaded."""
        self._loading.pop(topic, None)
        self._held.forget(topic)

    # --- lookups

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        self._held.check_session()
        return await self._placement.prepare(bundles, options)

    def check_serving(self) -> None:
        self._held.check_session()
        if not self.serving():
            raise session_lost()

    def cached(self) -> Owner | None:
        return self._placement.cached if self.serving() else None

    # --- taking and releasing

    async def exclusion(self, namespace: NamespaceName, broker_id: str) -> str | None:
        """Return the reason why a broker may not have bundles of a namespace; None if it may."""
        policies = await self._isolation()
        return exclusion(policies, str(namespace), broker_id, (await self.brokers.view()).reports) if policies else None

    async def take(self, bundle: Bundle, *, even_excluded: bool = False) -> BundleLock:
        """Take a free bundle and return its stored lock, which may be another broker's. Raise ServiceNotReady.

        Isolation policies keep a free bundle from this broker unless ``even_excluded``; the caller then calls
        `release_excluded`.
        """
        key = lock_key(bundle)
        attempt = self._attempts.get(key)
        if attempt is None:
            attempt = self._attempts[key] = asyncio.get_running_loop().create_task(self._attempt(bundle, even_excluded))
            attempt.add_done_callback(lambda done: self._attempt_ended(key, done))
        return await asyncio.shield(attempt)

    def _attempt_ended(self, key: str, done: asyncio.Task[BundleLock]) -> None:
        self._attempts.pop(key, None)
        if not done.cancelled():
            done.exception()  # the waiting callers get it

    async def _attempt(self, bundle: Bundle, even_excluded: bool) -> BundleLock:
        held = self._held.get(bundle)
        if held is not None:
            if not self._held.holds(held):
                raise ServiceNotReady(f"Namespace bundle {bundle} is being moved")
            return self._locks.own
        self._held.check_session()
        if not even_excluded:
            await self._check_permitted(bundle)
        session_id = self._session.id
        lock, version = await self._locks.create(lock_key(bundle))
        if lock is not self._locks.own:
            return lock
        if session_id != self._session.id or not self._session.holds() or self._held.leaving:
            raise ServiceNotReady(f"Namespace bundle {bundle} was lost while it was taken")
        self._held.add(HeldBundle(bundle, version, session_id))
        log.info("bundle taken bundle=%s", bundle)
        return self._locks.own

    async def _check_permitted(self, bundle: Bundle) -> None:
        """Raise ServiceNotReady if no other broker has the bundle and this one may not."""
        reason = await self.exclusion(bundle.namespace, self._own_id)
        if reason is None:
            return
        lock = await self._locks.find(bundle)
        if lock is None or self._locks.is_own(lock):
            raise ServiceNotReady(f"Namespace bundle {bundle} is not taken: {reason}")

    async def release(self, bundle: Bundle) -> None:
        """Release a bundle: close its topics in order, then remove its lock."""
        held = self._held.get(bundle)
        if held is None or held.leaving:
            return
        held.leaving = True
        await with_waiting_reads(self._release(held))
        log.info("bundle released bundle=%s", bundle)

    async def _release(self, held: HeldBundle) -> None:
        assert self._topics is not None, "started"
        disabled = False
        try:
            await self._locks.disable(held)
            disabled = True
        except (MetadataError, CommitConflict) as error:
            log.warning("bundle not marked as leaving bundle=%s error=%s", held.bundle, error)
        try:
            async with asyncio.timeout(_UNLOAD_SECONDS_MAX):
                await self._topics.unload_all(list(held.topics))
        except TimeoutError:
            log.error("topics of a bundle not closed in time bundle=%s topics=%d", held.bundle, len(held.topics))
            self._topics.forsake(list(held.topics))
        finally:
            await self._locks.remove(held.key, held.version)
            if not disabled:
                await self._locks.remove_disabled(held.key)
            self._held.remove(held)

    async def release_missing(self) -> None:
        """Release the bundles of deleted namespaces."""
        for held in self._held.all():
            if not held.leaving and await self._boundaries(held.bundle.namespace) is None:
                await self.release(held.bundle)

    async def release_excluded(self, namespace: NamespaceName) -> None:
        """Release the bundles of a namespace that isolation policies exclude from this broker."""
        bundles = [bundle for bundle in self.owned if bundle.namespace == namespace]
        if bundles and await self.exclusion(namespace, self._own_id) is not None:
            await asyncio.gather(*map(self.release, bundles))

    async def split(
        self,
        bundle: Bundle,
        parts: Sequence[Bundle],
        part_of: Callable[[TopicName], str],
        commit: Callable[[Sequence[Change], Mapping[str, int | None]], Awaitable[None]],
    ) -> None:
        """Divide a bundle of this broker. ``commit`` stores the boundaries with the changes of locks, in one commit.

        The commit expects the lock to be this broker's; a free bundle is taken first. The topics stay open; ``part_of``
        returns the range of a topic after the division. Raises ServiceNotReady if another broker owns the bundle, or if
        it was lost meanwhile.
        """
        if self._held.get(bundle) is None:
            await self.take(bundle)
        old = self._held.get(bundle)
        if old is None or not self._held.holds(old):
            raise ServiceNotReady(f"Namespace bundle {bundle} is not served by {self._own_id}")
        old.leaving = True
        new = {part.range: HeldBundle(part, -1, old.session_id) for part in parts}
        for held in new.values():
            held.sure = False
            self._held.add(held)
        puts = [self._locks.put(held.key) for held in new.values()]
        try:
            await commit([*puts, Delete(old.key)], {old.key: old.version})
        except BaseException as error:
            old.leaving = False
            for held in new.values():
                self._held.remove(held)
            self._settlement.on_lock(old.key)  # changes of the lock were ignored meanwhile
            if isinstance(error, CommitConflict) and error.key == old.key:
                raise ServiceNotReady(f"Namespace bundle {bundle} was lost while it was divided") from error
            raise
        for topic in list(old.topics):
            self._held.bind(topic, new[part_of(topic)])
        self._held.remove(old)
        await self._settlement.settle_held(list(new.values()), self._session.id)
        log.info("bundle divided bundle=%s parts=%d", bundle, len(parts))
