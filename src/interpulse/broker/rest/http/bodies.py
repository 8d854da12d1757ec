"""The table of bodies: every JSON object that a call may have, and its fields.

The fields are those of Pulsar's classes. Their meaning is documented where they are used. A handler names its body in
`Call.object`, which notes the unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.broker.rest.http.fields import (
    ANY,
    ARRAY,
    FLAG,
    INTEGER,
    LONG,
    NUMBER,
    POSITION,
    STRING,
    STRING_MAP,
    STRINGS,
    STRINGS_BY_NAME,
    STRINGS_BY_NAME_TWICE,
    WORD,
    Body,
    Kind,
    Objects,
    Unoffered,
)
from interpulse.model.not_offered import NotOffered
from interpulse.model.policies import catalogue as kinds
from interpulse.model.policies.catalogue import OF_NAMESPACES, PolicyAtLevel
from interpulse.model.policies.policy_kinds import Kind as PolicyKind

_MIGRATION: Final = "it is set by the calls of migration"
_OWN_STATE: Final = "the broker keeps it by itself"

TENANT: Final = Body("a tenant", {"adminRoles": STRINGS, "allowedClusters": STRINGS})

CLUSTER: Final = Body(
    "a cluster",
    {
        **dict.fromkeys(("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls"), STRING),
        **dict.fromkeys(("proxyServiceUrl", "proxyProtocol", "listenerName", "brokerClientTrustCertsFilePath"), STRING),
        **dict.fromkeys(("brokerClientKeyFilePath", "brokerClientCertificateFilePath"), STRING),
        **dict.fromkeys(("authenticationPlugin", "authenticationParameters"), STRING),
        **dict.fromkeys(("brokerClientTlsTrustStoreType", "brokerClientTlsTrustStore"), STRING),
        **dict.fromkeys(("brokerClientTlsTrustStorePassword", "brokerClientTlsKeyStorePassword"), STRING),
        **dict.fromkeys(("brokerClientTlsKeyStoreType", "brokerClientTlsKeyStore"), STRING),
        **dict.fromkeys(("brokerClientSslFactoryPlugin", "brokerClientSslFactoryPluginParams"), STRING),
        **dict.fromkeys(("brokerClientTlsEnabled", "tlsAllowInsecureConnection"), FLAG),
        "brokerClientTlsEnabledWithKeyStore": FLAG,
        "peerClusterNames": STRINGS,
    },
    {
        "migrated": Unoffered(_MIGRATION, (False,)),
        "migratedClusterUrl": Unoffered(_MIGRATION),
    },
)

CLUSTER_URL: Final = Body(
    "the addresses of a cluster",
    dict.fromkeys(("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls"), STRING),
)

FAILOVER_ROLE: Final = Body(
    "a failover role",
    {
        **dict.fromkeys(("role", "url", "urlTls", "closedTo"), STRING),
        **dict.fromkeys(("epoch", "holdConsumersFor"), LONG),
        "subscriptionsReady": FLAG,
    },
)

FAILURE_DOMAIN: Final = Body("a failure domain", {"brokers": STRINGS})

_AUTO_FAILOVER: Final = Body("an auto failover policy", {"policy_type": WORD, "parameters": STRING_MAP})

ISOLATION_POLICY: Final = Body(
    "a namespace isolation policy",
    {
        **dict.fromkeys(("namespaces", "primary", "secondary"), STRINGS),
        "auto_failover_policy": Objects(_AUTO_FAILOVER),
        "unload_scope": WORD,
    },
)

RETENTION: Final = Body("a retention policy", {"retentionTimeInMinutes": INTEGER, "retentionSizeInMB": LONG})

INACTIVE_TOPICS: Final = Body(
    "inactive topic policies",
    {"inactiveTopicDeleteMode": WORD, "maxInactiveDurationSeconds": INTEGER, "deleteWhileInactive": FLAG},
)

AUTO_TOPIC_CREATION: Final = Body(
    "an auto topic creation policy",
    {
        "allowAutoTopicCreation": FLAG,
        "topicType": STRING,
        "defaultNumPartitions": INTEGER,
        "alwaysAllowForReplicator": FLAG,
    },
)

AUTO_SUBSCRIPTION_CREATION: Final = Body(
    "an auto subscription creation policy", {"allowAutoSubscriptionCreation": FLAG}
)

BACKLOG_QUOTA: Final = Body("a backlog quota", {"limit": LONG, "limitSize": LONG, "limitTime": INTEGER, "policy": WORD})

PUBLISH_RATE: Final = Body(
    "a publish rate", {"publishThrottlingRateInMsg": INTEGER, "publishThrottlingRateInByte": LONG}
)

DISPATCH_RATE: Final = Body(
    "a dispatch rate",
    {
        "dispatchThrottlingRateInMsg": INTEGER,
        "dispatchThrottlingRateInByte": LONG,
        "relativeToPublishRate": FLAG,
        "ratePeriodInSecond": INTEGER,
    },
)

SUBSCRIBE_RATE: Final = Body(
    "a subscribe rate", {"subscribeThrottlingRatePerConsumer": INTEGER, "ratePeriodInSecond": INTEGER}
)

DELAYED_DELIVERY: Final = Body(
    "a delayed delivery policy", {"active": FLAG, "tickTime": LONG, "maxDeliveryDelayInMillis": LONG}
)

PERSISTENCE: Final = Body(
    "a persistence policy",
    {
        **dict.fromkeys(("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum"), INTEGER),
        "managedLedgerMaxMarkDeleteRate": NUMBER,
    },
    {"managedLedgerStorageClassName": Unoffered("ledgers are stored in one way")},
)

_BUNDLES: Final = Body("bundles", {"numBundles": INTEGER, "boundaries": STRINGS})

_PERMISSIONS: Final = Body(
    "permissions",
    {
        "namespace_auth": STRINGS_BY_NAME,
        "destination_auth": STRINGS_BY_NAME_TWICE,
        "subscription_auth_roles": STRINGS_BY_NAME,
    },
)

_UNOFFERED_POLICIES: Final[Mapping[str, Unoffered]] = {
    "deleted": Unoffered(_OWN_STATE, (False,)),
    "migrated": Unoffered(_MIGRATION, (False,)),
    "offload_policies": Unoffered(NotOffered.OFFLOADING),
    "offload_threshold": Unoffered(NotOffered.OFFLOADING, (-1, 0)),  # 0 is unset in Go's struct
    "offload_threshold_in_seconds": Unoffered(NotOffered.OFFLOADING, (-1,)),
    "offload_deletion_lag_ms": Unoffered(NotOffered.OFFLOADING),
    "antiAffinityGroup": Unoffered(NotOffered.BUNDLE_PLACEMENT),
    "resource_group_name": Unoffered(NotOffered.RESOURCE_GROUPS),
    "entryFilters": Unoffered(NotOffered.ENTRY_FILTERS),
    "dispatcherPauseOnAckStatePersistentEnabled": Unoffered(NotOffered.PAUSE_ON_ACK_STATE, (False,)),
    "scalableTopicAutoScalePolicy": Unoffered(NotOffered.SCALABLE_TOPICS),
    "latency_stats_sample_rate": Unoffered("latencies are not sampled"),
    "allowed_topic_property_keys_for_metrics": Unoffered("metrics have no labels of topic properties"),
    "clusterDispatchRate": Unoffered("it is the older name of topicDispatchRate"),
}

POLICY_BODIES: Final[Mapping[PolicyKind, Body]] = {
    kinds.RETENTION: RETENTION,
    kinds.INACTIVE_TOPICS: INACTIVE_TOPICS,
    kinds.TOPIC_CREATION: AUTO_TOPIC_CREATION,
    kinds.SUBSCRIPTION_CREATION: AUTO_SUBSCRIPTION_CREATION,
    kinds.PUBLISH_RATE: PUBLISH_RATE,
    kinds.DISPATCH_RATE: DISPATCH_RATE,
    kinds.SUBSCRIBE_RATE: SUBSCRIBE_RATE,
    kinds.DELAYED_DELIVERY: DELAYED_DELIVERY,
    kinds.PERSISTENCE: PERSISTENCE,
    kinds.BACKLOG_QUOTA: BACKLOG_QUOTA,
    kinds.PERMISSIONS: _PERMISSIONS,
}
"""The objects of policies, by kind of policy."""

_POLICY_FIELDS: Final[Mapping[PolicyKind, Kind | Objects]] = {
    **{kind: Objects(body) for kind, body in POLICY_BODIES.items()},
    **dict.fromkeys((kinds.COUNT, kinds.SECONDS, kinds.MINUTES, kinds.INTERVAL), INTEGER),
    **dict.fromkeys((kinds.CLUSTERS, kinds.TYPES), STRINGS),
    **dict.fromkeys((kinds.STRATEGY, kinds.AUTH_MODE), WORD),
    kinds.BACKLOG_QUOTAS: Objects(BACKLOG_QUOTA, by_name=True),
    kinds.BYTES: LONG,
    kinds.FLAG: FLAG,
    kinds.PROPERTIES: STRING_MAP,
}


def _policy_field(entry: PolicyAtLevel) -> Kind | Objects:
    kind = entry.policy.kind
    return Objects(POLICY_BODIES[kind], by_name=True) if entry.level.plural else _POLICY_FIELDS[kind]


NAMESPACE_POLICIES: Final = Body(
    "the policies of a namespace",
    {
        **{
            entry.level.key: _policy_field(entry)
            for entry in OF_NAMESPACES
            if entry.level.key not in _UNOFFERED_POLICIES
        },
        "bundles": Objects(_BUNDLES),
        "schema_auto_update_compatibility_strategy": WORD,
    },
    _UNOFFERED_POLICIES,
)

PARTITIONED_TOPIC: Final = Body(
    "a partitioned topic",
    {"partitions": INTEGER, "properties": STRING_MAP},
    {"deleted": Unoffered(_OWN_STATE, (False,))},
)

_MESSAGE_ID: Final = {
    **dict.fromkeys(("ledgerId", "entryId"), LONG),
    **dict.fromkeys(("partitionIndex", "batchIndex"), INTEGER),
    **dict.fromkeys(("batchSize", "outstandingAcksInSameBatch", "originalBatchSize"), ANY),
    **dict.fromkeys(("ownerTopic", "topicName", "topicPartitionName", "innerMessageId"), ANY),
}
"""The last two lines are fields that Java's classes write beside the id, and that Pulsar ignores."""

NEW_SUBSCRIPTION: Final = Body(
    "a new subscription",
    {**_MESSAGE_ID, "properties": STRING_MAP},
    {"excluded": Unoffered("it begins with its message; reset its cursor to begin behind it", (False,))},
)

RESET_POSITION: Final = Body(
    "a message id",
    {**_MESSAGE_ID, "excluded": FLAG},
    {"properties": Unoffered("those of a subscription are set by themselves")},
)

ACKNOWLEDGEMENTS: Final = Body(
    "acknowledgements", {"resets": LONG, "resetAs": LONG, "markDelete": POSITION, "ranges": ARRAY, "masks": ARRAY}
)

MESSAGE_POSITION: Final = Body(
    "a position in a topic",
    _MESSAGE_ID,
    {
        "excluded": Unoffered("the message itself counts", (False,)),
        "properties": Unoffered("those of a subscription are set by themselves"),
    },
)

SCHEMA: Final = Body("a schema", {"type": STRING, "schema": STRING, "properties": STRING_MAP})

BATCH_LOOKUP: Final = Body(
    "a batch lookup",
    {
        "topics": STRINGS,
        "authoritative": FLAG,
        "listenerName": STRING,
        "createIfMissing": FLAG,
        "expandPartitions": FLAG,
    },
)
