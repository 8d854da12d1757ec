"""REST calls about the single policies of a topic: one line of the table for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.rest.http.bodies import (
    BACKLOG_QUOTA,
    DELAYED_DELIVERY,
    DISPATCH_RATE,
    PUBLISH_RATE,
    SUBSCRIBE_RATE,
)
from interpulse.broker.rest.http.call import DONE, TOPIC_PATH, UNSET, Answer, Call, Handler, Route, answer_json
from interpulse.broker.rest.http.fields import Body
from interpulse.broker.rest.http.required_permissions import on_policy
from interpulse.broker.rest.policies.policy_bodies import (
    auto_subscription_creation,
    backlog_quota_type,
    count,
    count_in_query,
    count_or_none,
    inactive_topics,
    persistence,
    record,
    retention,
    strategy,
    subscription_types,
)
from interpulse.broker.topics.topic_settings import policies_in_force
from interpulse.model.numbers import INT_MAX, LONG_MAX
from interpulse.model.policies.messaging_policies import BacklogQuota, PublishRate
from interpulse.model.policies.topic_policies import TopicPolicies
from interpulse.rules.effective_policies import effective_policies, namespace_level, topic_level
from interpulse.rules.policy_checks import (
    check_backlog_quota,
    check_delayed_delivery,
    check_dispatch_rate,
    check_max_message_size,
    check_quotas_fit,
    check_subscribe_rate,
)

__all__ = ["ROUTES"]

_REMEDY: Final = "Please increase retention quota and retry"
_RETENTION_TOO_SMALL: Final = f"Retention Quota must exceed configured backlog quota for topic. {_REMEDY}"
_QUOTA_TOO_LARGE: Final = f"Backlog Quota exceeds configured retention quota for topic. {_REMEDY}"


@dataclass(frozen=True, slots=True)
class _Policy:
    """How one policy is read from a call, and how it is shown."""

    path: str
    attribute: str
    parse: Callable[[Call], Any]
    show: Callable[[Any], Any] = lambda value: value
    """Its JSON; None = not set."""

    method: str = "POST"
    removable: bool = True
    has_levels: bool = True
    """It can be set for all clusters of the topic (``isGlobal``)."""

    unset: Answer = UNSET
    """What reading it answers when it is not set. Pulsar says it in two ways."""


def _record(path: str, attribute: str, parse: Callable[[Call], Any], **more: Any) -> _Policy:
    return _Policy(path, attribute, parse, lambda value: value and value.to_json(), **more)


def _checked(path: str, attribute: str, body: Body, check: Callable[[Mapping[str, Any]], Any], **more: Any) -> _Policy:
    return _record(path, attribute, lambda call: record(call, body, check), **more)


def _count(path: str, attribute: str, *, most: int = INT_MAX, **more: Any) -> _Policy:
    return _Policy(path, attribute, lambda call: count(call, path, most=most), **more)


_POLICIES: Final = (
    _record("inactiveTopicPolicies", "inactive_topics", inactive_topics),
    _record("retention", "retention", retention),
    _Policy("messageTTL", "message_ttl_seconds", lambda call: count_in_query(call, "messageTTL")),
    _Policy(
        "subscriptionExpirationTime",
        "subscription_expiration_minutes",
        lambda call: count_or_none(call, "subscription expiration time"),
    ),
    _checked("publishRate", "publish_rate", PUBLISH_RATE, PublishRate.from_json, unset=DONE),
    _checked("dispatchRate", "dispatch_rate", DISPATCH_RATE, check_dispatch_rate),
    _checked("subscriptionDispatchRate", "subscription_dispatch_rate", DISPATCH_RATE, check_dispatch_rate),
    _checked("subscribeRate", "subscribe_rate", SUBSCRIBE_RATE, check_subscribe_rate),
    _checked("replicatorDispatchRate", "replicator_dispatch_rate", DISPATCH_RATE, check_dispatch_rate),
    _count("maxProducers", "max_producers"),
    _count("maxConsumers", "max_consumers"),
    _count("maxConsumersPerSubscription", "max_consumers_per_subscription", unset=DONE),
    _count("maxSubscriptionsPerTopic", "max_subscriptions", unset=DONE),
    _count("maxUnackedMessagesOnConsumer", "max_unacked_per_consumer"),
    _count("maxUnackedMessagesOnSubscription", "max_unacked_per_subscription"),
    _Policy(
        "maxMessageSize",
        "max_message_size",
        lambda call: check_max_message_size(call.integer(), broker_max=call.context.dynamic.config.max_message_size),
        unset=DONE,
    ),
    _checked("delayedDelivery", "delayed_delivery", DELAYED_DELIVERY, check_delayed_delivery),
    _record("persistence", "persistence", persistence),
    _Policy("deduplicationEnabled", "deduplication_enabled", lambda call: call.boolean()),
    _Policy(
        "deduplicationSnapshotInterval",
        "deduplication_snapshot_seconds",
        lambda call: count_or_none(call, "deduplicationSnapshotInterval"),
    ),
    _count("compactionThreshold", "compaction_threshold_bytes", most=LONG_MAX),
    _Policy(
        "subscriptionTypesEnabled",
        "subscription_types_enabled",
        subscription_types,
        lambda types: None if types is None else sorted(types),
        unset=answer_json([]),
    ),
    _Policy(
        "autoSubscriptionCreation",
        "auto_subscription_creation_allowed",
        auto_subscription_creation,
        lambda allowed: None if allowed is None else {"allowAutoSubscriptionCreation": allowed},
    ),
    _Policy("schemaCompatibilityStrategy", "schema_compatibility_strategy", strategy, method="PUT", has_levels=False),
    _Policy(
        "schemaValidationEnforced",
        "schema_validation_enforced",
        lambda call: call.boolean(),
        bool,
        removable=False,
        has_levels=False,
    ),
)


def _shower(policy: _Policy) -> Handler:
    async def show(call: Call) -> Answer:
        found = await _policies(call, has_levels=policy.has_levels)
        shown = policy.show(getattr(found, policy.attribute))
        return policy.unset if shown is None else answer_json(shown)

    return show


async def _policies(call: Call, *, has_levels: bool = True) -> TopicPolicies:
    """What is set for the topic, or with ``applied`` what is in force."""
    record = await call.context.topic_policies.record_of_existing(call.topic)
    everywhere = call.flag("isGlobal") and has_levels
    if not call.flag("applied"):
        return record.level(everywhere=everywhere)
    namespace = await call.context.namespaces.get_policies(call.topic.namespace_name)
    return policies_in_force(topic_level(record, everywhere=everywhere), namespace, call.context.dynamic.config)


def _setter(policy: _Policy) -> Handler:
    async def store(call: Call) -> Answer:
        return await _replace(call, policy, policy.parse(call))

    return store


def _clearer(policy: _Policy) -> Handler:
    async def clear(call: Call) -> Answer:
        return await _replace(call, policy, None)

    return clear


async def _replace(call: Call, policy: _Policy, value: Any) -> Answer:
    everywhere = call.flag("isGlobal") and policy.has_levels
    check = _check_retention if policy.attribute == "retention" and value is not None else _check_nothing
    return await _change(
        call, lambda policies: policies.changed(**{policy.attribute: value}), check, everywhere=everywhere
    )


async def _change(
    call: Call,
    change: Callable[[TopicPolicies], TopicPolicies],
    check: Callable[[TopicPolicies], None],
    *,
    everywhere: bool,
) -> Answer:
    """Store what ``change`` makes of the policies; when the call returns it is in force in the loaded topic too.

    ``check`` raises what is wrong with the policies that would be in force, those of the namespace included. It looks
    at what the call sets, so that what was set elsewhere before keeps no one from setting something else.
    """
    name = call.topic
    namespace = await call.context.namespaces.find_policies(name.namespace_name)
    level = namespace_level(namespace, cluster=call.context.namespaces.local_cluster)

    def checked(policies: TopicPolicies) -> TopicPolicies:
        changed = change(policies)
        check(effective_policies(changed, level, TopicPolicies()))
        return changed

    await call.context.topic_policies.update(name, checked, everywhere=everywhere)
    await call.context.registry.policies_changed(name.namespace_name, name.base)
    return DONE


def _check_nothing(in_force: TopicPolicies) -> None:
    pass


def _check_retention(in_force: TopicPolicies) -> None:
    check_quotas_fit((in_force.backlog_quotas or {}).values(), in_force.retention, _RETENTION_TOO_SMALL)


async def get_backlog_quotas(call: Call) -> Answer:
    quotas = (await _policies(call)).backlog_quotas or {}
    return answer_json({kind: quota.to_json() for kind, quota in sorted(quotas.items())})


async def set_backlog_quota(call: Call) -> Answer:
    kind = backlog_quota_type(call)
    namespace = call.topic.namespace_name
    checked = record(call, BACKLOG_QUOTA, lambda body: check_backlog_quota(kind, body, namespace=namespace))
    return await _with_quota(call, kind, checked)


async def remove_backlog_quota(call: Call) -> Answer:
    return await _with_quota(call, backlog_quota_type(call), None)


async def _with_quota(call: Call, kind: str, quota: BacklogQuota | None) -> Answer:
    """Set the quota of one type; None takes it away."""

    def change(policies: TopicPolicies) -> TopicPolicies:
        joined = {**(policies.backlog_quotas or {}), kind: quota}
        return policies.changed(backlog_quotas={kind: quota for kind, quota in joined.items() if quota} or None)

    def check(in_force: TopicPolicies) -> None:
        check_quotas_fit([quota] if quota else [], in_force.retention, _QUOTA_TOO_LARGE)

    return await _change(call, change, check, everywhere=call.flag("isGlobal"))


async def remove_all(call: Call) -> Answer:
    """Take away whatever is set for the topic, on both levels, its replication clusters included."""
    await call.context.topic_clusters.clear_with_all_policies(call.topic)
    return DONE


ROUTES: Final = (
    *(Route("GET", f"{TOPIC_PATH}/{policy.path}", _shower(policy), on_policy) for policy in _POLICIES),
    *(Route(policy.method, f"{TOPIC_PATH}/{policy.path}", _setter(policy), on_policy) for policy in _POLICIES),
    *(
        Route("DELETE", f"{TOPIC_PATH}/{policy.path}", _clearer(policy), on_policy)
        for policy in _POLICIES
        if policy.removable
    ),
    Route("DELETE", f"{TOPIC_PATH}/policies", remove_all, on_policy),
    Route("GET", f"{TOPIC_PATH}/backlogQuotaMap", get_backlog_quotas, on_policy),
    Route("POST", f"{TOPIC_PATH}/backlogQuota", set_backlog_quota, on_policy),
    Route("DELETE", f"{TOPIC_PATH}/backlogQuota", remove_backlog_quota, on_policy),
)
