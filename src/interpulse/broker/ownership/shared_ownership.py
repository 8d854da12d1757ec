"""The bundles of one broker among several of a cluster.

A broker owns a bundle while the lock of the bundle, an ephemeral key, is its own. What is held is judged by the clock
wherever it is asked for (`holds`): it counts only while the session surely lives, however late an event comes. The lock
as it was taken is what commits about the topics of the bundle rest on (`GuardedMetadata`).

* Requests for one bundle share one attempt to take it.
* A lock that changed or went is not relied on until it was read again. Where it is another's, or was, the topics are
  closed without writing; where it was free all the time it is taken again, and topics whose records nobody touched
  meanwhile go on as if nothing had happened. What isolation policies keep from this broker by then is given away in
  order. Source: docs/reference/cluster-protocol.md#lost-session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final, Protocol

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.ownership import NO_OPTIONS, Bundle, LookupOptions
from interpulse.broker.ownership.registered_brokers import RegisteredBrokers
from interpulse.model.brokers import BundleLock
from interpulse.model.errors import MetadataError, PulsarError, ServiceNotReady
from interpulse.model.isolation import IsolationPolicies
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.bundles import bundle_of
from interpulse.rules.isolation import exclusion
from interpulse.rules.lookup import LookupTarget, Owner
from interpulse.rules.placement import BrokersView, Take, decide_placement
from interpulse.storage.api import Change, CommitConflict, Delete, MetadataStore, Put, Versioned
from interpulse.storage.metadata.guarded import GuardedMetadata, LockLost
from interpulse.storage.metadata.session_bounded import session_lost, until_session_lost, with_waiting_reads
from interpulse.storage.sessions import SessionState

__all__ = ["HeldTopics", "SharedOwnership"]

log = logging.getLogger(__name__)

_TAKEN_AT_ONCE: Final = 32
_TAKE_SECONDS_MAX: Final = 20.0
"""Less than the 30 s after which clients give a lookup up."""
_ATTEMPTS_MAX: Final = 20
_UNLOAD_SECONDS_MAX: Final = 60.0  # namespaceBundleUnloadingTimeoutMs
_RELEASED_AT_ONCE: Final = 8
_RETRY_SECONDS: Final = 1.0
_ANSWERS_MAX: Final = 100_000  # some 300 bytes each; with more all are forgotten


class HeldTopics(Protocol):
    """The loaded topics of this broker."""

    async def unload_all(self, names: Sequence[TopicName]) -> None:
        """Close them in order; clients come back where the bundle goes."""

    def forsake(self, names: Sequence[TopicName]) -> None:
        """Another broker may have them: close them without writing anything."""

    async def recheck(self, names: Sequence[TopicName]) -> None:
        """Their bundle was free for a while: those whose records another broker touched are forsaken."""


class _Held:
    """A bundle whose lock this broker took."""

    __slots__ = ("bundle", "key", "leaving", "session_id", "sure", "topics", "version")

    def __init__(self, bundle: Bundle, version: int, session_id: int) -> None:
        self.bundle = bundle
        self.key = _key(bundle)
        self.version = version
        self.session_id = session_id
        self.sure = True
        """The lock stood when it was read last, and did not change since."""
        self.leaving = False
        """The bundle is being given away."""
        self.topics: set[TopicName] = set()

    def lock(self) -> Mapping[str, int]:
        if not self.sure:
            raise LockLost(f"the lock {self.key} may be lost, nothing was written")
        return {self.key: self.version}


class SharedOwnership:
    """See the module. `start` before the first call, `leave` at the end."""

    def __init__(
        self,
        store: MetadataStore,
        guarded: GuardedMetadata,
        brokers: RegisteredBrokers,
        boundaries: Callable[[NamespaceName], Awaitable[Sequence[str] | None]],
        isolation: Callable[[], Awaitable[IsolationPolicies]],
    ) -> None:
        """``boundaries`` gives those of a namespace, None if there is no such namespace.

        ``isolation`` gives the isolation policies of the cluster.
        """
        self.brokers = brokers
        self.metadata = guarded
        """The metadata as topics and their logs write it."""
        self.on_resumed: Callable[[], None] = lambda: None
        """Called when `serving` is true again."""
        self.on_lost: Callable[[], None] = lambda: None
        """Called when the session is lost."""
        self._store = store
        self._session = store.session
        self._boundaries = boundaries
        self._isolation = isolation
        self._topics: HeldTopics | None = None
        self._me = brokers.own.broker
        self._lock = BundleLock(self._me)
        self._disabled = BundleLock(self._me, disabled=True).dump()
        self._held: dict[str, _Held] = {}
        self._holders: dict[TopicName, _Held] = {}
        self._attempts: dict[str, asyncio.Task[BundleLock]] = {}
        self._answers: dict[tuple[NamespaceName, str], tuple[LookupTarget, dict[str, int | None]]] = {}
        self._settled_id = self._session.id
        self._unsettled = False
        self._settling: asyncio.Task[None] | None = None
        self._taken_again: set[NamespaceName] = set()
        self._giving: asyncio.Task[None] | None = None
        self._leaving = False
        self._cancel: list[Callable[[], None]] = []

    def start(self, topics: HeldTopics) -> None:
        """Follow the session and the locks from now on."""
        self._topics = topics
        self._cancel.append(self._store.watch(keys.LOCKS, self._on_lock))
        self._cancel.append(self._session.on_change(self._on_session))

    async def leave(self) -> None:
        """Remove the load report, then unload the bundles, some at a time.

        Source: docs/reference/cluster-protocol.md#unloading.
        """
        self._leaving = True
        await self.brokers.leave()
        permits = asyncio.Semaphore(_RELEASED_AT_ONCE)

        async def release(bundle: Bundle) -> None:
            async with permits:
                await self.release(bundle)

        await asyncio.gather(*(release(each.bundle) for each in list(self._held.values())))
        self._stop_following()

    def _stop_following(self) -> None:
        for cancel in self._cancel:
            cancel()
        self._cancel.clear()
        for task in (self._settling, self._giving):
            if task is not None:
                task.cancel()

    # --- what is held

    @property
    def owned(self) -> list[Bundle]:
        """The bundles of this broker."""
        return [each.bundle for each in self._held.values()]

    def topics(self) -> Mapping[str, Collection[TopicName]]:
        """The loaded topics of each of them, by the path of the bundle."""
        return {str(each.bundle): each.topics for each in self._held.values()}

    async def bundles_of(self, namespace: NamespaceName) -> list[Bundle]:
        """All bundles of a namespace, whoever owns them; none if there is no such namespace."""
        boundaries = await self._boundaries(namespace) or ()
        return [Bundle(namespace, f"{lower}_{upper}") for lower, upper in pairwise(boundaries)]

    def serving(self) -> bool:
        """Whether what this broker holds surely is its own: entries may be sent, and acknowledgements answered."""
        return self._session.holds() and self._settled_id == self._session.id

    def _holds(self, held: _Held | None) -> bool:
        return (
            held is not None
            and held.sure
            and not held.leaving
            and held.session_id == self._session.id
            and self._session.holds()
        )

    def holds(self, topic: TopicName) -> bool:
        """Whether the bundle of an acquired topic is this broker's, as the clock says now."""
        return self._holds(self._holders.get(topic))

    # --- topics

    async def acquire(self, topic: TopicName) -> None:
        """The topic may be loaded; until `forget` its record is written under the lock only.

        Raises ServiceNotReady if its bundle is not this broker's: clients look up before they open.
        """
        self._check_session()
        boundaries = await self._boundaries(topic.namespace_name)
        if boundaries is None:
            return  # the rules refuse it
        bundle = Bundle(topic.namespace_name, bundle_of(topic, boundaries))
        attempt = self._attempts.get(_key(bundle))
        if attempt is not None:
            await asyncio.wait([attempt])
        held = self._held.get(_key(bundle))
        if held is None or not self._holds(held):
            raise ServiceNotReady(
                f"Namespace bundle ({bundle}) for topic ({topic}) not served by this "
                f"instance:{self._me.broker_id}. Please redo the lookup."
            )
        self._bind(topic, held)

    def check(self, topic: TopicName) -> None:
        """Raises ServiceNotReady unless the bundle of a loaded topic is this broker's."""
        if not self.holds(topic):
            raise ServiceNotReady(
                f"Topic {topic} is not served by this instance:{self._me.broker_id}. Please redo the lookup."
            )

    async def opened(self, topic: TopicName) -> None:
        """The topic is loaded. Raises ServiceNotReady if its bundle was lost since."""
        await self.metadata.remember(topic.log_name)
        self.check(topic)

    async def is_as_left(self, topic: TopicName) -> bool:
        """Whether nobody but this broker has changed the record of the topic since it was loaded."""
        return await self.metadata.is_as_left(topic.log_name)

    def forget(self, topic: TopicName) -> None:
        """The topic is not loaded any more."""
        held = self._holders.pop(topic, None)
        if held is not None:
            held.topics.discard(topic)
            self.metadata.unbind(topic.log_name)

    def _bind(self, topic: TopicName, held: _Held) -> None:
        held.topics.add(topic)
        self._holders[topic] = held
        self.metadata.bind(topic.log_name, held.lock)

    # --- lookups

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        self._check_session()
        found = await self._locks(bundles, options)
        free = [bundle for bundle in bundles if _key(bundle) not in found]
        brokers, destinations = await self._placing(free, options)
        answers: dict[tuple[NamespaceName, str], LookupTarget | PulsarError] = {}
        to_take = []
        for bundle in bundles:
            try:
                placed = self._place(bundle, found.get(_key(bundle)), brokers, options, destinations.get(bundle))
            except PulsarError as error:
                placed = error
            if isinstance(placed, Take):
                to_take.append(bundle)
            else:
                answers[bundle] = placed
        permits = asyncio.Semaphore(_TAKEN_AT_ONCE)
        taken = await asyncio.gather(*(self._taken(bundle, options, permits) for bundle in to_take))
        answers.update(zip(to_take, taken, strict=True))
        return partial(_answer, answers)

    def check_serving(self) -> None:
        self._check_session()
        if not self.serving():
            raise session_lost()

    def known(self) -> Owner | None:
        return self._known_owner if self.serving() else None

    def _known_owner(self, namespace: NamespaceName, bundle: str) -> LookupTarget:
        known = self._answers.get((namespace, bundle))
        if known is None or not self._store.unchanged(known[1]):
            raise ServiceNotReady(f"The owner of {namespace}/{bundle} has to be asked for")
        return known[0]

    async def _locks(self, bundles: Sequence[Bundle], options: LookupOptions) -> Mapping[str, Versioned]:
        if options.authoritative:  # another broker saw something that may not have come here yet
            await self._store.sync(keys.LOCKS)
        return await self._store.get_many([_key(bundle) for bundle in bundles])

    async def _placing(
        self, free: Sequence[Bundle], options: LookupOptions
    ) -> tuple[BrokersView, Mapping[Bundle, str]]:
        """What the place of free bundles depends on: the brokers, and those that some of them are unloaded for."""
        asked = {bundle: keys.bundle_destination(*bundle) for bundle in free}
        found = await self._store.get_many(list(asked.values())) if free else {}
        destinations = {bundle: found[key].value.decode() for bundle, key in asked.items() if key in found}
        if not free or (options.authoritative and not destinations):
            return BrokersView(self._me.broker_id, {}), destinations
        return replace(await self.brokers.view(), isolation=await self._isolation()), destinations

    def _place(
        self,
        bundle: Bundle,
        stored: Versioned | None,
        brokers: BrokersView,
        options: LookupOptions,
        destination: str | None,
    ) -> LookupTarget | PulsarError | Take:
        key = _key(bundle)
        lock = None if stored is None else _parsed(key, stored)
        if lock is not None and lock.broker.broker_id == self._me.broker_id:
            held = self._held.get(key)
            if held is not None and held.leaving:
                raise MetadataError(f"Namespace bundle {bundle} is being unloaded")
            if not self._holds(held):
                return Take()
        placed = decide_placement(
            str(bundle),
            lock,
            brokers,
            authoritative=options.authoritative,
            listener_name=options.listener_name,
            destination=destination,
        )
        if stored is not None and isinstance(placed, LookupTarget) and options == NO_OPTIONS:
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            self._answers[bundle] = placed, {key: stored.version}
        return placed

    async def _taken(
        self, bundle: Bundle, options: LookupOptions, permits: asyncio.Semaphore
    ) -> LookupTarget | PulsarError:
        """The owner after an attempt to take the bundle, or what kept it from being known."""
        async with permits:
            try:
                async with asyncio.timeout(_TAKE_SECONDS_MAX):
                    lock = await until_session_lost(self._session, self.take(bundle))
            except TimeoutError:
                return MetadataError(f"Namespace bundle {bundle} was not taken within {_TAKE_SECONDS_MAX:.0f} s")
            except PulsarError as error:
                return error
        brokers = BrokersView(self._me.broker_id, {})
        try:
            placed = decide_placement(
                str(bundle), lock, brokers, authoritative=True, listener_name=options.listener_name
            )
        except PulsarError as error:
            return error
        assert isinstance(placed, LookupTarget), "there is a lock"
        return placed

    # --- taking and giving away

    async def exclusion(self, namespace: NamespaceName, broker_id: str) -> str | None:
        """Why a broker may not have bundles of a namespace; None if it may."""
        policies = await self._isolation()
        return exclusion(policies, str(namespace), broker_id, (await self.brokers.view()).reports) if policies else None

    async def take(self, bundle: Bundle, *, even_excluded: bool = False) -> BundleLock:
        """Own a free bundle; the lock that stands then, which may be another's. Raises ServiceNotReady.

        Isolation policies keep a free bundle from this broker unless ``even_excluded``: then `release_excluded` has to
        follow.
        """
        key = _key(bundle)
        attempt = self._attempts.get(key)
        if attempt is None:
            attempt = self._attempts[key] = asyncio.get_running_loop().create_task(self._attempt(bundle, even_excluded))
            attempt.add_done_callback(lambda done: self._attempt_ended(key, done))
        return await asyncio.shield(attempt)

    def _attempt_ended(self, key: str, done: asyncio.Task[BundleLock]) -> None:
        self._attempts.pop(key, None)
        if not done.cancelled():
            done.exception()  # whoever waits for it has it

    async def _attempt(self, bundle: Bundle, even_excluded: bool) -> BundleLock:
        held = self._held.get(_key(bundle))
        if held is not None:
            if not self._holds(held):
                raise ServiceNotReady(f"Namespace bundle {bundle} is on its way here or elsewhere")
            return self._lock
        self._check_session()
        if not even_excluded:
            await self._check_permitted(bundle)
        session_id = self._session.id
        lock, version = await self._lock_node(_key(bundle))
        if lock is not self._lock:
            return lock
        if session_id != self._session.id or not self._session.holds() or self._leaving:
            raise ServiceNotReady(f"Namespace bundle {bundle} was lost while it was taken")
        self._held[_key(bundle)] = _Held(bundle, version, session_id)
        log.info("bundle taken bundle=%s", bundle)
        return self._lock

    async def _check_permitted(self, bundle: Bundle) -> None:
        """Raises ServiceNotReady if nobody else has the bundle and this broker may not."""
        reason = await self.exclusion(bundle.namespace, self._me.broker_id)
        if reason is None:
            return
        key = _key(bundle)
        stored = await self._store.get(key)
        if stored is None or _parsed(key, stored).broker.broker_id == self._me.broker_id:
            raise ServiceNotReady(f"Namespace bundle {bundle} is not taken: {reason}")

    async def _lock_node(self, key: str) -> tuple[BundleLock, int]:
        """Create the lock, or take over one of this broker's own; what stands then, and its version."""
        put = Put(key, self._lock.dump(), ephemeral=True)
        for _ in range(_ATTEMPTS_MAX):
            stored = await self._store.get(key)
            version = None if stored is None else stored.version
            if stored is not None and (other := _parsed(key, stored)).broker.broker_id != self._me.broker_id:
                return other, stored.version
            try:
                await self._store.commit([put], {key: version})
            except CommitConflict:
                if version is not None:  # of an earlier life of this broker, whose session has not ended yet
                    await self._remove(key, version)
                continue
            stored = await self._store.get(key)
            if stored is not None and stored.value == put.value:
                return self._lock, stored.version
        raise MetadataError(f"The lock {key} keeps changing; gave up after {_ATTEMPTS_MAX} attempts")

    async def release(self, bundle: Bundle) -> None:
        """Give a bundle away in order: nobody is sent here, its topics are closed, then the lock goes."""
        held = self._held.get(_key(bundle))
        if held is None or held.leaving:
            return
        held.leaving = True
        await with_waiting_reads(self._release(held))
        log.info("bundle released bundle=%s", bundle)

    async def _release(self, held: _Held) -> None:
        assert self._topics is not None, "started"
        disabled = False
        try:
            await self._disable(held)
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
            await self._remove(held.key, held.version)
            if not disabled:
                await self._remove_disabled(held.key)
            self._held.pop(held.key, None)

    async def release_missing(self) -> None:
        """Give away the bundles that there are no more, since their namespace was deleted."""
        for held in list(self._held.values()):
            if not held.leaving and await self._boundaries(held.bundle.namespace) is None:
                await self.release(held.bundle)

    async def release_excluded(self, namespace: NamespaceName) -> None:
        """Give away what this broker has of a namespace that isolation policies keep from it."""
        held = [each.bundle for each in self._held.values() if each.bundle.namespace == namespace]
        if held and await self.exclusion(namespace, self._me.broker_id) is not None:
            await asyncio.gather(*map(self.release, held))

    async def _disable(self, held: _Held) -> None:
        await self._store.commit([Put(held.key, self._disabled, ephemeral=True)], {held.key: held.version})
        stored = await self._store.get(held.key)
        if stored is not None and stored.value == self._disabled:
            held.version = stored.version

    async def _remove_disabled(self, key: str) -> None:
        """What `_disable` has left whose answer did not come: nobody else would take the bundle."""
        try:
            stored = await self._store.get(key)
        except MetadataError as error:
            log.warning("lock not read, it goes with the session key=%s error=%s", key, error)
            return
        if stored is not None and stored.value == self._disabled:
            await self._remove(key, stored.version)

    async def _remove(self, key: str, version: int) -> None:
        """Remove the lock of that version; one that is not there any more is another's or nobody's."""
        try:
            await self._store.commit([Delete(key)], {key: version})
        except CommitConflict:
            return
        except MetadataError as error:
            log.warning("lock not removed, it goes with the session key=%s error=%s", key, error)

    async def split(
        self,
        bundle: Bundle,
        parts: Sequence[Bundle],
        part_of: Callable[[TopicName], str],
        commit: Callable[[Sequence[Change], Mapping[str, int | None]], Awaitable[None]],
    ) -> None:
        """Divide a bundle of this broker. ``commit`` stores the boundaries with the changes of locks, in one commit.

        That expects the lock to be this broker's; a free bundle is taken first. The topics stay open; ``part_of`` names
        the range that each lies in then. Raises ServiceNotReady if the bundle is another's, or was lost meanwhile.
        """
        if _key(bundle) not in self._held:
            await self.take(bundle)
        old = self._held.get(_key(bundle))
        if old is None or not self._holds(old):
            raise ServiceNotReady(f"Namespace bundle {bundle} is not served by {self._me.broker_id}")
        old.leaving = True
        new = {part.range: _Held(part, -1, old.session_id) for part in parts}
        for held in new.values():
            held.sure = False
            self._held[held.key] = held
        puts = [Put(held.key, self._lock.dump(), ephemeral=True) for held in new.values()]
        try:
            await commit([*puts, Delete(old.key)], {old.key: old.version})
        except BaseException as error:
            old.leaving = False
            for held in new.values():
                self._held.pop(held.key, None)
            self._on_lock(old.key)  # changes were passed over meanwhile
            if isinstance(error, CommitConflict) and error.key == old.key:
                raise ServiceNotReady(f"Namespace bundle {bundle} was lost while it was divided") from error
            raise
        for topic in list(old.topics):
            self._bind(topic, new[part_of(topic)])
        self._held.pop(old.key, None)
        await self._settle_held(list(new.values()), self._session.id)
        log.info("bundle divided bundle=%s parts=%d", bundle, len(parts))

    # --- what becomes of the session and of locks

    def _check_session(self) -> None:
        if self._leaving:
            raise ServiceNotReady("The broker is shutting down")
        if not self._session.holds():
            raise session_lost()

    def _on_session(self, state: SessionState) -> None:
        log.warning("metadata session changed state=%s session=%d", state.value, self._session.id)
        if state is SessionState.CONNECTED:
            self._settle_soon()
        elif state is SessionState.LOST and not self._leaving:
            self.on_lost()

    def _on_lock(self, key: str) -> None:
        concerned = [self._held[key]] if key in self._held else list(self._held.values()) if key == keys.LOCKS else []
        for held in concerned:
            if held.sure and not held.leaving and not self._store.unchanged({held.key: held.version}):
                held.sure = False
                self._settle_soon()

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
        """Find out what is still held, again until nothing changed meanwhile or the session is lost once more."""
        while self._unsettled and not self._leaving:
            self._unsettled = False
            session_id = self._session.id
            try:
                await self._settle_held(list(self._held.values()), session_id)
                if session_id != self._settled_id:
                    await self.brokers.renew()
            except MetadataError as error:
                if not self._session.holds():
                    return  # its return begins this anew
                log.warning("locks cannot be read, tried again error=%s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                self._unsettled = True
                continue
            if session_id == self._session.id:
                self._settled_id = session_id
                self.on_resumed()
                self._give_excluded()

    def _give_excluded(self) -> None:
        """What was taken again, so that its topics end in order, goes where isolation policies want it by now."""
        if self._taken_again and (self._giving is None or self._giving.done()):
            self._giving = asyncio.get_running_loop().create_task(self._give())

    async def _give(self) -> None:
        while self._taken_again:
            namespace = self._taken_again.pop()
            try:
                await self.release_excluded(namespace)
            except PulsarError as error:
                log.warning("isolation policies not asked namespace=%s error=%s", namespace, error)

    async def _settle_held(self, held: Sequence[_Held], session_id: int) -> None:
        unsure = [each for each in held if not each.leaving and not (each.sure and each.session_id == session_id)]
        found = await self._store.get_many([each.key for each in unsure])
        permits = asyncio.Semaphore(_TAKEN_AT_ONCE)

        async def settle(each: _Held) -> None:
            async with permits:
                await self._settle_one(each, found.get(each.key), session_id)

        await asyncio.gather(*map(settle, unsure))

    async def _settle_one(self, held: _Held, stored: Versioned | None, session_id: int) -> None:
        same_session = session_id == held.session_id
        if stored is not None and same_session and stored.version == held.version:
            held.sure = True
            return
        held.sure = False
        assert self._topics is not None, "started"
        lock, version = await self._lock_node(held.key)
        if lock is not self._lock:
            log.warning("bundle lost bundle=%s owner=%s", held.bundle, lock.broker.broker_id)
            self._held.pop(held.key, None)
            self._topics.forsake(list(held.topics))
            return
        new = held.version < 0
        held.version, held.session_id = version, session_id
        if not new:
            log.warning("bundle taken again bundle=%s topics=%d", held.bundle, len(held.topics))
            await self._topics.recheck(list(held.topics))
            self._taken_again.add(held.bundle.namespace)
        held.sure = True


def _key(bundle: Bundle) -> str:
    return keys.bundle_lock(bundle.namespace, bundle.range)


def _parsed(key: str, stored: Versioned) -> BundleLock:
    try:
        return BundleLock.load(stored.value)
    except ValueError as error:
        raise MetadataError(f"The lock {key} cannot be understood: {error}") from error


def _answer(
    answers: Mapping[tuple[NamespaceName, str], LookupTarget | PulsarError], namespace: NamespaceName, bundle: str
) -> LookupTarget:
    answer = answers[namespace, bundle]
    if isinstance(answer, PulsarError):
        raise answer
    return answer
