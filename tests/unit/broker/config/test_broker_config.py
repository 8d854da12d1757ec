"""Settings from all sources, and what is said about those that cannot be used."""

from __future__ import annotations

import pytest

from interpulse.broker.config.broker_config import BrokerConfig, dynamic_keys, settings_by_key
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.config.pulsar_keys import PULSAR_KEYS
from interpulse.serving.settings import ConfigError

OURS = {
    "autoTopicCreationLookupTimeoutMs",
    "auditLogFile",
    "consoleEnabled",
    "consoleMessagesEnabled",
    "consoleReadOnly",
    "dataDir",
    "diskReserveInMB",
    "failoverPeer",
    "failoverPeerWait",
    "failoverWithoutPeer",
    "maxTopicsPerBatchLookup",
    "replicationJob",
    "replicationJobDriverMemory",
    "replicationJobSparkMaster",
    "replicatorRoles",
    "standbyConsumers",
    "supportsBatchLookup",
    "supportsReplicationPreview",
    "webServiceAllowedHosts",
}


PROPOSED = {
    "tlsCertIdentitySource",
    "tlsAuthPrincipalMappingRules",
    "tokenRequireKid",
    "tokenValidationKeysJwks",
    "tokenValidationKeysRefreshSeconds",
}
"""Keys of PIP-485 and PIP-490, which no release of Pulsar has yet."""


_OF_PULSAR = """
advertisedAddress advertisedListeners allowAutoSubscriptionCreation allowAutoTopicCreation allowAutoTopicCreationType
anonymousUserRole authenticateMetricsEndpoint authenticateOriginalAuthData authenticationEnabled authenticationProviders
authenticationRefreshCheckSeconds authorizationEnabled authorizationProvider backlogQuotaCheckEnabled
backlogQuotaCheckIntervalInSeconds backlogQuotaDefaultLimitBytes backlogQuotaDefaultLimitSecond
backlogQuotaDefaultRetentionPolicy basicAuthConf bindAddress bookkeeperMetadataServiceUri
brokerClientAuthenticationParameters brokerClientAuthenticationPlugin brokerClientCertificateFilePath
brokerClientKeyFilePath brokerClientTlsEnabled brokerClientTrustCertsFilePath brokerDeduplicationEnabled
brokerDeduplicationEntriesInterval brokerDeduplicationSnapshotIntervalSeconds
brokerDeleteInactivePartitionedTopicMetadataEnabled brokerDeleteInactiveTopicsEnabled
brokerDeleteInactiveTopicsFrequencySeconds brokerDeleteInactiveTopicsMaxInactiveDurationSeconds
brokerDeleteInactiveTopicsMode brokerEntryMetadataInterceptors brokerMaxConnections brokerMaxConnectionsPerIp
brokerServiceCompactionMonitorIntervalInSeconds brokerServiceCompactionThresholdInBytes brokerServicePort
brokerServicePortTls clusterName configurationMetadataStoreUrl connectionLivenessCheckTimeoutMillis
createTopicToRemoteClusterForReplication defaultNumPartitions defaultRetentionSizeInMB defaultRetentionTimeInMinutes
delayedDeliveryEnabled delayedDeliveryMaxDelayInMillis delayedDeliveryTickTimeMillis
dispatchThrottlingRatePerReplicatorInByte dispatchThrottlingRatePerReplicatorInMsg
dispatchThrottlingRatePerSubscriptionInByte dispatchThrottlingRatePerSubscriptionInMsg
dispatchThrottlingRatePerTopicInByte dispatchThrottlingRatePerTopicInMsg dispatchThrottlingRateRelativeToPublishRate
enableBrokerSideSubscriptionPatternEvaluation enableBrokerTopicListWatcher enableNonPersistentTopics
enablePersistentTopics enableReplicatedSubscriptions encryptionRequireOnProducer
exposeConsumerLevelMetricsInPrometheus exposeSubscriptionBacklogAgeInPrometheus exposeTopicLevelMetricsInPrometheus
exposingBrokerEntryMetadataToClientEnabled
forceDeleteNamespaceAllowed forceDeleteTenantAllowed httpMaxRequestHeaderSize httpMaxRequestSize
httpRequestsLimitEnabled httpRequestsMaxPerSecond httpServerIdleTimeout internalListenerName
isAllowAutoUpdateSchemaEnabled isSchemaValidationEnforced keepAliveIntervalSeconds managedLedgerCacheSizeMB
managedLedgerDefaultAckQuorum managedLedgerDefaultEnsembleSize managedLedgerDefaultWriteQuorum managedLedgerDigestType
managedLedgerMaxEntriesPerLedger managedLedgerMaxLedgerRolloverTimeMinutes managedLedgerMaxSizePerLedgerMbytes
managedLedgerMinLedgerRolloverTimeMinutes maxConcurrentHttpRequests maxConcurrentLookupRequest
maxConcurrentTopicLoadRequest maxConsumersPerSubscription maxConsumersPerTopic maxHttpServerConnections
maxMessagePublishBufferSizeInMB maxMessageSize maxNumPartitionsPerPartitionedTopic
maxPendingPublishRequestsPerConnection maxProducersPerTopic maxPublishRatePerTopicInBytes
maxPublishRatePerTopicInMessages maxSubscriptionsPerTopic maxTopicsPerNamespace maxUnackedMessagesPerConsumer
maxUnackedMessagesPerSubscription metadataStoreOperationTimeoutSeconds metadataStoreSessionTimeoutMillis
metadataStoreUrl openIDAcceptedTimeLeewaySeconds openIDAllowedAudiences openIDAllowedTokenIssuers
openIDCacheExpirationSeconds openIDCacheRefreshAfterWriteSeconds openIDFallbackDiscoveryMode
openIDHttpConnectionTimeoutMillis openIDHttpReadTimeoutMillis openIDKeyIdCacheMissRefreshSeconds
openIDRequireIssuersUseHttps openIDRoleClaim openIDTokenIssuerTrustCertsFilePath proxyRoles
pulsarChannelWriteBufferHighWaterMark pulsarChannelWriteBufferLowWaterMark replicationPolicyCheckDurationSeconds
replicatorPrefix retentionCheckIntervalInSeconds schemaCompatibilityStrategy statusFilePath
subscribeRatePeriodPerConsumerInSecond subscribeThrottlingRatePerConsumer subscriptionBacklogScanMaxEntries
subscriptionBacklogScanMaxTimeMs subscriptionExpirationTimeMinutes subscriptionExpiryCheckIntervalInMinutes
subscriptionPatternMaxLength subscriptionTypesEnabled superUserRoles systemTopicEnabled
systemTopicSchemaCompatibilityStrategy tlsCertificateFilePath tlsCertRefreshCheckDurationSec tlsCiphers tlsKeyFilePath
tlsProtocols tlsRequireTrustedClientCertOnConnect tlsTrustCertsFilePath tokenAllowedClockSkewSeconds tokenAudience
tokenAudienceClaim tokenAuthClaim tokenPublicAlg tokenPublicKey tokenSecretKey topicCompactionRetainNullKey
ttlDurationDefaultInSeconds webServicePort webServicePortTls webServiceTlsCiphers webServiceTlsProtocols
zookeeperSessionExpiredPolicy zooKeeperSessionTimeoutMillis
"""
OF_PULSAR = set(_OF_PULSAR.split())
"""Settings in the configuration of Apache Pulsar 5.0.0-M1, or in the files of some release."""


def test_every_key_is_pulsars_or_declared_ours() -> None:
    assert settings_by_key().keys() == OF_PULSAR | OURS | PROPOSED
    assert not PULSAR_KEYS & settings_by_key().keys()


def test_every_setting_is_described() -> None:
    for key, setting in settings_by_key().items():
        assert setting.text.endswith("."), key


def test_sources_when_all_speak_the_last_one_wins() -> None:
    loaded = load_config(
        file_text="defaultNumPartitions=2\nmaxTopicsPerNamespace=2\nclusterName=file\nmaxMessageSize=2000\n",
        environment={
            "maxTopicsPerNamespace": "3",
            "PULSAR_PREFIX_clusterName": "environment",
            "maxMessageSize": "3000",
        },
        settings=["clusterName=set", "maxMessageSize=4000"],
        options={"maxMessageSize": "5000"},
    )
    config = loaded.config
    assert loaded.warnings == ()
    assert (config.default_num_partitions, config.max_topics_per_namespace) == (2, 3)
    assert (config.cluster_name, config.max_message_size) == ("set", 5000)


def test_file_is_read_like_a_broker_conf() -> None:
    text = "# one\n\n! two\n allowAutoTopicCreation = FALSE \nadvertisedAddress=\nreplicationJobSparkMaster=local[*]"
    config = load_config(file_text=text).config
    assert config.allow_auto_topic_creation is False
    assert config.advertised_address == ""
    assert config.replication_job_spark_master == "local[*]"


def test_problems_are_reported_together() -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(
            file_text="brokerServicePort=99999\nno separator\n",
            file_name="my.conf",
            environment={"defaultNumPartitions": "0"},
            settings=[
                "alowAutoTopicCreation=true",
                "allowAutoTopicCreationType=many",
                "lonely",
                "systemTopicEnabled=1",
            ],
        )
    assert sorted(refusal.value.problems) == [
        "allowAutoTopicCreationType=many: must be one of non-partitioned, partitioned",
        "alowAutoTopicCreation is not a known setting; the nearest is allowAutoTopicCreation",
        "environment: defaultNumPartitions=0: must be at least 1",
        "expected key=value, found 'lonely'",
        "my.conf, line 2: expected key=value, found 'no separator'",
        "my.conf: brokerServicePort=99999: must be at most 65535",
        "systemTopicEnabled=1: must be true or false",
    ]


def test_key_of_pulsar_that_is_not_supported_gives_one_warning() -> None:
    loaded = load_config(
        file_text="zookeeperServers=a:2181\nzookeeperServers=a:2181\nmetadataStoreUrl=\njournalSyncData=true"
    )
    assert loaded.warnings == (
        "broker.conf: zookeeperServers, journalSyncData are settings of Pulsar that are not supported here; "
        "there is no effect",
    )
    assert load_config(settings=["journalSyncData=true"]).warnings == (
        "journalSyncData is a setting of Pulsar that is not supported here; there is no effect",
    )


STOCK = """
# As in the standalone.conf and the broker.conf of Apache Pulsar: what they say about encryption, and keys that no
# running broker of it lists.
brokerServicePortTls=
webServicePortTls=
tlsEnabled=false
tlsCertRefreshCheckDurationSec=300
tlsCertificateFilePath=
tlsKeyFilePath=
tlsTrustCertsFilePath=
tlsAllowInsecureConnection=false
tlsProtocols=
tlsCiphers=
tlsRequireTrustedClientCertOnConnect=false
tlsProvider=
webServiceTlsProvider=Conscrypt
tlsEnabledWithKeyStore=false
tlsKeyStoreType=JKS
tlsKeyStore=
tlsKeyStorePassword=
tlsTrustStoreType=JKS
tlsTrustStore=
tlsTrustStorePassword=
brokerClientTlsEnabled=false
brokerClientTlsEnabledWithKeyStore=false
brokerClientSslProvider=
brokerClientTlsKeyStoreType=JKS
brokerClientTlsTrustStoreType=JKS
bookkeeperTLSProviderFactoryClass=org.apache.bookkeeper.tls.TLSContextFactory
bookkeeperTLSClientAuthentication=false
bookkeeperTLSKeyFileType=PEM
replicationTlsEnabled=false
athenzDomainNames=
dbStorage_writeCacheMaxSizeMb=
dbStorage_rocksDB_numLevels=-1
preciseTopicPublishRateLimiterEnable=false
fileSystemProfilePath=../conf/filesystem_offload_core_site.xml
"""


def test_stock_file_when_nothing_was_changed_in_it_then_starts() -> None:
    assert load_config(file_text=STOCK).config == BrokerConfig()


@pytest.mark.parametrize(
    "line",
    [
        "tlsEnabled=true",
        "tlsEnabled=TRUE",
        "tlsAllowInsecureConnection=true",
        "tlsEnabledWithKeyStore=true",
        "tlsKeyStore=/etc/broker.jks",
        "tlsTrustStore=/etc/ca.jks",
        "brokerClientTlsEnabledWithKeyStore=true",
        "replicationTlsEnabled=true",
        "bindAddresses=external:pulsar+ssl://0.0.0.0:6651",
    ],
)
def test_encryption_when_asked_for_in_a_way_that_is_not_offered_then_is_refused_by_key(line: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(file_text=f"{STOCK}{line}\n", file_name="my.conf")
    (problem,) = refusal.value.problems
    assert problem.startswith(f"my.conf: {line}: this broker does not offer it")


def test_encryption_when_asked_for_in_several_places_then_one_problem_names_all() -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(
            file_text="tlsEnabled=true\ntlsKeyStore=/k\nreplicationTlsEnabled=true",
            environment={"PULSAR_PREFIX_tlsTrustStore": "/t"},
            settings=["tlsAllowInsecureConnection=true", "tlsEnabled=false"],
        )
    (problem,) = refusal.value.problems
    assert problem.startswith(
        "broker.conf: tlsKeyStore=/k, broker.conf: replicationTlsEnabled=true, "
        "environment: tlsTrustStore=/t, tlsAllowInsecureConnection=true: this broker does not offer it"
    )


def test_encryption_when_a_stronger_source_takes_it_back_then_starts() -> None:
    load_config(file_text="tlsEnabled=true\ntlsKeyStore=/k", settings=["tlsEnabled=false", "tlsKeyStore="])


def test_secret_when_settings_are_shown_then_is_hidden() -> None:
    config = load_config(settings=["tokenSecretKey=data:;base64,c2VjcmV0"]).config
    assert config.token_secret_key == "data:;base64,c2VjcmV0"
    assert config.as_text()["tokenSecretKey"] == "*****"
    assert BrokerConfig().as_text()["tokenSecretKey"] == ""


def test_unrelated_environment_is_none_of_our_business() -> None:
    assert load_config(environment={"PATH": "/bin", "HOME": "/"}).config == BrokerConfig()


@pytest.mark.parametrize("number", ["1_0", " 1 0", "\u0661", "1.0", "0x10", ""])
def test_number_when_it_is_not_one_is_refused_or_left_out(number: str) -> None:
    if not number:
        assert load_config(settings=["defaultNumPartitions="]).config == BrokerConfig()
        return
    with pytest.raises(ConfigError, match="an integer"):
        load_config(settings=[f"defaultNumPartitions={number}"])


def test_text_form_can_be_read_back() -> None:
    config = BrokerConfig(allow_auto_topic_creation=False, default_num_partitions=7, cluster_name="east")
    text = "\n".join(f"{key}={value}" for key, value in config.as_text().items())
    assert load_config(file_text=text).config == config


def test_dynamic_keys_are_keys() -> None:
    assert set(dynamic_keys()) < set(settings_by_key()) & (OF_PULSAR | OURS)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ([], 60),
        (["brokerDeleteInactiveTopicsFrequencySeconds=7"], 7),
        (["brokerDeleteInactiveTopicsMaxInactiveDurationSeconds="], 60),
        (
            ["brokerDeleteInactiveTopicsFrequencySeconds=7", "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=0"],
            0,
        ),
    ],
)
def test_inactive_duration_when_not_set_then_is_the_frequency(settings: list[str], seconds: int) -> None:
    config = load_config(settings=settings).config
    assert config.inactive_topics.max_inactive_seconds == seconds
    assert (config.inactive_topics.delete_mode, config.inactive_topics.delete_while_inactive) == (
        "delete_when_no_subscriptions",
        True,
    )
    shown = config.as_text()["brokerDeleteInactiveTopicsMaxInactiveDurationSeconds"]
    assert shown == ("0" if seconds == 0 else ""), "as real Pulsar shows it"


def test_interceptors_when_a_class_is_unknown_then_told_which_there_are() -> None:
    package = "org.apache.pulsar.common.intercept."
    known = [f"{package}AppendIndexMetadataInterceptor", f"{package}AppendBrokerTimestampMetadataInterceptor"]
    loaded = load_config(settings=[f"brokerEntryMetadataInterceptors={known[1]}, {known[0]}"])
    assert loaded.config.broker_entry_metadata_interceptors == ",".join(known)
    with pytest.raises(ConfigError) as refusal:
        load_config(settings=[f"brokerEntryMetadataInterceptors={known[0]},com.example.Mine"])
    assert str(refusal.value).endswith(
        f"brokerEntryMetadataInterceptors={known[0]},com.example.Mine: "
        f"must be some of {known[0]}, {known[1]}, with commas between them"
    )


def test_settings_of_a_cluster_are_without_effect_on_a_broker_that_is_alone() -> None:
    given = ["managedLedgerDefaultEnsembleSize=3", "metadataStoreUrl=rocksdb:///data"]
    alone = load_config(settings=given)
    assert alone.config == BrokerConfig()
    assert len(alone.warnings) == 1
    in_cluster = load_config(settings=given, in_cluster=True)
    assert (in_cluster.config.managed_ledger_default_ensemble_size, in_cluster.warnings) == (3, ())


def test_broker_that_is_alone_refuses_to_be_sent_to_a_cluster() -> None:
    with pytest.raises(ConfigError, match=r"metadataStoreUrl=zk:a:2181: .*`interpulse broker`"):
        load_config(settings=["metadataStoreUrl=zk:a:2181"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], 30_000),
        (["metadataStoreSessionTimeoutMillis=6000"], 6000),
        (["metadataStoreSessionTimeoutMillis=6000", "zooKeeperSessionTimeoutMillis=7000"], 7000),
        (["metadataStoreSessionTimeoutMillis=6000", "zooKeeperSessionTimeoutMillis=-1"], 6000),
    ],
)
def test_session_timeout_has_two_names(given: list[str], expected: int) -> None:
    assert load_config(settings=given, in_cluster=True).config.session_timeout_ms == expected


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["advertisedListeners=a:b"], "advertisedListeners=a:b: a:b is not name:scheme://host:port"),
        (["advertisedListeners=a:pulsar://h:1", "advertisedAddress=h"], "exclude each other"),
        (["advertisedListeners=a:pulsar+ssl://h:1"], r"has pulsar\+ssl://h:1, and brokerServicePortTls is empty"),
        (["internalListenerName=a"], "internalListenerName=a is none of the listeners"),
    ],
)
def test_listeners_when_they_contradict_other_settings_then_are_refused(settings: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_config(settings=settings)


@pytest.mark.parametrize("name", ["a b", "a/b", "ä", "x" * 1001])
def test_cluster_name_when_the_admin_api_would_refuse_it_then_so_does_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match="clusterName: Cluster name"):
        load_config(settings=[f"clusterName={name}"])
