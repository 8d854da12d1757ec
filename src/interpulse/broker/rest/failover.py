"""REST calls about the role of a namespace in a pair of clusters, and about cluster migration, which redirects clients.

`set_role` returns when every broker of the cluster has closed the local producers. So its answer has the last position
of each topic-partition: afterwards only lanes and replicators publish.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.rest.http.at_owner import answers_of_partitions
from interpulse.broker.rest.http.bodies import CLUSTER_URL, FAILOVER_ROLE
from interpulse.broker.rest.http.call import UNSET, Answer, Call, Route, answer_json
from interpulse.broker.rest.topic_stats import INTERNAL_STATS
from interpulse.model.clusters import ClusterMigration
from interpulse.model.errors import InvalidRequest, PreconditionFailed
from interpulse.model.names import PERSISTENT, TopicName
from interpulse.model.operations import Clusters, Namespaces
from interpulse.rules.failover_role import (
    HOLD_SECONDS_MAX,
    URL_PROPERTY,
    FailoverRole,
    Role,
    Treatment,
    is_exempt,
    make_role,
)


async def get_role(call: Call) -> Answer:
    """Return the role in force, its epoch, the time since which it is stored if that is known, and the peer's role."""
    roles = call.context.failover_roles
    role = await roles.of(call.namespace)
    shown: dict[str, Any] = {"role": str(role), "epoch": role.epoch, "since": role.since or None}
    if roles.peer is not None:
        seen = roles.peer.seen(call.namespace)
        shown["peer"] = {"cluster": roles.peer.cluster, **(seen.to_json() if seen else {})}
    return answer_json(shown)


async def set_role(call: Call) -> Answer:
    """Store a role and wait until every broker has applied it. The same call may be repeated.

    The answer has the last position of every persistent topic, unless local producers are served.
    """
    role = await _requested_role(call)
    await call.context.failover_roles.set(call.namespace, role)
    applied = await _applied_everywhere(call, role)
    positions: dict[str, str] = {}
    if role.serving.producers is not Treatment.SERVED:
        for answer in applied:
            positions |= answer["positions"]
        positions |= await _positions_of_others(call, positions)
    closed = sum(answer["closedProducers"] for answer in applied)
    return answer_json({"role": str(role), "positions": dict(sorted(positions.items())), "closedProducers": closed})


async def apply_role(call: Call) -> Answer:
    """Apply the stored role at this broker. Brokers of a cluster ask each other."""
    return answer_json(await _applied_here(call))


async def _requested_role(call: Call) -> FailoverRole:
    body = call.object(FAILOVER_ROLE)
    word, epoch = body.get("role"), body.get("epoch")
    if word not in list(Role) or not isinstance(epoch, int) or epoch < 0:
        raise InvalidRequest(f"The body needs a role of {', '.join(Role)}, and an epoch from 0: {str(body)[:200]}")
    role, url, url_tls = Role(word), body.get("url", ""), body.get("urlTls", "")
    if role is Role.MOVED and not (url or url_tls):
        url = (await call.context.namespaces.get_policies(call.namespace)).properties.get(URL_PROPERTY, "")
    ready, closed_to = body.get("subscriptionsReady", False), body.get("closedTo", "")
    made = make_role(role, epoch, url=url, url_tls=url_tls, ready=ready, closed_to=closed_to)
    return replace(made, consumers_from=_consumers_from(call, body.get("holdConsumersFor", 0)))


def _consumers_from(call: Call, seconds: int) -> str:
    """Return the time at which consumers are served again, by the clock of this broker; "" for 0 seconds."""
    if not 0 <= seconds <= HOLD_SECONDS_MAX:
        raise InvalidRequest(f"holdConsumersFor must be between 0 and {HOLD_SECONDS_MAX} seconds, not {seconds}")
    return call.context.failover_roles.time_in(seconds) if seconds else ""


async def _applied_everywhere(call: Call, role: FailoverRole) -> list[dict[str, Any]]:
    here = await _applied_here(call)
    if call.context.others is None:
        return [here]
    path = Namespaces.APPLY_FAILOVER_ROLE.path_of(call.namespace)
    elsewhere = await call.context.others.ask_each(
        "POST", path, kind="namespace", doing=f"The role {role} is stored, and applies later, but it was not confirmed"
    )
    return [here, *elsewhere]


async def _applied_here(call: Call) -> dict[str, Any]:
    context, namespace = call.context, call.namespace
    await context.namespaces.catch_up(namespace)
    await context.registry.policies_changed(namespace)
    topics = [topic for topic in context.registry.topics() if topic.name.namespace_name == namespace]
    positions = {
        str(topic.name): str(topic.positions.durable)
        for topic in topics
        if isinstance(topic, Topic) and not is_exempt(topic.name)
    }
    return {"positions": positions, "closedProducers": sum(topic.failover_gate.closed_producers for topic in topics)}


async def _positions_of_others(call: Call, known: dict[str, str]) -> dict[str, str]:
    """Return the last position of the topics that no broker had loaded. Their owners load them to find it."""
    names = await call.context.lifecycle.list_topics(call.namespace, PERSISTENT, include_system=False)
    missing = [name for name in names if str(name) not in known and not is_exempt(name)]
    asked = replace(call, params={**call.params, "domain": PERSISTENT}, query={}, body=b"")
    found: dict[TopicName, Any] = await answers_of_partitions(asked, missing, INTERNAL_STATS)
    return {str(name): stats["lastConfirmedEntry"] for name, stats in found.items()}


async def set_migrated(call: Call) -> None:
    """Redirect the clients of a namespace to the cluster of `set_cluster_migration`, or end that."""
    await call.context.failover_roles.set_migrated(call.namespace, migrated=call.boolean())
    await call.context.registry.policies_changed(call.namespace)


async def get_cluster_migration(call: Call) -> Answer:
    name = call.param("cluster")
    await call.context.clusters.get(name)
    return answer_json((await call.context.clusters.migration(name) or ClusterMigration()).to_json())


async def set_cluster_migration(call: Call) -> Answer:
    """Redirect the clients of this cluster to another one, or end that. No topic is terminated."""
    name, local = call.param("cluster"), call.context.namespaces.local_cluster
    if name != local:
        raise PreconditionFailed(f"This is a broker of cluster {local}; clients of {name} are redirected by its own")
    urls = call.object_or_empty(CLUSTER_URL)
    migration = ClusterMigration.of_urls(urls, migrated=call.flag("migrated"))
    await call.context.clusters.set_migration(name, migration)
    await call.context.registry.policies_changed()
    return UNSET  # 200, as from Pulsar


ROUTES: Final = (
    Route(Namespaces.GET_FAILOVER_ROLE, get_role),
    Route(Namespaces.SET_FAILOVER_ROLE, set_role),
    Route(Namespaces.APPLY_FAILOVER_ROLE, apply_role),
    Route(Namespaces.SET_MIGRATED, set_migrated),
    Route(Clusters.GET_MIGRATION, get_cluster_migration),
    Route(Clusters.SET_MIGRATION, set_cluster_migration),
)
