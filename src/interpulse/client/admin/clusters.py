"""Admin calls for clusters, their failure domains and their namespace isolation policies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from interpulse.client.admin.previews import Changes, make_change
from interpulse.client.json_readers import each, list_made_by, made_by, names, optional, record
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.clusters import ClusterData, FailureDomain
from interpulse.model.errors import InvalidRequest
from interpulse.model.isolation import BrokerIsolation, IsolationPolicy

Names = list[str]
Isolations = list[BrokerIsolation]


class ClustersAdmin:
    """Registered clusters, including the local one."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def list(self) -> Names:
        return await self._http.get("/admin/v2/clusters", kind="cluster", read=names)

    async def get(self, name: str) -> ClusterData:
        return await self._http.get(_cluster(name), kind="cluster", read=made_by(ClusterData.from_json))

    async def get_json(self, name: str) -> dict[str, Any]:
        """Return the cluster's record like :meth:`get`, with every field that the broker sent."""
        return await self._http.get(_cluster(name), kind="cluster", read=record)

    async def create(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Register a cluster. Raise AlreadyExists.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        body = cluster.to_json()
        return await make_change(self._http, "PUT", _cluster(name), body, kind="cluster", previewed=previewed)

    async def update(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Replace the cluster's record. Fields that are None are removed.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        body = cluster.to_json()
        return await make_change(self._http, "POST", _cluster(name), body, kind="cluster", previewed=previewed)

    async def delete(self, name: str, *, previewed: bool = False) -> Changes | None:
        """Delete a cluster.

        With ``previewed`` nothing is changed and the changes are returned. Interpulse raises PreconditionFailed while a
        namespace or topic is replicated to the cluster.
        """
        return await make_change(self._http, "DELETE", _cluster(name), kind="cluster", previewed=previewed)

    async def peers(self, name: str) -> Names | None:
        """Return the peer clusters; None if they were never set."""
        return await self._http.get(f"{_cluster(name)}/peers", kind="cluster", read=optional(names))

    async def set_peers(self, name: str, peers: Iterable[str] | None) -> None:
        """Set the peer clusters: no namespace may be replicated to both a cluster and its peer.

        Raise PreconditionFailed if one of them is not registered.
        """
        await self._http.post(f"{_cluster(name)}/peers", None if peers is None else list(peers), kind="cluster")

    # Failure domains

    async def failure_domains(self, name: str) -> dict[str, FailureDomain]:
        read = each(made_by(FailureDomain.from_json))
        return await self._http.get(f"{_cluster(name)}/failureDomains", kind="cluster", read=read)

    async def failure_domain(self, name: str, domain: str) -> FailureDomain:
        """Return a failure domain. Raise NotFound."""
        return await self._http.get(_domain(name, domain), kind="cluster", read=made_by(FailureDomain.from_json))

    async def set_failure_domain(self, name: str, domain: str, value: FailureDomain) -> None:
        """Create or replace a failure domain. Raise Conflict if one of its brokers is in another domain."""
        await self._http.post(_domain(name, domain), value.to_json(), kind="cluster")

    async def delete_failure_domain(self, name: str, domain: str) -> None:
        await self._http.delete(_domain(name, domain), kind="cluster")

    # Namespace isolation policies

    async def isolation_policies(self, name: str) -> dict[str, IsolationPolicy]:
        """Return the isolation policies by name. Raise NotFound if the cluster never had any."""
        read = each(made_by(IsolationPolicy.from_json))
        return await self._http.get(_isolation(name), kind="cluster", read=read)

    async def isolation_policy(self, name: str, policy_name: str) -> IsolationPolicy:
        """Return an isolation policy. Raise NotFound."""
        read = made_by(IsolationPolicy.from_json)
        return await self._http.get(_isolation_policy(name, policy_name), kind="cluster", read=read)

    async def set_isolation_policy(self, name: str, policy_name: str, policy: IsolationPolicy) -> None:
        """Create or replace an isolation policy.

        Namespaces whose brokers change are unloaded; see ``unload_scope``. Raise InvalidRequest for a policy that
        cannot be satisfied and PreconditionFailed if the cluster does not exist.
        """
        await self._http.post(_isolation_policy(name, policy_name), policy.to_json(), kind="cluster")

    async def delete_isolation_policy(self, name: str, policy_name: str) -> None:
        """Delete an isolation policy, if it exists. No namespace is unloaded."""
        await self._http.delete(_isolation_policy(name, policy_name), kind="cluster")

    async def isolation_of_brokers(self, name: str) -> Isolations:
        """Return the role of every registered broker in the isolation policies."""
        read = list_made_by(BrokerIsolation.from_json)
        return await self._http.get(f"{_isolation(name)}/brokers", kind="cluster", read=read)

    async def isolation_of_broker(self, name: str, broker: str) -> BrokerIsolation:
        """Return the role of a broker ``host:port`` in the isolation policies. It need not be registered."""
        path = f"{_isolation(name)}/brokers/{path_segment('broker', broker)}"
        return await self._http.get(path, kind="cluster", read=made_by(BrokerIsolation.from_json))


def _cluster(name: str) -> str:
    return f"/admin/v2/clusters/{path_segment('cluster', name)}"


def _domain(cluster: str, domain: str) -> str:
    return f"{_cluster(cluster)}/failureDomains/{path_segment('failure domain', domain)}"


def _isolation(cluster: str) -> str:
    return f"{_cluster(cluster)}/namespaceIsolationPolicies"


def _isolation_policy(cluster: str, policy: str) -> str:
    return f"{_isolation(cluster)}/{path_segment('namespace isolation policy', policy)}"


def path_segment(kind: str, name: str) -> str:
    """Return a name, percent-encoded. Raise InvalidRequest for an empty one, which brokers take for all names."""
    if not name:
        raise InvalidRequest(f"The name of a {kind} must not be empty")
    return quote(name, safe="")
