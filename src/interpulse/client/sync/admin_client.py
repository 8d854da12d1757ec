"""The admin client for programs without an event loop: the same names as in ``interpulse.client``, without ``await``.

Written by tools/generate_sync_admin.py from the asynchronous one; do not edit.
"""

from __future__ import annotations

from interpulse.client.admin import admin_client
from interpulse.client.admin import brokers as admin_brokers
from interpulse.client.admin import clusters as admin_clusters
from interpulse.client.admin import lookup as admin_lookup
from interpulse.client.admin import namespaces as admin_namespaces
from interpulse.client.admin import permissions as admin_permissions
from interpulse.client.admin import schemas as admin_schemas
from interpulse.client.admin import tenants as admin_tenants
from interpulse.client.admin import topic_policies as admin_topic_policies
from interpulse.client.admin import topics as admin_topics
from interpulse.client.closing import Closes
from interpulse.client.credentials import Credentials
from interpulse.client.portal import Portal
from interpulse.client.sync.blocking import Blocking, blocking
from interpulse.client.tls import TlsOptions
from interpulse.model.operations import AdminRequest


class BrokersAdmin(Blocking[admin_brokers.BrokersAdmin]):
    """Brokers of the cluster and their configuration. All configuration values are text."""

    list = blocking(admin_brokers.BrokersAdmin.list)
    version = blocking(admin_brokers.BrokersAdmin.version)
    time_ms = blocking(admin_brokers.BrokersAdmin.time_ms)
    leader = blocking(admin_brokers.BrokersAdmin.leader)
    owned_namespaces = blocking(admin_brokers.BrokersAdmin.owned_namespaces)
    check_backlog_quotas = blocking(admin_brokers.BrokersAdmin.check_backlog_quotas)
    health = blocking(admin_brokers.BrokersAdmin.health)
    metrics = blocking(admin_brokers.BrokersAdmin.metrics)
    runtime_configuration = blocking(admin_brokers.BrokersAdmin.runtime_configuration)
    metadata_changes = blocking(admin_brokers.BrokersAdmin.metadata_changes)
    dynamic_configuration_names = blocking(admin_brokers.BrokersAdmin.dynamic_configuration_names)
    dynamic_configuration = blocking(admin_brokers.BrokersAdmin.dynamic_configuration)
    set_dynamic_configuration = blocking(admin_brokers.BrokersAdmin.set_dynamic_configuration)
    delete_dynamic_configuration = blocking(admin_brokers.BrokersAdmin.delete_dynamic_configuration)


class ClustersAdmin(Blocking[admin_clusters.ClustersAdmin]):
    """Registered clusters, including the local one.

    With ``previewed`` a method changes nothing and returns the changes that it would make.
    """

    list = blocking(admin_clusters.ClustersAdmin.list)
    get = blocking(admin_clusters.ClustersAdmin.get)
    get_json = blocking(admin_clusters.ClustersAdmin.get_json)
    create = blocking(admin_clusters.ClustersAdmin.create)
    update = blocking(admin_clusters.ClustersAdmin.update)
    delete = blocking(admin_clusters.ClustersAdmin.delete)
    peers = blocking(admin_clusters.ClustersAdmin.peers)
    set_peers = blocking(admin_clusters.ClustersAdmin.set_peers)
    migration = blocking(admin_clusters.ClustersAdmin.migration)
    set_migration = blocking(admin_clusters.ClustersAdmin.set_migration)
    failure_domains = blocking(admin_clusters.ClustersAdmin.failure_domains)
    failure_domain = blocking(admin_clusters.ClustersAdmin.failure_domain)
    set_failure_domain = blocking(admin_clusters.ClustersAdmin.set_failure_domain)
    delete_failure_domain = blocking(admin_clusters.ClustersAdmin.delete_failure_domain)
    isolation_policies = blocking(admin_clusters.ClustersAdmin.isolation_policies)
    isolation_policy = blocking(admin_clusters.ClustersAdmin.isolation_policy)
    set_isolation_policy = blocking(admin_clusters.ClustersAdmin.set_isolation_policy)
    delete_isolation_policy = blocking(admin_clusters.ClustersAdmin.delete_isolation_policy)
    isolation_of_brokers = blocking(admin_clusters.ClustersAdmin.isolation_of_brokers)
    isolation_of_broker = blocking(admin_clusters.ClustersAdmin.isolation_of_broker)


class LookupAdmin(Blocking[admin_lookup.LookupAdmin]):
    """Lookups of topics. They never create a topic."""

    topic = blocking(admin_lookup.LookupAdmin.topic)
    topics = blocking(admin_lookup.LookupAdmin.topics)
    bundle_range = blocking(admin_lookup.LookupAdmin.bundle_range)


class NamespacesAdmin(Blocking[admin_namespaces.NamespacesAdmin]):
    """Namespaces, named as ``tenant/namespace``.

    With ``previewed`` a method changes nothing and returns the changes that it would make.
    """

    list = blocking(admin_namespaces.NamespacesAdmin.list)
    topics = blocking(admin_namespaces.NamespacesAdmin.topics)
    create = blocking(admin_namespaces.NamespacesAdmin.create)
    delete = blocking(admin_namespaces.NamespacesAdmin.delete)
    unload = blocking(admin_namespaces.NamespacesAdmin.unload)
    bundles = blocking(admin_namespaces.NamespacesAdmin.bundles)
    split_bundle = blocking(admin_namespaces.NamespacesAdmin.split_bundle)
    clear_backlog = blocking(admin_namespaces.NamespacesAdmin.clear_backlog)
    unsubscribe = blocking(admin_namespaces.NamespacesAdmin.unsubscribe)
    policies = blocking(admin_namespaces.NamespacesAdmin.policies)
    policies_json = blocking(admin_namespaces.NamespacesAdmin.policies_json)
    properties = blocking(admin_namespaces.NamespacesAdmin.properties)
    update_properties = blocking(admin_namespaces.NamespacesAdmin.update_properties)
    clear_properties = blocking(admin_namespaces.NamespacesAdmin.clear_properties)
    property = blocking(admin_namespaces.NamespacesAdmin.property)
    set_property = blocking(admin_namespaces.NamespacesAdmin.set_property)
    remove_property = blocking(admin_namespaces.NamespacesAdmin.remove_property)
    failover_role = blocking(admin_namespaces.NamespacesAdmin.failover_role)
    set_failover_role = blocking(admin_namespaces.NamespacesAdmin.set_failover_role)
    set_migrated = blocking(admin_namespaces.NamespacesAdmin.set_migrated)
    replication_clusters = blocking(admin_namespaces.NamespacesAdmin.replication_clusters)
    set_replication_clusters = blocking(admin_namespaces.NamespacesAdmin.set_replication_clusters)
    adjust_for_replication = blocking(admin_namespaces.NamespacesAdmin.adjust_for_replication)
    allowed_clusters = blocking(admin_namespaces.NamespacesAdmin.allowed_clusters)
    set_allowed_clusters = blocking(admin_namespaces.NamespacesAdmin.set_allowed_clusters)
    replication_status = blocking(admin_namespaces.NamespacesAdmin.replication_status)
    topics_with_clusters = blocking(admin_namespaces.NamespacesAdmin.topics_with_clusters)
    global_topic_policies = blocking(admin_namespaces.NamespacesAdmin.global_topic_policies)
    replicator_dispatch_rates = blocking(admin_namespaces.NamespacesAdmin.replicator_dispatch_rates)
    report_replication_status = blocking(admin_namespaces.NamespacesAdmin.report_replication_status)
    acknowledgements = blocking(admin_namespaces.NamespacesAdmin.acknowledgements)
    auto_topic_creation = blocking(admin_namespaces.NamespacesAdmin.auto_topic_creation)
    set_auto_topic_creation = blocking(admin_namespaces.NamespacesAdmin.set_auto_topic_creation)
    remove_auto_topic_creation = blocking(admin_namespaces.NamespacesAdmin.remove_auto_topic_creation)
    auto_subscription_creation = blocking(admin_namespaces.NamespacesAdmin.auto_subscription_creation)
    set_auto_subscription_creation = blocking(admin_namespaces.NamespacesAdmin.set_auto_subscription_creation)
    remove_auto_subscription_creation = blocking(admin_namespaces.NamespacesAdmin.remove_auto_subscription_creation)
    inactive_topic_policies = blocking(admin_namespaces.NamespacesAdmin.inactive_topic_policies)
    set_inactive_topic_policies = blocking(admin_namespaces.NamespacesAdmin.set_inactive_topic_policies)
    remove_inactive_topic_policies = blocking(admin_namespaces.NamespacesAdmin.remove_inactive_topic_policies)
    deduplication = blocking(admin_namespaces.NamespacesAdmin.deduplication)
    set_deduplication = blocking(admin_namespaces.NamespacesAdmin.set_deduplication)
    remove_deduplication = blocking(admin_namespaces.NamespacesAdmin.remove_deduplication)
    retention = blocking(admin_namespaces.NamespacesAdmin.retention)
    set_retention = blocking(admin_namespaces.NamespacesAdmin.set_retention)
    remove_retention = blocking(admin_namespaces.NamespacesAdmin.remove_retention)
    message_ttl = blocking(admin_namespaces.NamespacesAdmin.message_ttl)
    set_message_ttl = blocking(admin_namespaces.NamespacesAdmin.set_message_ttl)
    remove_message_ttl = blocking(admin_namespaces.NamespacesAdmin.remove_message_ttl)
    policy = blocking(admin_namespaces.NamespacesAdmin.policy)
    set_policy = blocking(admin_namespaces.NamespacesAdmin.set_policy)
    remove_policy = blocking(admin_namespaces.NamespacesAdmin.remove_policy)
    backlog_quotas = blocking(admin_namespaces.NamespacesAdmin.backlog_quotas)
    set_backlog_quota = blocking(admin_namespaces.NamespacesAdmin.set_backlog_quota)
    remove_backlog_quota = blocking(admin_namespaces.NamespacesAdmin.remove_backlog_quota)
    max_topics = blocking(admin_namespaces.NamespacesAdmin.max_topics)
    set_max_topics = blocking(admin_namespaces.NamespacesAdmin.set_max_topics)
    remove_max_topics = blocking(admin_namespaces.NamespacesAdmin.remove_max_topics)
    auto_update_schema_allowed = blocking(admin_namespaces.NamespacesAdmin.auto_update_schema_allowed)
    set_auto_update_schema_allowed = blocking(admin_namespaces.NamespacesAdmin.set_auto_update_schema_allowed)
    schema_compatibility_strategy = blocking(admin_namespaces.NamespacesAdmin.schema_compatibility_strategy)
    set_schema_compatibility_strategy = blocking(admin_namespaces.NamespacesAdmin.set_schema_compatibility_strategy)
    schema_auto_update_strategy = blocking(admin_namespaces.NamespacesAdmin.schema_auto_update_strategy)
    set_schema_auto_update_strategy = blocking(admin_namespaces.NamespacesAdmin.set_schema_auto_update_strategy)
    schema_validation_enforced = blocking(admin_namespaces.NamespacesAdmin.schema_validation_enforced)
    set_schema_validation_enforced = blocking(admin_namespaces.NamespacesAdmin.set_schema_validation_enforced)


class PermissionsAdmin(Blocking[admin_permissions.PermissionsAdmin]):
    """Permissions. Actions are ``produce``, ``consume``, ``functions``, ``sources``, ``sinks`` and ``packages``."""

    of_namespace = blocking(admin_permissions.PermissionsAdmin.of_namespace)
    grant = blocking(admin_permissions.PermissionsAdmin.grant)
    revoke = blocking(admin_permissions.PermissionsAdmin.revoke)
    of_topic = blocking(admin_permissions.PermissionsAdmin.of_topic)
    grant_on_topic = blocking(admin_permissions.PermissionsAdmin.grant_on_topic)
    revoke_on_topic = blocking(admin_permissions.PermissionsAdmin.revoke_on_topic)
    of_subscriptions = blocking(admin_permissions.PermissionsAdmin.of_subscriptions)
    grant_on_subscription = blocking(admin_permissions.PermissionsAdmin.grant_on_subscription)
    revoke_on_subscription = blocking(admin_permissions.PermissionsAdmin.revoke_on_subscription)
    subscription_auth_mode = blocking(admin_permissions.PermissionsAdmin.subscription_auth_mode)
    set_subscription_auth_mode = blocking(admin_permissions.PermissionsAdmin.set_subscription_auth_mode)


class SchemasAdmin(Blocking[admin_schemas.SchemasAdmin]):
    """Schema history of a topic, shared by its partitions."""

    get = blocking(admin_schemas.SchemasAdmin.get)
    get_json = blocking(admin_schemas.SchemasAdmin.get_json)
    history = blocking(admin_schemas.SchemasAdmin.history)
    upload = blocking(admin_schemas.SchemasAdmin.upload)
    test_compatibility = blocking(admin_schemas.SchemasAdmin.test_compatibility)
    delete = blocking(admin_schemas.SchemasAdmin.delete)


class TenantsAdmin(Blocking[admin_tenants.TenantsAdmin]):
    """Tenants: their administrators and the clusters of their namespaces.

    With ``previewed`` a method changes nothing and returns the changes that it would make.
    """

    list = blocking(admin_tenants.TenantsAdmin.list)
    get = blocking(admin_tenants.TenantsAdmin.get)
    create = blocking(admin_tenants.TenantsAdmin.create)
    update = blocking(admin_tenants.TenantsAdmin.update)
    delete = blocking(admin_tenants.TenantsAdmin.delete)


class TopicPoliciesAdmin(Blocking[admin_topic_policies.TopicPoliciesAdmin]):
    """Policies of a topic and all its partitions. Raise PreconditionFailed for a single partition."""

    get = blocking(admin_topic_policies.TopicPoliciesAdmin.get)
    set = blocking(admin_topic_policies.TopicPoliciesAdmin.set)
    remove = blocking(admin_topic_policies.TopicPoliciesAdmin.remove)
    delete = blocking(admin_topic_policies.TopicPoliciesAdmin.delete)
    backlog_quotas = blocking(admin_topic_policies.TopicPoliciesAdmin.backlog_quotas)
    set_backlog_quota = blocking(admin_topic_policies.TopicPoliciesAdmin.set_backlog_quota)
    remove_backlog_quota = blocking(admin_topic_policies.TopicPoliciesAdmin.remove_backlog_quota)


class TopicsAdmin(Blocking[admin_topics.TopicsAdmin]):
    """Topics, partitioned topics and subscriptions. Topics are given by full or short names."""

    list = blocking(admin_topics.TopicsAdmin.list)
    list_partitioned = blocking(admin_topics.TopicsAdmin.list_partitioned)
    partition_counts = blocking(admin_topics.TopicsAdmin.partition_counts)
    create = blocking(admin_topics.TopicsAdmin.create)
    create_partitioned = blocking(admin_topics.TopicsAdmin.create_partitioned)
    expand = blocking(admin_topics.TopicsAdmin.expand)
    create_missed_partitions = blocking(admin_topics.TopicsAdmin.create_missed_partitions)
    partitioned_metadata = blocking(admin_topics.TopicsAdmin.partitioned_metadata)
    delete = blocking(admin_topics.TopicsAdmin.delete)
    delete_partitioned = blocking(admin_topics.TopicsAdmin.delete_partitioned)
    truncate = blocking(admin_topics.TopicsAdmin.truncate)
    trim = blocking(admin_topics.TopicsAdmin.trim)
    unload = blocking(admin_topics.TopicsAdmin.unload)
    terminate = blocking(admin_topics.TopicsAdmin.terminate)
    terminate_partitioned = blocking(admin_topics.TopicsAdmin.terminate_partitioned)
    properties = blocking(admin_topics.TopicsAdmin.properties)
    update_properties = blocking(admin_topics.TopicsAdmin.update_properties)
    remove_property = blocking(admin_topics.TopicsAdmin.remove_property)
    compact = blocking(admin_topics.TopicsAdmin.compact)
    compaction_status = blocking(admin_topics.TopicsAdmin.compaction_status)
    stats = blocking(admin_topics.TopicsAdmin.stats)
    partitioned_stats = blocking(admin_topics.TopicsAdmin.partitioned_stats)
    internal_stats = blocking(admin_topics.TopicsAdmin.internal_stats)
    internal_info = blocking(admin_topics.TopicsAdmin.internal_info)
    partitioned_internal_stats = blocking(admin_topics.TopicsAdmin.partitioned_internal_stats)
    last_message_id = blocking(admin_topics.TopicsAdmin.last_message_id)
    last_message_id_json = blocking(admin_topics.TopicsAdmin.last_message_id_json)
    peek = blocking(admin_topics.TopicsAdmin.peek)
    examine = blocking(admin_topics.TopicsAdmin.examine)
    message_by_id = blocking(admin_topics.TopicsAdmin.message_by_id)
    message_id_at = blocking(admin_topics.TopicsAdmin.message_id_at)
    subscriptions = blocking(admin_topics.TopicsAdmin.subscriptions)
    create_subscription = blocking(admin_topics.TopicsAdmin.create_subscription)
    delete_subscription = blocking(admin_topics.TopicsAdmin.delete_subscription)
    reset_cursor_to_time = blocking(admin_topics.TopicsAdmin.reset_cursor_to_time)
    reset_cursor_to_message = blocking(admin_topics.TopicsAdmin.reset_cursor_to_message)
    skip = blocking(admin_topics.TopicsAdmin.skip)
    skip_all = blocking(admin_topics.TopicsAdmin.skip_all)
    expire = blocking(admin_topics.TopicsAdmin.expire)
    expire_upto = blocking(admin_topics.TopicsAdmin.expire_upto)
    expire_all = blocking(admin_topics.TopicsAdmin.expire_all)
    backlog_size = blocking(admin_topics.TopicsAdmin.backlog_size)
    analyze_backlog = blocking(admin_topics.TopicsAdmin.analyze_backlog)
    subscription_properties = blocking(admin_topics.TopicsAdmin.subscription_properties)
    set_subscription_properties = blocking(admin_topics.TopicsAdmin.set_subscription_properties)
    subscription_replicated = blocking(admin_topics.TopicsAdmin.subscription_replicated)
    set_subscription_replicated = blocking(admin_topics.TopicsAdmin.set_subscription_replicated)
    acknowledge = blocking(admin_topics.TopicsAdmin.acknowledge)
    inactive_topic_policies = blocking(admin_topics.TopicsAdmin.inactive_topic_policies)
    set_inactive_topic_policies = blocking(admin_topics.TopicsAdmin.set_inactive_topic_policies)
    remove_inactive_topic_policies = blocking(admin_topics.TopicsAdmin.remove_inactive_topic_policies)
    replication_clusters = blocking(admin_topics.TopicsAdmin.replication_clusters)
    set_replication_clusters = blocking(admin_topics.TopicsAdmin.set_replication_clusters)
    remove_replication_clusters = blocking(admin_topics.TopicsAdmin.remove_replication_clusters)
    replication_status = blocking(admin_topics.TopicsAdmin.replication_status)


class AdminClient(Blocking[admin_client.AdminClient], Closes):
    """Administration of one cluster, for programs without an event loop.

    Use it as a context manager, or call :meth:`close`. Parameters and errors are those of
    ``interpulse.client.AdminClient``.
    """

    def __init__(
        self,
        web_url: str,
        *,
        credentials: Credentials | None = None,
        timeout_ms: int = 30_000,
        tls: TlsOptions | None = None,
    ) -> None:
        admin = admin_client.AdminClient(web_url, credentials=credentials, timeout_ms=timeout_ms, tls=tls)
        super().__init__(Portal(), admin)
        self.web_url = admin.web_url
        self.clusters = ClustersAdmin(self._portal, admin.clusters)
        self.tenants = TenantsAdmin(self._portal, admin.tenants)
        self.namespaces = NamespacesAdmin(self._portal, admin.namespaces)
        self.topics = TopicsAdmin(self._portal, admin.topics)
        self.topic_policies = TopicPoliciesAdmin(self._portal, admin.topic_policies)
        self.permissions = PermissionsAdmin(self._portal, admin.permissions)
        self.schemas = SchemasAdmin(self._portal, admin.schemas)
        self.brokers = BrokersAdmin(self._portal, admin.brokers)
        self.lookup = LookupAdmin(self._portal, admin.lookup)
        self._closed = False

    def send(self, request: AdminRequest) -> None:
        """Send a planned request, such as one change of a replication plan."""
        self._portal.call(lambda: self._inner.send(request))

    def close(self) -> None:
        """Close the connections and the thread. Calling it again has no effect."""
        if self._closed:
            return
        self._closed = True
        try:
            self._portal.call(self._inner.close)
        finally:
            self._portal.close()
