"""The policies a namespace is created with, all in one document: each is held to the rule it is held to by itself.

Pulsar checks retention and the time to live of messages only, and stores the rest as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from interpulse.model.numbers import LONG_MAX
from interpulse.model.permissions import Permissions
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.rules.inactivity import check_inactive_topics
from interpulse.rules.permissions import check_actions, check_subscription_auth_mode
from interpulse.rules.policy_checks import (
    SCHEMA_STRATEGIES,
    check_auto_topic_creation,
    check_backlog_quota,
    check_delayed_delivery,
    check_dispatch_rate,
    check_not_negative,
    check_persistence,
    check_quota_type,
    check_retention,
    check_schema_switch,
    check_strategy,
    check_subscribe_rate,
    check_subscription_types,
)

__all__ = ["check_new_policies"]

_AUTO_TOPIC_CREATION: Final = "autoTopicCreationOverride"


def check_new_policies(body: Mapping[str, Any], *, partitions_max: int, alone: bool = False) -> NamespacePolicies:
    """Read the policies of a new namespace, of the types that they have in Pulsar; raises what the rule of one raises.

    ``partitions_max`` limits topics that are created by asking for them, 0 = no limit. ``alone``: see
    `check_persistence`.
    """
    for key, check in _CHECKS.items():
        if key in body:
            check(body[key])
    policies = NamespacePolicies.from_json(body)
    if _AUTO_TOPIC_CREATION in body:
        override = check_auto_topic_creation(body[_AUTO_TOPIC_CREATION], partitions_max=partitions_max)
        policies = policies.changed(auto_topic_creation=override)
    if policies.persistence is not None:
        check_persistence(body["persistence"], alone=alone)
    if policies.allow_auto_update_schema is not None:
        check_schema_switch(policies.allow_auto_update_schema, policies.allow_auto_update_schema_with_replicator)
    return policies


def _check_permissions(body: Mapping[str, Any]) -> None:
    """The grants of a new namespace, by the rules of granting."""
    granted = Permissions.from_json(body)
    for roles in (granted.namespace, *granted.topics.values()):
        for actions in filter(None, roles.values()):
            check_actions(actions)


def _check_backlog_quotas(quotas: Mapping[str, Mapping[str, Any]]) -> None:
    for kind, quota in quotas.items():
        check_backlog_quota(check_quota_type(kind), quota)


def _check_each(check: Callable[[Mapping[str, Any]], object], rates: Mapping[str, Mapping[str, Any]]) -> None:
    """The rates of every cluster."""
    for rate in rates.values():
        check(rate)


_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "retention_policies": check_retention,
    "inactive_topic_policies": check_inactive_topics,
    "delayed_delivery_policies": check_delayed_delivery,
    "backlog_quota_map": _check_backlog_quotas,
    "auth_policies": _check_permissions,
    "subscription_auth_mode": check_subscription_auth_mode,
    "topicDispatchRate": partial(_check_each, check_dispatch_rate),
    "subscriptionDispatchRate": partial(_check_each, check_dispatch_rate),
    "clusterSubscribeRate": partial(_check_each, check_subscribe_rate),
    "replicatorDispatchRate": partial(_check_each, check_dispatch_rate),
    "schema_compatibility_strategy": partial(check_strategy, allowed=("UNDEFINED", *SCHEMA_STRATEGIES)),
    "subscription_types_enabled": check_subscription_types,
    "compaction_threshold": partial(check_not_negative, "compaction_threshold", most=LONG_MAX),
    **{
        key: partial(check_not_negative, key)
        for key in (
            "message_ttl_in_seconds",
            "subscription_expiration_time_minutes",
            "max_topics_per_namespace",
            "max_producers_per_topic",
            "max_consumers_per_topic",
            "max_consumers_per_subscription",
            "max_subscriptions_per_topic",
            "max_unacked_messages_per_consumer",
            "max_unacked_messages_per_subscription",
            "deduplicationSnapshotIntervalSeconds",
        )
    },
}
