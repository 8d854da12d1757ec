"""Catalogue of policies: one entry per policy, for documents, REST, the admin client, commands and the reference.

A new policy is an entry here, its typed attribute in the documents of its levels, and the place that acts on it. A new
kind of values also needs its check (`interpulse.rules.policy_checks`), its body (`interpulse.broker.rest.policies`)
and its options (`interpulse.cli.policies`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal

from interpulse.model.numbers import LONG_MAX
from interpulse.model.permissions import Permissions
from interpulse.model.policies.policy_kinds import (
    Kind,
    by_name,
    flag_in_object,
    names,
    number,
    override,
    pairs,
    record,
    text,
    texts,
    truth,
)
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)

COUNT: Final = number()
SECONDS: Final = number()
"""Time to live of messages."""
MINUTES: Final = number()
"""Time until an unused subscription expires."""
INTERVAL: Final = number()
"""Seconds between two snapshots."""
BYTES: Final = number(LONG_MAX)
MESSAGE_SIZE: Final = number()
"""Bytes, at most the broker's limit."""
FLAG: Final = Kind(truth)
SUBSCRIPTION_CREATION: Final = flag_in_object("allowAutoSubscriptionCreation")
STRATEGY: Final = Kind(text)
"""Schema compatibility strategy, or ``UNDEFINED``."""
TOPIC_STRATEGY: Final = Kind(text)
"""Schema compatibility strategy. ``UNDEFINED`` removes it."""
TYPES: Final = Kind(texts, sorted)
"""Subscription types."""
CLUSTERS: Final = names()
TOPIC_CLUSTERS: Final = names(empty_is_unset=True)
PROPERTIES: Final = Kind(pairs, dict)
RETENTION: Final = record(RetentionPolicies)
INACTIVE_TOPICS: Final = record(InactiveTopicPolicies)
TOPIC_CREATION: Final = record(AutoTopicCreation)
PUBLISH_RATE: Final = record(PublishRate)
DISPATCH_RATE: Final = record(DispatchRate)
SUBSCRIBE_RATE: Final = record(SubscribeRate)
DELAYED_DELIVERY: Final = record(DelayedDelivery)
PERSISTENCE: Final = record(Persistence)
BACKLOG_QUOTA: Final = record(BacklogQuota)
BACKLOG_QUOTAS: Final = by_name(BACKLOG_QUOTA)
PERMISSIONS: Final = record(Permissions)
AUTH_MODE: Final = Kind(text)

Group = Literal["namespaces", "topics", "topicPolicies"]
TOPIC_GROUPS: Final[tuple[Group, ...]] = ("topics", "topicPolicies")


@dataclass(frozen=True, slots=True)
class Command:
    """Commands ``set-NOUN``, ``get-NOUN`` and ``remove-NOUN`` of some groups."""

    noun: str
    groups: tuple[Group, ...]
    options: tuple[str, ...] = ()
    """Names of the option of a number, by default those of its kind."""


@dataclass(frozen=True, slots=True)
class Level:
    """Policy on one level: of a namespace, or of a topic."""

    key: str
    """Field of the stored document."""
    path: str = ""
    """Last part of the REST path; empty without generic calls."""
    commands: tuple[Command, ...] = ()
    _: KW_ONLY
    method: str = "POST"
    """HTTP method that sets the policy. GET reads it and DELETE removes it."""
    removable: bool = True
    """True if DELETE is offered."""
    cleared_by: Literal["DELETE", "null", "no body"] = "DELETE"
    """True if a null, or a missing body, removes the policy instead of being refused."""
    unset: Any = None
    """JSON that reading returns while nothing is set; None is an empty answer."""
    unset_status: int = 200
    in_query: bool = False
    """True if the value is sent in the query, under the name of the path."""
    has_global: bool = True
    """True if a topic's policy can be set for all clusters (``isGlobal``)."""
    plural: str = ""
    """Attribute of a document with one value per cluster. Calls read and set that of the local cluster."""
    form: Kind | None = None
    """Kind in the document, if it is not that of calls."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Policy: its attribute in the documents, the kind of its values and its levels."""

    attribute: str
    kind: Kind
    namespace: Level | None = None
    topic: Level | None = None
    help: str = ""
    """Clause that completes "Set ..." and "Print ...". {0} is the topic, {1} the subscription, {2} "topics are"."""
    subject: str = ""
    """Thing that is counted or switched, in the help of the option."""
    name: str = ""
    """Name in refusals, if it is not the path."""


@dataclass(frozen=True, slots=True)
class PolicyAtLevel:
    """Policy together with one of its levels."""

    policy: Policy
    level: Level

    @property
    def attribute(self) -> str:
        """Attribute in the document of this level."""
        return self.level.plural or self.policy.attribute

    @property
    def form(self) -> Kind:
        """Kind of the field in the document of this level."""
        form = self.level.form or self.policy.kind
        return by_name(form) if self.level.plural else form

    @property
    def name(self) -> str:
        """Name of the policy in refusals."""
        return self.policy.name or self.level.path

    @property
    def help(self) -> str:
        """Description of the policy, in the words of this level."""
        on_namespace = self.level is self.policy.namespace
        return self.policy.help.format(*(_NAMESPACE_WORDS if on_namespace else _TOPIC_WORDS))


_NAMESPACE_WORDS: Final = ("a topic", "a subscription", "topics are", "inactive topics are deleted")
_TOPIC_WORDS: Final = ("the topic", "each subscription", "the topic is", "the topic is deleted for inactivity")

Document = tuple[tuple[str, str, Kind], ...]
"""Field, attribute and kind of each policy of one level."""


def read_document(document: Document, body: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Return the attributes that are set, and the fields that were understood.

    A null sets nothing. A field of another form is not understood: the namespace of such a record is served without the
    policy.
    """
    values, understood = {}, set()
    for key, attribute, kind in document:
        value = body.get(key)
        if value is None:
            continue
        try:
            read = kind.read(key, value)
        except (ValueError, TypeError):  # the caller keeps the field as it is
            continue
        understood.add(key)
        if read is not None:
            values[attribute] = read
    return values, understood


def write_document(document: Document, policies: object) -> dict[str, Any]:
    """Return the JSON of the policies that are set."""
    values = ((key, kind, getattr(policies, attribute)) for key, attribute, kind in document)
    return {key: kind.write(value) for key, kind, value in values if value is not None}


def _commands(path: str, noun: str, groups: tuple[Group, ...], options: str) -> tuple[Command, ...]:
    """Return the commands of a policy. Their noun is by default the path in kebab case."""
    return (Command(noun or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", path).lower(), groups, tuple(options.split())),)


def _namespace(key: str, path: str, options: str = "", *, noun: str = "", **more: Any) -> Level:
    return Level(key, path, _commands(path, noun, ("namespaces",), options), **more)


def _topic(
    path: str,
    options: str = "",
    *,
    key: str = "",
    noun: str = "",
    groups: tuple[Group, ...] = TOPIC_GROUPS,
    also: tuple[Command, ...] = (),
    **more: Any,
) -> Level:
    """Return the level of topics, by default with the path as its field."""
    return Level(key or path, path, (*_commands(path, noun, groups, options), *also), **more)


def _rate(attribute: str, path: str, kind: Kind, key: str, help: str, *, unset_status: int = 200) -> Policy:
    """Return a rate, which namespaces have per cluster."""
    namespace = _namespace(key, path, cleared_by="no body", plural=f"{attribute}s")
    return Policy(attribute, kind, namespace, _topic(path, cleared_by="no body", unset_status=unset_status), help)


_PER_CONSUMER: Final = "max-unacked-messages-per-consumer"
_PER_SUBSCRIPTION: Final = "max-unacked-messages-per-subscription"
_OLDER_ON_CONSUMER: Final = Command("max-unacked-messages-on-consumer", ("topics",), ("-m", "--maxNum"))
_OLDER_ON_SUBSCRIPTION: Final = Command("max-unacked-messages-on-subscription", ("topics",), ("-m", "--maxNum"))
_OLDER_SUBSCRIPTIONS: Final = Command("max-subscriptions", ("topics",), ("-m", "--max-subscriptions-per-topic"))

CATALOGUE: Final = (
    Policy("replication_clusters", CLUSTERS, Level("replication_clusters")),
    Policy(
        "replication_clusters",
        TOPIC_CLUSTERS,
        topic=_topic("replication", key="replicationClusters", noun="replication-clusters", groups=("topicPolicies",)),
        help="the clusters that {0} is replicated to",
    ),
    Policy("allowed_clusters", CLUSTERS, Level("allowed_clusters")),
    Policy(
        "auto_topic_creation",
        TOPIC_CREATION,
        Level("autoTopicCreationOverride", "autoTopicCreation", cleared_by="no body", form=override(TOPIC_CREATION)),
    ),
    Policy(
        "auto_subscription_creation_allowed",
        SUBSCRIPTION_CREATION,
        Level("autoSubscriptionCreationOverride", "autoSubscriptionCreation", cleared_by="no body"),
        _topic("autoSubscriptionCreation", cleared_by="no body", form=FLAG),
        "whether subscribing creates a missing subscription",
    ),
    Policy(
        "deduplication_enabled",
        FLAG,
        _namespace("deduplicationEnabled", "deduplication"),
        _topic("deduplicationEnabled", noun="deduplication"),
        "whether repeated messages are dropped",
        "deduplication",
    ),
    Policy(
        "deduplication_snapshot_seconds",
        INTERVAL,
        _namespace(
            "deduplicationSnapshotIntervalSeconds",
            "deduplicationSnapshotInterval",
            removable=False,
            cleared_by="no body",
        ),
        _topic("deduplicationSnapshotInterval", key="deduplicationSnapshotIntervalSeconds", cleared_by="no body"),
        "how often the state of deduplication is stored",
    ),
    Policy(
        "retention",
        RETENTION,
        _namespace("retention_policies", "retention", cleared_by="no body", form=override(RETENTION)),
        _topic("retention", key="retentionPolicies", cleared_by="no body"),
        "how long acknowledged messages are kept",
    ),
    _rate(
        "publish_rate",
        "publishRate",
        PUBLISH_RATE,
        "publishMaxMessageRate",
        "the rate at which {0} takes messages",
        unset_status=204,
    ),
    _rate(
        "dispatch_rate", "dispatchRate", DISPATCH_RATE, "topicDispatchRate", "the rate at which {0} hands out messages"
    ),
    _rate(
        "subscription_dispatch_rate",
        "subscriptionDispatchRate",
        DISPATCH_RATE,
        "subscriptionDispatchRate",
        "the rate at which {1} hands out messages",
    ),
    _rate(
        "subscribe_rate", "subscribeRate", SUBSCRIBE_RATE, "clusterSubscribeRate", "how often a consumer may subscribe"
    ),
    _rate(
        "replicator_dispatch_rate",
        "replicatorDispatchRate",
        DISPATCH_RATE,
        "replicatorDispatchRate",
        "the rate at which {0} is copied to each other cluster",
    ),
    Policy(
        "max_consumers_per_subscription",
        COUNT,
        _namespace(
            "max_consumers_per_subscription", "maxConsumersPerSubscription", "-c --max-consumers-per-subscription"
        ),
        _topic("maxConsumersPerSubscription", "-c --max-consumers-per-subscription", unset_status=204),
        "how many consumers {1} may have",
        "Most consumers",
    ),
    Policy(
        "delayed_delivery",
        DELAYED_DELIVERY,
        _namespace("delayed_delivery_policies", "delayedDelivery", cleared_by="no body"),
        _topic("delayedDelivery", cleared_by="no body"),
        "whether messages may be delivered later",
    ),
    Policy(
        "persistence",
        PERSISTENCE,
        _namespace("persistence", "persistence"),
        _topic("persistence"),
        "how many copies bookies keep of {0}",
    ),
    Policy(
        "subscription_types_enabled",
        TYPES,
        _namespace("subscription_types_enabled", "subscriptionTypesEnabled", unset=()),
        _topic("subscriptionTypesEnabled", unset=()),
        "which types subscriptions may have",
    ),
    Policy(
        "inactive_topics",
        INACTIVE_TOPICS,
        _namespace(
            "inactive_topic_policies", "inactiveTopicPolicies", cleared_by="no body", form=override(INACTIVE_TOPICS)
        ),
        _topic("inactiveTopicPolicies", cleared_by="no body"),
        "when {3}",
    ),
    Policy(
        "message_ttl_seconds",
        SECONDS,
        _namespace("message_ttl_in_seconds", "messageTTL", "-ttl --messageTTL"),
        _topic("messageTTL", "-t --ttl", key="messageTTLInSeconds", in_query=True),
        "when unacknowledged messages expire",
    ),
    Policy(
        "subscription_expiration_minutes",
        MINUTES,
        _namespace("subscription_expiration_time_minutes", "subscriptionExpirationTime"),
        _topic(
            "subscriptionExpirationTime",
            key="subscriptionExpirationTimeInMinutes",
            groups=("topicPolicies",),
            cleared_by="no body",
        ),
        "when unused subscriptions are deleted",
        name="subscription expiration time",
    ),
    Policy(
        "max_producers",
        COUNT,
        _namespace("max_producers_per_topic", "maxProducersPerTopic", "-p --max-producers-per-topic"),
        _topic("maxProducers", "-p --max-producers", key="maxProducerPerTopic"),
        "how many producers {0} may have",
        "Most producers",
    ),
    Policy(
        "max_consumers",
        COUNT,
        _namespace("max_consumers_per_topic", "maxConsumersPerTopic", "-c --max-consumers-per-topic"),
        _topic("maxConsumers", "-c --max-consumers", key="maxConsumerPerTopic"),
        "how many consumers {0} may have",
        "Most consumers",
    ),
    Policy(
        "max_subscriptions",
        COUNT,
        _namespace("max_subscriptions_per_topic", "maxSubscriptionsPerTopic", "-m --max-subscriptions-per-topic"),
        _topic(
            "maxSubscriptionsPerTopic",
            "-s --max-subscriptions-per-topic",
            groups=("topicPolicies",),
            also=(_OLDER_SUBSCRIPTIONS,),
            unset_status=204,
        ),
        "how many subscriptions {0} may have",
        "Most subscriptions",
    ),
    Policy(
        "max_unacked_per_consumer",
        COUNT,
        _namespace(
            "max_unacked_messages_per_consumer",
            "maxUnackedMessagesPerConsumer",
            "-c --max-unacked-messages-per-topic",  # pulsar-admin's name for it
        ),
        _topic("maxUnackedMessagesOnConsumer", "-m --maxNum", noun=_PER_CONSUMER, also=(_OLDER_ON_CONSUMER,)),
        "how many messages a consumer may leave unacknowledged",
        "Most messages",
    ),
    Policy(
        "max_unacked_per_subscription",
        COUNT,
        _namespace(
            "max_unacked_messages_per_subscription",
            "maxUnackedMessagesPerSubscription",
            "-c --max-unacked-messages-per-subscription",
        ),
        _topic(
            "maxUnackedMessagesOnSubscription", "-m --maxNum", noun=_PER_SUBSCRIPTION, also=(_OLDER_ON_SUBSCRIPTION,)
        ),
        "how many messages a subscription may leave unacknowledged",
        "Most messages",
    ),
    Policy(
        "max_message_size",
        MESSAGE_SIZE,
        topic=_topic("maxMessageSize", unset_status=204),
        help="how large a message may be",
    ),
    Policy(
        "compaction_threshold_bytes",
        BYTES,
        _namespace("compaction_threshold", "compactionThreshold", method="PUT"),
        _topic("compactionThreshold"),
        "when {2} compacted",
    ),
    Policy(
        "encryption_required",
        FLAG,
        _namespace("encryption_required", "encryptionRequired", removable=False),
        help="whether producers must encrypt",
        subject="the requirement that producers encrypt",
    ),
    Policy("backlog_quotas", BACKLOG_QUOTAS, Level("backlog_quota_map"), Level("backLogQuotaMap")),
    Policy(
        "max_topics_per_namespace",
        COUNT,
        Level("max_topics_per_namespace", "maxTopicsPerNamespace", cleared_by="null", unset=0),
    ),
    Policy(
        "allow_auto_update_schema",
        FLAG,
        Level("is_allow_auto_update_schema", "isAllowAutoUpdateSchema", removable=False),
    ),
    Policy("allow_auto_update_schema_with_replicator", FLAG, Level("is_allow_auto_update_schema_with_replicator")),
    Policy(
        "schema_compatibility_strategy",
        STRATEGY,
        Level("schema_compatibility_strategy", "schemaCompatibilityStrategy", method="PUT", removable=False),
    ),
    Policy(
        "schema_compatibility_strategy",
        TOPIC_STRATEGY,
        topic=_topic("schemaCompatibilityStrategy", method="PUT", has_global=False),
        help="how new schemas must be compatible",
    ),
    Policy(
        "schema_validation_enforced",
        FLAG,
        Level("schema_validation_enforced", "schemaValidationEnforced", removable=False),
        _topic(
            "schemaValidationEnforced",
            noun="schema-validation-enforce",
            groups=("topics",),
            removable=False,
            unset=False,
            has_global=False,
        ),
        "whether producers need a schema",
        "the requirement that producers have a schema",
    ),
    Policy("deleted", FLAG, Level("deleted")),
    Policy("properties", PROPERTIES, Level("properties")),
    Policy("granted", PERMISSIONS, Level("auth_policies")),
    Policy("subscription_auth_mode", AUTH_MODE, Level("subscription_auth_mode")),
)


OF_NAMESPACES: Final = tuple(PolicyAtLevel(policy, policy.namespace) for policy in CATALOGUE if policy.namespace)
OF_TOPICS: Final = tuple(PolicyAtLevel(policy, policy.topic) for policy in CATALOGUE if policy.topic)
NAMESPACE: Final = tuple((entry.level.key, entry.attribute, entry.form) for entry in OF_NAMESPACES)
TOPIC: Final = tuple((entry.level.key, entry.attribute, entry.form) for entry in OF_TOPICS)
NAMESPACE_CALLS: Final = {entry.policy.attribute: entry for entry in OF_NAMESPACES if entry.level.path}
"""Namespace policies with their own calls, by attribute."""
TOPIC_CALLS: Final = {entry.policy.attribute: entry for entry in OF_TOPICS if entry.level.path}
"""Topic policies with their own calls, by attribute."""
