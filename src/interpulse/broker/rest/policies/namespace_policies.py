"""REST calls about single policies of a namespace, made from the catalogue of policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from interpulse.broker.rest.http.bodies import BACKLOG_QUOTA
from interpulse.broker.rest.http.call import DONE, NAMESPACE_PATH, Answer, Call, Route, answer_json
from interpulse.broker.rest.http.required_permissions import on_policy, super_user
from interpulse.broker.rest.policies.policy_values import answer_policy, policy_handler, policy_value, quota_type
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


async def set_policy(entry: PolicyAtLevel, call: Call) -> Answer:
    return await _store(entry, call, policy_value(call, entry))


async def remove_policy(entry: PolicyAtLevel, call: Call) -> Answer:
    return await _store(entry, call, None)


async def _store(entry: PolicyAtLevel, call: Call, value: Any) -> Answer:
    cluster = call.context.namespaces.local_cluster
    return await _change(call, lambda policies: namespace_with_policy(policies, entry, value, cluster=cluster))


async def _change(call: Call, change: Callable[[NamespacePolicies], NamespacePolicies]) -> Answer:
    """Store the result of the rule ``change``. It is in force in loaded topics before this returns."""
    await call.context.namespaces.update_policies(call.namespace, change)
    await call.context.registry.policies_changed(call.namespace)
    return DONE


async def set_auto_update(call: Call) -> Answer:
    """Set the permission for producers, and with a query parameter that for replicators."""
    allowed = call.boolean()
    values = {_AUTO_UPDATE: allowed}
    if "allowAutoUpdateSchemaWithReplicator" in call.query:
        with_replicator = call.flag("allowAutoUpdateSchemaWithReplicator")
        check_schema_switch(allowed, with_replicator)
        values["allow_auto_update_schema_with_replicator"] = with_replicator
    return await _change(call, lambda policies: policies.changed(**values))


async def get_backlog_quotas(call: Call) -> Answer:
    policies = await call.context.namespaces.get_policies(call.namespace)
    return answer_json({kind: quota.to_json() for kind, quota in sorted(policies.backlog_quotas.items())})


async def set_backlog_quota(call: Call) -> Answer:
    kind = quota_type(call)
    quota = check_backlog_quota(kind, call.object(BACKLOG_QUOTA), namespace=call.namespace)
    return await _change(call, lambda policies: namespace_with_quota(policies, kind, quota))


async def remove_backlog_quota(call: Call) -> Answer:
    kind = quota_type(call)
    return await _change(call, lambda policies: namespace_with_quota(policies, kind, None))


async def get_legacy_strategy(call: Call) -> Answer:
    strategy = (await call.context.namespaces.get_policies(call.namespace)).other.get(LEGACY_STRATEGY_FIELD)
    return DONE if strategy is None else answer_json(strategy)


async def set_legacy_strategy(call: Call) -> Answer:
    strategy = check_strategy(call.json(), tuple(LEGACY_STRATEGIES))
    await call.context.namespaces.update_policies(
        call.namespace, lambda policies: policies.changed(other={**policies.other, LEGACY_STRATEGY_FIELD: strategy})
    )
    return DONE


def _routes(entry: PolicyAtLevel) -> tuple[Route, ...]:
    level = entry.level
    path = f"{NAMESPACE_PATH}/{level.path}"
    required = super_user if entry.attribute == "delayed_delivery" else on_policy  # as in Pulsar
    setter = set_auto_update if entry.attribute == _AUTO_UPDATE else policy_handler(set_policy, entry)
    removal = (Route("DELETE", path, policy_handler(remove_policy, entry), required),) if level.removable else ()
    return (
        Route("GET", path, policy_handler(get_policy, entry), on_policy),
        Route(level.method, path, setter, required),
        *removal,
    )


_LEGACY_PATH: Final = f"{NAMESPACE_PATH}/schemaAutoUpdateCompatibilityStrategy"

ROUTES: Final = (
    *(route for entry in NAMESPACE_CALLS.values() for route in _routes(entry)),
    Route("GET", f"{NAMESPACE_PATH}/backlogQuotaMap", get_backlog_quotas, on_policy),
    Route("POST", f"{NAMESPACE_PATH}/backlogQuota", set_backlog_quota, on_policy),
    Route("DELETE", f"{NAMESPACE_PATH}/backlogQuota", remove_backlog_quota, on_policy),
    Route("GET", _LEGACY_PATH, get_legacy_strategy, on_policy),
    Route("PUT", _LEGACY_PATH, set_legacy_strategy, on_policy),
)
