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
from interpulse.model.policies.messaging_policies import BacklogQuota, DispatchRate, QuotaType
from interpulse.model.policies.namespace_policies import (
    AutoTopicCreation,
    InactiveTopicPolicies,
    NamespacePolicies,
    RetentionPolicies,
)
from interpulse.model.policies.topic_policies import TopicPolicies
from interpulse.model.schemas import SchemaInfo
from interpulse.model.topics import PartitionedTopicMetadata

__all__ = ["AdminClient"]

Names = list[str]

Isolations = list[BrokerIsolation]

Records = list[dict[str, Any]]

TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]

Grants = dict[str, list[str]]

Messages = list[Message]

ExaminePosition = Literal["earliest", "latest"]

_BOTH_DOMAINS: tuple[Domain, ...] = (PERSISTENT, NON_PERSISTENT)


class BrokersAdmin:
    """The brokers of the cluster and their configuration. All values of configuration are text."""

    def __init__(self, portal: Portal, area: admin_brokers.BrokersAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self, cluster: str | None = None) -> Names:
        """The active brokers, of ``cluster`` or of the cluster that is asked."""
        return self._portal.call(lambda: self._area.list(cluster))

    def version(self) -> str:
        """The line of Pulsar that is served, with our own version behind it where the broker is ours."""
        return self._portal.call(lambda: self._area.version())

    def leader(self) -> dict[str, Any]:
        """``brokerId`` and ``serviceUrl`` of the broker that balances load."""
        return self._portal.call(lambda: self._area.leader())

    def owned_namespaces(self, cluster: str, broker: str) -> dict[str, dict[str, Any]]:
        """The bundles ``tenant/namespace/0x..._0x...`` that a broker, given as ``host:port``, serves, each with why."""
        return self._portal.call(lambda: self._area.owned_namespaces(cluster, broker))

    def check_backlog_quotas(self) -> None:
        """Compare backlogs with their quotas now, instead of waiting for the next check."""
        return self._portal.call(lambda: self._area.check_backlog_quotas())

    def health(self, *, topic_version: str | None = None) -> str:
        """``ok``, or an error saying what is wrong. A real broker checks a topic of this version: V1 or V2."""
        return self._portal.call(lambda: self._area.health(topic_version=topic_version))

    def metrics(self) -> str:
        """What the broker shows Prometheus, in its text format."""
        return self._portal.call(lambda: self._area.metrics())

    def runtime_configuration(self) -> dict[str, str]:
        """Every key with the value in force."""
        return self._portal.call(lambda: self._area.runtime_configuration())

    def dynamic_configuration_names(self) -> Names:
        """The keys that can be changed while the broker runs."""
        return self._portal.call(lambda: self._area.dynamic_configuration_names())

    def dynamic_configuration(self) -> dict[str, str]:
        """The keys that were changed at run time."""
        return self._portal.call(lambda: self._area.dynamic_configuration())

    def set_dynamic_configuration(self, name: str, value: str) -> None:
        """Raises PreconditionFailed for a key that is unknown or cannot be changed at run time."""
        return self._portal.call(lambda: self._area.set_dynamic_configuration(name, value))

    def delete_dynamic_configuration(self, name: str) -> None:
        """Back to the value of the start-up file."""
        return self._portal.call(lambda: self._area.delete_dynamic_configuration(name))


class ClustersAdmin:
    """The clusters this cluster knows, itself included."""

    def __init__(self, portal: Portal, area: admin_clusters.ClustersAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self) -> Names:
        return self._portal.call(lambda: self._area.list())

    def get(self, name: str) -> ClusterData:
        return self._portal.call(lambda: self._area.get(name))

    def get_json(self, name: str) -> dict[str, Any]:
        """Return the record like :meth:`get`, with every field as the broker sent it."""
        return self._portal.call(lambda: self._area.get_json(name))

    def create(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Register a cluster, or return the changes if it is only ``previewed``. Raises AlreadyExists."""
        return self._portal.call(lambda: self._area.create(name, cluster, previewed=previewed))

    def update(self, name: str, cluster: ClusterData, *, previewed: bool = False) -> Changes | None:
        """Replace the record, or return the changes if it is only ``previewed``. Fields that are None are unset."""
        return self._portal.call(lambda: self._area.update(name, cluster, previewed=previewed))

    def delete(self, name: str, *, previewed: bool = False) -> Changes | None:
        """Delete a cluster, or return the changes if it is only ``previewed``.

        Our broker raises PreconditionFailed while something is replicated to the cluster.
        """
        return self._portal.call(lambda: self._area.delete(name, previewed=previewed))

    def peers(self, name: str) -> Names | None:
        """The peer clusters; None if they were never set."""
        return self._portal.call(lambda: self._area.peers(name))

    def set_peers(self, name: str, peers: Iterable[str] | None) -> None:
        """Clusters that no namespace may be on together with this one. Raises PreconditionFailed for unknown ones."""
        return self._portal.call(lambda: self._area.set_peers(name, peers))

    def failure_domains(self, name: str) -> dict[str, FailureDomain]:
        return self._portal.call(lambda: self._area.failure_domains(name))

    def failure_domain(self, name: str, domain: str) -> FailureDomain:
        """Raises NotFound."""
        return self._portal.call(lambda: self._area.failure_domain(name, domain))

    def set_failure_domain(self, name: str, domain: str, value: FailureDomain) -> None:
        """Create or replace it. Raises Conflict if one of the brokers is in another domain."""
        return self._portal.call(lambda: self._area.set_failure_domain(name, domain, value))

    def delete_failure_domain(self, name: str, domain: str) -> None:
        return self._portal.call(lambda: self._area.delete_failure_domain(name, domain))

    def isolation_policies(self, name: str) -> dict[str, IsolationPolicy]:
        """Return the policies by name. Raises NotFound if the cluster never had any."""
        return self._portal.call(lambda: self._area.isolation_policies(name))

    def isolation_policy(self, name: str, policy_name: str) -> IsolationPolicy:
        """Raises NotFound."""
        return self._portal.call(lambda: self._area.isolation_policy(name, policy_name))

    def set_isolation_policy(self, name: str, policy_name: str, policy: IsolationPolicy) -> None:
        """Create or replace it; namespaces whose brokers change are unloaded, see ``unload_scope``.

        Raises InvalidRequest for what cannot be followed, PreconditionFailed if there is no such cluster.
        """
        return self._portal.call(lambda: self._area.set_isolation_policy(name, policy_name, policy))

    def delete_isolation_policy(self, name: str, policy_name: str) -> None:
        """Nothing is unloaded, and a policy that is not there is no error."""
        return self._portal.call(lambda: self._area.delete_isolation_policy(name, policy_name))

    def isolation_of_brokers(self, name: str) -> Isolations:
        """Return the part of each registered broker in the policies."""
        return self._portal.call(lambda: self._area.isolation_of_brokers(name))

    def isolation_of_broker(self, name: str, broker: str) -> BrokerIsolation:
        """Return the part of a broker ``host:port`` in the policies, registered or not."""
        return self._portal.call(lambda: self._area.isolation_of_broker(name, broker))


class LookupAdmin:
    """Lookups of topics, which never create one."""

    def __init__(self, portal: Portal, area: admin_lookup.LookupAdmin) -> None:
        self._portal = portal
        self._area = area

    def topic(self, topic: TopicName | str) -> dict[str, Any]:
        """The addresses of the serving broker: ``brokerUrl``, ``httpUrl`` and their variants. Raises TopicNotFound."""
        return self._portal.call(lambda: self._area.topic(topic))

    def topics(self, topics: Iterable[TopicName | str]) -> dict[TopicName, dict[str, Any] | PulsarError]:
        """The same for many topics with few questions (PIP-35), or one by one where the broker does not offer that.

        Every topic has addresses or its own failure; the topics need not exist.
        """
        return self._portal.call(lambda: self._area.topics(topics))

    def bundle_range(self, topic: TopicName | str) -> str:
        """The hash range of the topic's bundle, such as ``0x40000000_0x80000000``."""
        return self._portal.call(lambda: self._area.bundle_range(topic))


class NamespacesAdmin:
    """Namespaces, given as ``tenant/namespace``."""

    def __init__(self, portal: Portal, area: admin_namespaces.NamespacesAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self, tenant: str) -> Names:
        """Return the complete names of a tenant's namespaces. Raise TenantNotFound."""
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
        """Create a namespace, by default on the local cluster, or return the changes if it is only ``previewed``.

        Raises AlreadyExists.

        Our broker refuses ``policies`` that could not be set one by one, a real one hardly looks at them.
        """
        return self._portal.call(
            lambda: self._area.create(
                namespace, clusters=clusters, bundles=bundles, policies=policies, previewed=previewed
            )
        )

    def delete(self, namespace: NamespaceName | str, *, force: bool = False, previewed: bool = False) -> Changes | None:
        """Delete a namespace, or return the changes if it is only ``previewed``.

        Raises Conflict if topics are left and it is not forced.
        """
        return self._portal.call(lambda: self._area.delete(namespace, force=force, previewed=previewed))

    def unload(
        self, namespace: NamespaceName | str, *, bundle: str | None = None, destination_broker: str | None = None
    ) -> None:
        """Close the topics of a namespace, or of one bundle ``0x..._0x...``, in their brokers; clients reconnect."""
        return self._portal.call(
            lambda: self._area.unload(namespace, bundle=bundle, destination_broker=destination_broker)
        )

    def bundles(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """``boundaries``, the ends of its hash ranges, and ``numBundles``."""
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
        """Divide a bundle ``0x..._0x...``, or ``LARGEST``; ``positions`` are for ``specified_positions_divide``."""
        return self._portal.call(
            lambda: self._area.split_bundle(namespace, bundle, algorithm=algorithm, positions=positions, unload=unload)
        )

    def clear_backlog(
        self, namespace: NamespaceName | str, *, subscription: str | None = None, bundle: str | None = None
    ) -> None:
        """Acknowledge the backlog of all topics, or of one ``bundle``, for every subscription or for one."""
        return self._portal.call(lambda: self._area.clear_backlog(namespace, subscription=subscription, bundle=bundle))

    def unsubscribe(self, namespace: NamespaceName | str, subscription: str, *, bundle: str | None = None) -> None:
        """Delete a subscription wherever a topic has one of that name. Raises PreconditionFailed if it is in use."""
        return self._portal.call(lambda: self._area.unsubscribe(namespace, subscription, bundle=bundle))

    def policies(self, namespace: NamespaceName | str) -> NamespacePolicies:
        return self._portal.call(lambda: self._area.policies(namespace))

    def policies_json(self, namespace: NamespaceName | str) -> dict[str, Any]:
        """Return all policies in the JSON that the broker sent."""
        return self._portal.call(lambda: self._area.policies_json(namespace))

    def properties(self, namespace: NamespaceName | str) -> dict[str, str]:
        """The properties set by operators, without a meaning to the broker."""
        return self._portal.call(lambda: self._area.properties(namespace))

    def update_properties(self, namespace: NamespaceName | str, properties: Mapping[str, str]) -> None:
        """Set these properties; others stay."""
        return self._portal.call(lambda: self._area.update_properties(namespace, properties))

    def clear_properties(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.clear_properties(namespace))

    def property(self, namespace: NamespaceName | str, key: str) -> str | None:
        """Return the value of a property; None if it is absent or empty."""
        return self._portal.call(lambda: self._area.property(namespace, key))

    def set_property(self, namespace: NamespaceName | str, key: str, value: str) -> None:
        return self._portal.call(lambda: self._area.set_property(namespace, key, value))

    def remove_property(self, namespace: NamespaceName | str, key: str) -> None:
        """Remove a property if the namespace has it."""
        return self._portal.call(lambda: self._area.remove_property(namespace, key))

    def replication_clusters(self, namespace: NamespaceName | str) -> Names:
        return self._portal.call(lambda: self._area.replication_clusters(namespace))

    def set_replication_clusters(
        self, namespace: NamespaceName | str, clusters: Iterable[str], *, partitions_compared: bool | None = None
    ) -> None:
        """Replicate the namespace to ``clusters``, the local one included.

        With ``partitions_compared`` the broker first compares topics and policies with every cluster that is new in
        the list and raises Conflict naming the differences (PIP-433); None leaves that to the broker.
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

        The answer is the plan with its ``outcome``, and ``applied`` unless it is only ``previewed``: false where a
        conflict or a failure kept it from being done. With ``shown_digest``, that of a preview, it is done only if the
        plan is still the same. Ask only a broker whose runtime configuration has
        ``supportsReplicationPreview``: a real one ignores the parameters, and stores the clusters.
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
        """One record per topic and remote cluster. Raises NotSupported if the broker is not ours."""
        return self._portal.call(lambda: self._area.replication_status(namespace))

    def topics_with_clusters(self, namespace: NamespaceName | str) -> dict[str, Names]:
        """The topics that have replication clusters of their own, with these. Ours only; others raise NotSupported."""
        return self._portal.call(lambda: self._area.topics_with_clusters(namespace))

    def global_topic_policies(self, namespace: NamespaceName | str) -> dict[str, TopicPolicies]:
        """The topics with policies for all clusters at once, and these. Ours only; others raise NotSupported."""
        return self._portal.call(lambda: self._area.global_topic_policies(namespace))

    def replicator_dispatch_rates(self, namespace: NamespaceName | str) -> tuple[DispatchRate, dict[str, DispatchRate]]:
        """The rate of replication in force for the topics of a namespace, and the topics that have one of their own.

        Ours only; others raise NotSupported.
        """
        return self._portal.call(lambda: self._area.replicator_dispatch_rates(namespace))

    def report_replication_status(self, namespace: NamespaceName | str, records: Records) -> None:
        """Replace the records of the topics and clusters named in them: what the replication job knows. Ours only."""
        return self._portal.call(lambda: self._area.report_replication_status(namespace, records))

    def auto_topic_creation(self, namespace: NamespaceName | str, *, applied: bool = False) -> AutoTopicCreation | None:
        """The override of the namespace; None if the broker's settings apply.

        With ``applied`` our broker answers what is in force; a real one ignores that and answers the override.
        """
        return self._portal.call(lambda: self._area.auto_topic_creation(namespace, applied=applied))

    def set_auto_topic_creation(self, namespace: NamespaceName | str, policy: AutoTopicCreation) -> None:
        """Set the override. Raise PreconditionFailed if type and count do not fit together."""
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
        """Return seconds; 0 = messages do not expire."""
        return self._portal.call(lambda: self._area.message_ttl(namespace))

    def set_message_ttl(self, namespace: NamespaceName | str, ttl_seconds: int) -> None:
        return self._portal.call(lambda: self._area.set_message_ttl(namespace, ttl_seconds))

    def remove_message_ttl(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_message_ttl(namespace))

    def policy(self, namespace: NamespaceName | str, name: str) -> Any:
        """Return a policy by its name in the catalogue of policies, such as ``max_producers``; None if it is not set.

        A rate such as ``publish_rate`` is that of the cluster that answers.
        """
        return self._portal.call(lambda: self._area.policy(namespace, name))

    def set_policy(self, namespace: NamespaceName | str, name: str, value: Any) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an impossible value."""
        return self._portal.call(lambda: self._area.set_policy(namespace, name, value))

    def remove_policy(self, namespace: NamespaceName | str, name: str) -> None:
        """Remove a policy by its name; the broker's setting applies again."""
        return self._portal.call(lambda: self._area.remove_policy(namespace, name))

    def backlog_quotas(self, namespace: NamespaceName | str) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type; the broker's quota applies to a missing type."""
        return self._portal.call(lambda: self._area.backlog_quotas(namespace))

    def set_backlog_quota(
        self, namespace: NamespaceName | str, quota: BacklogQuota, kind: QuotaType = "destination_storage"
    ) -> None:
        """Set the backlog quota of a type. Raise PreconditionFailed for a quota above the retention."""
        return self._portal.call(lambda: self._area.set_backlog_quota(namespace, quota, kind))

    def remove_backlog_quota(self, namespace: NamespaceName | str, kind: QuotaType = "destination_storage") -> None:
        return self._portal.call(lambda: self._area.remove_backlog_quota(namespace, kind))

    def max_topics(self, namespace: NamespaceName | str) -> int | None:
        """Return the largest number of topics; 0 = no limit, None = the broker's limit."""
        return self._portal.call(lambda: self._area.max_topics(namespace))

    def set_max_topics(self, namespace: NamespaceName | str, count: int) -> None:
        return self._portal.call(lambda: self._area.set_max_topics(namespace, count))

    def remove_max_topics(self, namespace: NamespaceName | str) -> None:
        return self._portal.call(lambda: self._area.remove_max_topics(namespace))

    def auto_update_schema_allowed(self, namespace: NamespaceName | str) -> bool:
        """Return True if producers may register new schemas, by the policy or the broker's setting."""
        return self._portal.call(lambda: self._area.auto_update_schema_allowed(namespace))

    def set_auto_update_schema_allowed(
        self, namespace: NamespaceName | str, allowed: bool, *, with_replicator: bool | None = None
    ) -> None:
        """Allow producers to register schemas, or replicators alone; None leaves replicators as they are."""
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
        """Set the older compatibility policy. It counts while ``schema_compatibility_strategy`` is UNDEFINED."""
        return self._portal.call(lambda: self._area.set_schema_auto_update_strategy(namespace, strategy))

    def schema_validation_enforced(self, namespace: NamespaceName | str, *, applied: bool = False) -> bool:
        """Return True if producers need a schema on a topic that has one."""
        return self._portal.call(lambda: self._area.schema_validation_enforced(namespace, applied=applied))

    def set_schema_validation_enforced(self, namespace: NamespaceName | str, enforced: bool) -> None:
        return self._portal.call(lambda: self._area.set_schema_validation_enforced(namespace, enforced))


class PermissionsAdmin:
    """Permissions. Actions are ``produce``, ``consume``, ``functions``, ``sources``, ``sinks`` and ``packages``."""

    def __init__(self, portal: Portal, area: admin_permissions.PermissionsAdmin) -> None:
        self._portal = portal
        self._area = area

    def of_namespace(self, namespace: NamespaceName | str) -> Grants:
        """The permissions of every role in the whole namespace."""
        return self._portal.call(lambda: self._area.of_namespace(namespace))

    def grant(self, namespace: NamespaceName | str, role: str, actions: Iterable[str]) -> None:
        """Replaces what the role had in the whole namespace."""
        return self._portal.call(lambda: self._area.grant(namespace, role, actions))

    def revoke(self, namespace: NamespaceName | str, role: str) -> None:
        return self._portal.call(lambda: self._area.revoke(namespace, role))

    def of_topic(self, topic: TopicName | str) -> Grants:
        """The permissions of every role on a topic, from both levels. Raises TopicNotFound."""
        return self._portal.call(lambda: self._area.of_topic(topic))

    def grant_on_topic(self, topic: TopicName | str, role: str, actions: Iterable[str]) -> None:
        """Replaces what the role had on this topic; holds for its partitions too."""
        return self._portal.call(lambda: self._area.grant_on_topic(topic, role, actions))

    def revoke_on_topic(self, topic: TopicName | str, role: str) -> None:
        return self._portal.call(lambda: self._area.revoke_on_topic(topic, role))

    def of_subscriptions(self, namespace: NamespaceName | str) -> Grants:
        """Subscriptions that only some roles may use, with these roles."""
        return self._portal.call(lambda: self._area.of_subscriptions(namespace))

    def grant_on_subscription(self, namespace: NamespaceName | str, subscription: str, roles: Iterable[str]) -> None:
        """From now on only these roles may use subscriptions of this name."""
        return self._portal.call(lambda: self._area.grant_on_subscription(namespace, subscription, roles))

    def revoke_on_subscription(self, namespace: NamespaceName | str, subscription: str, role: str) -> None:
        return self._portal.call(lambda: self._area.revoke_on_subscription(namespace, subscription, role))

    def subscription_auth_mode(self, namespace: NamespaceName | str) -> str | None:
        """``Prefix`` if the names of subscriptions must start with the role, else ``None``."""
        return self._portal.call(lambda: self._area.subscription_auth_mode(namespace))

    def set_subscription_auth_mode(self, namespace: NamespaceName | str, mode: str) -> None:
        return self._portal.call(lambda: self._area.set_subscription_auth_mode(namespace, mode))


class SchemasAdmin:
    """The schema history of a topic, which its partitions share."""

    def __init__(self, portal: Portal, area: admin_schemas.SchemasAdmin) -> None:
        self._portal = portal
        self._area = area

    def get(self, topic: TopicName | str, version: int | None = None) -> SchemaVersion:
        """The newest schema, or the one of a version. Raises SchemaNotFound."""
        return self._portal.call(lambda: self._area.get(topic, version))

    def get_json(self, topic: TopicName | str, version: int | None = None) -> dict[str, Any]:
        """As :meth:`get`, with every field as the broker sent it."""
        return self._portal.call(lambda: self._area.get_json(topic, version))

    def history(self, topic: TopicName | str) -> list[SchemaVersion]:
        """All versions, oldest first; none if there never was one, or if the topic is not there."""
        return self._portal.call(lambda: self._area.history(topic))

    def upload(self, topic: TopicName | str, schema: SchemaInfo) -> int:
        """Register a schema and return its version; an equal one keeps its version. Raises IncompatibleSchema."""
        return self._portal.call(lambda: self._area.upload(topic, schema))

    def test_compatibility(self, topic: TopicName | str, schema: SchemaInfo) -> SchemaCompatibility:
        """Whether a schema could be registered now. Raises NamespaceNotFound, and Unprocessable for a wrong definition.

        Apache Pulsar answers an incompatible schema with status 500, which raises UnknownError with the reason.
        """
        return self._portal.call(lambda: self._area.test_compatibility(topic, schema))

    def delete(self, topic: TopicName | str, *, force: bool = False) -> int:
        """Put a deletion marker and return its version; ``force`` erases the whole history."""
        return self._portal.call(lambda: self._area.delete(topic, force=force))


class TenantsAdmin:
    """Tenants: their administrators, and the clusters of their namespaces."""

    def __init__(self, portal: Portal, area: admin_tenants.TenantsAdmin) -> None:
        self._portal = portal
        self._area = area

    def list(self) -> Names:
        return self._portal.call(lambda: self._area.list())

    def get(self, name: str) -> TenantInfo:
        return self._portal.call(lambda: self._area.get(name))

    def create(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Create a tenant, or return the changes that would do so if it is only ``previewed``.

        Raises AlreadyExists, or PreconditionFailed if one of its clusters is not registered.
        """
        return self._portal.call(lambda: self._area.create(name, tenant, previewed=previewed))

    def update(self, name: str, tenant: TenantInfo, *, previewed: bool = False) -> Changes | None:
        """Replace the roles and clusters of a tenant, or return the changes if it is only ``previewed``."""
        return self._portal.call(lambda: self._area.update(name, tenant, previewed=previewed))

    def delete(self, name: str, *, force: bool = False, previewed: bool = False) -> Changes | None:
        """Delete a tenant, or return the changes if it is only ``previewed``.

        Raises Conflict if it still has namespaces and is not forced.
        """
        return self._portal.call(lambda: self._area.delete(name, force=force, previewed=previewed))


class TopicPoliciesAdmin:
    """The policies of a topic, with all its partitions. Raises PreconditionFailed for a single partition."""

    def __init__(self, portal: Portal, area: admin_topic_policies.TopicPoliciesAdmin) -> None:
        self._portal = portal
        self._area = area

    def get(self, topic: TopicName | str, name: str, *, applied: bool = False, everywhere: bool = False) -> Any:
        """Return a policy by its name in `TopicPolicies`, such as ``max_producers``; None if it is not set.

        ``applied`` asks for the policy in force, ``everywhere`` for the policy for all clusters of the topic.
        """
        return self._portal.call(lambda: self._area.get(topic, name, applied=applied, everywhere=everywhere))

    def set(self, topic: TopicName | str, name: str, value: Any, *, everywhere: bool = False) -> None:
        """Set a policy by its name. Raise InvalidRequest or PreconditionFailed for an impossible value.

        With ``everywhere`` replication copies it to every cluster of the topic, where it counts unless one is set.
        """
        return self._portal.call(lambda: self._area.set(topic, name, value, everywhere=everywhere))

    def remove(self, topic: TopicName | str, name: str, *, everywhere: bool = False) -> None:
        """Remove a policy by its name; that of the namespace applies again."""
        return self._portal.call(lambda: self._area.remove(topic, name, everywhere=everywhere))

    def delete(self, topic: TopicName | str) -> None:
        """Remove all policies of the topic."""
        return self._portal.call(lambda: self._area.delete(topic))

    def backlog_quotas(
        self, topic: TopicName | str, *, applied: bool = False, everywhere: bool = False
    ) -> dict[str, BacklogQuota]:
        """Return the backlog quotas by type; the namespace decides on a missing type."""
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
    """Topics, partitioned topics and subscriptions. Topics are given by complete or short names."""

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
        """Complete names of the topics that have storage or are loaded, partitions included; of one bundle if one is
        named.

        With properties only those that have all of them. A real broker leaves that to a plug-in, and lists all topics
        without one.
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
        """Complete base names of the partitioned topics."""
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
        """The same names with their partition counts, from as few requests.

        None = ask for this topic by itself: a real broker lists names only, and ours does not know a count for a topic
        that is being deleted.
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

        ``local_only`` keeps the request from being passed on to the clusters of the namespace. With it a real broker
        accepts a topic that exists already with the same or a larger count: ask for the count afterwards.
        """
        return self._portal.call(
            lambda: self._area.create_partitioned(topic, partitions, properties=properties, local_only=local_only)
        )

    def expand(self, topic: TopicName | str, partitions: int, *, local_only: bool = False, force: bool = False) -> None:
        """Let a partitioned topic grow to ``partitions``. Raises Conflict if it is not one."""
        return self._portal.call(lambda: self._area.expand(topic, partitions, local_only=local_only, force=force))

    def create_missed_partitions(self, topic: TopicName | str) -> None:
        """Create the partitions that the metadata counts but that have no storage."""
        return self._portal.call(lambda: self._area.create_missed_partitions(topic))

    def partitioned_metadata(self, topic: TopicName | str, *, create: bool = False) -> PartitionedTopicMetadata:
        """The partition metadata of a topic; ``partitions == 0`` means it is not partitioned. Raises TopicNotFound.

        With ``create`` a missing topic is created where the policies of the cluster allow it (PIP-344).
        """
        return self._portal.call(lambda: self._area.partitioned_metadata(topic, create=create))

    def delete(self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True) -> None:
        """Delete one topic or one partition. Raises PreconditionFailed if it is in use and not forced."""
        return self._portal.call(lambda: self._area.delete(topic, force=force, schema_deleted=schema_deleted))

    def delete_partitioned(self, topic: TopicName | str, *, force: bool = False, schema_deleted: bool = True) -> None:
        """Delete a partitioned topic with all its partitions."""
        return self._portal.call(
            lambda: self._area.delete_partitioned(topic, force=force, schema_deleted=schema_deleted)
        )

    def truncate(self, topic: TopicName | str) -> None:
        """Move every subscription to the end and forget the messages; a real broker keeps those of the last ledger."""
        return self._portal.call(lambda: self._area.truncate(topic))

    def trim(self, topic: TopicName | str) -> None:
        """Let the broker forget now what no subscription and no policy needs any more, of all partitions."""
        return self._portal.call(lambda: self._area.trim(topic))

    def unload(self, topic: TopicName | str) -> None:
        """Close the topic in its broker; clients reconnect and load it again."""
        return self._portal.call(lambda: self._area.unload(topic))

    def terminate(self, topic: TopicName | str) -> MessageId:
        """Let the topic take no more messages; the answer is its last one."""
        return self._portal.call(lambda: self._area.terminate(topic))

    def terminate_partitioned(self, topic: TopicName | str) -> dict[int, MessageId]:
        """As :meth:`terminate` for every partition, by partition index."""
        return self._portal.call(lambda: self._area.terminate_partitioned(topic))

    def properties(self, topic: TopicName | str) -> dict[str, str]:
        """The properties of a topic, from its creation or later. Raises TopicNotFound."""
        return self._portal.call(lambda: self._area.properties(topic))

    def update_properties(self, topic: TopicName | str, properties: Mapping[str, str]) -> None:
        """Set these; others stay as they are."""
        return self._portal.call(lambda: self._area.update_properties(topic, properties))

    def remove_property(self, topic: TopicName | str, key: str) -> None:
        """Nothing happens if the topic has no such property."""
        return self._portal.call(lambda: self._area.remove_property(topic, key))

    def compact(self, topic: TopicName | str) -> None:
        """Begin to compact the topic, or all partitions of one. Raises Conflict while it is being compacted."""
        return self._portal.call(lambda: self._area.compact(topic))

    def compaction_status(self, topic: TopicName | str) -> dict[str, Any]:
        """``status`` is NOT_RUN, RUNNING, SUCCESS or ERROR, ``lastError`` says why it failed; of one partition only."""
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
        """Ledgers and cursors."""
        return self._portal.call(lambda: self._area.internal_stats(topic, metadata=metadata))

    def internal_info(self, topic: TopicName | str) -> dict[str, Any]:
        """Ledgers and cursors as they are recorded, without loading the topic: also of one that cannot be loaded."""
        return self._portal.call(lambda: self._area.internal_info(topic))

    def partitioned_internal_stats(self, topic: TopicName | str) -> dict[str, Any]:
        """As :meth:`internal_stats` for every partition."""
        return self._portal.call(lambda: self._area.partitioned_internal_stats(topic))

    def last_message_id(self, topic: TopicName | str) -> MessageId:
        return self._portal.call(lambda: self._area.last_message_id(topic))

    def last_message_id_json(self, topic: TopicName | str) -> dict[str, Any]:
        """As :meth:`last_message_id`, with every field as the broker sent it."""
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
        """The next ``count`` messages of a subscription, which does not move; fewer if there are no more.

        What brokers wrote themselves and what no transaction has committed is left out unless it is asked for. A real
        broker creates a subscription that is missing, at the beginning of the topic.
        """
        return self._portal.call(
            lambda: self._area.peek(
                topic, subscription, count, markers_shown=markers_shown, uncommitted_shown=uncommitted_shown
            )
        )

    def examine(self, topic: TopicName | str, initial_position: ExaminePosition, number: int) -> Messages:
        """The messages of the ``number``-th entry, from 1, counted from the first one or back from the last one."""
        return self._portal.call(lambda: self._area.examine(topic, initial_position, number))

    def message_by_id(self, topic: TopicName | str, ledger: int, entry: int) -> Messages:
        """The messages of one entry. Raises NotFound."""
        return self._portal.call(lambda: self._area.message_by_id(topic, ledger, entry))

    def message_id_at(self, topic: TopicName | str, time_ms: int) -> dict[str, Any]:
        """The position of the first message published at or after a time, or of the next one to come; as JSON."""
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
        """Create a subscription at ``position``, by default after the last message. Raises AlreadyExists."""
        return self._portal.call(
            lambda: self._area.create_subscription(
                topic, subscription, position, replicated=replicated, properties=properties
            )
        )

    def delete_subscription(self, topic: TopicName | str, subscription: str, *, force: bool = False) -> None:
        """Raises PreconditionFailed if a consumer is connected and not forced."""
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
        """Acknowledge what was published longer ago than that. Raises Conflict if there is no backlog."""
        return self._portal.call(lambda: self._area.expire(topic, subscription, older_than_seconds))

    def expire_upto(
        self, topic: TopicName | str, subscription: str, position: MessageId, *, excluded: bool = False
    ) -> None:
        """Acknowledge everything up to a message, with ``excluded`` the entry behind it as well: so Pulsar reads it.

        Raises Conflict if that is behind the last one.
        """
        return self._portal.call(lambda: self._area.expire_upto(topic, subscription, position, excluded=excluded))

    def expire_all(self, topic: TopicName | str, older_than_seconds: int) -> None:
        """As :meth:`expire` for every subscription."""
        return self._portal.call(lambda: self._area.expire_all(topic, older_than_seconds))

    def backlog_size(self, topic: TopicName | str, position: MessageId) -> int:
        """About how many bytes lie behind a message of one topic or partition; before the first one, all of them."""
        return self._portal.call(lambda: self._area.backlog_size(topic, position))

    def analyze_backlog(
        self, topic: TopicName | str, subscription: str, start: MessageId | None = None
    ) -> dict[str, Any]:
        """Let the broker read what a subscription of one topic or partition waits for, from ``start`` on, and count it.

        ``entries`` and ``messages`` are exact unless ``aborted``: then there was more than the broker reads at once, up
        to ``lastMessageId``.
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
        """The topic's own value; None if its namespace decides. ``applied`` asks for the value in force."""
        return self._portal.call(lambda: self._area.inactive_topic_policies(topic, applied=applied))

    def set_inactive_topic_policies(self, topic: TopicName | str, policies: InactiveTopicPolicies) -> None:
        return self._portal.call(lambda: self._area.set_inactive_topic_policies(topic, policies))

    def remove_inactive_topic_policies(self, topic: TopicName | str) -> None:
        return self._portal.call(lambda: self._area.remove_inactive_topic_policies(topic))

    def replication_clusters(self, topic: TopicName | str, *, applied: bool = False) -> Names | None:
        """The clusters set for this topic; None if the namespace decides. ``applied`` asks for those in force."""
        return self._portal.call(lambda: self._area.replication_clusters(topic, applied=applied))

    def set_replication_clusters(self, topic: TopicName | str, clusters: Iterable[str]) -> None:
        return self._portal.call(lambda: self._area.set_replication_clusters(topic, clusters))

    def remove_replication_clusters(self, topic: TopicName | str) -> None:
        return self._portal.call(lambda: self._area.remove_replication_clusters(topic))

    def replication_status(self, topic: TopicName | str) -> Records:
        """How far each remote cluster is, and why it is held. Raises NotSupported if the broker is not ours."""
        return self._portal.call(lambda: self._area.replication_status(topic))


class AdminClient(Closes):
    """Administration of one cluster, for programs without an event loop. Use it as a context manager, or call
    :meth:`close`. Parameters and errors are those of ``interpulse.client.AdminClient``."""

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
        """Make a planned call, such as a change of an adjustment."""
        return self._portal.call(lambda: self._admin.send(request))

    def close(self) -> None:
        """Close the connections and the thread; a second time is nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._portal.call(self._admin.close)
        finally:
            self._portal.close()
