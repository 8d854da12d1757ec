"""Policies of a topic as a message of ``__change_events``. Pure.

Each message has all policies of a topic on one level: those for this cluster alone, or those for all clusters of the
topic, whose key has a prefix. A message without content says that nothing is set.
`EVENT_SCHEMA` is the Avro definition of the messages as brokers of Apache Pulsar 5.0 register it. Both kinds of broker
register this text, so they share one schema.
Source: docs/reference/cluster-protocol.md#topic-policies.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from interpulse.model.errors import MetadataError, NotAllowed
from interpulse.model.names import TopicName
from interpulse.model.policies.topic_policies import TopicPolicies
from interpulse.model.schemas import SchemaInfo, SchemaType

_Type: TypeAlias = str | dict[str, Any]

_EVENTS: Final = "org.apache.pulsar.common.events"
_POLICIES: Final = "org.apache.pulsar.common.policies.data"
_FORMS: Final = f"{_POLICIES}.impl"
_DISPATCH_RATE: Final = f"{_FORMS}.DispatchRateImpl"

_EVERYWHERE: Final = "__G__"
_NEVER_NULL: Final[Mapping[str, Any]] = {
    "backLogQuotaMap": {},
    "subscriptionPolicies": {},
    "subscriptionTypesEnabled": [],
}
"""Fields that brokers of Apache Pulsar read without a null check."""

_CREATION, _CREATION_EVENT = "autoSubscriptionCreation", "autoSubscriptionCreationOverride"
_DELAYS, _DELAY_EVENTS = (
    "delayedDelivery",
    {
        "active": "delayedDeliveryEnabled",
        "tickTime": "delayedDeliveryTickTimeMillis",
        "maxDeliveryDelayInMillis": "delayedDeliveryMaxDelayInMillis",
    },
)
_STRATEGY: Final = "schemaCompatibilityStrategy"


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


def event_key(topic: TopicName, *, everywhere: bool) -> str:
    """Return the key of the messages about one topic."""
    return f"{_EVERYWHERE if everywhere else ''}{topic.base}"


def parse_event_key(key: str) -> tuple[TopicName, bool]:
    """Parse a key of `event_key`. Raise InvalidTopicName."""
    return TopicName.parse(key.removeprefix(_EVERYWHERE)).base, key.startswith(_EVERYWHERE)


def encode_policies(topic: TopicName, policies: TopicPolicies, *, everywhere: bool, cluster: str) -> bytes:
    """Encode policies as a message. Raise NotAllowed for a policy that the form has no field for."""
    body = policies.to_json()
    if (creation := body.pop(_CREATION, None)) is not None:
        body[_CREATION_EVENT] = {"allowAutoSubscriptionCreation": creation}
    for name, value in (body.pop(_DELAYS, None) or {}).items():
        body[_DELAY_EVENTS[name]] = value
    unknown = sorted(body.keys() - POLICY_FIELDS)
    if unknown:
        raise NotAllowed(
            f"The policies {', '.join(unknown)} of topic {topic} were set by a newer broker and would be lost: change "
            "policies of this topic there"
        )
    event = {
        "actionType": "UPDATE",
        "eventType": "TOPIC_POLICY",
        "replicateTo": None if everywhere else [cluster],
        "topicPoliciesEvent": {
            "domain": topic.domain,
            "tenant": topic.tenant,
            "namespace": topic.namespace,
            "topic": topic.base.local_name,
            "policies": {**_NEVER_NULL, **body, "isGlobal": everywhere},
        },
    }
    written = io.BytesIO()
    fastavro, parsed = _avro(), _parsed(EVENT_SCHEMA.definition)
    fastavro.schemaless_writer(written, parsed, event)
    return written.getvalue()


def decode_policies(content: bytes, definition: bytes) -> tuple[TopicPolicies, bool] | None:
    """Decode policies, with True if they are for all clusters; None if the message is about something else.

    ``definition`` is the schema that the message was written with. Raises MetadataError.
    """
    try:
        event = _avro().schemaless_reader(io.BytesIO(content), _parsed(definition))
        if event["eventType"] != "TOPIC_POLICY":
            return None
        fields = (event["topicPoliciesEvent"] or {}).get("policies")
        if fields is None or event["actionType"] == "DELETE":
            return TopicPolicies(), False
        return TopicPolicies.from_json(_body(fields)), bool(fields.get("isGlobal"))
    except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
        raise MetadataError(f"not the policies of a topic: {error!r}") from error


def _body(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policies that are set, as the topic's record has them. Empty lists and maps mean null."""
    body = {name: _without_nulls(value) for name, value in fields.items() if value not in (None, [], {})}
    body.pop("isGlobal", None)
    if body.get(_STRATEGY) == "UNDEFINED":
        del body[_STRATEGY]
    if (creation := body.pop(_CREATION_EVENT, None)) is not None:
        body[_CREATION] = creation["allowAutoSubscriptionCreation"]
    delays = {ours: body.pop(theirs) for ours, theirs in _DELAY_EVENTS.items() if theirs in body}
    return {**body, _DELAYS: delays} if delays else body


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


@lru_cache(maxsize=8)
def _parsed(definition: bytes) -> Any:
    return _avro().parse_schema(json.loads(definition))


def _avro() -> Any:
    """Import the Avro library on first use: a broker alone never needs it."""
    import fastavro

    return fastavro
