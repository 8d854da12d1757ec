"""REST calls about clusters."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.bodies import CLUSTER, FAILURE_DOMAIN
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_changes, answer_json
from interpulse.model.clusters import ClusterData, FailureDomain
from interpulse.model.errors import InvalidRequest
from interpulse.model.operations import Clusters


async def create_cluster(call: Call) -> Answer:
    """Register a cluster. With ``preview=true`` the answer lists the changes without making them."""
    name, cluster = call.param("cluster"), _cluster(call)
    return answer_changes(call, await call.context.clusters.create(name, cluster, previewed=call.previewed))


async def update_cluster(call: Call) -> Answer:
    """Replace the record of a cluster. With ``preview=true`` the answer lists the changes without making them."""
    name, cluster = call.param("cluster"), _cluster(call)
    return answer_changes(call, await call.context.clusters.update(name, cluster, previewed=call.previewed))


async def delete_cluster(call: Call) -> Answer:
    """Delete a cluster. With ``preview=true`` the answer lists the changes without making them."""
    return answer_changes(call, await call.context.clusters.delete(call.param("cluster"), previewed=call.previewed))


async def get_peers(call: Call) -> Answer:
    peers = (await call.context.clusters.get(call.param("cluster"))).peer_cluster_names
    return answer_json(None if peers is None else list(peers))


async def set_peers(call: Call) -> None:
    peers = None if call.json_or_none() is None else call.strings()
    await call.context.clusters.set_peers(call.param("cluster"), peers)


async def list_failure_domains(call: Call) -> Answer:
    found = await call.context.failure_domains.list(call.param("cluster"))
    return answer_json({name: domain.to_json() for name, domain in found.items()})


async def get_failure_domain(call: Call) -> FailureDomain:
    return await call.context.failure_domains.get(call.param("cluster"), call.param("failure_domain"))


async def set_failure_domain(call: Call) -> None:
    domain = FailureDomain.from_json(call.object(FAILURE_DOMAIN))
    await call.context.failure_domains.put(call.param("cluster"), call.param("failure_domain"), domain)


async def delete_failure_domain(call: Call) -> None:
    await call.context.failure_domains.delete(call.param("cluster"), call.param("failure_domain"))


def _cluster(call: Call) -> ClusterData:
    if call.json_or_none() is None:
        raise InvalidRequest("cluster data is required")
    return ClusterData.from_json(call.object(CLUSTER))


ROUTES: Final = (
    Route(Clusters.LIST, lambda call: call.context.clusters.list()),
    Route(Clusters.GET, lambda call: call.context.clusters.get(call.param("cluster"))),
    Route(Clusters.CREATE, create_cluster),
    Route(Clusters.UPDATE, update_cluster),
    Route(Clusters.DELETE, delete_cluster),
    Route(Clusters.GET_PEERS, get_peers),
    Route(Clusters.SET_PEERS, set_peers),
    Route(Clusters.LIST_DOMAINS, list_failure_domains),
    Route(Clusters.GET_DOMAIN, get_failure_domain),
    Route(Clusters.SET_DOMAIN, set_failure_domain),
    Route(Clusters.DELETE_DOMAIN, delete_failure_domain),
)
