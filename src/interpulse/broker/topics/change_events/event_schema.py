"""The Avro definition of the messages in ``__change_events``, as brokers of Apache Pulsar 5.0 register it.

Both kinds of broker register this text, so they share one schema.
Source: docs/reference/cluster-protocol.md#topic-policies.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from interpulse.model.schemas import SchemaInfo, SchemaType

_Type: TypeAlias = str | dict[str, Any]

_EVENTS: Final = "org.apache.pulsar.common.events"
_POLICIES: Final = "org.apache.pulsar.common.policies.data"
_FORMS: Final = f"{_POLICIES}.impl"
_DISPATCH_RATE: Final = f"{_FORMS}.DispatchRateImpl"


def _one(name: str, of: _Type) -> dict[str, Any]:
    return {"name": name, "type": of}


def _maybe(name: str, of: _Type) -> dict[str, Any]:
    return {"name": name, "type": ["null", of], "default": None}


def _record(name: str, *fields: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
    return {"type": "record", "name": name, **({"namespace": namespace} if namespace else {}), "fields": list(fields)}


def _enum(name: str, *symbols: str, namespace: str | None = None) -> dict[str, Any]:
    return {"type": "enum", "name": name, **({"namespace": namespace} if namespace else {}), "symbols": list(symbols)}


def _array(items: _Type, java_class: str = "java.util.List") -> dict[str, Any]:
    return {"type": "array", "items": items, "java-class": java_class}


def _map(values: _Type) -> dict[str, Any]:
    return {"type": "map", "values": values}


_BACKLOG_QUOTA: Final = _record(
    "BacklogQuotaImpl",
    _one("limit", "long"),
    _maybe("limitSize", "long"),
    _one("limitTime", "int"),
    _maybe(
        "policy",
        _enum(
            "RetentionPolicy",
            "producer_request_hold",
            "producer_exception",
            "consumer_backlog_eviction",
            namespace=f"{_POLICIES}.BacklogQuota",
        ),
    ),
    namespace=_FORMS,
)

_OFFLOADING: Final = _record(
    "OffloadPoliciesImpl",
    _maybe("fileSystemProfilePath", "string"),
    _maybe("fileSystemURI", "string"),
    _maybe("gcsManagedLedgerOffloadBucket", "string"),
    _maybe("gcsManagedLedgerOffloadMaxBlockSizeInBytes", "int"),
    _maybe("gcsManagedLedgerOffloadReadBufferSizeInBytes", "int"),
    _maybe("gcsManagedLedgerOffloadRegion", "string"),
    _maybe("gcsManagedLedgerOffloadServiceAccountKeyFile", "string"),
    _maybe("managedLedgerExtraConfigurations", _map("string")),
    _maybe("managedLedgerOffloadBucket", "string"),
    _maybe("managedLedgerOffloadDeletionLagInMillis", "long"),
    _maybe("managedLedgerOffloadDriver", "string"),
    _maybe("managedLedgerOffloadMaxBlockSizeInBytes", "int"),
    _maybe("managedLedgerOffloadMaxThreads", "int"),
    _maybe("managedLedgerOffloadPrefetchRounds", "int"),
    _maybe("managedLedgerOffloadReadBufferSizeInBytes", "int"),
    _maybe("managedLedgerOffloadReadThreads", "int"),
    _maybe("managedLedgerOffloadRegion", "string"),
    _maybe("managedLedgerOffloadServiceEndpoint", "string"),
    _maybe("managedLedgerOffloadThresholdInBytes", "long"),
    _maybe("managedLedgerOffloadThresholdInSeconds", "long"),
    _maybe(
        "managedLedgerOffloadedReadPriority", _enum("OffloadedReadPriority", "BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST")
    ),
    _maybe("offloadersDirectory", "string"),
    _maybe("s3ManagedLedgerOffloadBucket", "string"),
    _maybe("s3ManagedLedgerOffloadCredentialId", "string"),
    _maybe("s3ManagedLedgerOffloadCredentialSecret", "string"),
    _maybe("s3ManagedLedgerOffloadMaxBlockSizeInBytes", "int"),
    _maybe("s3ManagedLedgerOffloadReadBufferSizeInBytes", "int"),
    _maybe("s3ManagedLedgerOffloadRegion", "string"),
    _maybe("s3ManagedLedgerOffloadRole", "string"),
    _maybe("s3ManagedLedgerOffloadRoleSessionName", "string"),
    _maybe("s3ManagedLedgerOffloadServiceEndpoint", "string"),
)

_TOPIC_POLICIES: Final = _record(
    "TopicPolicies",
    _maybe(
        "autoSubscriptionCreationOverride",
        _record(
            "AutoSubscriptionCreationOverrideImpl", _one("allowAutoSubscriptionCreation", "boolean"), namespace=_FORMS
        ),
    ),
    _maybe("backLogQuotaMap", _map(_BACKLOG_QUOTA)),
    _maybe("compactionThreshold", "long"),
    _maybe("deduplicationEnabled", "boolean"),
    _maybe("deduplicationSnapshotIntervalSeconds", "int"),
    _maybe("delayedDeliveryEnabled", "boolean"),
    _maybe("delayedDeliveryMaxDelayInMillis", "long"),
    _maybe("delayedDeliveryTickTimeMillis", "long"),
    _maybe(
        "dispatchRate",
        _record(
            "DispatchRateImpl",
            _one("dispatchThrottlingRateInByte", "long"),
            _one("dispatchThrottlingRateInMsg", "int"),
            _one("ratePeriodInSecond", "int"),
            _one("relativeToPublishRate", "boolean"),
            namespace=_FORMS,
        ),
    ),
    _maybe("dispatcherPauseOnAckStatePersistentEnabled", "boolean"),
    _maybe("entryFilters", _record("EntryFilters", _maybe("entryFilterNames", "string"))),
    _maybe(
        "inactiveTopicPolicies",
        _record(
            "InactiveTopicPolicies",
            _one("deleteWhileInactive", "boolean"),
            _maybe(
                "inactiveTopicDeleteMode",
                _enum("InactiveTopicDeleteMode", "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"),
            ),
            _one("maxInactiveDurationSeconds", "int"),
        ),
    ),
    _maybe("isGlobal", "boolean"),
    _maybe("maxConsumerPerTopic", "int"),
    _maybe("maxConsumersPerSubscription", "int"),
    _maybe("maxMessageSize", "int"),
    _maybe("maxProducerPerTopic", "int"),
    _maybe("maxSubscriptionsPerTopic", "int"),
    _maybe("maxUnackedMessagesOnConsumer", "int"),
    _maybe("maxUnackedMessagesOnSubscription", "int"),
    _maybe("messageTTLInSeconds", "int"),
    _maybe("offloadPolicies", _OFFLOADING),
    _maybe(
        "persistence",
        _record(
            "PersistencePolicies",
            _one("bookkeeperAckQuorum", "int"),
            _one("bookkeeperEnsemble", "int"),
            _one("bookkeeperWriteQuorum", "int"),
            _one("managedLedgerMaxMarkDeleteRate", "double"),
            _maybe("managedLedgerStorageClassName", "string"),
        ),
    ),
    _maybe(
        "publishRate",
        _record("PublishRate", _one("publishThrottlingRateInByte", "long"), _one("publishThrottlingRateInMsg", "int")),
    ),
    _maybe("replicationClusters", _array("string")),
    _maybe("replicatorDispatchRate", _DISPATCH_RATE),
    _maybe(
        "retentionPolicies",
        _record("RetentionPolicies", _one("retentionSizeInMB", "long"), _one("retentionTimeInMinutes", "int")),
    ),
    _maybe(
        "schemaCompatibilityStrategy",
        _enum(
            "SchemaCompatibilityStrategy",
            "UNDEFINED",
            "ALWAYS_INCOMPATIBLE",
            "ALWAYS_COMPATIBLE",
            "BACKWARD",
            "FORWARD",
            "FULL",
            "BACKWARD_TRANSITIVE",
            "FORWARD_TRANSITIVE",
            "FULL_TRANSITIVE",
        ),
    ),
    _maybe("schemaValidationEnforced", "boolean"),
    _maybe("shadowTopics", _array("string")),
    _maybe(
        "subscribeRate",
        _record("SubscribeRate", _one("ratePeriodInSecond", "int"), _one("subscribeThrottlingRatePerConsumer", "int")),
    ),
    _maybe("subscriptionDispatchRate", _DISPATCH_RATE),
    _maybe("subscriptionExpirationTimeInMinutes", "int"),
    _maybe("subscriptionPolicies", _map(_record("SubscriptionPolicies", _maybe("dispatchRate", _DISPATCH_RATE)))),
    _maybe(
        "subscriptionTypesEnabled",
        _array(
            _enum(
                "SubType",
                "Exclusive",
                "Shared",
                "Failover",
                "Key_Shared",
                namespace="org.apache.pulsar.common.api.proto.CommandSubscribe",
            )
        ),
    ),
    namespace=_POLICIES,
)

_EVENT: Final = _record(
    "PulsarEvent",
    _maybe("actionType", _enum("ActionType", "INSERT", "DELETE", "UPDATE", "NONE")),
    _maybe(
        "eventType",
        _enum(
            "EventType",
            "TOPIC_POLICY",
            "TRANSACTION_BUFFER_SNAPSHOT",
            "TRANSACTION_BUFFER_SNAPSHOT_SEGMENTS",
            "TRANSACTION_BUFFER_SNAPSHOT_INDEXES",
        ),
    ),
    _maybe("replicateTo", _array("string", "java.util.HashSet")),
    _maybe(
        "topicPoliciesEvent",
        _record(
            "TopicPoliciesEvent",
            _maybe("domain", "string"),
            _maybe("namespace", "string"),
            _maybe("policies", _TOPIC_POLICIES),
            _maybe("tenant", "string"),
            _maybe("topic", "string"),
        ),
    ),
    namespace=_EVENTS,
)

POLICY_FIELDS: Final = frozenset(field["name"] for field in _TOPIC_POLICIES["fields"])
"""Policies that an event can carry."""

EVENT_SCHEMA: Final = SchemaInfo(
    SchemaType.AVRO,
    json.dumps(_EVENT, separators=(",", ":")).encode(),
    {"__alwaysAllowNull": "true", "__jsr310ConversionEnabled": "false"},
)
