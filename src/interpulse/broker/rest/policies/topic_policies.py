"""REST calls about single policies of a topic, made from the catalogue of policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from interpulse.broker.rest.http.bodies import BACKLOG_QUOTA
from interpulse.broker.rest.http.call import DONE, TOPIC_PATH, Answer, Call, Route, answer_json
from interpulse.broker.rest.http.required_permissions import on_policy
from interpulse.broker.rest.policies.policy_values import answer_policy, policy_handler, policy_value, quota_type
from interpulse.broker.topics.topic_settings import policies_in_force
from interpulse.model.policies.catalogue import TOPIC_CALLS, TOPIC_CLUSTERS, PolicyAtLevel
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.model.policies.policy_records import BacklogQuota
from interpulse.rules.effective_policies import namespace_level, topic_level
from interpulse.rules.policy_changes import topic_with_policy, topic_with_quota
from interpulse.rules.policy_checks import check_backlog_quota


async def get_policy(entry: PolicyAtLevel, call: Call) -> Answer:
    """Return the topic's own policy, or with ``applied`` the policy in force."""
    policies = await _policies(call, everywhere=_everywhere(entry, call))
    return answer_policy(entry, getattr(policies, entry.attribute))


async def set_policy(entry: PolicyAtLevel, call: Call) -> Answer:
    return await _store(entry, call, policy_value(call, entry))


async def remove_policy(entry: PolicyAtLevel, call: Call) -> Answer:
    return await _store(entry, call, None)


async def _store(entry: PolicyAtLevel, call: Call, value: Any) -> Answer:
    return await _change(
        call,
        lambda policies, namespace: topic_with_policy(policies, entry, value, namespace=namespace),
        everywhere=_everywhere(entry, call),
    )


def _everywhere(entry: PolicyAtLevel, call: Call) -> bool:
    return call.flag("isGlobal") and entry.level.has_global


async def _policies(call: Call, *, everywhere: bool) -> TopicPolicies:
    record = await call.context.topic_policies.record_of_existing(call.topic)
    if not call.flag("applied"):
        return record.level(everywhere=everywhere)
    namespace = await call.context.namespaces.get_policies(call.topic.namespace_name)
    return policies_in_force(topic_level(record, everywhere=everywhere), namespace, call.context.dynamic.config)


async def _change(
    call: Call, change: Callable[[TopicPolicies, TopicPolicies], TopicPolicies], *, everywhere: bool
) -> Answer:
    """Store the result of the rule ``change``, which gets the policies of the topic and of its namespace.

    It is in force in the loaded topic before this returns.
    """
    name = call.topic
    found = await call.context.namespaces.find_policies(name.namespace_name)
    namespace = namespace_level(found, cluster=call.context.namespaces.local_cluster)
    await call.context.topic_policies.update(name, lambda policies: change(policies, namespace), everywhere=everywhere)
    await call.context.registry.policies_changed(name.namespace_name, name.base)
    return DONE


async def get_backlog_quotas(call: Call) -> Answer:
    quotas = (await _policies(call, everywhere=call.flag("isGlobal"))).backlog_quotas or {}
    return answer_json({kind: quota.to_json() for kind, quota in sorted(quotas.items())})


async def set_backlog_quota(call: Call) -> Answer:
    kind = quota_type(call)
    if call.json_or_none() is None:
        return await _store_quota(call, kind, None)
    quota = check_backlog_quota(kind, call.object(BACKLOG_QUOTA), namespace=call.topic.namespace_name)
    return await _store_quota(call, kind, quota)


async def remove_backlog_quota(call: Call) -> Answer:
    return await _store_quota(call, quota_type(call), None)


async def _store_quota(call: Call, kind: str, quota: BacklogQuota | None) -> Answer:
    return await _change(
        call,
        lambda policies, namespace: topic_with_quota(policies, kind, quota, namespace=namespace),
        everywhere=call.flag("isGlobal"),
    )


async def remove_all(call: Call) -> Answer:
    """Remove all policies of the topic on both levels, its replication clusters included."""
    await call.context.topic_clusters.clear_with_all_policies(call.topic)
    return DONE


def _routes(entry: PolicyAtLevel) -> tuple[Route, ...]:
    path = f"{TOPIC_PATH}/{entry.level.path}"
    removal = (Route("DELETE", path, policy_handler(remove_policy, entry), on_policy),) if entry.level.removable else ()
    return (
        Route("GET", path, policy_handler(get_policy, entry), on_policy),
        Route(entry.level.method, path, policy_handler(set_policy, entry), on_policy),
        *removal,
    )


ROUTES: Final = (
    *(
        route
        for entry in TOPIC_CALLS.values()
        if entry.policy.kind is not TOPIC_CLUSTERS  # `topic_clusters` has these calls
        for route in _routes(entry)
    ),
    Route("DELETE", f"{TOPIC_PATH}/policies", remove_all, on_policy),
    Route("GET", f"{TOPIC_PATH}/backlogQuotaMap", get_backlog_quotas, on_policy),
    Route("POST", f"{TOPIC_PATH}/backlogQuota", set_backlog_quota, on_policy),
    Route("DELETE", f"{TOPIC_PATH}/backlogQuota", remove_backlog_quota, on_policy),
)
