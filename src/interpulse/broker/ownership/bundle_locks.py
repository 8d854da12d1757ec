"""The locks of bundles: ephemeral keys of the metadata store, one for each bundle that a broker owns.

Invariants that this module keeps:

* A lock is created, replaced or removed only at the version that was read. The lock of another broker is never touched.
* A lock of an earlier session of this broker is removed before a new one is created, so that it cannot end with the
  earlier session.
* A commit about the topics of a bundle expects the lock at the version at which it was taken, and fails with LockLost
  while that version is in doubt (`HeldBundle.lock`).

Model: docs/models/bundle_takeover.tla.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.ownership import Bundle
from interpulse.model.brokers import BrokerAddresses, BundleLock
from interpulse.model.errors import MetadataError, ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, Put, Versioned
from interpulse.storage.metadata.guarded import GuardedMetadata, LockLost
from interpulse.storage.metadata.session_bounded import session_lost
from interpulse.storage.sessions import Session

log = logging.getLogger(__name__)

_ATTEMPTS_MAX: Final = 20


class HeldBundle:
    """A bundle whose lock this broker took."""

    __slots__ = ("bundle", "key", "leaving", "session_id", "sure", "topics", "version")

    def __init__(self, bundle: Bundle, version: int, session_id: int) -> None:
        self.bundle = bundle
        self.key = lock_key(bundle)
        self.version = version
        self.session_id = session_id
        self.sure = True
        """False from a change of the lock until the lock is read again."""
        self.leaving = False
        """True while the bundle is being released or divided."""
        self.topics: dict[TopicName, None] = {}
        """The open topics, in the order in which they were opened."""

    def lock(self) -> Mapping[str, int]:
        """Return the expectation for commits about topics of the bundle. Raise LockLost while the lock is in doubt."""
        if not self.sure:
            raise LockLost(f"the lock {self.key} may be lost, nothing was written")
        return {self.key: self.version}


class BundleLocks:
    """Reads and writes the locks in the name of one broker."""

    def __init__(self, store: MetadataStore, broker: BrokerAddresses) -> None:
        self.own = BundleLock(broker)
        self._store = store
        self._disabled = BundleLock(broker, disabled=True).dump()

    def is_own(self, lock: BundleLock) -> bool:
        """Return True if the lock is this broker's, from this or an earlier session."""
        return lock.broker.broker_id == self.own.broker.broker_id

    async def read(self, bundles: Sequence[Bundle], *, newest: bool = False) -> Mapping[str, Versioned]:
        """Return the stored locks by key. With ``newest``, after every change that any broker has seen."""
        if newest:
            await self._store.sync(keys.LOCKS)
        return await self._store.get_many([lock_key(bundle) for bundle in bundles])

    async def find(self, bundle: Bundle) -> BundleLock | None:
        """Return the stored lock of a bundle, None if the bundle is free."""
        key = lock_key(bundle)
        stored = await self._store.get(key)
        return None if stored is None else parsed_lock(key, stored)

    async def create(self, key: str) -> tuple[BundleLock, int]:
        """Create the lock, or take over an earlier one of this broker. Return the stored lock with its version.

        The result is `own` only if this broker has the lock.
        """
        put = self.put(key)
        for _ in range(_ATTEMPTS_MAX):
            stored = await self._store.get(key)
            version = None if stored is None else stored.version
            if stored is not None and not self.is_own(other := parsed_lock(key, stored)):
                return other, stored.version
            try:
                await self._store.commit([put], {key: version})
            except CommitConflict:
                if version is not None:  # from an earlier session of this broker that has not ended yet
                    await self.remove(key, version)
                continue
            stored = await self._store.get(key)
            if stored is not None and stored.value == put.value:
                return self.own, stored.version
        raise MetadataError(f"The lock {key} keeps changing; gave up after {_ATTEMPTS_MAX} attempts")

    def put(self, key: str) -> Put:
        """Return the change that creates a lock of this broker."""
        return Put(key, self.own.dump(), ephemeral=True)

    async def disable(self, held: HeldBundle) -> None:
        """Mark the lock as leaving, so that lookups wait for the next owner."""
        await self._store.commit([Put(held.key, self._disabled, ephemeral=True)], {held.key: held.version})
        stored = await self._store.get(held.key)
        if stored is not None and stored.value == self._disabled:
            held.version = stored.version

    async def remove_disabled(self, key: str) -> None:
        """Remove the mark of a `disable` whose answer was lost. Otherwise no broker could take the bundle."""
        try:
            stored = await self._store.get(key)
        except MetadataError as error:
            log.warning("lock not read, it ends with the session key=%s error=%s", key, error)
            return
        if stored is not None and stored.value == self._disabled:
            await self.remove(key, stored.version)

    async def remove(self, key: str, version: int) -> None:
        """Remove the lock of this version. A lock that changed since stays: it is another broker's."""
        try:
            await self._store.commit([Delete(key)], {key: version})
        except CommitConflict:
            return
        except MetadataError as error:
            log.warning("lock not removed, it ends with the session key=%s error=%s", key, error)


def lock_key(bundle: Bundle) -> str:
    """Return the key of a bundle's lock."""
    return keys.bundle_lock(bundle.namespace, bundle.range)


def parsed_lock(key: str, stored: Versioned) -> BundleLock:
    """Decode a lock. Raise MetadataError if it is none."""
    try:
        return BundleLock.load(stored.value)
    except ValueError as error:
        raise MetadataError(f"The lock {key} is invalid: {error}") from error


class HeldBundles:
    """The bundles that this broker holds, and the loaded topics in them.

    Invariants:

    * A bundle counts as held only while the session surely lives by the clock, however late the event of its loss
      arrives (`holds`); and only under the session in which its lock was taken or confirmed.
    * The broker serves only after every held lock was read under the current session (`serving`).
    * A topic is bound to the lock of its bundle from `bind` until `forget`: its record is written under that lock
      alone.
    """

    def __init__(self, session: Session, metadata: GuardedMetadata) -> None:
        self.by_key: dict[str, HeldBundle] = {}
        self.session = session
        self.settled_id = session.id
        """The session under which all locks were read last."""
        self.leaving = False
        """True while the broker releases all bundles."""
        self._metadata = metadata
        self._holders: dict[TopicName, HeldBundle] = {}

    def get(self, bundle: Bundle) -> HeldBundle | None:
        """Return the bundle if its lock was taken; see `holds`."""
        return self.by_key.get(lock_key(bundle))

    def add(self, held: HeldBundle) -> None:
        self.by_key[held.key] = held

    def remove(self, held: HeldBundle) -> None:
        self.by_key.pop(held.key, None)

    def all(self) -> list[HeldBundle]:
        """Return the bundles whose locks were taken."""
        return list(self.by_key.values())

    def topics(self) -> Mapping[str, Collection[TopicName]]:
        """Return the loaded topics of each bundle, by the path of the bundle."""
        return {str(held.bundle): held.topics for held in self.by_key.values()}

    def serving(self) -> bool:
        """Return True if held bundles surely are this broker's: it may send entries and answer acknowledgements."""
        return self.session.holds() and self.settled_id == self.session.id

    def holds(self, held: HeldBundle | None) -> bool:
        """Return True if the bundle is this broker's, as the clock says now."""
        return (
            held is not None
            and held.sure
            and not held.leaving
            and held.session_id == self.session.id
            and self.session.holds()
        )

    def holds_topic(self, topic: TopicName) -> bool:
        """Return True if the bundle of a bound topic is this broker's, as the clock says now."""
        return self.holds(self._holders.get(topic))

    def check_session(self) -> None:
        """Raise ServiceNotReady while no bundle can be taken."""
        if self.leaving:
            raise ServiceNotReady("The broker is shutting down")
        if not self.session.holds():
            raise session_lost()

    def bind(self, topic: TopicName, held: HeldBundle) -> None:
        """Write the record of a topic under the lock of its bundle from now on."""
        held.topics[topic] = None
        self._holders[topic] = held
        self._metadata.bind(topic.log_name, held.lock)

    def forget(self, topic: TopicName) -> None:
        """Remove the binding of a closed topic."""
        held = self._holders.pop(topic, None)
        if held is not None:
            held.topics.pop(topic, None)
            self._metadata.unbind(topic.log_name)
