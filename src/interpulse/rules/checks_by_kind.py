"""The check of a policy's value, by the kind of the policy in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.model.numbers import INT_MAX
from interpulse.model.permissions import Permissions
from interpulse.model.policies import catalogue as kinds
from interpulse.model.policies.messaging_policies import PublishRate
from interpulse.model.policies.policy_kinds import Kind
from interpulse.rules.inactivity import check_inactive_topics
from interpulse.rules.permissions import check_actions, check_subscription_auth_mode
from interpulse.rules.policy_checks import (
    SCHEMA_STRATEGIES,
    check_auto_topic_creation,
    check_backlog_quota,
    check_delayed_delivery,
    check_dispatch_rate,
    check_max_message_size,
    check_not_negative,
    check_persistence,
    check_quota_type,
    check_retention,
    check_strategy,
    check_subscribe_rate,
    check_subscription_types,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of the broker that limit policies."""

    partitions_max: int = 0
    """The partitions of a topic; 0 = no limit."""

    message_size_max: int = INT_MAX
    alone: bool = False
    """The broker has no bookies, and keeps one copy of each entry."""


def check_value(kind: Kind, name: str, value: Any, limits: Limits) -> Any:
    """Return the policy in ``value``, JSON of the type that its kind needs.

    Raise InvalidRequest, PreconditionFailed or another error of the kind's check, which calls the policy ``name``.
    """
    check = _CHECKS.get(kind)
    return check(name, value, limits) if check else value


def _number(most: int) -> Callable[[str, Any, Limits], int]:
    return lambda name, value, limits: check_not_negative(name, value, most=most)


def _topic_strategy(value: Any) -> str | None:
    return None if value in (None, "", "UNDEFINED") else check_strategy(value, SCHEMA_STRATEGIES)


def _check_granted(body: Mapping[str, Any]) -> None:
    """Hold the permissions of a new namespace to the rule of grants."""
    granted = Permissions.from_json(body)
    for roles in (granted.namespace, *granted.topics.values()):
        for actions in filter(None, roles.values()):
            check_actions(actions)


def _check_backlog_quotas(quotas: Mapping[str, Mapping[str, Any]]) -> None:
    for kind, quota in quotas.items():
        check_backlog_quota(check_quota_type(kind), quota)


_CHECKS: Final[Mapping[Kind, Callable[[str, Any, Limits], Any]]] = {
    **{kind: _number(kind.most) for kind in (kinds.COUNT, kinds.SECONDS, kinds.MINUTES, kinds.INTERVAL, kinds.BYTES)},
    kinds.MESSAGE_SIZE: lambda name, value, limits: check_max_message_size(value, broker_max=limits.message_size_max),
    kinds.SUBSCRIPTION_CREATION: lambda name, body, limits: bool(body.get("allowAutoSubscriptionCreation")),
    kinds.STRATEGY: lambda name, value, limits: check_strategy(value, ("UNDEFINED", *SCHEMA_STRATEGIES)),
    kinds.TOPIC_STRATEGY: lambda name, value, limits: _topic_strategy(value),
    kinds.TYPES: lambda name, value, limits: check_subscription_types(value),
    kinds.RETENTION: lambda name, body, limits: check_retention(body),
    kinds.INACTIVE_TOPICS: lambda name, body, limits: check_inactive_topics(body),
    kinds.TOPIC_CREATION: lambda name, body, limits: check_auto_topic_creation(
        body, partitions_max=limits.partitions_max
    ),
    kinds.PUBLISH_RATE: lambda name, body, limits: PublishRate.from_json(body),
    kinds.DISPATCH_RATE: lambda name, body, limits: check_dispatch_rate(body),
    kinds.SUBSCRIBE_RATE: lambda name, body, limits: check_subscribe_rate(body),
    kinds.DELAYED_DELIVERY: lambda name, body, limits: check_delayed_delivery(body),
    kinds.PERSISTENCE: lambda name, body, limits: check_persistence(body, alone=limits.alone),
    kinds.BACKLOG_QUOTAS: lambda name, quotas, limits: _check_backlog_quotas(quotas),
    kinds.PERMISSIONS: lambda name, body, limits: _check_granted(body),
    kinds.AUTH_MODE: lambda name, value, limits: check_subscription_auth_mode(value),
}
