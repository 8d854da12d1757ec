"""The admin client for programs without an event loop: the same names as in ``interpulse.client``, without ``await``.

Written by tools/generate_sync_admin.py from the asynchronous one; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from interpulse.client.admin import admin_client as admin_client
from interpulse.client.admin import brokers as admin_brokers
from interpulse.client.admin import clusters as admin_clusters
from interpulse.client.admin import lookup as admin_lookup
from interpulse.client.admin import namespaces as admin_namespaces
from interpulse.client.admin import permissions as admin_permissions
from interpulse.client.admin import schemas as admin_schemas
from interpulse.client.admin import tenants as admin_tenants
from interpulse.client.admin import topic_policies as admin_topic_policies
from interpulse.client.admin import topics as admin_topics
from interpulse.client.admin.previews import Changes
from interpulse.client.admin.schemas import SchemaCompatibility, SchemaVersion
from interpulse.client.closing import Closes
from interpulse.client.credentials import Credentials
from interpulse.client.messages import Message
from interpulse.client.portal import Portal
from interpulse.client.tls import TlsOptions
from interpulse.model.adjustments import AdminRequest
from interpulse.model.clusters import ClusterData, FailureDomain, TenantInfo
from interpulse.model.errors import PulsarError
from interpulse.model.ids import MessageId
from interpulse.model.isolation import BrokerIsolation, IsolationPolicy
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    DispatchRate,
    InactiveTopicPolicies,
    QuotaType,
    RetentionPolicies,
)
from interpulse.model.schemas import SchemaInfo
from interpulse.model.topics import PartitionedTopicMetadata

Names = list[str]

Isolations = list[BrokerIsolation]

Records = list[dict[str, Any]]

TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]

Grants = dict[str, list[str]]

Messages = list[Message]

ExaminePosition = Literal["earliest", "latest"]

_BOTH_DOMAINS: tuple[Domain, ...] = (PERSISTENT, NON_PERSISTENT)


class BrokersAdmin:
    """Brokers of the cluster and their configuration. All configuration values are text."""

    def __init__(self, portal: Portal, area: admin_brokers.BrokersAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self, cluster: str | None = None) -> Names:
        """Return the active brokers of ``cluster``, by default of the cluster that is asked."""
        return self._portal.call(lambda: self._area.list(cluster))

    def version(self) -> str:
        """Return the Pulsar version that the broker implements. Interpulse appends its own version."""
        return self._portal.call(lambda: self._area.version())

    def leader(self) -> dict[str, Any]:
        """Return ``brokerId`` and ``serviceUrl`` of the broker that balances the load."""
        return self._portal.call(lambda: self._area.leader())

    def owned_namespaces(self, cluster: str, broker: str) -> dict[str, dict[str, Any]]:
        """Return the bundles that a broker ``host:port`` serves, each with the reason.

        Bundles have the form ``tenant/namespace/0x..._0x...``.
        """
        return self._portal.call(lambda: self._area.owned_namespaces(cluster, broker))

    def check_backlog_quotas(self) -> None:
        """Compare backlogs with their quotas now instead of at the next periodic check."""
        return self._portal.call(lambda: self._area.check_backlog_quotas())

    def health(self, *, topic_version: str | None = None) -> str:
        """Return ``ok``, or raise an error that states the problem.

        Apache Pulsar checks a topic of this version, V1 or V2.
        """
        return self._portal.call(lambda: self._area.health(topic_version=topic_version))

    def metrics(self) -> str:
        """Return the broker's metrics in the Prometheus text format."""
        return self._portal.call(lambda: self._area.metrics())

    def runtime_configuration(self) -> dict[str, str]:
        """Return every configuration key with its value in force."""
        return self._portal.call(lambda: self._area.runtime_configuration())

    def dynamic_configuration_names(self) -> Names:
        """Return the keys that can be changed while the broker runs."""
        return self._portal.call(lambda: self._area.dynamic_configuration_names())

    def dynamic_configuration(self) -> dict[str, str]:
        """Return the keys that were changed at run time, with their values."""
        return self._portal.call(lambda: self._area.dynamic_configuration())

    def set_dynamic_configuration(self, name: str, value: str) -> None:
        """Change a key at run time. Raise PreconditionFailed if it is unknown or not dynamic."""
        return self._portal.call(lambda: self._area.set_dynamic_configuration(name, value))

    def delete_dynamic_configuration(self, name: str) -> None:
        """Restore a key to its value in the configuration file."""
        return self._portal.call(lambda: self._area.delete_dynamic_configuration(name))


class ClustersAdmin:
    """Registered clusters, including the local one."""

    def __init__(self, portal: Portal, area: admin_clusters.ClustersAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self) -> Names:
        return self._portal.call(lambda: self._area.list())

    def get(self, name: str) -> ClusterData:
        return self._portal.call(lambda: self._area.get(name))

    def get_json(self, name: str) -> dict[str, Any]:
        """Return the cluster's record like :meth:`get`, with every field that the broker sent."""
        return self._portal.call(lambda: self._area.get_json(name))

    def create(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Register a cluster. Raise AlreadyExists.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        return self._portal.call(lambda: self._area.create(name, cluster, previewed=previewed))

    def update(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Replace the cluster's record. Fields that are None are removed.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        return self._portal.call(lambda: self._area.update(name, cluster, previewed=previewed))

    def delete(self, name: str, *, previewed: bool = False) -> Changes | None:
        """Delete a cluster.

        With ``previewed`` nothing is changed and the changes are returned. Interpulse raises PreconditionFailed while a
        namespace or topic is replicated to the cluster.
        """
        return self._portal.call(lambda: self._area.delete(name, previewed=previewed))

    def peers(self, name: str) -> Names | None:
        """Return the peer clusters; None if they were never set."""
        return self._portal.call(lambda: self._area.peers(name))

    def set_peers(self, name: str, peers: Iterable[str] | None) -> None:
        """Set the peer clusters: no namespace may be replicated to both a cluster and its peer.

        Raise PreconditionFailed if one of them is not registered.
        """
        return self._portal.call(lambda: self._area.set_peers(name, peers))

    def failure_domains(self, name: str) -> dict[str, FailureDomain]:
        return self._portal.call(lambda: self._area.failure_domains(name))

    def failure_domain(self, name: str, domain: str) -> FailureDomain:
        """Return a failure domain. Raise NotFound."""
        return self._portal.call(lambda: self._area.failure_domain(name, domain))

    def set_failure_domain(self, name: str, domain: str, value: FailureDomain) -> None:
        """Create or replace a failure domain. Raise Conflict if one of its brokers is in another domain."""
        return self._portal.call(lambda: self._area.set_failure_domain(name, domain, value))

    def delete_failure_domain(self, name: str, domain: str) -> None:
        return self._portal.call(lambda: self._area.delete_failure_domain(name, domain))

    def isolation_policies(self, name: str) -> dict[str, IsolationPolicy]:
        """Return the isolation policies by name. Raise NotFound if the cluster never had any."""
        return self._portal.call(lambda: self._area.isolation_policies(name))

    def isolation_policy(self, name: str, policy_name: str) -> IsolationPolicy:
        """Return an isolation policy. Raise NotFound."""
        return self._portal.call(lambda: self._area.isolation_policy(name, policy_name))

    def set_isolation_policy(self, name: str, policy_name: str, policy: IsolationPolicy) -> None:
        """Create or replace an isolation policy.

        Namespaces whose brokers change are unloaded; see ``unload_scope``. Raise InvalidRequest for a policy that
        cannot be satisfied and PreconditionFailed if the cluster does not exist.
        """
        return self._portal.call(lambda: self._area.set_isolation_policy(name, policy_name, policy))

    def delete_isolation_policy(self, name: str, policy_name: str) -> None:
        """Delete an isolation policy, if it exists. No namespace is unloaded."""
        return self._portal.call(lambda: self._area.delete_isolation_policy(name, policy_name))

    def isolation_of_brokers(self, name: str) -> Isolations:
        """Return the role of every registered broker in the isolation policies."""
        return self._portal.call(lambda: self._area.isolation_of_brokers(name))

    def isolation_of_broker(self, name: str, broker: str) -> BrokerIsolation:
        """Return the role of a broker ``host:port`` in the isolation policies. It need not be registered."""
        return self._portal.call(lambda: self._area.isolation_of_broker(name, broker))


class LookupAdmin:
    """Lookups of topics. They never create a topic."""

    def __init__(self, portal: Portal, area: admin_lookup.LookupAdmin) -> None:
        self._portal = portal
        self._area = area

    def topic(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the addresses of the serving broker: ``brokerUrl``, ``httpUrl`` and variants. Raise TopicNotFound."""
        return self._portal.call(lambda: self._area.topic(topic))

    def topics(self, topics: Iterable[TopicName | str]) -> dict[TopicName, dict[str, Any] | PulsarError]:
        """Look up many topics with few requests (PIP-35), or one by one if the broker has no batch lookup.

        Return the addresses of each topic, or its own failure. The topics need not exist.
        """
        return self._portal.call(lambda: self._area.topics(topics))

    def bundle_range(self, topic: TopicName | str) -> str:
        """Return the hash range of the topic's bundle, such as ``0x40000000_0x80000000``."""
        return self._portal.call(lambda: self._area.bundle_range(topic))


class NamespacesAdmin:
    """Namespaces, named as ``tenant/namespace``."""

    def __init__(self, portal: Portal, area: admin_namespaces.NamespacesAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self, tenant: str) -> Names:
        """Return the full names of a tenant's namespaces. Raise TenantNotFound."""
        return self._portal.call(lambda: self._area.list(tenant))

    def topics(
        self, namespace: NamespaceName | str, *, mode: TopicMode = "ALL", system_included: bool = False
    ) -> Names:
        return self._portal.call(lambda: self._area.topics(namespace, mode=mode, system_included=system_included))

    def create(
        self,
        namespace: NamespaceName | str,
        *,
        clusters: Iterable[str] | None = None,
        bundles: int | None = None,
        policies: NamespacePolicies | None = None,
        previewed: bool = False,
    ) -> Changes | None:
        """Create a namespace, by default on the local cluster. Raise AlreadyExists.

        With ``previewed`` nothing is changed and the changes are returned. Interpulse refuses ``policies`` that it
        would also refuse one by one; Apache Pulsar hardly checks them.
        """
        return self._portal.call(
            lambda: self._area.create(
                namespace, clusters=clusters, bundles=bundles, policies=policies, previewed=previewed
            )
        )

    def delete(self, namespace: NamespaceName | str, *, force: bool = False, previewed: bool = False) -> Changes | None:
        """Delete a namespace. Raise Conflict if it has topics, unless it is forced.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        return self._portal.call(lambda: self._area.delete(namespace, force=force, previewed=previewed))

    def unload(
        self, namespace: NamespaceName | str, *, bundle: str | None = None, destination_broker: str | None = None
    ) -> None:
        """Unload the topics of a namespace, or of one bundle ``0x..._0x...``. Clients reconnect."""
        return self._portal.call(
            lambda: self._area.unload(namespace, bundle=bundle, destination_broker=destination_broker)
        )

    def bundles(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return ``boundaries``, the ends of the hash ranges, and ``numBundles``."""
        return self._portal.call(lambda: self._area.bundles(namespace))

    def split_bundle(
        self,
        namespace: NamespaceName | str,
        bundle: str,
        *,
        algorithm: str | None = None,
        positions: Iterable[int] = (),
        unload: bool = False,
    ) -> None:
        """Split a bundle ``0x..._0x...`` or ``LARGEST``. ``positions`` belong to ``specified_positions_divide``."""
        return self._portal.call(
            lambda: self._area.split_bundle(namespace, bundle, algorithm=algorithm, positions=positions, unload=unload)
        )

    def clear_backlog(
        self, namespace: NamespaceName | str, *, subscription: str | None = None, bundle: str | None = None
    ) -> None:
        """Acknowledge the backlog of all topics, or of one ``bundle``, for every subscription or for one."""
        return self._portal.call(lambda: self._area.clear_backlog(namespace, subscription=subscription, bundle=bundle))

    def unsubscribe(self, namespace: NamespaceName | str, subscription: str, *, bundle: str | None = None) -> None:
        """Delete a subscription on every topic that has it. Raise PreconditionFailed if it is in use."""
        return self._portal.call(lambda: self._area.unsubscribe(namespace, subscription, bundle=bundle))

    def policies(self, namespace: NamespaceName | str) -> NamespacePolicies:
        return self._portal.call(lambda: self._area.policies(namespace))

    def policies_json(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return all policies as the JSON that the broker sent."""
        return self._portal.call(lambda: self._area.policies_json(namespace))

    def properties(self, namespace: NamespaceName | str) -> dict[str, str]:
        """Return the properties that operators have set. The broker does not interpret them."""
        return self._portal.call(lambda: self._area.properties(namespace))

    def update_properties(self, namespace: NamespaceName | str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others."""
        return self._portal.call(lambda: self._area.update_properties(namespace, properties))

    def clear_properties(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.clear_properties(namespace))

    def property(self, namespace: NamespaceName | str, key: str) -> str | None:
        """Return the value of a property; None if it is absent or empty."""
        return self._portal.call(lambda: self._area.property(namespace, key))

    def set_property(self, namespace: NamespaceName | str, key: str, value: str) -> None:
        return self._portal.call(lambda: self._area.set_property(namespace, key, value))

    def remove_property(self, namespace: NamespaceName | str, key: str) -> None:
        """Remove a property, if the namespace has it."""
        return self._portal.call(lambda: self._area.remove_property(namespace, key))

    def replication_clusters(self, namespace: NamespaceName | str) -> Names:
        return self._portal.call(lambda: self._area.replication_clusters(namespace))

    def set_replication_clusters(
        self, namespace: NamespaceName | str, clusters: Iterable[str], *, partitions_compared: bool | None = None
    ) -> None:
        """Replicate the namespace to ``clusters``, which include the local one.

        With ``partitions_compared`` the broker first compares topics and policies with every cluster that is new in the
        list. It raises Conflict, naming the differences, if they do not match (PIP-433). None leaves the choice to the
        broker.
        """
        return self._portal.call(
            lambda: self._area.set_replication_clusters(namespace, clusters, partitions_compared=partitions_compared)
        )

    def adjust_for_replication(
        self,
        namespace: NamespaceName | str,
        clusters: Iterable[str],
        *,
        previewed: bool,
        shown_digest: str | None = None,
    ) -> dict[str, Any]:
        """Adjust policies and partition counts of the clusters that are new in the list, then replicate to them.

        Return the plan with its ``outcome``. Unless it is only ``previewed``, ``applied`` is included, and is false if
        a conflict or a failure stopped the plan. With ``shown_digest``, the digest of a preview, the plan is applied
        only if it has not changed since. Call this only if the broker's runtime configuration has
        ``supportsReplicationPreview``: Apache Pulsar ignores the parameters and stores the clusters.
        """
        return self._portal.call(
            lambda: self._area.adjust_for_replication(
                namespace, clusters, previewed=previewed, shown_digest=shown_digest
            )
        )

    def allowed_clusters(self, namespace: NamespaceName | str) -> Names:
        return self._portal.call(lambda: self._area.allowed_clusters(namespace))

    def set_allowed_clusters(self, namespace: NamespaceName | str, clusters: Iterable[str]) -> None:
        return self._portal.call(lambda: self._area.set_allowed_clusters(namespace, clusters))

    def replication_status(self, namespace: NamespaceName | str) -> Records:
        """Return one record per topic and remote cluster. Raise NotSupported unless the broker is Interpulse."""
        return self._portal.call(lambda: self._area.replication_status(namespace))

    def topics_with_clusters(self, namespace: NamespaceName | str) -> dict[str, Names]:
        """Return the topics that have their own replication clusters, with these clusters.

        Raise NotSupported unless the broker is Interpulse.
        """
        return self._portal.call(lambda: self._area.topics_with_clusters(namespace))

    def global_topic_policies(self, namespace: NamespaceName | str) -> dict[str, TopicPolicies]:
        """Return the topics with global policies, which hold in all clusters, with these policies.

        Raise NotSupported unless the broker is Interpulse.
        """
        return self._portal.call(lambda: self._area.global_topic_policies(namespace))

    def replicator_dispatch_rates(self, namespace: NamespaceName | str) -> tuple[DispatchRate, dict[str, DispatchRate]]:
        """Return the replication rate of the namespace, and the rates of topics that have their own.

        Raise NotSupported unless the broker is Interpulse.
        """
        return self._portal.call(lambda: self._area.replicator_dispatch_rates(namespace))

    def report_replication_status(self, namespace: NamespaceName | str, records: Records) -> None:
        """Replace the replication records of the topics and clusters that ``records`` name.

        The replication job reports its progress here. Interpulse only.
        """
        return self._portal.call(lambda: self._area.report_replication_status(namespace, records))

    def auto_topic_creation(self, namespace: NamespaceName | str, *, applied: bool = False) -> AutoTopicCreation | None:
        """Return the namespace's override; None if the broker's settings apply.

        With ``applied`` Interpulse returns the settings in force. Apache Pulsar ignores it and returns the override.
        """
        return self._portal.call(lambda: self._area.auto_topic_creation(namespace, applied=applied))

    def set_auto_topic_creation(self, namespace: NamespaceName | str, policy: AutoTopicCreation) -> None:
        """Set the namespace's override. Raise PreconditionFailed if type and count do not match."""
        return self._portal.call(lambda: self._area.set_auto_topic_creation(namespace, policy))

    def remove_auto_topic_creation(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_auto_topic_creation(namespace))

    def auto_subscription_creation(self, namespace: NamespaceName | str) -> bool | None:
        return self._portal.call(lambda: self._area.auto_subscription_creation(namespace))

    def set_auto_subscription_creation(self, namespace: NamespaceName | str, allowed: bool) -> None:
        return self._portal.call(lambda: self._area.set_auto_subscription_creation(namespace, allowed))

    def remove_auto_subscription_creation(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_auto_subscription_creation(namespace))

    def inactive_topic_policies(self, namespace: NamespaceName | str) -> InactiveTopicPolicies | None:
        """Return the policies; None if the broker's settings apply."""
        return self._portal.call(lambda: self._area.inactive_topic_policies(namespace))

    def set_inactive_topic_policies(self, namespace: NamespaceName | str, policies: InactiveTopicPolicies) -> None:
        return self._portal.call(lambda: self._area.set_inactive_topic_policies(namespace, policies))

    def remove_inactive_topic_policies(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_inactive_topic_policies(namespace))

    def deduplication(self, namespace: NamespaceName | str) -> bool | None:
        return self._portal.call(lambda: self._area.deduplication(namespace))

    def set_deduplication(self, namespace: NamespaceName | str, enabled: bool) -> None:
        return self._portal.call(lambda: self._area.set_deduplication(namespace, enabled))

    def remove_deduplication(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_deduplication(namespace))

    def retention(self, namespace: NamespaceName | str) -> RetentionPolicies | None:
        return self._portal.call(lambda: self._area.retention(namespace))

    def set_retention(self, namespace: NamespaceName | str, policy: RetentionPolicies) -> None:
        return self._portal.call(lambda: self._area.set_retention(namespace, policy))

    def remove_retention(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_retention(namespace))

    def message_ttl(self, namespace: NamespaceName | str) -> int | None:
        """Return the time to live in seconds; 0 = messages do not expire."""
        return self._portal.call(lambda: self._area.message_ttl(namespace))

    def set_message_ttl(self, namespace: NamespaceName | str, ttl_seconds: int) -> None:
        return self._portal.call(lambda: self._area.set_message_ttl(namespace, ttl_seconds))

    def remove_message_ttl(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_message_ttl(namespace))

    def policy(self, namespace: NamespaceName | str, name: str) -> Any:
        """Return a policy by its name in the policy catalogue, such as ``max_producers``; None if it is not set.

        A rate such as ``publish_rate`` is the rate of the cluster that answers.
        """
        return self._portal.call(lambda: self._area.policy(namespace, name))

    def set_policy(self, namespace: NamespaceName | str, name: str, value: Any) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an invalid value."""
        return self._portal.call(lambda: self._area.set_policy(namespace, name, value))

    def remove_policy(self, namespace: NamespaceName | str, name: str) -> None:
        """Remove a policy by its name. The broker's setting applies again."""
        return self._portal.call(lambda: self._area.remove_policy(namespace, name))

    def backlog_quotas(self, namespace: NamespaceName | str) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type. The broker's quota applies to a missing type."""
        return self._portal.call(lambda: self._area.backlog_quotas(namespace))

    def set_backlog_quota(
        self, namespace: NamespaceName | str, quota: BacklogQuota, kind: QuotaType = "destination_storage"
    ) -> None:
        """Set the backlog quota of a type. Raise PreconditionFailed for a quota above the retention."""
        return self._portal.call(lambda: self._area.set_backlog_quota(namespace, quota, kind))

    def remove_backlog_quota(self, namespace: NamespaceName | str, kind: QuotaType = "destination_storage") -> None:
        return self._portal.call(lambda: self._area.remove_backlog_quota(namespace, kind))

    def max_topics(self, namespace: NamespaceName | str) -> int | None:
        """Return the maximum number of topics; 0 = no limit, None = the broker's limit."""
        return self._portal.call(lambda: self._area.max_topics(namespace))

    def set_max_topics(self, namespace: NamespaceName | str, count: int) -> None:
        return self._portal.call(lambda: self._area.set_max_topics(namespace, count))

    def remove_max_topics(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_max_topics(namespace))

    def auto_update_schema_allowed(self, namespace: NamespaceName | str) -> bool:
        """Return True if producers may register new schemas, by the namespace's policy or the broker's setting."""
        return self._portal.call(lambda: self._area.auto_update_schema_allowed(namespace))

    def set_auto_update_schema_allowed(
        self, namespace: NamespaceName | str, allowed: bool, *, with_replicator: bool | None = None
    ) -> None:
        """Allow or forbid producers to register schemas. ``with_replicator`` does the same for replicators.

        None keeps the setting of replicators.
        """
        return self._portal.call(
            lambda: self._area.set_auto_update_schema_allowed(namespace, allowed, with_replicator=with_replicator)
        )

    def schema_compatibility_strategy(self, namespace: NamespaceName | str) -> str:
        """Return the strategy; ``UNDEFINED`` if the broker's strategy applies."""
        return self._portal.call(lambda: self._area.schema_compatibility_strategy(namespace))

    def set_schema_compatibility_strategy(self, namespace: NamespaceName | str, strategy: str) -> None:
        return self._portal.call(lambda: self._area.set_schema_compatibility_strategy(namespace, strategy))

    def schema_auto_update_strategy(self, namespace: NamespaceName | str) -> str | None:
        """Return the older compatibility policy, such as ``Full``; None if it was never set."""
        return self._portal.call(lambda: self._area.schema_auto_update_strategy(namespace))

    def set_schema_auto_update_strategy(self, namespace: NamespaceName | str, strategy: str) -> None:
        """Set the older compatibility policy. It applies while ``schema_compatibility_strategy`` is UNDEFINED."""
        return self._portal.call(lambda: self._area.set_schema_auto_update_strategy(namespace, strategy))

    def schema_validation_enforced(self, namespace: NamespaceName | str, *, applied: bool = False) -> bool:
        """Return True if producers without a schema are refused on topics that have one."""
        return self._portal.call(lambda: self._area.schema_validation_enforced(namespace, applied=applied))

    def set_schema_validation_enforced(self, namespace: NamespaceName | str, enforced: bool) -> None:
        return self._portal.call(lambda: self._area.set_schema_validation_enforced(namespace, enforced))


class PermissionsAdmin:
    """Permissions. Actions are ``produce``, ``consume``, ``functions``, ``sources``, ``sinks`` and ``packages``."""

    def __init__(self, portal: Portal, area: admin_permissions.PermissionsAdmin) -> None:
        self._portal = portal
        self._area = area

    def of_namespace(self, namespace: NamespaceName | str) -> Grants:
        """Return the permissions of every role in the whole namespace."""
        return self._portal.call(lambda: self._area.of_namespace(namespace))

    def grant(self, namespace: NamespaceName | str, role: str, actions: Iterable[str]) -> None:
        """Replace the permissions of a role in the whole namespace."""
        return self._portal.call(lambda: self._area.grant(namespace, role, actions))

    def revoke(self, namespace: NamespaceName | str, role: str) -> None:
        return self._portal.call(lambda: self._area.revoke(namespace, role))

    def of_topic(self, topic: TopicName | str) -> Grants:
        """Return the permissions of every role on a topic, from topic and namespace. Raise TopicNotFound."""
        return self._portal.call(lambda: self._area.of_topic(topic))

    def grant_on_topic(self, topic: TopicName | str, role: str, actions: Iterable[str]) -> None:
        """Replace the permissions of a role on a topic and its partitions."""
        return self._portal.call(lambda: self._area.grant_on_topic(topic, role, actions))

    def revoke_on_topic(self, topic: TopicName | str, role: str) -> None:
        return self._portal.call(lambda: self._area.revoke_on_topic(topic, role))

    def of_subscriptions(self, namespace: NamespaceName | str) -> Grants:
        """Return the restricted subscriptions, each with the roles that may use it."""
        return self._portal.call(lambda: self._area.of_subscriptions(namespace))

    def grant_on_subscription(self, namespace: NamespaceName | str, subscription: str, roles: Iterable[str]) -> None:
        """Restrict subscriptions of this name to these roles."""
        return self._portal.call(lambda: self._area.grant_on_subscription(namespace, subscription, roles))

    def revoke_on_subscription(self, namespace: NamespaceName | str, subscription: str, role: str) -> None:
        return self._portal.call(lambda: self._area.revoke_on_subscription(namespace, subscription, role))

    def subscription_auth_mode(self, namespace: NamespaceName | str) -> str | None:
        """Return ``Prefix`` if subscription names must start with the role, otherwise ``None``."""
        return self._portal.call(lambda: self._area.subscription_auth_mode(namespace))

    def set_subscription_auth_mode(self, namespace: NamespaceName | str, mode: str) -> None:
        return self._portal.call(lambda: self._area.set_subscription_auth_mode(namespace, mode))


class SchemasAdmin:
    """Schema history of a topic, shared by its partitions."""

    def __init__(self, portal: Portal, area: admin_schemas.SchemasAdmin) -> None:
        self._portal = portal
        self._area = area

    def get(self, topic: TopicName | str, version: int | None = None) -> SchemaVersion:
        """Return the newest schema, or the one of ``version``. Raise SchemaNotFound."""
        return self._portal.call(lambda: self._area.get(topic, version))

    def get_json(self, topic: TopicName | str, version: int | None = None) -> dict[str, Any]:
        """Return the schema like :meth:`get`, with every field that the broker sent."""
        return self._portal.call(lambda: self._area.get_json(topic, version))

    def history(self, topic: TopicName | str) -> list[SchemaVersion]:
        """Return all versions, oldest first. Empty if the topic has no schema or does not exist."""
        return self._portal.call(lambda: self._area.history(topic))

    def upload(self, topic: TopicName | str, schema: SchemaInfo) -> int:
        """Register a schema and return its version. An equal schema keeps its version. Raise IncompatibleSchema."""
        return self._portal.call(lambda: self._area.upload(topic, schema))

    def test_compatibility(self, topic: TopicName | str, schema: SchemaInfo) -> SchemaCompatibility:
        """Check if a schema could be registered now, and return the verdict.

        Raise NamespaceNotFound, and Unprocessable for an invalid definition. Apache Pulsar answers an incompatible
        schema with status 500, which raises UnknownError with the reason.
        """
        return self._portal.call(lambda: self._area.test_compatibility(topic, schema))

    def delete(self, topic: TopicName | str, *, force: bool = False) -> int:
        """Add a deletion marker and return its version. ``force`` deletes the whole history instead."""
        return self._portal.call(lambda: self._area.delete(topic, force=force))


class TenantsAdmin:
    """Tenants: their administrators and the clusters of their namespaces."""

    def __init__(self, portal: Portal, area: admin_tenants.TenantsAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self) -> Names:
        return self._portal.call(lambda: self._area.list())

    def get(self, name: str) -> TenantInfo:
        return self._portal.call(lambda: self._area.get(name))

    def create(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Create a tenant. Raise AlreadyExists, or PreconditionFailed if one of its clusters is not registered.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        return self._portal.call(lambda: self._area.create(name, tenant, previewed=previewed))

    def update(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Replace the roles and clusters of a tenant.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        return self._portal.call(lambda: self._area.update(name, tenant, previewed=previewed))

    def delete(self, name: str, *, force: bool = False, previewed: bool = False) -> Changes | None:
        """Delete a tenant. Raise Conflict if it has namespaces, unless it is forced.

        With ``previewed`` nothing is changed and the changes are returned.
        """
        return self._portal.call(lambda: self._area.delete(name, force=force, previewed=previewed))


class TopicPoliciesAdmin:
    """Policies of a topic and all its partitions. Raise PreconditionFailed for a single partition."""

    def __init__(self, portal: Portal, area: admin_topic_policies.TopicPoliciesAdmin) -> None:
        self._portal = portal
        self._area = area

    def get(self, topic: TopicName | str, name: str, *, applied: bool = False, everywhere: bool = False) -> Any:
        """Return a policy by its name in `TopicPolicies`, such as ``max_producers``; None if it is not set.

        With ``applied``, return the policy in force. With ``everywhere``, return the global policy, for all clusters.
        """
        return self._portal.call(lambda: self._area.get(topic, name, applied=applied, everywhere=everywhere))

    def set(self, topic: TopicName | str, name: str, value: Any, *, everywhere: bool = False) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an invalid value.

        With ``everywhere`` the policy is global: replication copies it to every cluster of the topic, where a local
        policy takes precedence.
        """
        return self._portal.call(lambda: self._area.set(topic, name, value, everywhere=everywhere))

    def remove(self, topic: TopicName | str, name: str, *, everywhere: bool = False) -> None:
        """Remove a policy by its name. The namespace's policy applies again."""
        return self._portal.call(lambda: self._area.remove(topic, name, everywhere=everywhere))

    def delete(self, topic: TopicName | str) -> None:
        """Remove all policies of the topic."""
        return self._portal.call(lambda: self._area.delete(topic))

    def backlog_quotas(
        self, topic: TopicName | str, *, applied: bool = False, everywhere: bool = False
    ) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type. The namespace's quota applies to a missing type."""
        return self._portal.call(lambda: self._area.backlog_quotas(topic, applied=applied, everywhere=everywhere))

    def set_backlog_quota(
        self,
        topic: TopicName | str,
        quota: BacklogQuota,
        kind: QuotaType = "destination_storage",
        *,
        everywhere: bool = False,
    ) -> None:
        """Set the backlog quota of a type. Raise PreconditionFailed for a quota above the retention."""
        return self._portal.call(lambda: self._area.set_backlog_quota(topic, quota, kind, everywhere=everywhere))

    def remove_backlog_quota(
        self, topic: TopicName | str, kind: QuotaType = "destination_storage", *, everywhere: bool = False
    ) -> None:
        return self._portal.call(lambda: self._area.remove_backlog_quota(topic, kind, everywhere=everywhere))


class TopicsAdmin:
    """Topics, partitioned topics and subscriptions. Topics are given by full or short names."""

    def __init__(self, portal: Portal, area: admin_topics.TopicsAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
        bundle: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Names:
        """Return the full names of topics that are stored or loaded, partitions included.

        ``bundle`` limits the list to one bundle, ``properties`` to topics that have all of them. Apache Pulsar leaves
        properties to a plug-in and ignores them without one.
        """
        return self._portal.call(
            lambda: self._area.list(
                namespace, domains=domains, system_included=system_included, bundle=bundle, properties=properties
            )
        )

    def list_partitioned(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
    ) -> Names:
        """Return the full base names of the partitioned topics."""
        return self._portal.call(
            lambda: self._area.list_partitioned(namespace, domains=domains, system_included=system_included)
        )

    def partition_counts(
        self,
        namespace: NamespaceName | str,
        *,
        domains: Iterable[Domain] = _BOTH_DOMAINS,
        system_included: bool = False,
    ) -> dict[str, int | None]:
        """Return the partitioned topics with their partition counts, with as few requests as possible.

        None means that the count must be requested for this topic alone: Apache Pulsar lists names only, and Interpulse
        has no count for a topic that is being deleted.
        """
        return self._portal.call(
            lambda: self._area.partition_counts(namespace, domains=domains, system_included=system_included)
        )

    def create(self, topic: TopicName | str, properties: Mapping[str, str] | None = None) -> None:
        """Create a non-partitioned topic. Raises AlreadyExists."""
        return self._portal.call(lambda: self._area.create(topic, properties))

    def create_partitioned(
        self,
        topic: TopicName | str,
        partitions: int,
        *,
        properties: Mapping[str, str] | None = None,
        local_only: bool = False,
    ) -> None:
        """Create a partitioned topic and all its partitions.

        With ``local_only`` the broker does not create it in the other clusters of the namespace. Apache Pulsar then
        accepts a topic that already exists with the same or a larger count: check the count afterwards.
        """
        return self._portal.call(
            lambda: self._area.create_partitioned(topic, partitions, properties=properties, local_only=local_only)
        )

    def expand(self, topic: TopicName | str, partitions: int, *, local_only: bool = False, force: bool = False) -> None:
        """Increase the number of partitions to ``partitions``. Raise Conflict if the topic is not partitioned."""
        return self._portal.call(lambda: self._area.expand(topic, partitions, local_only=local_only, force=force))

    def create_missed_partitions(self, topic: TopicName | str) -> None:
        """Create the partitions that the metadata counts but that are not stored."""
        return self._portal.call(lambda: self._area.create_missed_partitions(topic))

    def partitioned_metadata(self, topic: TopicName | str, *, create: bool = False) -> PartitionedTopicMetadata:
        """Return the partition metadata of a topic. ``partitions == 0`` means not partitioned. Raise TopicNotFound.

        With ``create`` a missing topic is created if the cluster's policies allow it (PIP-344).
        """
        return self._portal.call(lambda: self._area.partitioned_metadata(topic, create=create))

    def delete(self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True) -> None:
        """Delete one topic or one partition. Raise PreconditionFailed if it is in use, unless it is forced."""
        return self._portal.call(lambda: self._area.delete(topic, force=force, schema_deleted=schema_deleted))

    def delete_partitioned(self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True) -> None:
        """Delete a partitioned topic with all its partitions."""
        return self._portal.call(
            lambda: self._area.delete_partitioned(topic, force=force, schema_deleted=schema_deleted)
        )

    def truncate(self, topic: TopicName | str) -> None:
        """Move every subscription to the end and delete the messages. Apache Pulsar keeps those of the last ledger."""
        return self._portal.call(lambda: self._area.truncate(topic))

    def trim(self, topic: TopicName | str) -> None:
        """Delete the messages that no subscription and no policy retains, in all partitions, now."""
        return self._portal.call(lambda: self._area.trim(topic))

    def unload(self, topic: TopicName | str) -> None:
        """Unload the topic from its broker. Clients reconnect and load it again."""
        return self._portal.call(lambda: self._area.unload(topic))

    def terminate(self, topic: TopicName | str) -> MessageId:
        """Terminate the topic: it accepts no more messages. Return the id of its last message."""
        return self._portal.call(lambda: self._area.terminate(topic))

    def terminate_partitioned(self, topic: TopicName | str) -> dict[int, MessageId]:
        """Terminate every partition. Return the id of the last message by partition index."""
        return self._portal.call(lambda: self._area.terminate_partitioned(topic))

    def properties(self, topic: TopicName | str) -> dict[str, str]:
        """Return the properties of a topic. Raise TopicNotFound."""
        return self._portal.call(lambda: self._area.properties(topic))

    def update_properties(self, topic: TopicName | str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others."""
        return self._portal.call(lambda: self._area.update_properties(topic, properties))

    def remove_property(self, topic: TopicName | str, key: str) -> None:
        """Remove a property, if the topic has it."""
        return self._portal.call(lambda: self._area.remove_property(topic, key))

    def compact(self, topic: TopicName | str) -> None:
        """Start compaction of the topic, or of all its partitions. Raise Conflict while it is running."""
        return self._portal.call(lambda: self._area.compact(topic))

    def compaction_status(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the state of the compaction of one topic or partition.

        ``status`` is NOT_RUN, RUNNING, SUCCESS or ERROR. ``lastError`` gives the reason of a failure.
        """
        return self._portal.call(lambda: self._area.compaction_status(topic))

    def stats(
        self,
        topic: TopicName | str,
        *,
        precise_backlog: bool = False,
        backlog_size: bool = True,
        earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> dict[str, Any]:
        return self._portal.call(
            lambda: self._area.stats(
                topic,
                precise_backlog=precise_backlog,
                backlog_size=backlog_size,
                earliest_time_in_backlog=earliest_time_in_backlog,
                exclude_publishers=exclude_publishers,
                exclude_consumers=exclude_consumers,
            )
        )

    def partitioned_stats(
        self,
        topic: TopicName | str,
        *,
        per_partition: bool = True,
        precise_backlog: bool = False,
        backlog_size: bool = True,
        earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> dict[str, Any]:
        return self._portal.call(
            lambda: self._area.partitioned_stats(
                topic,
                per_partition=per_partition,
                precise_backlog=precise_backlog,
                backlog_size=backlog_size,
                earliest_time_in_backlog=earliest_time_in_backlog,
                exclude_publishers=exclude_publishers,
                exclude_consumers=exclude_consumers,
            )
        )

    def internal_stats(self, topic: TopicName | str, *, metadata: bool = False) -> dict[str, Any]:
        """Return the topic's ledgers and cursors."""
        return self._portal.call(lambda: self._area.internal_stats(topic, metadata=metadata))

    def internal_info(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the stored ledgers and cursors without loading the topic. Works for a topic that cannot be loaded."""
        return self._portal.call(lambda: self._area.internal_info(topic))

    def partitioned_internal_stats(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the ledgers and cursors of every partition."""
        return self._portal.call(lambda: self._area.partitioned_internal_stats(topic))

    def last_message_id(self, topic: TopicName | str) -> MessageId:
        return self._portal.call(lambda: self._area.last_message_id(topic))

    def last_message_id_json(self, topic: TopicName | str) -> dict[str, Any]:
        """Return the last message id like :meth:`last_message_id`, with every field that the broker sent."""
        return self._portal.call(lambda: self._area.last_message_id_json(topic))

    def peek(
        self,
        topic: TopicName | str,
        subscription: str,
        count: int = 1,
        *,
        markers_shown: bool = False,
        uncommitted_shown: bool = False,
    ) -> Messages:
        """Return the next ``count`` messages of a subscription without moving it. Fewer if there are no more.

        Markers and messages of uncommitted transactions are left out unless requested. Apache Pulsar creates a missing
        subscription at the beginning of the topic.
        """
        return self._portal.call(
            lambda: self._area.peek(
                topic, subscription, count, markers_shown=markers_shown, uncommitted_shown=uncommitted_shown
            )
        )

    def examine(self, topic: TopicName | str, initial_position: ExaminePosition, number: int) -> Messages:
        """Return the messages of entry ``number``, counted from 1 from the first or back from the last entry."""
        return self._portal.call(lambda: self._area.examine(topic, initial_position, number))

    def message_by_id(self, topic: TopicName | str, ledger: int, entry: int) -> Messages:
        """Return the messages of one entry. Raise NotFound."""
        return self._portal.call(lambda: self._area.message_by_id(topic, ledger, entry))

    def message_id_at(self, topic: TopicName | str, time_ms: int) -> dict[str, Any]:
        """Return the position of the first message published at or after a time, as JSON.

        If there is none yet, return the position of the next message.
        """
        return self._portal.call(lambda: self._area.message_id_at(topic, time_ms))

    def subscriptions(self, topic: TopicName | str) -> Names:
        return self._portal.call(lambda: self._area.subscriptions(topic))

    def create_subscription(
        self,
        topic: TopicName | str,
        subscription: str,
        position: MessageId | None = None,
        *,
        replicated: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a subscription at ``position``, by default after the last message. Raise AlreadyExists."""
        return self._portal.call(
            lambda: self._area.create_subscription(
                topic, subscription, position, replicated=replicated, properties=properties
            )
        )

    def delete_subscription(self, topic: TopicName | str, subscription: str, *, force: bool = False) -> None:
        """Delete a subscription. Raise PreconditionFailed if a consumer is connected, unless it is forced."""
        return self._portal.call(lambda: self._area.delete_subscription(topic, subscription, force=force))

    def reset_cursor_to_time(self, topic: TopicName | str, subscription: str, time_ms: int) -> None:
        """Continue with the first message published at or after ``time_ms`` (milliseconds since 1970)."""
        return self._portal.call(lambda: self._area.reset_cursor_to_time(topic, subscription, time_ms))

    def reset_cursor_to_message(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Continue with the message at ``position``, or after it if ``excluded``."""
        return self._portal.call(
            lambda: self._area.reset_cursor_to_message(topic, subscription, position, excluded=excluded)
        )

    def skip(self, topic: TopicName | str, subscription: str, count: int) -> None:
        """Acknowledge the next ``count`` messages of the subscription."""
        return self._portal.call(lambda: self._area.skip(topic, subscription, count))

    def skip_all(self, topic: TopicName | str, subscription: str) -> None:
        """Acknowledge the whole backlog of the subscription."""
        return self._portal.call(lambda: self._area.skip_all(topic, subscription))

    def expire(self, topic: TopicName | str, subscription: str, older_than_seconds: int) -> None:
        """Acknowledge messages published more than ``older_than_seconds`` ago.

        Raise Conflict if there is no backlog.
        """
        return self._portal.call(lambda: self._area.expire(topic, subscription, older_than_seconds))

    def expire_upto(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Acknowledge everything up to a message. Raise Conflict if it is after the last one.

        With ``excluded`` the entry after it is acknowledged too, as in Apache Pulsar.
        """
        return self._portal.call(lambda: self._area.expire_upto(topic, subscription, position, excluded=excluded))

    def expire_all(self, topic: TopicName | str, older_than_seconds: int) -> None:
        """Acknowledge messages published more than ``older_than_seconds`` ago, for every subscription."""
        return self._portal.call(lambda: self._area.expire_all(topic, older_than_seconds))

    def backlog_size(self, topic: TopicName | str, position: MessageId) -> int:
        """Return the approximate number of bytes after a message of one topic or partition.

        Before the first message this is the size of the whole topic.
        """
        return self._portal.call(lambda: self._area.backlog_size(topic, position))

    def analyze_backlog(
        self, topic: TopicName | str, subscription: str, start: MessageId | None = None
    ) -> dict[str, Any]:
        """Return counts of the backlog of a subscription, which the broker reads from ``start`` on.

        For one topic or partition. ``entries`` and ``messages`` are exact unless ``aborted``: then the backlog exceeds
        what the broker reads in one request, and the counts end at ``lastMessageId``.
        """
        return self._portal.call(lambda: self._area.analyze_backlog(topic, subscription, start))

    def subscription_properties(self, topic: TopicName | str, subscription: str) -> dict[str, str]:
        return self._portal.call(lambda: self._area.subscription_properties(topic, subscription))

    def set_subscription_properties(
        self, topic: TopicName | str, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Replace all properties of a subscription."""
        return self._portal.call(lambda: self._area.set_subscription_properties(topic, subscription, properties))

    def inactive_topic_policies(self, topic: TopicName | str, *, applied: bool = False) -> InactiveTopicPolicies | None:
        """Return the topic's own policy; None if the namespace's applies. With ``applied``, return the one in force."""
        return self._portal.call(lambda: self._area.inactive_topic_policies(topic, applied=applied))

    def set_inactive_topic_policies(self, topic: TopicName | str, policies: InactiveTopicPolicies) -> None:
        return self._portal.call(lambda: self._area.set_inactive_topic_policies(topic, policies))

    def remove_inactive_topic_policies(self, topic: TopicName | str) -> None:
        return self._portal.call(lambda: self._area.remove_inactive_topic_policies(topic))

    def replication_clusters(self, topic: TopicName | str, *, applied: bool = False) -> Names | None:
        """Return the topic's own clusters; None if the namespace's apply. With ``applied``, return those in force."""
        return self._portal.call(lambda: self._area.replication_clusters(topic, applied=applied))

    def set_replication_clusters(self, topic: TopicName | str, clusters: Iterable[str]) -> None:
        return self._portal.call(lambda: self._area.set_replication_clusters(topic, clusters))

    def remove_replication_clusters(self, topic: TopicName | str) -> None:
        return self._portal.call(lambda: self._area.remove_replication_clusters(topic))

    def replication_status(self, topic: TopicName | str) -> Records:
        """Return the progress of replication to each remote cluster, and what blocks it.

        Raise NotSupported unless the broker is Interpulse.
        """
        return self._portal.call(lambda: self._area.replication_status(topic))


class AdminClient(Closes):
    """Administration of one cluster, for programs without an event loop.

    Use it as a context manager, or call :meth:`close`. Parameters and errors are those of
    ``interpulse.client.AdminClient``."""

    def __init__(
        self,
        web_url: str,
        *,
        credentials: Credentials | None = None,
        timeout_ms: int = 30000,
        tls: TlsOptions | None = None,
    ) -> None:
        self._portal = Portal()
        self._admin = admin_client.AdminClient(web_url, credentials=credentials, timeout_ms=timeout_ms, tls=tls)
        self.web_url = self._admin.web_url
        self.clusters = ClustersAdmin(self._portal, self._admin.clusters)
        self.tenants = TenantsAdmin(self._portal, self._admin.tenants)
        self.namespaces = NamespacesAdmin(self._portal, self._admin.namespaces)
        self.topics = TopicsAdmin(self._portal, self._admin.topics)
        self.topic_policies = TopicPoliciesAdmin(self._portal, self._admin.topic_policies)
        self.permissions = PermissionsAdmin(self._portal, self._admin.permissions)
        self.schemas = SchemasAdmin(self._portal, self._admin.schemas)
        self.brokers = BrokersAdmin(self._portal, self._admin.brokers)
        self.lookup = LookupAdmin(self._portal, self._admin.lookup)
        self._closed = False

    def send(self, request: AdminRequest) -> None:
        """Send a planned request, such as one change of a replication plan."""
        return self._portal.call(lambda: self._admin.send(request))

    def close(self) -> None:
        """Close the connections and the thread. Calling it again has no effect."""
        if self._closed:
            return
        self._closed = True
        try:
            self._portal.call(self._admin.close)
        finally:
            self._portal.close()
