"""REST calls about clusters."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.call import DONE, Answer, Call, Route, answer_json
from interpulse.model.clusters import ClusterData

__all__ = ["ROUTES"]


async def list_clusters(call: Call) -> Answer:
    return answer_json(await call.rooms.clusters.list())


async def get_cluster(call: Call) -> Answer:
    return answer_json((await call.rooms.clusters.get(call.param("cluster"))).to_json())


async def create_cluster(call: Call) -> Answer:
    await call.rooms.clusters.create(call.param("cluster"), ClusterData.from_json(call.object()))
    return DONE


async def update_cluster(call: Call) -> Answer:
    await call.rooms.clusters.update(call.param("cluster"), ClusterData.from_json(call.object()))
    return DONE


async def delete_cluster(call: Call) -> Answer:
    await call.rooms.clusters.delete(call.param("cluster"))
    return DONE


async def get_peers(call: Call) -> Answer:
    return answer_json((await call.rooms.clusters.get(call.param("cluster"))).peer_cluster_names)


ROUTES: Final = (
    Route("GET", "/admin/v2/clusters", list_clusters),
    Route("GET", "/admin/v2/clusters/{cluster}", get_cluster),
    Route("PUT", "/admin/v2/clusters/{cluster}", create_cluster),
    Route("POST", "/admin/v2/clusters/{cluster}", update_cluster),
    Route("DELETE", "/admin/v2/clusters/{cluster}", delete_cluster),
    Route("GET", "/admin/v2/clusters/{cluster}/peers", get_peers),
)
