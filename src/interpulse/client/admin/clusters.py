"""Admin calls for clusters, their failure domains and their namespace isolation policies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpulse.client.admin.calls import Changes, ask, make_change, send
from interpulse.client.json_readers import each, list_made_by, made_by, names, optional, record
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.clusters import ClusterData, ClusterMigration, FailureDomain
from interpulse.model.isolation import BrokerIsolation, IsolationPolicy
from interpulse.model.operations import Clusters, IsolationPolicies

Names = list[str]
Isolations = list[BrokerIsolation]


class ClustersAdmin:
    """Registered clusters, including the local one.

    With ``previewed`` a method changes nothing and returns the changes that it would make.
    """

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self) -> Names:
        return await ask(self._http, Clusters.LIST, read=names)

    async def get(self, name: str) -> ClusterData:
        return await ask(self._http, Clusters.GET, name, read=made_by(ClusterData.from_json))

    async def get_json(self, name: str) -> dict[str, Any]:
        """Return the cluster's record like :meth:`get`, with every field that the broker sent."""
        return await ask(self._http, Clusters.GET, name, read=record)

    async def create(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Register a cluster. Raise AlreadyExists."""
        return await make_change(self._http, Clusters.CREATE, name, body=cluster.to_json(), previewed=previewed)

    async def update(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Replace the cluster's record. Fields that are None are removed."""
        return await make_change(self._http, Clusters.UPDATE, name, body=cluster.to_json(), previewed=previewed)

    async def delete(self, name: str, *, previewed: bool = False) -> Changes | None:
        """Delete a cluster.

        Interpulse raises PreconditionFailed while a
        namespace or topic is replicated to the cluster.
        """
        return await make_change(self._http, Clusters.DELETE, name, previewed=previewed)

    async def peers(self, name: str) -> Names | None:
        """Return the peer clusters; None if they were never set."""
        return await ask(self._http, Clusters.GET_PEERS, name, read=optional(names))

    async def set_peers(self, name: str, peers: Iterable[str] | None) -> None:
        """Set the peer clusters: no namespace may be replicated to both a cluster and its peer.

        Raise PreconditionFailed if one of them is not registered.
        """
        await send(self._http, Clusters.SET_PEERS, name, body=None if peers is None else list(peers))

    async def migration(self, name: str) -> ClusterMigration:
        """Return the redirection of the cluster's clients to another cluster; not ``migrated`` if there is none."""
        return await ask(self._http, Clusters.GET_MIGRATION, name, read=made_by(ClusterMigration.from_json))

    async def set_migration(self, name: str, migration: ClusterMigration) -> None:
        """Redirect the clients of a cluster to another one, or end that with ``migrated=False``.

        Apache Pulsar ends every topic of a migrated cluster for good; Interpulse redirects only. Raise
        PreconditionFailed without a broker service URL.
        """
        query = {"migrated": migration.migrated}
        await send(self._http, Clusters.SET_MIGRATION, name, query=query, body=migration.urls_to_json())

    # Failure domains

    async def failure_domains(self, name: str) -> dict[str, FailureDomain]:
        return await ask(self._http, Clusters.LIST_DOMAINS, name, read=each(made_by(FailureDomain.from_json)))

    async def failure_domain(self, name: str, domain: str) -> FailureDomain:
        """Return a failure domain. Raise NotFound."""
        return await ask(self._http, Clusters.GET_DOMAIN, name, domain, read=made_by(FailureDomain.from_json))

    async def set_failure_domain(self, name: str, domain: str, value: FailureDomain) -> None:
        """Create or replace a failure domain. Raise Conflict if one of its brokers is in another domain."""
        await send(self._http, Clusters.SET_DOMAIN, name, domain, body=value.to_json())

    async def delete_failure_domain(self, name: str, domain: str) -> None:
        await send(self._http, Clusters.DELETE_DOMAIN, name, domain)

    # Namespace isolation policies

    async def isolation_policies(self, name: str) -> dict[str, IsolationPolicy]:
        """Return the isolation policies by name. Raise NotFound if the cluster never had any."""
        return await ask(self._http, IsolationPolicies.LIST, name, read=each(made_by(IsolationPolicy.from_json)))

    async def isolation_policy(self, name: str, policy_name: str) -> IsolationPolicy:
        """Return an isolation policy. Raise NotFound."""
        read = made_by(IsolationPolicy.from_json)
        return await ask(self._http, IsolationPolicies.GET, name, policy_name, read=read)

    async def set_isolation_policy(self, name: str, policy_name: str, policy: IsolationPolicy) -> None:
        """Create or replace an isolation policy.

        Namespaces whose brokers change are unloaded; see ``unload_scope``. Raise InvalidRequest for a policy that
        cannot be satisfied and PreconditionFailed if the cluster does not exist.
        """
        await send(self._http, IsolationPolicies.SET, name, policy_name, body=policy.to_json())

    async def delete_isolation_policy(self, name: str, policy_name: str) -> None:
        """Delete an isolation policy, if it exists. No namespace is unloaded."""
        await send(self._http, IsolationPolicies.DELETE, name, policy_name)

    async def isolation_of_brokers(self, name: str) -> Isolations:
        """Return the role of every registered broker in the isolation policies."""
        return await ask(self._http, IsolationPolicies.LIST_BROKERS, name, read=list_made_by(BrokerIsolation.from_json))

    async def isolation_of_broker(self, name: str, broker: str) -> BrokerIsolation:
        """Return the role of a broker ``host:port`` in the isolation policies. It need not be registered."""
        read = made_by(BrokerIsolation.from_json)
        return await ask(self._http, IsolationPolicies.GET_BROKER, name, broker, read=read)
