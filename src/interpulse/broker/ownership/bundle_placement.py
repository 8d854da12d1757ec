"""The owners of bundles for lookups: read from locks, placed by rules, taken where the rules name this broker.

An answer is cached with the version of its lock and is used only while the store is sure that the lock is unchanged and
this broker serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.bundle_locks import BundleLocks, HeldBundles, lock_key, parsed_lock
from interpulse.broker.ownership.ownership import NO_OPTIONS, Bundle, LookupOptions
from interpulse.broker.ownership.registered_brokers import RegisteredBrokers
from interpulse.model.brokers import BundleLock
from interpulse.model.errors import MetadataError, PulsarError, ServiceNotReady
from interpulse.model.isolation import IsolationPolicies
from interpulse.model.names import NamespaceName
from interpulse.rules.lookup import LookupTarget, Owner
from interpulse.rules.placement import BrokersView, Take, decide_placement
from interpulse.storage.api import MetadataStore, Versioned
from interpulse.storage.metadata.session_bounded import until_session_lost

TAKEN_AT_ONCE: Final = 32
_TAKE_SECONDS_MAX: Final = 20.0
"""A limit below the 30 s after which clients abandon a lookup."""
_ANSWERS_MAX: Final = 100_000  # some 300 bytes each; beyond that the cache is cleared


class BundlePlacement:
    """Answers of lookups, by bundle; see the module for their limits."""

    def __init__(
        self,
        store: MetadataStore,
        locks: BundleLocks,
        held: HeldBundles,
        brokers: RegisteredBrokers,
        isolation: Callable[[], Awaitable[IsolationPolicies]],
        take: Callable[[Bundle], Coroutine[Any, Any, BundleLock]],
    ) -> None:
        """Create a placement; ``take`` owns a free bundle and returns the stored lock."""
        self._store = store
        self._locks = locks
        self._held = held
        self._brokers = brokers
        self._isolation = isolation
        self._take = take
        self._own_id = brokers.own.broker.broker_id
        self._answers: dict[tuple[NamespaceName, str], tuple[LookupTarget, dict[str, int | None]]] = {}

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        """Return the owners of these bundles; see `Ownership.prepare`."""
        # the flag: another broker saw a change that may not have arrived here yet
        locks = await self._locks.read(bundles, newest=options.authoritative)
        free = [bundle for bundle in bundles if lock_key(bundle) not in locks]
        brokers, destinations = await self._placing(free, options)
        answers: dict[tuple[NamespaceName, str], LookupTarget | PulsarError] = {}
        to_take = []
        for bundle in bundles:
            try:
                placed = self._place(bundle, locks.get(lock_key(bundle)), brokers, options, destinations.get(bundle))
            except PulsarError as error:
                placed = error
            if isinstance(placed, Take):
                to_take.append(bundle)
            else:
                answers[bundle] = placed
        permits = asyncio.Semaphore(TAKEN_AT_ONCE)
        taken = await asyncio.gather(*(self._taken(bundle, options, permits) for bundle in to_take))
        answers.update(zip(to_take, taken, strict=True))
        return partial(_answer, answers)

    def cached(self, namespace: NamespaceName, bundle: str) -> LookupTarget:
        """Return the cached owner. Raise ServiceNotReady if there is none that surely holds."""
        answer = self._answers.get((namespace, bundle))
        if answer is None or not self._store.unchanged(answer[1]):
            raise ServiceNotReady(f"The owner of {namespace}/{bundle} is not cached")
        return answer[0]

    async def _placing(
        self, free: Sequence[Bundle], options: LookupOptions
    ) -> tuple[BrokersView, Mapping[Bundle, str]]:
        """Return the facts that place free bundles: the brokers, and the destinations of bundles that were unloaded."""
        destination_keys = {bundle: keys.bundle_destination(*bundle) for bundle in free}
        stored = await self._store.get_many(list(destination_keys.values())) if free else {}
        destinations = {bundle: stored[key].value.decode() for bundle, key in destination_keys.items() if key in stored}
        if not free or (options.authoritative and not destinations):
            return BrokersView(self._own_id, {}), destinations
        return replace(await self._brokers.view(), isolation=await self._isolation()), destinations

    def _place(
        self,
        bundle: Bundle,
        stored: Versioned | None,
        brokers: BrokersView,
        options: LookupOptions,
        destination: str | None,
    ) -> LookupTarget | PulsarError | Take:
        key = lock_key(bundle)
        lock = None if stored is None else parsed_lock(key, stored)
        if lock is not None and self._locks.is_own(lock):
            held = self._held.get(bundle)
            if held is not None and held.leaving:
                raise MetadataError(f"Namespace bundle {bundle} is being unloaded")
            if not self._held.holds(held):
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
        """Return the owner after an attempt to take the bundle, or the failure."""
        async with permits:
            try:
                async with asyncio.timeout(_TAKE_SECONDS_MAX):
                    lock = await until_session_lost(self._held.session, self._take(bundle))
            except TimeoutError:
                return MetadataError(f"Namespace bundle {bundle} was not taken within {_TAKE_SECONDS_MAX:.0f} s")
            except PulsarError as error:
                return error
        brokers = BrokersView(self._own_id, {})
        try:
            placed = decide_placement(
                str(bundle), lock, brokers, authoritative=True, listener_name=options.listener_name
            )
        except PulsarError as error:
            return error
        assert isinstance(placed, LookupTarget), "there is a lock"
        return placed


def _answer(
    answers: Mapping[tuple[NamespaceName, str], LookupTarget | PulsarError], namespace: NamespaceName, bundle: str
) -> LookupTarget:
    answer = answers[namespace, bundle]
    if isinstance(answer, PulsarError):
        raise answer
    return answer
