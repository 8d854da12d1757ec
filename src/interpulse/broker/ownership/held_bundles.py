"""The bundles that this broker holds, and the loaded topics in them.

Invariants that this module keeps:

* A bundle counts as held only while the session surely lives by the clock, however late the event of its loss arrives
  (`holds`); and only under the session in which its lock was taken or confirmed.
* The broker serves only after every held lock was read under the current session (`serving`).
* A topic is bound to the lock of its bundle from `bind` until `forget`: its record is written under that lock alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from interpulse.broker.ownership.bundle_locks import HeldBundle, lock_key
from interpulse.broker.ownership.ownership import Bundle
from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.metadata.guarded import GuardedMetadata
from interpulse.storage.metadata.session_bounded import session_lost
from interpulse.storage.sessions import Session


class HeldBundles:
    """The held bundles and their topics; see the module for the invariants."""

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
        held.topics.add(topic)
        self._holders[topic] = held
        self._metadata.bind(topic.log_name, held.lock)

    def forget(self, topic: TopicName) -> None:
        """Remove the binding of a closed topic."""
        held = self._holders.pop(topic, None)
        if held is not None:
            held.topics.discard(topic)
            self._metadata.unbind(topic.log_name)
