"""The keys of the metadata store: Pulsar's own paths.

Topic and cursor names are form-encoded in keys (a blank is ``+``), so that no name holds a ``/``. The inverse functions
return None for a key of another kind. Where keys are nodes of a tree, the nodes above a record are keys too, with empty
values.
"""

from __future__ import annotations

from functools import lru_cache

from interpulse.model.names import Domain, NamespaceName, TopicName, encode_local_name

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
_OWN_ROOT = "/interpulse"  # a subtree that brokers of Apache Pulsar ignore
_FORCED_DELETIONS = "/admin/forced-deletions"


def cluster(name: str) -> str:
    """Return the key of a cluster's `ClusterData`."""
    return f"{CLUSTERS}/{name}"


def isolation_policies(cluster_name: str) -> str:
    """Return the key of a cluster's isolation policies (`IsolationPolicy` by name)."""
    return f"{cluster(cluster_name)}/namespaceIsolationPolicies"


def cluster_migration(cluster_name: str) -> str:
    """Return the key of a cluster's `ClusterMigration`, in Pulsar's own layout."""
    return f"{cluster(cluster_name)}/policies"


def failure_domains(cluster_name: str) -> str:
    """Return the key above the failure domains of a cluster; their encoded names are its children."""
    return f"{_FAILURE_DOMAINS}/{cluster_name}"


def failure_domains_in_cluster(cluster_name: str) -> str:
    """Return the key above the failure domains of a cluster in Pulsar's own layout."""
    return f"{cluster(cluster_name)}/failureDomain"


def failure_domain(above: str, domain: str) -> str:
    """Return the key of a `FailureDomain`; ``above`` is the key above all domains of its cluster."""
    return f"{above}/{encode_local_name(domain)}"


def tenant(name: str) -> str:
    """Return the key of a `TenantInfo`; the namespaces of the tenant are its children."""
    return f"{POLICIES}/{name}"


def namespace_policies(namespace: NamespaceName) -> str:
    """Return the key of `NamespacePolicies`; it exists as long as the namespace does."""
    return f"{POLICIES}/{namespace.tenant}/{namespace.local}"


def local_policies(namespace: NamespaceName) -> str:
    """Return the key of a namespace's bundles in this cluster, in Pulsar's own layout."""
    return f"{LOCAL_POLICIES}/{namespace.tenant}/{namespace.local}"


def namespace_of_policies_key(key: str) -> NamespaceName | None:
    """Return the namespace of a `namespace_policies` key; None for the key of a tenant."""
    parts = key.removeprefix(f"{POLICIES}/").split("/")
    return NamespaceName(*parts) if len(parts) == 2 and all(parts) else None


def forced_deletion(namespace: NamespaceName) -> str:
    """Return the key that exists while a namespace is deleted by force."""
    return f"{_FORCED_DELETIONS}/{namespace.tenant}/{namespace.local}"


def namespace_contents(namespace: NamespaceName) -> tuple[str, ...]:
    """Return the prefixes of everything that belongs to a namespace besides its policies."""
    return tuple(f"{root}/{namespace}/" for root in (TOPIC_RECORDS, PARTITIONED_TOPICS, SCHEMAS, TOPIC_POLICIES))


def partitioned_topics(namespace: NamespaceName, domain: Domain) -> str:
    """Return the key above partitioned topics; their encoded local names are its children."""
    return f"{PARTITIONED_TOPICS}/{namespace}/{domain}"


def partitioned_topic(topic: TopicName) -> str:
    """Return the key of a base name's `PartitionedTopicMetadata`."""
    return f"{PARTITIONED_TOPICS}/{topic.log_name}"


def topic_of_partitioned_topic(key: str) -> TopicName | None:
    """Return the topic of a `partitioned_topic` key."""
    return _topic(key.removeprefix(f"{PARTITIONED_TOPICS}/"))


def is_topic_record(key: str) -> bool:
    """Return True for a `topic_record` key. Keys of cursors are one level below."""
    return key.startswith(f"{TOPIC_RECORDS}/") and key.count("/") == 1 + _PARTS_OF_TOPIC


def topic_of_record(key: str) -> TopicName | None:
    """Return the topic of a `topic_record` key, or of the key of one of its cursors."""
    return _topic("/".join(key.split("/", 6)[2:6]))


@lru_cache(maxsize=100)
def _topic(log_name: str) -> TopicName | None:
    # Several watchers parse the same keys: interning shares the name.
    parts = log_name.split("/")
    return TopicName.from_log_name(log_name) if len(parts) == _PARTS_OF_TOPIC and all(parts) else None


def topic_records(namespace: NamespaceName, domain: Domain) -> str:
    """Return the key above topics with a record; their encoded local names are its children."""
    return f"{TOPIC_RECORDS}/{namespace}/{domain}"


def namespace_records(namespace: NamespaceName) -> str:
    """Return the prefix of the records of all topics in a namespace."""
    return f"{TOPIC_RECORDS}/{namespace}"


def topic_record(topic: TopicName) -> str:
    """Return the key of the record of a topic or partition; its cursors are the children."""
    return f"{TOPIC_RECORDS}/{topic.log_name}"


def partition_records(topic: TopicName) -> str:
    """Return the key prefix of all partitions of a base name; the index follows."""
    return f"{topic_record(topic)}-partition-"


def schema(topic: TopicName) -> str:
    """Return the key of the schema history, shared by the partitions and both domains."""
    return f"{SCHEMAS}/{topic.schema_id}"


def topic_policies(topic: TopicName) -> str:
    """Return the key of a topic's policies, stored under its base name."""
    return f"{TOPIC_POLICIES}/{topic.base.log_name}"


def topic_of_topic_policies(key: str) -> TopicName | None:
    """Return the topic of a `topic_policies` key."""
    return _topic(key.removeprefix(f"{TOPIC_POLICIES}/"))


def all_topic_policies(namespace: NamespaceName, domain: Domain) -> str:
    """Return the key above all topic policies; the encoded base names are its children."""
    return f"{TOPIC_POLICIES}/{namespace}/{domain}"


def replication_status(namespace: NamespaceName) -> str:
    """Return the key of the replication job's status records."""
    return f"{REPLICATION_STATUS}/{namespace}"


def bundle_destination(namespace: NamespaceName, bundle: str) -> str:
    """Return the key of the broker id that shall own a bundle while it is unloaded."""
    return f"{_OWN_ROOT}/destinations/{namespace}/{bundle}"


def sole_task(name: str) -> str:
    """Return the key of the broker id that does a task of the whole cluster."""
    return f"{_OWN_ROOT}/tasks/{name}"


def imported_ledgers(log_name: str) -> str:
    """Return the key of the ledgers of a running import of a topic: a JSON list of ids, removed at its end."""
    return f"{_OWN_ROOT}/imports/{log_name}"


def bundle_lock(namespace: NamespaceName, bundle: str) -> str:
    """Return the key of the `BundleLock` of the owner; it ends with that broker's session."""
    return f"{LOCKS}/{namespace}/{bundle}"


def load_report(broker_id: str) -> str:
    """Return the key of a broker's `LoadReport`; it exists while its session lives."""
    return f"{LOAD_REPORTS}/{broker_id}"
