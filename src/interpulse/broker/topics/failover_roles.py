"""The roles of namespaces in a pair of clusters: read for topics, and set for all brokers of this cluster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.clock import Clock, iso_time
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.failover_role import (
    ACTIVE,
    ROLE_PROPERTY,
    FailoverRole,
    after_peer,
    effective_role,
    stored_role,
    with_migrated,
    with_role,
)

if TYPE_CHECKING:
    from interpulse.broker.topics.failover_peer import FailoverPeer

log = logging.getLogger(__name__)

_WARNED_MAX: Final = 1000


class FailoverRoles:
    """Roles of namespaces, read and set."""

    def __init__(
        self,
        namespaces: Namespaces,
        tenants: Tenants,
        clusters: Clusters,
        clock: Clock,
        peer: FailoverPeer | None = None,
    ) -> None:
        """Create the roles. ``peer`` confirms those that were set before this broker started."""
        self.peer = peer
        self._namespaces = namespaces
        self._tenants = tenants
        self._clusters = clusters
        self._clock = clock
        self._warned: set[tuple[NamespaceName, str]] = set()

    async def of_policies(self, namespace: NamespaceName, policies: NamespacePolicies | None) -> FailoverRole:
        """Return the role in force with these policies. A stored value that is malformed is logged once."""
        if policies is None:
            return ACTIVE
        migration = await self._clusters.migration(self._namespaces.local_cluster)
        role, problem = effective_role(policies, migration)
        if problem and (namespace, problem) not in self._warned and len(self._warned) < _WARNED_MAX:
            self._warned.add((namespace, problem))
            log.warning("failover role ignored namespace=%s error=%s", namespace, problem)
        if self.peer is not None and ROLE_PROPERTY in policies.properties:
            return self.peer.in_force(namespace, role)
        return role

    async def of(self, namespace: NamespaceName) -> FailoverRole:
        """Return the role in force; raises NamespaceNotFound."""
        return await self.of_policies(namespace, await self._namespaces.get_policies(namespace))

    async def stored(self, namespace: NamespaceName) -> FailoverRole | None:
        """Return the stored role; None if there is no such namespace, or it has none."""
        policies = await self._namespaces.find_policies(namespace)
        return stored_role(policies.properties)[0] if policies and ROLE_PROPERTY in policies.properties else None

    async def look_at_all(self) -> None:
        """Look at the roles of all namespaces, so that the peer is asked for them."""
        for tenant in await self._tenants.list():
            for namespace in map(NamespaceName.parse, await self._namespaces.list(tenant)):
                await self.of_policies(namespace, await self._namespaces.find_policies(namespace))

    def time_in(self, seconds: int) -> str:
        """Return the ISO time that it is in so many seconds, by the clock of this broker."""
        return iso_time(self._clock.now_ms() + seconds * 1000)

    async def set(self, namespace: NamespaceName, role: FailoverRole) -> None:
        """Store a role. Raise NamespaceNotFound, and Conflict if the stored epoch is higher."""
        since = iso_time(self._clock.now_ms())
        await self._namespaces.update_policies(namespace, lambda policies: with_role(policies, role, since))

    async def stand_by_after(self, namespace: NamespaceName, peer_epoch: int) -> FailoverRole | None:
        """Store standby if the peer's epoch is higher than the one that is stored by then, and return the role.

        Return None if the role needs no change. Raise NamespaceNotFound.
        """
        since, later = iso_time(self._clock.now_ms()), None

        def change(policies: NamespacePolicies) -> NamespacePolicies:
            nonlocal later
            own, _ = stored_role(policies.properties)
            decided = after_peer(own, peer_epoch)
            later = None if decided is own else decided
            return policies if later is None else with_role(policies, later, since)

        await self._namespaces.update_policies(namespace, change)
        return later

    async def set_migrated(self, namespace: NamespaceName, *, migrated: bool) -> None:
        """Mark a namespace as migrated, or unmark it. Raise NamespaceNotFound, and Conflict as `with_migrated`."""
        migration = await self._clusters.migration(self._namespaces.local_cluster)
        await self._namespaces.update_policies(
            namespace, lambda policies: with_migrated(policies, migration, migrated=migrated)
        )
