"""The roles of namespaces in a pair of clusters: read for topics, and set for all brokers of this cluster."""

from __future__ import annotations

import logging
from typing import Final

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.clock import Clock, iso_time
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.failover_role import ACTIVE, FailoverRole, effective_role, with_migrated, with_role

log = logging.getLogger(__name__)

_WARNED_MAX: Final = 1000


class FailoverRoles:
    """Roles of namespaces, read and set."""

    def __init__(self, namespaces: Namespaces, clusters: Clusters, clock: Clock) -> None:
        self._namespaces = namespaces
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
        return role

    async def of(self, namespace: NamespaceName) -> FailoverRole:
        """Return the role in force; raises NamespaceNotFound."""
        return await self.of_policies(namespace, await self._namespaces.get_policies(namespace))

    async def set(self, namespace: NamespaceName, role: FailoverRole) -> None:
        """Store a role. Raise NamespaceNotFound, and Conflict if the stored epoch is higher."""
        since = iso_time(self._clock.now_ms())
        await self._namespaces.update_policies(namespace, lambda policies: with_role(policies, role, since))

    async def set_migrated(self, namespace: NamespaceName, *, migrated: bool) -> None:
        """Mark a namespace as migrated, or unmark it. Raise NamespaceNotFound, and Conflict as `with_migrated`."""
        migration = await self._clusters.migration(self._namespaces.local_cluster)
        await self._namespaces.update_policies(
            namespace, lambda policies: with_migrated(policies, migration, migrated=migrated)
        )
