"""The keys of the metadata store: Pulsar's own paths.

Topic and cursor names are form-encoded in keys (a blank is ``+``), so that no name holds a ``/``.
The inverse functions give None for a key of another kind: where keys are nodes of a tree, those above a record are keys
too, with empty values.
"""

from __future__ import annotations

from functools import lru_cache

from interpulse.model.names import Domain, NamespaceName, TopicName, encode_local_name

__all__ = [
    "CLUSTERS",
    "CONFIGURATION",
    "LEADER",
    "LOAD_REPORTS",
    "LOCAL_CLUSTER",
    "LOCAL_POLICIES",
    "LOCKS",
    "PARTITIONED_TOPICS",
    "POLICIES",
    "REPLICATION_STATUS",
    "SCHEMAS",
    "TOPIC_POLICIES",
    "TOPIC_RECORDS",
    "all_topic_policies",
    "bundle_destination",
    "bundle_lock",
    "cluster",
    "failure_domain",
    "failure_domains",
    "failure_domains_in_cluster",
    "forced_deletion",
    "imported_ledgers",
    "isolation_policies",
    "load_report",
    "local_policies",
    "namespace_contents",
    "namespace_of_policies_key",
    "namespace_policies",
    "namespace_records",
    "partition_records",
    "partitioned_topic",
    "partitioned_topics",
    "replication_status",
    "schema",
    "sole_task",
    "tenant",
    "topic_of_partitioned_topic",
    "topic_of_record",
    "topic_of_topic_policies",
    "topic_policies",
    "topic_record",
    "topic_records",
]

CLUSTERS = "/admin/clusters"
CONFIGURATION = "/admin/configuration"
LEADER = "/loadbalance/leader"
LOAD_REPORTS = "/loadbalance/brokers"
LOCAL_CLUSTER = "/admin/local-cluster"
LOCKS = "/namespace"
LOCAL_POLICIES = "/admin/local-policies"
PARTITIONED_TOPICS = "/admin/partitioned-topics"
POLICIES = "/admin/policies"
REPLICATION_STATUS = "/replication-status"
SCHEMAS = "/schemas"
TOPIC_POLICIES = "/admin/topic-policies"
TOPIC_RECORDS = "/managed-ledgers"
_PARTS_OF_TOPIC = 4  # tenant, namespace, domain and local name
_FAILURE_DOMAINS = "/admin/failure-domains"
_OWN_ROOT = "/interpulse"  # what no broker of Apache Pulsar looks at
_FORCED_DELETIONS = "/admin/forced-deletions"


def cluster(name: str) -> str:
    """How the cluster is reached, `ClusterData`."""
    return f"{CLUSTERS}/{name}"


def isolation_policies(cluster_name: str) -> str:
    """The namespace isolation policies of a cluster by name, `IsolationPolicy`."""
    return f"{cluster(cluster_name)}/namespaceIsolationPolicies"


def failure_domains(cluster_name: str) -> str:
    """The children are the encoded names of the failure domains of a cluster."""
    return f"{_FAILURE_DOMAINS}/{cluster_name}"


def failure_domains_in_cluster(cluster_name: str) -> str:
    """The same where the metadata have Pulsar's own layout."""
    return f"{cluster(cluster_name)}/failureDomain"


def failure_domain(above: str, domain: str) -> str:
    """`FailureDomain`; ``above`` is the key above all domains of its cluster."""
    return f"{above}/{encode_local_name(domain)}"


def tenant(name: str) -> str:
    """`TenantInfo`; the namespaces of the tenant are the children."""
    return f"{POLICIES}/{name}"


def namespace_policies(namespace: NamespaceName) -> str:
    """`NamespacePolicies`; present = the namespace exists."""
    return f"{POLICIES}/{namespace.tenant}/{namespace.local}"


def local_policies(namespace: NamespaceName) -> str:
    """The bundles of a namespace in this cluster, where its metadata have Pulsar's own layout."""
    return f"{LOCAL_POLICIES}/{namespace.tenant}/{namespace.local}"


def namespace_of_policies_key(key: str) -> NamespaceName | None:
    """The inverse of `namespace_policies`; None for the key of a tenant."""
    parts = key.removeprefix(f"{POLICIES}/").split("/")
    return NamespaceName(*parts) if len(parts) == 2 and all(parts) else None


def forced_deletion(namespace: NamespaceName) -> str:
    """Present = the namespace is being deleted with whatever it holds."""
    return f"{_FORCED_DELETIONS}/{namespace.tenant}/{namespace.local}"


def namespace_contents(namespace: NamespaceName) -> tuple[str, ...]:
    """Everything that belongs to a namespace besides its policies lies below one of these prefixes."""
    return tuple(f"{root}/{namespace}/" for root in (TOPIC_RECORDS, PARTITIONED_TOPICS, SCHEMAS, TOPIC_POLICIES))


def partitioned_topics(namespace: NamespaceName, domain: Domain) -> str:
    """The children are the encoded local names of all partitioned topics."""
    return f"{PARTITIONED_TOPICS}/{namespace}/{domain}"


def partitioned_topic(topic: TopicName) -> str:
    """`PartitionedTopicMetadata` of a base name."""
    return f"{PARTITIONED_TOPICS}/{topic.log_name}"


def topic_of_partitioned_topic(key: str) -> TopicName | None:
    """The inverse of `partitioned_topic`."""
    return _topic(key.removeprefix(f"{PARTITIONED_TOPICS}/"))


def topic_of_record(key: str) -> TopicName | None:
    """The inverse of `topic_record`, also for the key of a cursor."""
    return _topic("/".join(key.split("/", 6)[2:6]))


@lru_cache(maxsize=100)
def _topic(log_name: str) -> TopicName | None:
    # Several watch the same keys: they share the name.
    parts = log_name.split("/")
    return TopicName.from_log_name(log_name) if len(parts) == _PARTS_OF_TOPIC and all(parts) else None


def topic_records(namespace: NamespaceName, domain: Domain) -> str:
    """The children are the encoded local names of all topics that have a record."""
    return f"{TOPIC_RECORDS}/{namespace}/{domain}"


def namespace_records(namespace: NamespaceName) -> str:
    """Below it lie the records of all topics of the namespace."""
    return f"{TOPIC_RECORDS}/{namespace}"


def topic_record(topic: TopicName) -> str:
    """The record of one topic or partition; its cursors are the children."""
    return f"{TOPIC_RECORDS}/{topic.log_name}"


def partition_records(topic: TopicName) -> str:
    """What the keys of all partitions of a base name begin with; the index follows."""
    return f"{topic_record(topic)}-partition-"


def schema(topic: TopicName) -> str:
    """The schema history, shared by the partitions and both domains."""
    return f"{SCHEMAS}/{topic.schema_id}"


def topic_policies(topic: TopicName) -> str:
    """Policies of one topic, kept under its base name."""
    return f"{TOPIC_POLICIES}/{topic.base.log_name}"


def topic_of_topic_policies(key: str) -> TopicName | None:
    """The inverse of `topic_policies`."""
    return _topic(key.removeprefix(f"{TOPIC_POLICIES}/"))


def all_topic_policies(namespace: NamespaceName, domain: Domain) -> str:
    """The children are the encoded base names of topics that have policies of their own."""
    return f"{TOPIC_POLICIES}/{namespace}/{domain}"


def replication_status(namespace: NamespaceName) -> str:
    """The status records of the replication job."""
    return f"{REPLICATION_STATUS}/{namespace}"


def bundle_destination(namespace: NamespaceName, bundle: str) -> str:
    """The id of the broker that shall have a bundle while it is unloaded for it."""
    return f"{_OWN_ROOT}/destinations/{namespace}/{bundle}"


def sole_task(name: str) -> str:
    """The id of the broker that does what one broker of the cluster does."""
    return f"{_OWN_ROOT}/tasks/{name}"


def imported_ledgers(log_name: str) -> str:
    """The ledgers of a topic whose import is under way: JSON, a list of ids. Gone = it has ended."""
    return f"{_OWN_ROOT}/imports/{log_name}"


def bundle_lock(namespace: NamespaceName, bundle: str) -> str:
    """`BundleLock` of the broker that owns the bundle; it goes with the session of that broker."""
    return f"{LOCKS}/{namespace}/{bundle}"


def load_report(broker_id: str) -> str:
    """`LoadReport`; present = the broker is there. It goes with its session."""
    return f"{LOAD_REPORTS}/{broker_id}"
