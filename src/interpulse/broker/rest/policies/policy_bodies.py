"""Policies in the body of a call, as they are sent for namespaces and for topics alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from interpulse.broker.rest.http.bodies import AUTO_SUBSCRIPTION_CREATION, INACTIVE_TOPICS, PERSISTENCE, RETENTION
from interpulse.broker.rest.http.call import Call
from interpulse.broker.rest.http.fields import Body
from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import INT_MAX, LONG_MAX, read_integer
from interpulse.model.policies.messaging_policies import Persistence
from interpulse.model.policies.namespace_policies import InactiveTopicPolicies, RetentionPolicies
from interpulse.rules.inactivity import check_inactive_topics
from interpulse.rules.policy_checks import (
    SCHEMA_STRATEGIES,
    check_not_negative,
    check_persistence,
    check_quota_type,
    check_retention,
    check_strategy,
    check_subscription_types,
)

__all__ = [
    "auto_subscription_creation",
    "backlog_quota_type",
    "count",
    "count_in_query",
    "count_or_none",
    "inactive_topics",
    "persistence",
    "record",
    "retention",
    "strategy",
    "subscription_types",
]

T = TypeVar("T")


def record(call: Call, body: Body, check: Callable[[Mapping[str, Any]], T]) -> T | None:
    """The policy in the body; null, or no body, takes it away."""
    return None if call.json_or_none() is None else check(call.object(body))


def retention(call: Call) -> RetentionPolicies | None:
    return record(call, RETENTION, check_retention)


def inactive_topics(call: Call) -> InactiveTopicPolicies | None:
    return record(call, INACTIVE_TOPICS, check_inactive_topics)


def persistence(call: Call) -> Persistence:
    """The policy in the body. Unlike others it cannot be taken away by null, as in Pulsar."""
    if call.json_or_none() is None:
        raise InvalidRequest("persistence policies should not be null")
    return check_persistence(call.object(PERSISTENCE), alone=call.context.dynamic.config.alone)


def count(call: Call, name: str, *, most: int = INT_MAX) -> int:
    """The number in the body, 0 or more."""
    return check_not_negative(name, call.integer(), most=most)


def count_or_none(call: Call, name: str) -> int | None:
    """The number in the body, 0 or more; null, or no body, takes the policy away."""
    return None if call.json_or_none() is None else count(call, name)


def subscription_types(call: Call) -> frozenset[str]:
    return check_subscription_types(call.strings())


def backlog_quota_type(call: Call) -> str:
    return check_quota_type(call.query.get("backlogQuotaType"))


def strategy(call: Call) -> str | None:
    """A schema compatibility strategy; null, no body, an empty string and UNDEFINED take it away."""
    value = call.json_or_none()
    return None if value in (None, "", "UNDEFINED") else check_strategy(value, SCHEMA_STRATEGIES)


def count_in_query(call: Call, name: str) -> int | None:
    """The number in the query, 0 or more; without one the policy is taken away. Pulsar ignores a body, we refuse it."""
    if call.json_or_none() is not None:
        raise InvalidRequest(f"{name} is expected in the query, as in ?{name}=60, and not in the body")
    text = call.query.get(name, "")
    if not text:
        return None
    number = read_integer(text, most=LONG_MAX)
    if number is None:
        raise InvalidRequest(f"{name} must be an integer, not {text[:100]}")
    return check_not_negative(name, number)


def auto_subscription_creation(call: Call) -> bool | None:
    """Whether it is allowed; null, or no body, takes the policy away, and a body that does not say it forbids it."""
    if call.json_or_none() is None:
        return None
    return bool(call.object(AUTO_SUBSCRIPTION_CREATION).get("allowAutoSubscriptionCreation"))
