"""REST calls about single policies of a namespace, made from the catalogue of policies, and about its properties.

Properties mean nothing to the broker, except ``interpulse.failover.*``: operators set and read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from interpulse.broker.rest.http.bodies import BACKLOG_QUOTA
from interpulse.broker.rest.http.call import DONE, UNSET, Answer, Call, Route, answer_json, answer_text
from interpulse.broker.rest.policies.policy_values import answer_policy, policy_routes, quota_type
from interpulse.model.operations import Namespaces
from interpulse.model.policies.catalogue import NAMESPACE_CALLS, PolicyAtLevel
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import PARTITIONED
from interpulse.rules.effective_policies import LEGACY_STRATEGIES, LEGACY_STRATEGY_FIELD
from interpulse.rules.policy_changes import namespace_with_policy, namespace_with_quota
from interpulse.rules.policy_checks import check_backlog_quota, check_schema_switch, check_strategy

_AUTO_UPDATE: Final = "allow_auto_update_schema"


async def get_policy(entry: PolicyAtLevel, call: Call) -> Answer:
    """Return the policy. With ``applied``, return the value in force if Pulsar offers that for the policy."""
    policies = await call.context.namespaces.get_policies(call.namespace)
    value = getattr(policies, entry.attribute)
    if entry.level.plural:
        value = value.get(call.context.namespaces.local_cluster)
    if call.flag("applied") or entry.attribute == _AUTO_UPDATE:
        config = call.context.dynamic.config
        match entry.attribute:
            case "auto_topic_creation":
                applied = (value or config.auto_topic_creation).to_json()
                if applied.get("topicType") != PARTITIONED:  # so that the answer can be sent back
                    applied.pop("defaultNumPartitions", None)
                return answer_json(applied)
            case "auto_subscription_creation_allowed" if value is None:
                value = config.allow_auto_subscription_creation
            case "schema_validation_enforced":
                value = value or config.is_schema_validation_enforced
            case "allow_auto_update_schema" if value is None:
                value = config.is_allow_auto_update_schema_enabled
    return answer_policy(entry, value)


async def _store(entry: PolicyAtLevel, call: Call, value: Any) -> None:
    cluster = call.context.namespaces.local_cluster
    await _change(call, lambda policies: namespace_with_policy(policies, entry, value, cluster=cluster))


async def _change(call: Call, change: Callable[[NamespacePolicies], NamespacePolicies]) -> None:
    """Store the result of the rule ``change``. It is in force in loaded topics before this returns."""
    await call.context.namespaces.update_policies(call.namespace, change)
    await call.context.registry.policies_changed(call.namespace)


async def set_auto_update(call: Call) -> None:
    """Set the permission for producers, and with a query parameter that for replicators."""
    allowed = call.boolean()
    values = {_AUTO_UPDATE: allowed}
    if "allowAutoUpdateSchemaWithReplicator" in call.query:
        with_replicator = call.flag("allowAutoUpdateSchemaWithReplicator")
        check_schema_switch(allowed, with_replicator)
        values["allow_auto_update_schema_with_replicator"] = with_replicator
    await _change(call, lambda policies: policies.changed(**values))


async def get_backlog_quotas(call: Call) -> Answer:
    policies = await call.context.namespaces.get_policies(call.namespace)
    return answer_json({kind: quota.to_json() for kind, quota in sorted(policies.backlog_quotas.items())})


async def set_backlog_quota(call: Call) -> None:
    kind = quota_type(call)
    quota = check_backlog_quota(kind, call.object(BACKLOG_QUOTA), namespace=call.namespace)
    await _change(call, lambda policies: namespace_with_quota(policies, kind, quota))


async def remove_backlog_quota(call: Call) -> None:
    kind = quota_type(call)
    await _change(call, lambda policies: namespace_with_quota(policies, kind, None))


async def get_legacy_strategy(call: Call) -> Answer:
    strategy = (await call.context.namespaces.get_policies(call.namespace)).other.get(LEGACY_STRATEGY_FIELD)
    return DONE if strategy is None else answer_json(strategy)


async def set_legacy_strategy(call: Call) -> None:
    strategy = check_strategy(call.json(), tuple(LEGACY_STRATEGIES))
    await call.context.namespaces.update_policies(
        call.namespace, lambda policies: policies.changed(other={**policies.other, LEGACY_STRATEGY_FIELD: strategy})
    )


async def get_properties(call: Call) -> Answer:
    return answer_json(dict(await _properties(call)))


async def add_properties(call: Call) -> None:
    """Set the properties of the body. Others stay, as in Pulsar."""
    await _add_properties(call, call.properties())


async def clear_properties(call: Call) -> None:
    await call.context.namespaces.update_policies(call.namespace, lambda policies: policies.changed(properties={}))


async def get_property(call: Call) -> Answer:
    return _answer_property((await _properties(call)).get(call.param("key"), ""))


async def set_property(call: Call) -> None:
    await _add_properties(call, {call.param("key"): call.param("value")})


async def remove_property(call: Call) -> Answer:
    """Remove a property and return its value."""
    key, before = call.param("key"), ""

    def change(policies: NamespacePolicies) -> NamespacePolicies:
        nonlocal before
        rest = dict(policies.properties)
        before = rest.pop(key, "")
        return policies.changed(properties=rest)

    await call.context.namespaces.update_policies(call.namespace, change)
    return _answer_property(before)


async def _properties(call: Call) -> Mapping[str, str]:
    return (await call.context.namespaces.get_policies(call.namespace)).properties


async def _add_properties(call: Call, added: Mapping[str, str]) -> None:
    await call.context.namespaces.update_policies(
        call.namespace, lambda policies: policies.changed(properties={**policies.properties, **added})
    )


def _answer_property(value: str) -> Answer:
    """Answer with the bare text, as Pulsar's clients expect; a missing property is empty."""
    return answer_text(value, content_type="application/json") if value else UNSET


ROUTES: Final = (
    *(
        route
        for entry in NAMESPACE_CALLS.values()
        for route in policy_routes(
            entry, get_policy, _store, set_auto_update if entry.attribute == _AUTO_UPDATE else None
        )
    ),
    Route(Namespaces.GET_QUOTAS, get_backlog_quotas),
    Route(Namespaces.SET_QUOTA, set_backlog_quota),
    Route(Namespaces.REMOVE_QUOTA, remove_backlog_quota),
    Route(Namespaces.GET_LEGACY_STRATEGY, get_legacy_strategy),
    Route(Namespaces.SET_LEGACY_STRATEGY, set_legacy_strategy),
    Route(Namespaces.GET_PROPERTIES, get_properties),
    Route(Namespaces.ADD_PROPERTIES, add_properties),
    Route(Namespaces.CLEAR_PROPERTIES, clear_properties),
    Route(Namespaces.GET_PROPERTY, get_property),
    Route(Namespaces.SET_PROPERTY, set_property),
    Route(Namespaces.REMOVE_PROPERTY, remove_property),
)
