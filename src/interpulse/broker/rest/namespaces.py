"""REST calls about namespaces as a whole, and about their clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from interpulse.broker.rest.call import DONE, Answer, Call, Route, answer_json
from interpulse.model.errors import OperationNotAllowed
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, TopicName
from interpulse.model.policies import NamespacePolicies
from interpulse.rules.bundles import boundaries_of, bundle_of, checked_bundle

__all__ = ["ROUTES"]

_DOMAINS_BY_MODE: Final[dict[str, tuple[Domain, ...]]] = {
    "PERSISTENT": (PERSISTENT,),
    "NON_PERSISTENT": (NON_PERSISTENT,),
}


async def list_namespaces(call: Call) -> Answer:
    await call.rooms.tenants.get(call.param("tenant"))
    return answer_json(await call.rooms.namespaces.list(call.param("tenant")))


async def get_policies(call: Call) -> Answer:
    policies = await call.rooms.namespaces.get_policies(call.namespace)
    body = policies.to_json()
    if policies.allow_auto_update_schema is None:
        body["is_allow_auto_update_schema"] = call.rooms.dynamic.config.is_allow_auto_update_schema_enabled
    return answer_json(body)


async def create_namespace(call: Call) -> Answer:
    policies = NamespacePolicies.from_json(call.object_or_empty())
    await call.rooms.replication_clusters.create_namespace(call.namespace, policies)
    return DONE


async def delete_namespace(call: Call) -> Answer:
    await call.rooms.deletion.namespace(call.namespace, force=call.flag("force"))
    return DONE


async def list_topics(call: Call) -> Answer:
    await call.rooms.namespaces.get_policies(call.namespace)
    domains = _DOMAINS_BY_MODE.get(call.query.get("mode", "PERSISTENT").upper(), (PERSISTENT, NON_PERSISTENT))
    include_system = call.flag("includeSystemTopic")
    names = [
        str(name)
        for domain in domains
        for name in await call.rooms.lifecycle.list_topics(call.namespace, domain, include_system=include_system)
    ]
    return answer_json(names)


async def get_bundles(call: Call) -> Answer:
    policies = await call.rooms.namespaces.get_policies(call.namespace)
    return answer_json(policies.other.get("bundles"))


async def unload(call: Call) -> Answer:
    """Close every loaded topic of a namespace; clients come back and load what they need."""
    await call.rooms.namespaces.get_policies(call.namespace)
    await _unload(call, lambda topic: True)
    return DONE


async def unload_bundle(call: Call) -> Answer:
    boundaries = boundaries_of(await call.rooms.namespaces.get_policies(call.namespace))
    bundle = checked_bundle(call.param("bundle"), boundaries)
    await _unload(call, lambda topic: bundle_of(topic, boundaries) == bundle)
    return DONE


async def _unload(call: Call, concerned: Callable[[TopicName], bool]) -> None:
    for topic in list(call.rooms.registry.names):
        if topic.namespace_name == call.namespace and concerned(topic):
            await call.rooms.registry.unload(topic)


async def get_permissions(call: Call) -> Answer:
    policies = await call.rooms.namespaces.get_policies(call.namespace)
    granted: dict[str, Any] = policies.other.get("auth_policies", {})
    return answer_json(granted.get("namespace_auth", {}))


async def get_replication_clusters(call: Call) -> Answer:
    return answer_json(list((await call.rooms.namespaces.get_policies(call.namespace)).replication_clusters))


async def set_replication_clusters(call: Call) -> Answer:
    """Enable replication; with one of the parameters of PIP-433 the answer is a plan, whatever becomes of it."""
    clusters = call.strings()
    if call.flag("preview") or call.flag("adjustNamespaceLevelPoliciesAutomatically"):
        return await _adjust(call, clusters)
    compare = call.flag("compareTopicPartitions")
    await call.rooms.replication_clusters.set(call.namespace, clusters, compare=compare)
    return DONE


async def _adjust(call: Call, clusters: list[str]) -> Answer:
    if not call.rooms.dynamic.config.supports_replication_preview:
        raise OperationNotAllowed("Preview and adjustment are switched off by supportsReplicationPreview=false")
    rooms = call.rooms.replication_clusters
    plan = await (rooms.preview if call.flag("preview") else rooms.adjust)(call.namespace, clusters)
    return answer_json(plan.to_json(), status=plan.http_status)


async def get_allowed_clusters(call: Call) -> Answer:
    return answer_json(list((await call.rooms.namespaces.get_policies(call.namespace)).allowed_clusters))


async def set_allowed_clusters(call: Call) -> Answer:
    await call.rooms.replication_clusters.set_allowed(call.namespace, call.strings())
    return DONE


_NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"

ROUTES: Final = (
    Route("GET", "/admin/v2/namespaces/{tenant}", list_namespaces),
    Route("GET", _NAMESPACE, get_policies),
    Route("PUT", _NAMESPACE, create_namespace),
    Route("DELETE", _NAMESPACE, delete_namespace),
    Route("GET", f"{_NAMESPACE}/topics", list_topics),
    Route("GET", f"{_NAMESPACE}/bundles", get_bundles),
    Route("PUT", f"{_NAMESPACE}/unload", unload),
    Route("PUT", f"{_NAMESPACE}/{{bundle}}/unload", unload_bundle),
    Route("GET", f"{_NAMESPACE}/permissions", get_permissions),
    Route("GET", f"{_NAMESPACE}/replication", get_replication_clusters),
    Route("POST", f"{_NAMESPACE}/replication", set_replication_clusters),
    Route("GET", f"{_NAMESPACE}/allowedClusters", get_allowed_clusters),
    Route("POST", f"{_NAMESPACE}/allowedClusters", set_allowed_clusters),
)
