"""Dynamic settings of Apache Pulsar 5.0.0-M1 that this broker does not change at run time, with the reason.

Keys in `WITHOUT_EFFECT` are stored unchecked, like keys without effect in ``broker.conf``: tools that set them keep
working, and brokers of Apache Pulsar in the same cluster act on them. Keys in `READ_AT_START` are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.model.not_offered import NotOffered

READ_AT_START: Final = frozenset(
    {
        "brokerClientAuthenticationParameters",
        "brokerClientAuthenticationPlugin",
        "brokerClientTlsEnabled",
        "managedLedgerCacheSizeMB",
        "maxMessagePublishBufferSizeInMB",
    }
)
"""Settings that this broker reads from its file at the next start."""

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    NotOffered.BUNDLE_PLACEMENT: """
        failureDomainsEnabled flowOrQpsDifferenceThresholdPercentage loadBalanceSheddingDelayInSeconds
        loadBalancerAutoBundleSplitEnabled loadBalancerAutoUnloadSplitBundlesEnabled
        loadBalancerAverageResourceUsageDifferenceThresholdPercentage loadBalancerAvgShedderHighThreshold
        loadBalancerAvgShedderHitCountHighThreshold loadBalancerAvgShedderHitCountLowThreshold
        loadBalancerAvgShedderLowThreshold loadBalancerBandwidthInResourceWeight loadBalancerBandwidthOutResourceWeight
        loadBalancerBandwithInResourceWeight loadBalancerBandwithOutResourceWeight
        loadBalancerBrokerLoadDataTTLInSeconds loadBalancerBrokerLoadTargetStd loadBalancerBrokerMaxTopics
        loadBalancerBrokerOverloadedThresholdPercentage loadBalancerBrokerThresholdShedderPercentage
        loadBalancerBundleUnloadMinThroughputThreshold loadBalancerCPUResourceWeight loadBalancerDebugModeEnabled
        loadBalancerDirectMemoryResourceWeight loadBalancerDistributeBundlesEvenlyEnabled
        loadBalancerHistoryResourcePercentage loadBalancerHostUsageCheckIntervalMinutes loadBalancerLoadSheddingStrategy
        loadBalancerMaxNumberOfBrokerSheddingPerCycle loadBalancerMaxNumberOfBundlesInBundleLoadReport
        loadBalancerMaxNumberOfBundlesToSplitPerCycle loadBalancerMemoryResourceWeight
        loadBalancerMsgRateDifferenceShedderThreshold loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold
        loadBalancerNamespaceBundleMaxBandwidthMbytes loadBalancerNamespaceBundleMaxMsgRate
        loadBalancerNamespaceBundleMaxSessions loadBalancerNamespaceBundleMaxTopics
        loadBalancerNamespaceBundleSplitConditionHitCountThreshold loadBalancerNamespaceMaximumBundles
        loadBalancerReportUpdateMaxIntervalMinutes loadBalancerReportUpdateMinIntervalMillis
        loadBalancerReportUpdateThresholdPercentage loadBalancerServiceUnitStateMaxConcurrentOverrides
        loadBalancerServiceUnitTableViewSyncer loadBalancerSheddingBundlesWithPoliciesEnabled
        loadBalancerSheddingConditionHitCountThreshold loadBalancerSheddingEnabled
        loadBalancerSheddingExcludedNamespaces loadBalancerSheddingGracePeriodMinutes
        loadBalancerSheddingIntervalMinutes loadBalancerTransferEnabled loadManagerClassName loadManagerMigrationEnabled
        maxUnloadBundleNumPerShedding maxUnloadPercentage minUnloadMessage minUnloadMessageThroughput
        namespaceBundleUnloadingTimeoutMs preferLaterVersions resourceUsageTransportPublishIntervalInSecs
    """,
    NotOffered.SCALABLE_TOPICS: """
        scalableTopicAutoScaleEnabled scalableTopicLoadReportRateChangeThreshold scalableTopicMaxDagDepth
        scalableTopicMaxSegments scalableTopicMergeBytesRateInThreshold scalableTopicMergeBytesRateOutThreshold
        scalableTopicMergeCooldownSeconds scalableTopicMergeMsgRateInThreshold scalableTopicMergeMsgRateOutThreshold
        scalableTopicMergeWindowSeconds scalableTopicMinSegments scalableTopicSplitBytesRateInThreshold
        scalableTopicSplitBytesRateOutThreshold scalableTopicSplitCooldownSeconds scalableTopicSplitMsgRateInThreshold
        scalableTopicSplitMsgRateOutThreshold
    """,
    NotOffered.TRANSACTIONS: "transactionLogBatchedWriteEnabled transactionPendingAckBatchedWriteEnabled",
    NotOffered.ENTRY_FILTERS: """
        allowOverrideEntryFilters dispatcherEntryFilterRescheduledMessageDelay entryFilterNames entryFiltersDirectory
    """,
    NotOffered.PAUSE_ON_ACK_STATE: "dispatcherPauseOnAckStatePersistentEnabled",
    NotOffered.OFFLOADING: "managedLedgerInactiveOffloadedLedgerEvictionTimeSeconds",
    NotOffered.BROKER_STATS: "exposeBundlesMetricsInPrometheus",
    "threads, caches, reads and timeouts are of another make here": """
        bookkeeperUseV2WireProtocol brokerPublisherThrottlingTickTimeMillis brokerShutdownTimeoutMs
        dispatcherDispatchMessagesInSubscriptionThread dispatcherMaxReadBatchSize dispatcherMaxReadSizeBytes
        dispatcherMaxRoundRobinBatchSize dispatcherMinReadBatchSize dispatcherReadFailureBackoffInitialTimeInMs
        dispatcherReadFailureBackoffMandatoryStopTimeInMs dispatcherReadFailureBackoffMaxTimeInMs
        keySharedLookAheadMsgInReplayThresholdPerConsumer keySharedLookAheadMsgInReplayThresholdPerSubscription
        keySharedUnblockingIntervalMs managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed
        managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes
        managedLedgerCacheEvictionTimeThresholdMillis managedLedgerCacheEvictionWatermark
        managedLedgerCursorResetLedgerCloseTimestampMaxClockSkewMillis managedLedgerMaxBacklogBetweenCursorsForCaching
        managedLedgerMinimumBacklogCursorsForCaching managedLedgerMinimumBacklogEntriesForCaching
        managedLedgerTraceTaskExecution preciseDispatcherFlowControl replicationProducerQueueSize
        skipBrokerShutdownOnOOM subscriptionKeySharedUseClassicPersistentImplementation
        subscriptionRedeliveryTrackerEnabled subscriptionSharedUseClassicPersistentImplementation topicFactoryClassName
        topicNameCacheMaxCapacity topicPoliciesCacheInitTimeoutSeconds topicPublisherThrottlingTickTimeMillis
        unblockStuckSubscriptionEnabled
    """,
    "rates hold for topics, subscriptions and consumers, not for the broker as a whole": """
        brokerPublisherThrottlingMaxByteRate brokerPublisherThrottlingMaxMessageRate dispatchThrottlingRateInByte
        dispatchThrottlingRateInMsg
    """,
    "dispatch rates count messages, and hold with and without a backlog": """
        dispatchThrottlingOnBatchMessageEnabled dispatchThrottlingOnNonBacklogConsumerEnabled
    """,
    "entries that are lost are never skipped without an operator": """
        autoSkipNonRecoverableData managedLedgerForceRecovery schemaLedgerForceRecovery
    """,
    "clusters do not synchronise their metadata by a topic": """
        configurationMetadataSyncEventTopic metadataSyncEventTopic
    """,
    "clients of every version are let in": "clientLibraryVersionCheckEnabled",
    "names of subscriptions are checked in one way": "strictlyVerifySubscriptionName",
    "set subscriptionTypesEnabled instead": "subscriptionKeySharedEnable",
    "the numbers of tenants, and of the namespaces of a tenant, have no limit": "maxNamespacesPerTenant maxTenants",
    "a namespace has 4 bundles unless its creation names another number, and a split names its algorithm": """
        defaultNamespaceBundleSplitAlgorithm defaultNumberOfNamespaceBundles supportedNamespaceBundleSplitAlgorithms
    """,
    "fields that a request has too many are ignored": "httpRequestsFailOnUnknownPropertiesEnabled",
    "replication of a topic begins with the first message after it was switched on": "replicationStartAt",
    "managedLedgerMaxLedgerRolloverTimeMinutes ends ledgers, inactive or not": """
        managedLedgerInactiveLedgerRolloverTimeSeconds
    """,
}
"""Keys without effect, by reason."""

_REASONS: Final = {key: str(reason) for reason, names in WITHOUT_EFFECT.items() for key in names.split()}


def reason_without_effect(key: str) -> str | None:
    """Return the reason why a dynamic setting of Apache Pulsar has no effect here, or None for any other key."""
    return _REASONS.get(key)
