"""Resources of Apache Pulsar that Interpulse does not offer, each with the reason that users read."""

from __future__ import annotations

from enum import StrEnum


class NotOffered(StrEnum):
    """A resource; its value is the reason, or a remedy if there is one.

    The admin API answers it with status 501, or 400 for a field of a request; the command line exits with code 6.
    """

    BOOKIES = "a broker alone has no bookies; those of a cluster are managed with BookKeeper's own tools"
    BROKER_STATS = "metrics are at /metrics, and in the stats of each topic"
    BUNDLE_DELETION = "bundles are deleted with their namespace"
    BUNDLE_PLACEMENT = "bundles are placed by isolation policies and a hash, not by load or affinity"
    BUNDLE_TOPICS = "ask for the topics of the namespace"
    ENTRY_FILTERS = "entry filters are Java classes"
    FUNCTIONS = "functions and connectors are Java processes; use clients or Spark jobs"
    INTERNAL_CONFIGURATION = "the settings of the broker name the locations of metadata and messages"
    MESSAGE_INDEXES = "messages have no index lookup; ask for the message of a time, or read the topic"
    OFFLINE_BACKLOG = "the stats of a topic have its backlog"
    OFFLOADING = "messages are not moved to another storage"
    PACKAGES = "there are no functions and connectors that need packages"
    PAUSE_ON_ACK_STATE = "acknowledgements are always stored, so there is nothing to pause for"
    PERMISSIONS_ON_SEVERAL_TOPICS = "grant and revoke topic by topic"
    PROXY = "metrics of a proxy are at its /metrics"
    PUBLISHING_OVER_HTTP = "publish with a client"
    RESOURCE_GROUPS = "rates and quotas are set for topics and namespaces, not for groups of them"
    SCALABLE_TOPICS = "topics have partitions instead of segments that split automatically"
    SCHEMA_PLACES = "the broker decides where schemas are stored; ask for all schemas of the topic"
    SHADOW_TOPICS = "topics do not share stored messages"
    SHUTDOWN = "stop the process instead"
    SUBSCRIPTION_DISPATCH_RATES = "all subscriptions of a topic share one rate; set subscriptionDispatchRate"
    TOPIC_HASHES = "positions of topics in a bundle are not shown; look up the bundle of a topic"
    TRANSACTIONS = "messages are written and acknowledged one by one, without transactions"
