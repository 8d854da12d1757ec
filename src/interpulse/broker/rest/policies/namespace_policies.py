"""REST calls about the single policies of a namespace: one line of the table for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.rest.http.bodies import AUTO_TOPIC_CREATION, DELAYED_DELIVERY
from interpulse.broker.rest.http.call import (
    DONE,
    NAMESPACE_PATH,
    Answer,
    Call,
    Handler,
    RequiredPermission,
    Route,
    answer_json,
)
from interpulse.broker.rest.http.required_permissions import on_policy, super_user
from interpulse.broker.rest.policies.policy_bodies import (
    auto_subscription_creation,
    count,
    count_or_none,
    inactive_topics,
    persistence,
    record,
    retention,
    subscription_types,
)
from interpulse.model.numbers import INT_MAX, LONG_MAX
from interpulse.model.policies.messaging_policies import DESTINATION_STORAGE
from interpulse.model.policies.namespace_policies import PARTITIONED, NamespacePolicies
from interpulse.rules.effective_policies import LEGACY_STRATEGIES, LEGACY_STRATEGY_FIELD
from interpulse.rules.policy_checks import (
    SCHEMA_STRATEGIES,
    check_auto_topic_creation,
    check_delayed_delivery,
    check_not_negative,
    check_quotas_fit,
    check_schema_switch,
    check_strategy,
)

__all__ = ["ROUTES", "change_policies", "fits_retention"]

_STRATEGIES: Final = ("UNDEFINED", *SCHEMA_STRATEGIES)

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Policy:
    """How one policy is shown, set and cleared. ``parse`` and ``clear`` give the fields to replace."""

    path: str
    show: Callable[[NamespacePolicies, BrokerConfig, Call], Any]
    parse: Callable[[Call], Values]
    clear: Values | None = None
    method: str = "POST"
    check: Callable[[NamespacePolicies], None] = lambda policies: None
    """Looks at all policies as they would be, and refuses by raising."""
    required: RequiredPermission = on_policy
    """To set and to clear it."""


def fits_retention(policies: NamespacePolicies, refusal: str) -> None:
    """Of the quotas of a namespace only that of the size is held against its retention, as in Pulsar."""
    quota = policies.backlog_quotas.get(DESTINATION_STORAGE)
    check_quotas_fit([quota] if quota else [], policies.retention, refusal)


def _single(
    path: str,
    attribute: str,
    parse: Callable[[Call], Any],
    show: Callable[[Any], Any] = lambda value: value,
    *,
    removable: bool = True,
    **more: Any,
) -> _Policy:
    """A policy that is one attribute, and None when it is taken away."""
    return _Policy(
        path,
        lambda policies, config, call: show(getattr(policies, attribute)),
        lambda call: {attribute: parse(call)},
        clear={attribute: None} if removable else None,
        **more,
    )


def _count(path: str, attribute: str, *, method: str = "POST", most: int = INT_MAX) -> _Policy:
    """A number, 0 or more, that can be taken away."""
    return _single(path, attribute, lambda call: count(call, path, most=most), method=method)


def _record_json(value: Any) -> Any:
    return value and value.to_json()


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
    most = call.context.dynamic.config.partitions_max
    return {"auto_topic_creation": check_auto_topic_creation(call.object(AUTO_TOPIC_CREATION), partitions_max=most)}


def _show_auto_subscription_creation(policies: NamespacePolicies, config: BrokerConfig, call: Call) -> Any:
    allowed = policies.auto_subscription_creation_allowed
    if allowed is None and call.flag("applied"):
        allowed = config.allow_auto_subscription_creation
    return None if allowed is None else {"allowAutoSubscriptionCreation": allowed}


def _max_topics(call: Call) -> int | None:
    return None if call.json() is None else check_not_negative("maxTopicsPerNamespace", call.integer())


def _show_auto_update(policies: NamespacePolicies, config: BrokerConfig, call: Call) -> Any:
    allowed = policies.allow_auto_update_schema
    return config.is_allow_auto_update_schema_enabled if allowed is None else allowed


def _parse_auto_update(call: Call) -> Values:
    allowed = call.boolean()
    if "allowAutoUpdateSchemaWithReplicator" not in call.query:
        return {"allow_auto_update_schema": allowed}
    with_replicator = call.flag("allowAutoUpdateSchemaWithReplicator")
    check_schema_switch(allowed, with_replicator)
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
        lambda call: {"auto_subscription_creation_allowed": auto_subscription_creation(call)},
        clear={"auto_subscription_creation_allowed": None},
    ),
    _single("deduplication", "deduplication_enabled", Call.boolean),
    _single("inactiveTopicPolicies", "inactive_topics", inactive_topics, _record_json),
    _single(
        "retention",
        "retention",
        retention,
        _record_json,
        check=lambda policies: fits_retention(
            policies, "Retention Quota must exceed configured backlog quota for namespace."
        ),
    ),
    _count("messageTTL", "message_ttl_seconds"),
    _single(
        "subscriptionExpirationTime",
        "subscription_expiration_minutes",
        lambda call: count(call, "subscription expiration time"),
    ),
    _count("maxProducersPerTopic", "max_producers"),
    _count("maxConsumersPerTopic", "max_consumers"),
    _count("maxConsumersPerSubscription", "max_consumers_per_subscription"),
    _count("maxSubscriptionsPerTopic", "max_subscriptions"),
    _count("maxUnackedMessagesPerConsumer", "max_unacked_per_consumer"),
    _count("maxUnackedMessagesPerSubscription", "max_unacked_per_subscription"),
    _count("compactionThreshold", "compaction_threshold_bytes", method="PUT", most=LONG_MAX),
    _single(
        "delayedDelivery",
        "delayed_delivery",
        lambda call: record(call, DELAYED_DELIVERY, check_delayed_delivery),
        _record_json,
        required=super_user,
    ),
    _single("persistence", "persistence", persistence, _record_json),
    _single(
        "deduplicationSnapshotInterval",
        "deduplication_snapshot_seconds",
        lambda call: count_or_none(call, "deduplicationSnapshotInterval"),
        removable=False,
    ),
    _single("encryptionRequired", "encryption_required", Call.boolean, removable=False),
    _single(
        "subscriptionTypesEnabled",
        "subscription_types_enabled",
        subscription_types,
        lambda types: sorted(types or ()),
    ),
    _single("maxTopicsPerNamespace", "max_topics_per_namespace", _max_topics, lambda most: most or 0),
    _Policy("isAllowAutoUpdateSchema", _show_auto_update, _parse_auto_update),
    _single(
        "schemaCompatibilityStrategy",
        "schema_compatibility_strategy",
        lambda call: check_strategy(call.json(), _STRATEGIES),
        method="PUT",
        removable=False,
    ),
    _Policy(
        "schemaValidationEnforced",
        _show_validation,
        lambda call: {"schema_validation_enforced": call.boolean()},
    ),
)


def _shower(policy: _Policy) -> Handler:
    async def show(call: Call) -> Answer:
        policies = await call.context.namespaces.get_policies(call.namespace)
        return answer_json(policy.show(policies, call.context.dynamic.config, call))

    return show


def _setter(policy: _Policy) -> Handler:
    async def store(call: Call) -> Answer:
        values = policy.parse(call)

        def change(policies: NamespacePolicies) -> NamespacePolicies:
            changed = policies.changed(**values)
            policy.check(changed)
            return changed

        return await change_policies(call, change)

    return store


def _clearer(values: Values) -> Handler:
    async def clear(call: Call) -> Answer:
        return await change_policies(call, lambda policies: policies.changed(**values))

    return clear


async def change_policies(call: Call, change: Callable[[NamespacePolicies], NamespacePolicies]) -> Answer:
    """Store what ``change`` makes of the policies; when the call returns it is in force in the loaded topics too."""
    await call.context.namespaces.update_policies(call.namespace, change)
    await call.context.registry.policies_changed(call.namespace)
    return DONE


async def get_legacy_strategy(call: Call) -> Answer:
    strategy = (await call.context.namespaces.get_policies(call.namespace)).other.get(LEGACY_STRATEGY_FIELD)
    return DONE if strategy is None else answer_json(strategy)


async def set_legacy_strategy(call: Call) -> Answer:
    strategy = check_strategy(call.json(), tuple(LEGACY_STRATEGIES))
    await call.context.namespaces.update_policies(
        call.namespace, lambda policies: policies.changed(other={**policies.other, LEGACY_STRATEGY_FIELD: strategy})
    )
    return DONE


_LEGACY_PATH: Final = f"{NAMESPACE_PATH}/schemaAutoUpdateCompatibilityStrategy"

ROUTES: Final = (
    *(Route("GET", f"{NAMESPACE_PATH}/{policy.path}", _shower(policy), on_policy) for policy in _POLICIES),
    *(
        Route(policy.method, f"{NAMESPACE_PATH}/{policy.path}", _setter(policy), policy.required)
        for policy in _POLICIES
    ),
    *(
        Route("DELETE", f"{NAMESPACE_PATH}/{policy.path}", _clearer(policy.clear), policy.required)
        for policy in _POLICIES
        if policy.clear is not None
    ),
    Route("GET", _LEGACY_PATH, get_legacy_strategy, on_policy),
    Route("PUT", _LEGACY_PATH, set_legacy_strategy, on_policy),
)
