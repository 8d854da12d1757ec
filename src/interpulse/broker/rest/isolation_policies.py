"""REST calls about namespace isolation policies: which brokers of a cluster may serve which namespaces."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from interpulse.broker.rest.brokers import registered_brokers
from interpulse.broker.rest.http.bodies import ISOLATION_POLICY
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json
from interpulse.model.errors import InvalidRequest, NamespaceNotFound
from interpulse.model.isolation import IsolationPolicy
from interpulse.model.names import NamespaceName
from interpulse.model.operations import IsolationPolicies
from interpulse.rules.isolation import broker_isolation, namespaces_to_unload


async def list_policies(call: Call) -> Answer:
    found = await call.context.isolation_policies.list(call.param("cluster"))
    return answer_json({name: policy.to_json() for name, policy in found.items()})


async def set_policy(call: Call) -> None:
    """Store a policy, then unload local namespaces according to its ``unload_scope``."""
    if call.json_or_none() is None:
        raise InvalidRequest("a namespace isolation policy is required")
    cluster, name, body = call.param("cluster"), call.param("policy"), call.object(ISOLATION_POLICY)
    if "secondary" not in body:
        raise InvalidRequest(f"Isolation policy {name} needs secondary: expressions of host names, [] for none")
    policy = IsolationPolicy.from_json(body)
    old = await call.context.isolation_policies.put(cluster, name, policy)
    if cluster == call.context.namespaces.local_cluster:
        names = namespaces_to_unload(name, old, policy, await _namespaces(call))
        await asyncio.gather(*(_unload(call, NamespaceName.parse(name)) for name in names))


async def delete_policy(call: Call) -> None:
    """Delete a policy. Bundles that it placed stay until they are unloaded, as in Pulsar."""
    await call.context.isolation_policies.delete(call.param("cluster"), call.param("policy"))


async def list_brokers(call: Call) -> Answer:
    policies = await call.context.isolation_policies.of_registered(call.param("cluster"))
    return answer_json([broker_isolation(policies, broker).to_json() for broker in await registered_brokers(call)])


async def get_broker(call: Call) -> Answer:
    """Return the policies for a broker name, which need not be registered."""
    policies = await call.context.isolation_policies.of_registered(call.param("cluster"))
    return answer_json(broker_isolation(policies, call.param("broker")).to_json())


async def _namespaces(call: Call) -> list[str]:
    return [name for tenant in await call.context.tenants.list() for name in await call.context.namespaces.list(tenant)]


async def _unload(call: Call, namespace: NamespaceName) -> None:
    with suppress(NamespaceNotFound):  # deleted meanwhile
        await call.context.bundles.unload(namespace)


ROUTES: Final = (
    Route(IsolationPolicies.LIST, list_policies),
    Route(IsolationPolicies.LIST_BROKERS, list_brokers),
    Route(IsolationPolicies.GET_BROKER, get_broker),
    Route(
        IsolationPolicies.GET,
        lambda call: call.context.isolation_policies.get(call.param("cluster"), call.param("policy")),
    ),
    Route(IsolationPolicies.SET, set_policy),
    Route(IsolationPolicies.DELETE, delete_policy),
)
