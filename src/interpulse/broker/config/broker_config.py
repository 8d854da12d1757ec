"""The broker's settings.

A setting is a field of `BrokerConfig`; its key is the camelCase form of the field name, Pulsar's own key wherever
Pulsar has one. They are read once (`config_sources`), checked once, and passed down as values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.authentication.provider_settings import ProviderSettings
from interpulse.model.broker_entry_metadata import INTERCEPTOR_CLASSES
from interpulse.model.numbers import LONG_MAX
from interpulse.model.policies.policy_records import (
    DELETE_WHEN_CAUGHT_UP,
    DELETE_WHEN_NO_SUBSCRIPTIONS,
    NON_PARTITIONED,
    PARTITIONED,
    PRODUCER_REQUEST_HOLD,
    QUOTA_POLICIES,
    AutoTopicCreation,
    InactiveTopicPolicies,
    Persistence,
    RetentionPolicies,
)
from interpulse.rules.policy_checks import SCHEMA_STRATEGIES, SUBSCRIPTION_TYPES
from interpulse.rules.tls import TLS_VERSIONS, plan_offer
from interpulse.serving.settings import ConfigError, Setting, parsed, setting, settings_of, shown, words
from interpulse.serving.tls import ServerTls

_PARTITIONS_MAX: Final = 10_000
_PORT_MAX: Final = 65_535
HTTP_HEADER_BYTES_READ: Final = 256 * 1024
"""Limit for reading headers, in bytes. It is above the accepted length, so that a longer path gets the usual answer."""
_AUTHORIZATION_PROVIDER: Final = "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider"

RECONNECT: Final = "reconnect"
SHUTDOWN: Final = "shutdown"
"""Policies for a broker whose session is lost."""


def dynamic(default: Any, text: str, **options: Any) -> Any:
    """Declare a setting that may change while the broker runs; see `setting`."""
    return setting(default, text, dynamic=True, **options)


def of_cluster(default: Any, text: str, **options: Any) -> Any:
    """Declare a setting that has an effect only in a broker of a cluster; see `setting`."""
    return setting(default, text, cluster=True, **options)


@dataclass(frozen=True, slots=True)
class BrokerConfig(ProviderSettings):
    """All settings of the broker."""

    # --- identity and addresses
    cluster_name: str = setting("standalone", "Name of this cluster.")
    data_dir: str = setting("./data", "Directory that holds everything durable; one process at a time may use it.")
    advertised_address: str = setting("", "Host name that clients connect to; empty = the bind address.")
    advertised_listeners: str = setting(
        "",
        "Addresses for clients of several networks, in place of advertisedAddress: name:scheme://host:port with commas "
        "between them. Clients choose a listener by its name.",
    )
    internal_listener_name: str = setting(
        "", "Listener of the other brokers, and of clients that name none; empty = the first one."
    )
    broker_service_port: int | None = setting(
        6650, "Port of the binary protocol; 0 = a free one, empty = none.", most=_PORT_MAX, can_be_off=True
    )
    broker_service_port_tls: int | None = setting(
        None, "Port of the binary protocol inside TLS; 0 = a free one, empty = none.", most=_PORT_MAX
    )
    web_service_port: int | None = setting(
        8080, "Port of REST and metrics; 0 = a free one, empty = none.", most=_PORT_MAX, can_be_off=True
    )
    web_service_port_tls: int | None = setting(
        None, "Port of REST and metrics inside TLS; 0 = a free one, empty = none.", most=_PORT_MAX
    )
    web_service_allowed_hosts: str = setting(
        "",
        "Further names by which REST may be called while authentication is off, with commas between them; "
        ".example.com = everything below it, * = any.",
    )

    console_enabled: str = setting(
        "auto",
        "The console at /console; auto = where the broker listens on loopback only, or asks clients for credentials.",
        choices=("auto", "true", "false"),
    )
    console_messages_enabled: bool = dynamic(
        True, "The console shows messages to roles that may consume them; false = to no role."
    )
    console_read_only: bool = setting(False, "The console shows, and changes nothing.")

    # --- TLS of the services
    tls_protocols: str = setting(
        ",".join(TLS_VERSIONS), "Versions of TLS on the binary port.", choices=TLS_VERSIONS, several=True
    )
    tls_ciphers: str = setting(
        "",
        "Ciphers of TLS on the binary port, with commas between them, by their names in Java or OpenSSL; empty = those "
        "with forward secrecy.",
    )
    web_service_tls_protocols: str = setting(
        "", "Versions of TLS on the web port; empty = tlsProtocols.", choices=TLS_VERSIONS, several=True
    )
    web_service_tls_ciphers: str = setting("", "Ciphers of TLS on the web port; empty = tlsCiphers.")

    # --- stores of a cluster
    metadata_store_url: str = of_cluster(
        "", "ZooKeeper of the cluster: zk:host1:2181,host2:2181/path; without it a broker is alone."
    )
    configuration_metadata_store_url: str = of_cluster(
        "", "ZooKeeper of several clusters; only the one of metadataStoreUrl is supported. Empty = that one."
    )
    bookkeeper_metadata_service_uri: str = of_cluster(
        "", "Where the bookies are registered; only the ZooKeeper of metadataStoreUrl is supported. Empty = that one."
    )
    metadata_store_session_timeout_millis: int = of_cluster(
        30_000, "Time that the cluster waits for a silent broker, in milliseconds.", least=1000
    )
    zoo_keeper_session_timeout_millis: int | None = of_cluster(
        None, "The older name of metadataStoreSessionTimeoutMillis, which it overrides.", least=-1
    )
    zookeeper_session_expired_policy: str = of_cluster(
        RECONNECT,
        "Reaction to a lost ZooKeeper session: serve again in a new one, or stop.",
        choices=(RECONNECT, SHUTDOWN),
    )
    metadata_store_operation_timeout_seconds: int = of_cluster(
        30,
        "How long a request waits for ZooKeeper, in seconds. A question waits until the session may be over at most.",
        least=1,
    )
    managed_ledger_default_ensemble_size: int = of_cluster(
        2, "Bookies that the entries of a ledger are spread over.", least=1
    )
    managed_ledger_default_write_quorum: int = of_cluster(2, "Bookies that keep each entry.", least=1)
    managed_ledger_default_ack_quorum: int = of_cluster(
        2, "Bookies that have to have an entry before its producer gets a receipt.", least=1
    )
    managed_ledger_digest_type: str = of_cluster(
        "CRC32C", "Digest that guards entries against damage.", choices=("CRC32C", "CRC32")
    )

    # --- creation of topics and subscriptions
    allow_auto_topic_creation: bool = dynamic(True, "Asking for a missing topic may create it.")
    allow_auto_topic_creation_type: str = dynamic(
        NON_PARTITIONED, "Type of topics that are created by asking for them.", choices=(NON_PARTITIONED, PARTITIONED)
    )
    default_num_partitions: int = dynamic(
        1, "Partitions of topics that are created partitioned by asking for them.", least=1
    )
    max_num_partitions_per_partitioned_topic: int = dynamic(0, "Most partitions a topic may have; 0 = 10,000.")
    max_topics_per_namespace: int = dynamic(0, "Most topics a namespace may have; 0 = no limit.")
    allow_auto_subscription_creation: bool = dynamic(True, "SUBSCRIBE may create its subscription.")
    subscription_expiration_time_minutes: int = setting(
        0, "Minutes without a consumer after which a durable subscription is deleted; 0 = never."
    )
    subscription_expiry_check_interval_in_minutes: int = setting(
        5, "Minutes between two checks for expired subscriptions.", least=1
    )
    force_delete_namespace_allowed: bool = dynamic(False, "Namespaces may be deleted together with their topics.")
    force_delete_tenant_allowed: bool = dynamic(False, "Tenants may be deleted together with their namespaces.")
    system_topic_enabled: bool = setting(True, "System topics may be created whatever the policies say.")
    enable_persistent_topics: bool = setting(True, "Persistent topics can be opened.")
    enable_non_persistent_topics: bool = setting(True, "Non-persistent topics can be opened.")

    # --- inactive topics
    broker_delete_inactive_topics_enabled: bool = dynamic(
        True, "The broker deletes topics that are inactive for long enough."
    )
    broker_delete_inactive_topics_frequency_seconds: int = dynamic(
        60, "Seconds between two checks for inactive topics.", least=1
    )
    broker_delete_inactive_topics_mode: str = dynamic(
        DELETE_WHEN_NO_SUBSCRIPTIONS,
        "Condition for keeping a topic without clients: any subscription, or only one with a backlog.",
        choices=(DELETE_WHEN_NO_SUBSCRIPTIONS, DELETE_WHEN_CAUGHT_UP),
    )
    broker_delete_inactive_topics_max_inactive_duration_seconds: int | None = dynamic(
        None, "Seconds until an inactive topic is deleted; empty = brokerDeleteInactiveTopicsFrequencySeconds."
    )
    broker_delete_inactive_partitioned_topic_metadata_enabled: bool = dynamic(
        False, "Delete a partitioned topic with its last partition."
    )

    # --- schemas
    is_allow_auto_update_schema_enabled: bool = dynamic(True, "Clients may register new schemas.")
    schema_compatibility_strategy: str = setting(
        "FULL", "Compatibility that a new schema needs with earlier ones.", choices=SCHEMA_STRATEGIES
    )
    system_topic_schema_compatibility_strategy: str = setting(
        "ALWAYS_COMPATIBLE",
        "Compatibility that a new schema of a system topic needs with earlier ones.",
        choices=SCHEMA_STRATEGIES,
    )
    is_schema_validation_enforced: bool = setting(False, "Producers without schema are refused on typed topics.")

    # --- health
    status_file_path: str = setting(
        "", "/status.html answers OK as long as this file is there and the broker is ready; empty = never."
    )

    # --- metrics
    expose_topic_level_metrics_in_prometheus: bool = setting(
        True, "Metrics show topics and subscriptions one by one, as long as there are not too many; false: namespaces."
    )
    expose_consumer_level_metrics_in_prometheus: bool = setting(
        False, "Metrics show consumers one by one too, where they show subscriptions."
    )
    expose_subscription_backlog_age_in_prometheus: bool = setting(
        False,
        "Metrics and statistics show how old the oldest unacknowledged message of each durable subscription is; it is "
        "looked up together with the quotas of backlogs.",
    )

    # --- policies of topics, where neither the topic nor its namespace sets them
    max_producers_per_topic: int = setting(0, "Most producers of a topic; 0 = no limit.")
    max_consumers_per_topic: int = setting(0, "Most consumers of a topic; 0 = no limit.")
    max_consumers_per_subscription: int = setting(0, "Most consumers of a subscription; 0 = no limit.")
    max_subscriptions_per_topic: int = setting(0, "Most subscriptions of a topic; 0 = no limit.")
    max_unacked_messages_per_consumer: int = setting(
        50_000, "Messages a consumer of a shared subscription may leave unacknowledged; 0 = no limit."
    )
    max_unacked_messages_per_subscription: int = setting(
        200_000, "Messages a shared subscription may leave unacknowledged; 0 = no limit."
    )
    subscription_types_enabled: str = dynamic(
        ",".join(SUBSCRIPTION_TYPES),
        "Types of subscriptions that may be used.",
        choices=SUBSCRIPTION_TYPES,
        several=True,
    )
    encryption_require_on_producer: bool = setting(False, "Producers that do not encrypt are refused.")
    max_publish_rate_per_topic_in_messages: int = dynamic(0, "Messages a topic takes per second; 0 = no limit.")
    max_publish_rate_per_topic_in_bytes: int = dynamic(
        0, "Bytes a topic takes per second; 0 = no limit.", most=LONG_MAX
    )
    dispatch_throttling_rate_per_topic_in_msg: int = dynamic(0, "Messages a topic hands out per second; 0 = no limit.")
    dispatch_throttling_rate_per_topic_in_byte: int = dynamic(
        0, "Bytes a topic hands out per second; 0 = no limit.", most=LONG_MAX
    )
    dispatch_throttling_rate_per_subscription_in_msg: int = dynamic(
        0, "Messages a subscription hands out per second; 0 = no limit."
    )
    dispatch_throttling_rate_per_subscription_in_byte: int = dynamic(
        0, "Bytes a subscription hands out per second; 0 = no limit.", most=LONG_MAX
    )
    dispatch_throttling_rate_relative_to_publish_rate: bool = dynamic(
        False, "The dispatch rates of topics and subscriptions are added to the publish rate."
    )
    dispatch_throttling_rate_per_replicator_in_msg: int = dynamic(
        0, "Messages of a topic copied to another cluster per second; 0 = no limit."
    )
    dispatch_throttling_rate_per_replicator_in_byte: int = dynamic(
        0, "Bytes of a topic copied to another cluster per second; 0 = no limit.", most=LONG_MAX
    )
    subscribe_throttling_rate_per_consumer: int = dynamic(
        0, "Subscribe requests of one consumer per period; 0 = no limit."
    )
    subscribe_rate_period_per_consumer_in_second: int = dynamic(
        30, "Period of subscribeThrottlingRatePerConsumer, in seconds.", least=1
    )
    backlog_quota_default_limit_bytes: int = setting(
        -1, "Largest backlog of a topic, in bytes; -1 = no limit.", least=-1, most=LONG_MAX
    )
    backlog_quota_default_limit_second: int = setting(
        -1, "Highest age of the oldest unacknowledged message, in seconds; -1 = no limit.", least=-1
    )
    backlog_quota_default_retention_policy: str = setting(
        PRODUCER_REQUEST_HOLD, "Reaction to a backlog above its quota.", choices=QUOTA_POLICIES
    )
    backlog_quota_check_enabled: bool = setting(True, "The broker compares backlogs with their quotas periodically.")
    backlog_quota_check_interval_in_seconds: int = setting(60, "Seconds between two checks of backlog quotas.", least=1)
    delayed_delivery_enabled: bool = setting(True, "Producers may delay the delivery of messages.")
    delayed_delivery_tick_time_millis: int = setting(
        1000, "Precision of the delivery time of delayed messages, in milliseconds.", least=1
    )
    delayed_delivery_max_delay_in_millis: int = setting(
        0, "Longest delay of a message, in milliseconds; 0 = no limit.", most=LONG_MAX
    )
    broker_service_compaction_monitor_interval_in_seconds: int = setting(
        60, "Seconds between two checks for topics to compact.", least=1
    )
    topic_compaction_retain_null_key: bool = setting(False, "Compaction keeps messages that have no key.")
    broker_service_compaction_threshold_in_bytes: int = setting(
        0, "New bytes after which the broker compacts a topic; 0 = never.", most=LONG_MAX
    )

    # --- authentication and authorization
    authentication_enabled: bool = setting(False, "Clients have to authenticate.")
    open_id_fallback_discovery_mode: str = setting(
        "DISABLED", "Discovery of issuers by Kubernetes, which is not offered.", choices=("DISABLED",)
    )
    authenticate_metrics_endpoint: bool = setting(False, "The metrics endpoint requires authentication.")
    authorization_enabled: bool = setting(False, "The broker checks the permissions of clients.")
    authorization_provider: str = setting(
        _AUTHORIZATION_PROVIDER, "The authorization provider; there is no other.", choices=(_AUTHORIZATION_PROVIDER,)
    )
    super_user_roles: str = dynamic("", "Roles that may do everything, with commas between them.")
    proxy_roles: str = setting("", "Roles of proxies; a proxy must name the role of its client.")
    authenticate_original_auth_data: bool = setting(False, "Proxies must forward the credentials of their clients.")
    replicator_roles: str = setting("", "Roles of replicators besides the super users, while authorization is on.")
    broker_client_authentication_plugin: str = setting(
        "",
        "How the broker's replication job, and the broker at others of its cluster, authenticate: the Java name of "
        "AuthenticationToken, AuthenticationTls, AuthenticationBasic or AuthenticationOAuth2.",
    )
    broker_client_authentication_parameters: str = setting(
        "",
        "The credentials for it, for example file:///path/to/token; in a cluster those of a super user.",
        secret=True,
    )
    broker_client_tls_enabled: bool = setting(
        False,
        "The replication job, and this broker when it calls others of its cluster, go inside TLS; without it only "
        "where there is no other port.",
    )
    broker_client_trust_certs_file_path: str = setting(
        "",
        "Certificates that those of brokers are checked against then (PEM); empty = tlsTrustCertsFilePath, or those of "
        "the system.",
    )
    broker_client_certificate_file_path: str = setting(
        "", "Certificate that the replication job and this broker show then (PEM)."
    )
    broker_client_key_file_path: str = setting("", "Private key of brokerClientCertificateFilePath (PEM).")

    audit_log_file: str = setting(
        "", "File for who asked for which change, one JSON object per line; empty = in the log, as interpulse.audit."
    )

    # --- limits of what operators ask
    subscription_backlog_scan_max_entries: int = setting(
        10_000, "Most entries read to analyze a backlog.", least=1, most=LONG_MAX
    )
    subscription_backlog_scan_max_time_ms: int = setting(
        120_000, "Longest time spent to analyze a backlog, in milliseconds.", least=1, most=LONG_MAX
    )

    # --- limits of connections
    keep_alive_interval_seconds: int = setting(30, "Silent connections are pinged after this many seconds.", least=1)
    connection_liveness_check_timeout_millis: int = setting(
        5000, "Time that a silent client may hold a producer name, in milliseconds."
    )
    max_concurrent_lookup_request: int = dynamic(50_000, "Concurrent lookups and metadata queries.", least=1)
    supports_batch_lookup: bool = dynamic(
        True, "Clients may ask for the brokers of many topics in one request (PIP-35)."
    )
    max_topics_per_batch_lookup: int = dynamic(
        1000, "Most names in one batch lookup; partitions do not count.", least=1, most=10_000
    )
    supports_replication_preview: bool = setting(
        True, "Enabling replication of a namespace can be previewed, and remote clusters adjusted to it (PIP-433)."
    )
    enable_broker_side_subscription_pattern_evaluation: bool = setting(
        True, "The broker matches patterns of topics; false: clients get all topics of the namespace."
    )
    subscription_pattern_max_length: int = setting(
        50, "Longest pattern of topics that the broker matches, in characters.", least=1
    )
    enable_broker_topic_list_watcher: bool = setting(
        True, "The broker reports new and deleted topics to clients with a matching pattern, which need not ask."
    )
    broker_max_connections: int = setting(
        0,
        "Most clients of the binary ports; one more gets an error and is disconnected; 0 = no limit but that of open "
        "files, of which both services take three quarters.",
    )
    broker_max_connections_per_ip: int = setting(0, "Most clients of the binary ports from one address; 0 = no limit.")
    max_concurrent_topic_load_request: int = dynamic(5000, "Concurrent loads of topics; others wait.", least=1)
    max_message_size: int = setting(5 * 1024 * 1024, "Largest message, in bytes.", least=1024)
    max_pending_publish_requests_per_connection: int = setting(
        1000, "Most unanswered entries of a connection; at this number the broker stops reading from it.", least=1
    )
    pulsar_channel_write_buffer_high_water_mark: int = setting(
        64 * 1024, "Bytes of waiting output per connection above which a client gets no more entries.", least=1
    )
    pulsar_channel_write_buffer_low_water_mark: int = setting(
        32 * 1024, "Bytes of waiting output at which a client gets entries again."
    )

    max_message_publish_buffer_size_in_mb: int = setting(
        256,
        "Memory for unanswered entries of all connections, in MiB; above it the broker stops reading from clients that "
        "publish, until half is answered. -1 = no limit.",
        least=-1,
    )

    # --- limits of the web service
    max_http_server_connections: int = setting(
        2048, "Most clients of the web ports, one more is disconnected; 0 = no limit but the one of open files."
    )
    max_concurrent_http_requests: int = setting(
        1024,
        "Concurrent calls; another one waits for httpServerIdleTimeout, then it is refused with "
        "status 503. 0 = no limit.",
    )
    http_server_idle_timeout: int = setting(
        30_000,
        "How long a client of the web ports may take until a whole request has come, and until it has read the answer, "
        "in milliseconds.",
        least=1,
    )
    http_max_request_header_size: int = setting(
        8192,
        "Limit for the header fields of a call, and for its path and query (two less), in bytes.",
        least=1024,
        most=HTTP_HEADER_BYTES_READ,
    )
    http_max_request_size: int = setting(-1, "Largest body of a call, in bytes; -1 = 1 MiB.", least=-1)
    http_requests_limit_enabled: bool = setting(False, "Calls of the web service are limited in number.")
    http_requests_max_per_second: float = setting(
        100.0, "Most calls per second then; one more is refused with status 429.", least=1
    )

    # --- storage of messages
    broker_entry_metadata_interceptors: str = setting(
        "",
        "Broker entry metadata of persistent topics, the index or the time of arrival: Java class names.",
        choices=INTERCEPTOR_CLASSES,
        several=True,
    )
    exposing_broker_entry_metadata_to_client_enabled: bool = setting(
        False, "Clients that support it receive the broker entry metadata."
    )
    broker_deduplication_enabled: bool = setting(False, "The broker drops repeated sequence ids of a producer.")
    broker_deduplication_entries_interval: int = setting(
        1000, "After how many entries the state of de-duplication is stored.", least=1
    )
    broker_deduplication_snapshot_interval_seconds: int = setting(
        120, "After which time the state of de-duplication is stored, in seconds; 0 = only after entries."
    )
    default_retention_time_in_minutes: int = setting(
        0, "Minutes to retain acknowledged messages; -1 = without limit.", least=-1
    )
    default_retention_size_in_mb: int = setting(
        0, "MiB of acknowledged messages to retain per topic; -1 = without limit.", least=-1
    )
    ttl_duration_default_in_seconds: int = setting(0, "When unacknowledged messages expire, in seconds; 0 = never.")
    retention_check_interval_in_seconds: int = setting(
        120, "Seconds between two removals of expired messages and unneeded ledgers.", least=1
    )
    managed_ledger_max_entries_per_ledger: int = setting(50_000, "Entries in a ledger until a new one begins.", least=1)
    managed_ledger_max_size_per_ledger_mbytes: int = setting(
        2048, "Size of a ledger until a new one begins, in MiB.", least=1
    )
    managed_ledger_min_ledger_rollover_time_minutes: int = setting(
        10, "A full ledger is kept at least this long, in minutes."
    )
    managed_ledger_max_ledger_rollover_time_minutes: int = setting(
        240, "A ledger is kept at most this long, in minutes.", least=1
    )
    disk_reserve_in_mb: int = setting(
        64,
        "Room on the file system of the data directory that messages leave to metadata, in MiB, at most a tenth of the "
        "file system: with less, producers are refused, and what makes room still works; 0 = none.",
    )
    managed_ledger_cache_size_mb: int = setting(
        64,
        "Memory for the newest entries of all topics, and as much for what was read from disk and waits for consumers, "
        "in MiB.",
        least=1,
    )

    # --- replication
    replicator_prefix: str = setting("pulsar.repl", "Prefix of the producer names of replicators.")
    create_topic_to_remote_cluster_for_replication: bool = setting(
        True, "Replication creates topics that the remote cluster lacks."
    )
    replication_policy_check_duration_seconds: int = setting(
        600, "Seconds between two checks that replicated topics exist on remote clusters.", least=1
    )
    auto_topic_creation_lookup_timeout_ms: int = setting(
        5000, "Time that remote clusters may take to answer for a topic created here, in milliseconds.", least=1
    )
    enable_replicated_subscriptions: bool = setting(
        True,
        "Subscriptions may be marked as replicated, and updates of them from other clusters apply. Interpulse takes no "
        "snapshots, so replicatedSubscriptionsSnapshotFrequencyMillis, replicatedSubscriptionsSnapshotTimeoutSeconds "
        "and replicatedSubscriptionsSnapshotMaxCachedPerSubscription have no effect.",
    )
    standby_consumers: str = dynamic(
        "allow",
        "Consumers of namespaces whose failover role is standby: served, or refused until the role is active.",
        choices=("allow", "refuse"),
    )
    failover_peer: str = setting(
        "",
        "Name of the cluster that serves namespaces with a failover role when this one does not; it must be registered "
        "with clusters create. Namespaces for which it has a higher epoch become standby here.",
    )
    failover_peer_wait: int = setting(
        10,
        "Seconds for which namespaces whose role was set before the broker started stay fenced while failoverPeer does "
        "not answer.",
        least=1,
    )
    failover_without_peer: str = setting(
        "serve",
        "Namespaces that failoverPeer did not confirm within failoverPeerWait: served, or fenced until it answers.",
        choices=("serve", "hold"),
    )
    replication_job: str = setting(
        "embedded",
        "Who runs the replication job: the broker as a child process, or an operator.",
        choices=("embedded", "external"),
    )
    replication_job_spark_master: str = setting("local[16]", "Spark master of the replication job.")
    replication_job_driver_memory: str = setting("1g", "Memory of the Spark driver of the replication job.")

    @property
    def session_timeout_ms(self) -> int:
        """ZooKeeper session timeout of this broker."""
        older = self.zoo_keeper_session_timeout_millis
        return self.metadata_store_session_timeout_millis if older is None or older < 0 else older

    @property
    def binary_tls(self) -> ServerTls:
        """TLS of ``brokerServicePortTls``. Raises ValueError for ciphers that cannot be used."""
        return self._server_tls(self.tls_protocols, self.tls_ciphers)

    @property
    def web_tls(self) -> ServerTls:
        """TLS of ``webServicePortTls``. Raises ValueError for ciphers that cannot be used."""
        protocols, ciphers = self.web_service_tls_protocols, self.web_service_tls_ciphers
        return self._server_tls(protocols or self.tls_protocols, ciphers or self.tls_ciphers)

    def _server_tls(self, protocols: str, ciphers: str) -> ServerTls:
        return ServerTls(
            self.tls_certificate_file_path,
            self.tls_key_file_path,
            self.tls_trust_certs_file_path,
            self.tls_require_trusted_client_cert_on_connect,
            plan_offer(words(protocols), words(ciphers)),
        )

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        """Default policy of topic creation, for namespaces without their own."""
        return AutoTopicCreation(
            self.allow_auto_topic_creation, self.allow_auto_topic_creation_type, self.default_num_partitions
        )

    @property
    def alone(self) -> bool:
        """True for a standalone broker, without ZooKeeper and bookies."""
        return not self.metadata_store_url

    @property
    def persistence(self) -> Persistence:
        """Default persistence, for namespaces without their own."""
        if self.alone:
            return Persistence(1, 1, 1)
        return Persistence(
            self.managed_ledger_default_ensemble_size,
            self.managed_ledger_default_write_quorum,
            self.managed_ledger_default_ack_quorum,
        )

    @property
    def partitions_max(self) -> int:
        """Upper limit for the partitions of one topic, which protects the broker from a mistyped count."""
        return self.max_num_partitions_per_partitioned_topic or _PARTITIONS_MAX

    @property
    def inactive_topics(self) -> InactiveTopicPolicies:
        """Default policies of inactive topics, for namespaces without their own."""
        seconds = self.broker_delete_inactive_topics_max_inactive_duration_seconds
        return InactiveTopicPolicies(
            self.broker_delete_inactive_topics_mode,
            self.broker_delete_inactive_topics_frequency_seconds if seconds is None else seconds,
            self.broker_delete_inactive_topics_enabled,
        )

    @property
    def retention(self) -> RetentionPolicies:
        """Default retention, for namespaces without their own."""
        return RetentionPolicies(self.default_retention_time_in_minutes, self.default_retention_size_in_mb)

    def as_text(self) -> dict[str, str]:
        """Return all settings by key, with values as in ``broker.conf``. Secrets that are set are hidden."""
        return shown(self, _SETTINGS)

    def changed(self, values: Mapping[str, str]) -> BrokerConfig:
        """Return a copy with other values of some keys, as text. Raise ConfigError with all problems."""
        problems: list[str] = []
        changed = dict(parsed(_SETTINGS, values.items(), "", problems))
        if problems:
            raise ConfigError(*problems)
        return replace(self, **changed)


def settings_by_key() -> dict[str, Setting]:
    """Return every setting by its key."""
    return dict(_SETTINGS)


def dynamic_keys() -> list[str]:
    """Return the keys that may change while the broker runs, sorted."""
    return sorted(key for key, declared in _SETTINGS.items() if declared.dynamic)


_SETTINGS: Final = settings_of(BrokerConfig)
