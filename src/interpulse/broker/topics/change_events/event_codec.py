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
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeAlias

from interpulse.model.errors import MetadataError, NotAllowed
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.model.policies.policy_records import DELETE_WHEN_CAUGHT_UP, DELETE_WHEN_NO_SUBSCRIPTIONS, QUOTA_POLICIES
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.policy_checks import SCHEMA_STRATEGIES, SUBSCRIPTION_TYPES

_Type: TypeAlias = str | dict[str, Any]

_EVENTS: Final = "org.apache.pulsar.common.events"
_POLICIES: Final = "org.apache.pulsar.common.policies.data"
_FORMS: Final = f"{_POLICIES}.impl"
_NOTHING: Final[Mapping[str, _Type]] = {}

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


def _record(
    name: str, optional: Mapping[str, _Type], required: Mapping[str, _Type] = _NOTHING, namespace: str = ""
) -> dict[str, Any]:
    """Return the type of a record, with its fields in Java's order, by their names."""
    fields: list[dict[str, Any]] = [{"name": field, "type": of} for field, of in required.items()]
    fields += [{"name": field, "type": ["null", of], "default": None} for field, of in optional.items()]
    fields.sort(key=itemgetter("name"))
    return {"type": "record", "name": name, **({"namespace": namespace} if namespace else {}), "fields": fields}


def _each(of: str, names: str) -> dict[str, _Type]:
    return dict.fromkeys(names.split(), of)


def _enum(name: str, symbols: Sequence[str], namespace: str = "") -> dict[str, Any]:
    return {"type": "enum", "name": name, **({"namespace": namespace} if namespace else {}), "symbols": [*symbols]}


def _array(items: _Type, java_class: str = "java.util.List") -> dict[str, Any]:
    return {"type": "array", "items": items, "java-class": java_class}


def _map(values: _Type) -> dict[str, Any]:
    return {"type": "map", "values": values}


_QUOTA_POLICY: Final = _enum("RetentionPolicy", QUOTA_POLICIES, f"{_POLICIES}.BacklogQuota")
_BACKLOG_QUOTA: Final = _record(
    "BacklogQuotaImpl", {"limitSize": "long", "policy": _QUOTA_POLICY}, {"limit": "long", "limitTime": "int"}, _FORMS
)
_CREATION_OVERRIDE: Final = _record(
    "AutoSubscriptionCreationOverrideImpl", {}, {"allowAutoSubscriptionCreation": "boolean"}, _FORMS
)
_DISPATCH_RATE: Final = _record(
    "DispatchRateImpl",
    {},
    {
        **_each("int", "dispatchThrottlingRateInMsg ratePeriodInSecond"),
        "dispatchThrottlingRateInByte": "long",
        "relativeToPublishRate": "boolean",
    },
    _FORMS,
)
_DISPATCH_RATE_AGAIN: Final = f"{_FORMS}.DispatchRateImpl"
"""A type is defined where it is used first, which is in `dispatchRate`."""
_DELETE_MODE: Final = _enum("InactiveTopicDeleteMode", (DELETE_WHEN_NO_SUBSCRIPTIONS, DELETE_WHEN_CAUGHT_UP))
_INACTIVE_TOPICS: Final = _record(
    "InactiveTopicPolicies",
    {"inactiveTopicDeleteMode": _DELETE_MODE},
    {"deleteWhileInactive": "boolean", "maxInactiveDurationSeconds": "int"},
)
_OFFLOADING: Final = _record(
    "OffloadPoliciesImpl",
    {
        **_each(
            "string",
            """
            fileSystemProfilePath fileSystemURI gcsManagedLedgerOffloadBucket gcsManagedLedgerOffloadRegion
            gcsManagedLedgerOffloadServiceAccountKeyFile managedLedgerOffloadBucket managedLedgerOffloadDriver
            managedLedgerOffloadRegion managedLedgerOffloadServiceEndpoint offloadersDirectory
            s3ManagedLedgerOffloadBucket s3ManagedLedgerOffloadCredentialId s3ManagedLedgerOffloadCredentialSecret
            s3ManagedLedgerOffloadRegion s3ManagedLedgerOffloadRole s3ManagedLedgerOffloadRoleSessionName
            s3ManagedLedgerOffloadServiceEndpoint
            """,
        ),
        **_each(
            "int",
            """
            gcsManagedLedgerOffloadMaxBlockSizeInBytes gcsManagedLedgerOffloadReadBufferSizeInBytes
            managedLedgerOffloadMaxBlockSizeInBytes managedLedgerOffloadMaxThreads
            managedLedgerOffloadPrefetchRounds managedLedgerOffloadReadBufferSizeInBytes
            managedLedgerOffloadReadThreads s3ManagedLedgerOffloadMaxBlockSizeInBytes
            s3ManagedLedgerOffloadReadBufferSizeInBytes
            """,
        ),
        **_each(
            "long",
            """
            managedLedgerOffloadDeletionLagInMillis managedLedgerOffloadThresholdInBytes
            managedLedgerOffloadThresholdInSeconds
            """,
        ),
        "managedLedgerExtraConfigurations": _map("string"),
        "managedLedgerOffloadedReadPriority": _enum(
            "OffloadedReadPriority", ("BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST")
        ),
    },
)
_PERSISTENCE: Final = _record(
    "PersistencePolicies",
    {"managedLedgerStorageClassName": "string"},
    {
        **_each("int", "bookkeeperAckQuorum bookkeeperEnsemble bookkeeperWriteQuorum"),
        "managedLedgerMaxMarkDeleteRate": "double",
    },
)
_SUBSCRIPTION_TYPE: Final = _enum("SubType", SUBSCRIPTION_TYPES, "org.apache.pulsar.common.api.proto.CommandSubscribe")
_TOPIC_POLICIES: Final = _record(
    "TopicPolicies",
    {
        **_each(
            "int",
            """
            deduplicationSnapshotIntervalSeconds maxConsumerPerTopic maxConsumersPerSubscription maxMessageSize
            maxProducerPerTopic maxSubscriptionsPerTopic maxUnackedMessagesOnConsumer
            maxUnackedMessagesOnSubscription messageTTLInSeconds subscriptionExpirationTimeInMinutes
            """,
        ),
        **_each("long", "compactionThreshold delayedDeliveryMaxDelayInMillis delayedDeliveryTickTimeMillis"),
        **_each(
            "boolean",
            """
            deduplicationEnabled delayedDeliveryEnabled dispatcherPauseOnAckStatePersistentEnabled isGlobal
            schemaValidationEnforced
            """,
        ),
        "autoSubscriptionCreationOverride": _CREATION_OVERRIDE,
        "backLogQuotaMap": _map(_BACKLOG_QUOTA),
        "dispatchRate": _DISPATCH_RATE,
        "entryFilters": _record("EntryFilters", {"entryFilterNames": "string"}),
        "inactiveTopicPolicies": _INACTIVE_TOPICS,
        "offloadPolicies": _OFFLOADING,
        "persistence": _PERSISTENCE,
        "publishRate": _record(
            "PublishRate", {}, {"publishThrottlingRateInByte": "long", "publishThrottlingRateInMsg": "int"}
        ),
        "replicationClusters": _array("string"),
        "replicatorDispatchRate": _DISPATCH_RATE_AGAIN,
        "retentionPolicies": _record(
            "RetentionPolicies", {}, {"retentionSizeInMB": "long", "retentionTimeInMinutes": "int"}
        ),
        "schemaCompatibilityStrategy": _enum("SchemaCompatibilityStrategy", ("UNDEFINED", *SCHEMA_STRATEGIES)),
        "shadowTopics": _array("string"),
        "subscribeRate": _record(
            "SubscribeRate", {}, _each("int", "ratePeriodInSecond subscribeThrottlingRatePerConsumer")
        ),
        "subscriptionDispatchRate": _DISPATCH_RATE_AGAIN,
        "subscriptionPolicies": _map(_record("SubscriptionPolicies", {"dispatchRate": _DISPATCH_RATE_AGAIN})),
        "subscriptionTypesEnabled": _array(_SUBSCRIPTION_TYPE),
    },
    namespace=_POLICIES,
)
_TRANSACTIONS: Final = "TRANSACTION_BUFFER_SNAPSHOT"
_EVENT: Final = _record(
    "PulsarEvent",
    {
        "actionType": _enum("ActionType", ("INSERT", "DELETE", "UPDATE", "NONE")),
        "eventType": _enum(
            "EventType", ("TOPIC_POLICY", _TRANSACTIONS, f"{_TRANSACTIONS}_SEGMENTS", f"{_TRANSACTIONS}_INDEXES")
        ),
        "replicateTo": _array("string", "java.util.HashSet"),
        "topicPoliciesEvent": _record(
            "TopicPoliciesEvent", {**_each("string", "domain namespace tenant topic"), "policies": _TOPIC_POLICIES}
        ),
    },
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
