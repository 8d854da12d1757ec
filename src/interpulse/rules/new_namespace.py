"""The policies a namespace is created with, all in one document: each is held to the rule it is held to by itself.

Pulsar checks retention and the time to live of messages only, and stores the rest as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import INT_MAX, LONG_MAX
from interpulse.model.permissions import Permissions
from interpulse.model.policies import NamespacePolicies
from interpulse.rules.inactivity import check_inactive_topics
from interpulse.rules.permissions import check_actions, check_subscription_auth_mode
from interpulse.rules.policy_checks import (
    SCHEMA_STRATEGIES,
    check_auto_topic_creation,
    check_backlog_quota,
    check_delayed_delivery,
    check_dispatch_rate,
    check_not_negative,
    check_publish_rate,
    check_quota_type,
    check_retention,
    check_schema_switch,
    check_strategy,
    check_subscribe_rate,
    check_subscription_types,
)

__all__ = ["check_new_policies"]

T = TypeVar("T")


def check_new_policies(body: Mapping[str, Any], *, partitions_max: int) -> NamespacePolicies:
    """Read the policies of a new namespace; raises what the rule of a policy raises, with the policy's name.

    ``partitions_max`` limits topics that are created by asking for them, 0 = no limit.
    """
    given = {key: value for key, value in body.items() if value is not None}
    for key, check in _CHECKS.items():
        if key in given:
            check(given[key])
    if "autoTopicCreationOverride" in given:
        check_auto_topic_creation(_object("autoTopicCreationOverride", body), partitions_max=partitions_max)
    policies = NamespacePolicies.from_json(given)
    if policies.allow_auto_update_schema is not None:
        check_schema_switch(policies.allow_auto_update_schema, policies.allow_auto_update_schema_with_replicator)
    return policies


def _object(key: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    return _of_type(key, dict, "an object", body[key])


def _of_type(key: str, kind: type[T], words: str, value: Any) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidRequest(f"{key} must be {words}, not {str(value)[:100]!r}")
    return value


def _number(key: str, *, most: int = INT_MAX) -> Callable[[Any], object]:
    return lambda value: check_not_negative(key, _of_type(key, int, "an integer", value), most=most)


def _record(key: str, check: Callable[[Mapping[str, Any]], object]) -> Callable[[Any], object]:
    return lambda value: check(_of_type(key, dict, "an object", value))


def _flag(key: str) -> Callable[[Any], object]:
    def check(value: Any) -> None:
        if not isinstance(value, bool):
            raise InvalidRequest(f"{key} must be true or false, not {str(value)[:100]!r}")

    return check


def _subscription_types(value: Any) -> None:
    key, words = "subscription_types_enabled", "an array of strings"
    check_subscription_types([_of_type(key, str, words, each) for each in _of_type(key, list, words, value)])


def _permissions(value: Any) -> None:
    """What is granted from the beginning, by the rules of granting."""
    body = _of_type("auth_policies", dict, "an object", value)
    try:
        granted = Permissions.from_json(body)
    except ValueError as error:
        raise InvalidRequest(f"auth_policies: {error}"[:200]) from None
    for roles in (granted.namespace, *granted.topics.values()):
        for actions in filter(None, roles.values()):
            check_actions(actions)


def _records(key: str, check: Callable[[str, Mapping[str, Any]], object]) -> Callable[[Any], object]:
    """An object of objects, for example by cluster."""

    def each(value: Any) -> None:
        for name, inner in _of_type(key, dict, "an object", value).items():
            check(name, _of_type(f"{key} of {name}", dict, "an object", inner))

    return each


def _rates(key: str, check: Callable[[Mapping[str, Any]], object]) -> Callable[[Any], object]:
    return _records(key, lambda cluster, rate: check(rate))


_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "retention_policies": _record("retention_policies", check_retention),
    "inactive_topic_policies": _record("inactive_topic_policies", check_inactive_topics),
    "delayed_delivery_policies": _record("delayed_delivery_policies", check_delayed_delivery),
    "backlog_quota_map": _records(
        "backlog_quota_map", lambda kind, quota: check_backlog_quota(check_quota_type(kind), quota)
    ),
    "encryption_required": _flag("encryption_required"),
    "auth_policies": _permissions,
    "subscription_auth_mode": lambda mode: check_subscription_auth_mode(
        _of_type("subscription_auth_mode", str, "a string", mode)
    ),
    "publishMaxMessageRate": _rates("publishMaxMessageRate", check_publish_rate),
    "topicDispatchRate": _rates("topicDispatchRate", check_dispatch_rate),
    "subscriptionDispatchRate": _rates("subscriptionDispatchRate", check_dispatch_rate),
    "clusterSubscribeRate": _rates("clusterSubscribeRate", check_subscribe_rate),
    "replicatorDispatchRate": _rates("replicatorDispatchRate", check_dispatch_rate),
    "schema_compatibility_strategy": partial(check_strategy, allowed=("UNDEFINED", *SCHEMA_STRATEGIES)),
    "subscription_types_enabled": _subscription_types,
    "compaction_threshold": _number("compaction_threshold", most=LONG_MAX),
    **{
        key: _number(key)
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
