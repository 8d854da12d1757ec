"""REST calls about the single policies of a namespace: one line of the table for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.config import BrokerConfig
from interpulse.broker.rest.call import DONE, Answer, Call, Handler, Route, answer_json
from interpulse.broker.rest.topic_policies import inactive_topics
from interpulse.model.errors import InvalidRequest
from interpulse.model.policies import PARTITIONED, NamespacePolicies
from interpulse.rules.policies import (
    check_auto_topic_creation,
    check_not_negative,
    check_retention,
    check_strategy,
)

__all__ = ["ROUTES"]

_STRATEGIES: Final = (
    "UNDEFINED",
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
_LEGACY_STRATEGIES: Final = (
    "AutoUpdateDisabled",
    "AlwaysCompatible",
    "Backward",
    "Forward",
    "Full",
    "BackwardTransitive",
    "ForwardTransitive",
    "FullTransitive",
)
_LEGACY_FIELD: Final = "schema_auto_update_compatibility_strategy"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Policy:
    """How one policy is shown, set and cleared. ``parse`` and ``clear`` give the fields to replace."""

    path: str
    show: Callable[[NamespacePolicies, BrokerConfig, Call], Any]
    parse: Callable[[Call], Values]
    clear: Values | None = None
    method: str = "POST"


def _show_auto_topic_creation(policies: NamespacePolicies, config: BrokerConfig, call: Call) -> Any:
    """The override, or with ``applied`` what is in force, in a form that can be posted back."""
    override = policies.auto_topic_creation
    if not call.flag("applied"):
        return override and override.to_json()
    applied = (override or config.auto_topic_creation).to_json()
    if applied.get("topicType") != PARTITIONED:
        applied.pop("defaultNumPartitions", None)
    return applied


def _parse_auto_topic_creation(call: Call) -> Values:
    if call.json_or_none() is None:  # nothing in its place takes an override away
        return {"auto_topic_creation": None}
    most = call.rooms.dynamic.config.partitions_max
    return {"auto_topic_creation": check_auto_topic_creation(call.object(), partitions_max=most)}


def _show_auto_subscription_creation(policies: NamespacePolicies, config: BrokerConfig, call: Call) -> Any:
    allowed = policies.auto_subscription_creation_allowed
    if allowed is None and call.flag("applied"):
        allowed = config.allow_auto_subscription_creation
    return None if allowed is None else {"allowAutoSubscriptionCreation": allowed}


def _parse_auto_subscription_creation(call: Call) -> Values:
    if call.json_or_none() is None:  # nothing in its place takes an override away
        return {"auto_subscription_creation_allowed": None}
    allowed = call.object().get("allowAutoSubscriptionCreation")
    if allowed is not None and not isinstance(allowed, bool):
        raise InvalidRequest(f"allowAutoSubscriptionCreation must be true or false, not {allowed}")
    return {"auto_subscription_creation_allowed": bool(allowed)}


def _parse_max_topics(call: Call) -> Values:
    count = None if call.json() is None else check_not_negative("maxTopicsPerNamespace", call.integer())
    return {"max_topics_per_namespace": count}


def _show_auto_update(policies: NamespacePolicies, config: BrokerConfig, call: Call) -> Any:
    allowed = policies.allow_auto_update_schema
    return config.is_allow_auto_update_schema_enabled if allowed is None else allowed


def _parse_auto_update(call: Call) -> Values:
    allowed = call.boolean()
    if "allowAutoUpdateSchemaWithReplicator" not in call.query:
        return {"allow_auto_update_schema": allowed}
    with_replicator = call.flag("allowAutoUpdateSchemaWithReplicator")
    if allowed and not with_replicator:
        raise InvalidRequest("Can not enable for all producers but denies for replicators, which is meaningless")
    return {"allow_auto_update_schema": allowed, "allow_auto_update_schema_with_replicator": with_replicator}


def _show_validation(policies: NamespacePolicies, config: BrokerConfig, call: Call) -> Any:
    return policies.schema_validation_enforced or (call.flag("applied") and config.is_schema_validation_enforced)


_POLICIES: Final = (
    _Policy(
        "autoTopicCreation", _show_auto_topic_creation, _parse_auto_topic_creation, clear={"auto_topic_creation": None}
    ),
    _Policy(
        "autoSubscriptionCreation",
        _show_auto_subscription_creation,
        _parse_auto_subscription_creation,
        clear={"auto_subscription_creation_allowed": None},
    ),
    _Policy(
        "deduplication",
        lambda policies, config, call: policies.deduplication_enabled,
        lambda call: {"deduplication_enabled": call.boolean()},
        clear={"deduplication_enabled": None},
    ),
    _Policy(
        "inactiveTopicPolicies",
        lambda policies, config, call: policies.inactive_topics and policies.inactive_topics.to_json(),
        lambda call: {"inactive_topics": inactive_topics(call)},
        clear={"inactive_topics": None},
    ),
    _Policy(
        "retention",
        lambda policies, config, call: policies.retention and policies.retention.to_json(),
        lambda call: {"retention": check_retention(call.object())},
        clear={"retention": None},
    ),
    _Policy(
        "messageTTL",
        lambda policies, config, call: policies.message_ttl_seconds,
        lambda call: {"message_ttl_seconds": check_not_negative("message TTL", call.integer())},
        clear={"message_ttl_seconds": None},
    ),
    _Policy(
        "maxTopicsPerNamespace",
        lambda policies, config, call: policies.max_topics_per_namespace or 0,
        _parse_max_topics,
        clear={"max_topics_per_namespace": None},
    ),
    _Policy("isAllowAutoUpdateSchema", _show_auto_update, _parse_auto_update),
    _Policy(
        "schemaCompatibilityStrategy",
        lambda policies, config, call: policies.schema_compatibility_strategy,
        lambda call: {"schema_compatibility_strategy": check_strategy(call.json(), _STRATEGIES)},
        method="PUT",
    ),
    _Policy(
        "schemaValidationEnforced",
        _show_validation,
        lambda call: {"schema_validation_enforced": call.boolean()},
    ),
)


def _shower(policy: _Policy) -> Handler:
    async def show(call: Call) -> Answer:
        policies = await call.rooms.namespaces.get_policies(call.namespace)
        return answer_json(policy.show(policies, call.rooms.dynamic.config, call))

    return show


def _setter(policy: _Policy) -> Handler:
    async def store(call: Call) -> Answer:
        return await _replace(call, policy.parse(call))

    return store


def _clearer(values: Values) -> Handler:
    async def clear(call: Call) -> Answer:
        return await _replace(call, values)

    return clear


async def _replace(call: Call, values: Values) -> Answer:
    """Store the new values; when the call returns they are in force in the loaded topics too."""
    await call.rooms.namespaces.update_policies(call.namespace, lambda policies: policies.changed(**values))
    await call.rooms.registry.policies_changed(call.namespace)
    return DONE


async def get_legacy_strategy(call: Call) -> Answer:
    return answer_json((await call.rooms.namespaces.get_policies(call.namespace)).other.get(_LEGACY_FIELD))


async def set_legacy_strategy(call: Call) -> Answer:
    strategy = check_strategy(call.json(), _LEGACY_STRATEGIES)
    await call.rooms.namespaces.update_policies(
        call.namespace, lambda policies: policies.changed(other={**policies.other, _LEGACY_FIELD: strategy})
    )
    return DONE


_NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"
_LEGACY_PATH: Final = f"{_NAMESPACE}/schemaAutoUpdateCompatibilityStrategy"

ROUTES: Final = (
    *(Route("GET", f"{_NAMESPACE}/{policy.path}", _shower(policy)) for policy in _POLICIES),
    *(Route(policy.method, f"{_NAMESPACE}/{policy.path}", _setter(policy)) for policy in _POLICIES),
    *(
        Route("DELETE", f"{_NAMESPACE}/{policy.path}", _clearer(policy.clear))
        for policy in _POLICIES
        if policy.clear is not None
    ),
    Route("GET", _LEGACY_PATH, get_legacy_strategy),
    Route("PUT", _LEGACY_PATH, set_legacy_strategy),
)
