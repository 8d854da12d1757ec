"""REST calls about single policies of a topic, made from the catalogue of policies, and about its clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from interpulse.broker.rest.http.bodies import BACKLOG_QUOTA
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json
from interpulse.broker.rest.policies.policy_values import answer_policy, policy_routes, quota_type
from interpulse.broker.topics.topic_settings import policies_in_force
from interpulse.model.operations import Topics, policy_operations
from interpulse.model.policies.catalogue import TOPIC_CALLS, TOPIC_CLUSTERS, PolicyAtLevel
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.model.policies.policy_records import BacklogQuota
from interpulse.rules.effective_policies import namespace_level, topic_level
from interpulse.rules.policy_changes import topic_with_policy, topic_with_quota
from interpulse.rules.policy_checks import check_backlog_quota
from interpulse.rules.replication import effective_replication_clusters


async def get_policy(entry: PolicyAtLevel, call: Call) -> Answer:
    """Return the topic's own policy, or with ``applied`` the policy in force."""
    policies = await _policies(call, everywhere=_everywhere(entry, call))
    return answer_policy(entry, getattr(policies, entry.attribute))


async def _store(entry: PolicyAtLevel, call: Call, value: Any) -> None:
    await _change(
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
) -> None:
    """Store the result of the rule ``change``, which gets the policies of the topic and of its namespace.

    It is in force in the loaded topic before this returns.
    """
    name = call.topic
    found = await call.context.namespaces.find_policies(name.namespace_name)
    namespace = namespace_level(found, cluster=call.context.namespaces.local_cluster)
    await call.context.topic_policies.update(name, lambda policies: change(policies, namespace), everywhere=everywhere)
    await call.context.registry.policies_changed(name.namespace_name, name.base)


async def get_backlog_quotas(call: Call) -> Answer:
    quotas = (await _policies(call, everywhere=call.flag("isGlobal"))).backlog_quotas or {}
    return answer_json({kind: quota.to_json() for kind, quota in sorted(quotas.items())})


async def set_backlog_quota(call: Call) -> None:
    kind, quota = quota_type(call), None
    if call.json_or_none() is not None:
        quota = check_backlog_quota(kind, call.object(BACKLOG_QUOTA), namespace=call.topic.namespace_name)
    await _store_quota(call, kind, quota)


async def remove_backlog_quota(call: Call) -> None:
    await _store_quota(call, quota_type(call), None)


async def _store_quota(call: Call, kind: str, quota: BacklogQuota | None) -> None:
    await _change(
        call,
        lambda policies, namespace: topic_with_quota(policies, kind, quota, namespace=namespace),
        everywhere=call.flag("isGlobal"),
    )


async def remove_all(call: Call) -> None:
    """Remove all policies of the topic on both levels, its replication clusters included."""
    await call.context.topic_clusters.clear_with_all_policies(call.topic)


async def get_clusters(call: Call) -> Answer:
    """Return the clusters set for the topic, or with ``applied`` the ones in force."""
    record = await call.context.topic_policies.record_of_existing(call.topic)
    everywhere = call.flag("isGlobal")
    if call.flag("applied"):
        namespace = await call.context.namespaces.get_policies(call.topic.namespace_name)
        own_level = topic_level(record, everywhere=everywhere)
        return answer_json(sorted(effective_replication_clusters(own_level, namespace)))
    own = record.level(everywhere=everywhere).replication_clusters
    return answer_json(None if own is None else sorted(own))


async def set_clusters(call: Call) -> None:
    await call.context.topic_clusters.set(call.topic, call.strings(), everywhere=call.flag("isGlobal"))


async def remove_clusters(call: Call) -> None:
    await call.context.topic_clusters.clear(call.topic, everywhere=call.flag("isGlobal"))


_CLUSTERS: Final = policy_operations(TOPIC_CALLS["replication_clusters"])

ROUTES: Final = (
    *(
        route
        for entry in TOPIC_CALLS.values()
        if entry.policy.kind is not TOPIC_CLUSTERS
        for route in policy_routes(entry, get_policy, _store)
    ),
    Route(_CLUSTERS.get, get_clusters),
    Route(_CLUSTERS.set, set_clusters),
    Route(_CLUSTERS.remove, remove_clusters),
    Route(Topics.REMOVE_POLICIES, remove_all),
    Route(Topics.GET_QUOTAS, get_backlog_quotas),
    Route(Topics.SET_QUOTA, set_backlog_quota),
    Route(Topics.REMOVE_QUOTA, remove_backlog_quota),
)
