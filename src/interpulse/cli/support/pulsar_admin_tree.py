"""Commands of pulsar-admin by name, and the resource of each group and command that is not offered.

A name in this table without a command of ours gets a sentence and an exit code of its own. Names and aliases are those
that pulsar-client-tools 4.0.6 registers, including hidden ones, plus names that only the sources of 5.0 have. The group
``properties`` comes from releases before 4.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from interpulse.model.not_offered import NotOffered

_OLDER_NAME: Final = "this is an older name; use topics"

ABSENT_GROUPS: Final[Mapping[str, str]] = {
    "bookies": NotOffered.BOOKIES,
    "broker-stats": NotOffered.BROKER_STATS,
    "documents": "docs/reference/cli.md is made from the commands themselves",
    "functions": NotOffered.FUNCTIONS,
    "functions-worker": NotOffered.FUNCTIONS,
    "non-persistent": _OLDER_NAME,
    "packages": NotOffered.PACKAGES,
    "persistent": _OLDER_NAME,
    "properties": "this is an older name; use tenants",
    "proxy-stats": NotOffered.PROXY,
    "resource-quotas": NotOffered.BUNDLE_PLACEMENT,
    "resourcegroups": NotOffered.RESOURCE_GROUPS,
    "scalable-topics": NotOffered.SCALABLE_TOPICS,
    "sink": NotOffered.FUNCTIONS,
    "sinks": NotOffered.FUNCTIONS,
    "source": NotOffered.FUNCTIONS,
    "sources": NotOffered.FUNCTIONS,
    "transactions": NotOffered.TRANSACTIONS,
}
"""Groups of which nothing is offered, with the reason."""

_REASONS: Final = (
    ("offload", NotOffered.OFFLOADING),
    ("bookie", NotOffered.BOOKIES),
    ("pause-on-ack-state", NotOffered.PAUSE_ON_ACK_STATE),
    ("entry-filters", NotOffered.ENTRY_FILTERS),
    ("anti-affinity", NotOffered.BUNDLE_PLACEMENT),
    ("resource-group", NotOffered.RESOURCE_GROUPS),
    ("shutdown", NotOffered.SHUTDOWN),
    ("get-internal-config", NotOffered.INTERNAL_CONFIGURATION),
    ("shadow", NotOffered.SHADOW_TOPICS),
)
"""Reasons for single commands, by a part of their names."""


def _cross(verbs: str, policies: str) -> str:
    return " ".join(f"{verb}-{policy}" for policy in policies.split() for verb in verbs.split())


_POLICIES: Final = "get set remove"
_SINK_VERBS: Final = "create update delete list get restart start stop status getstatus localrun reload"
_TREE: Final = {
    "bookies": "racks-placement list-bookies get-bookie-rack delete-bookie-rack set-bookie-rack",
    "broker-stats": "monitoring-metrics mbeans topics destinations allocator-stats load-report",
    "brokers": "list leader-broker namespaces update-dynamic-config delete-dynamic-config list-dynamic-config "
    "get-all-dynamic-config get-internal-config get-runtime-config healthcheck backlog-quota-check version shutdown",
    "clusters": "get create update delete list update-peer-clusters get-cluster-migration update-cluster-migration "
    "get-peer-clusters get-failure-domain create-failure-domain update-failure-domain delete-failure-domain "
    "list-failure-domains",
    "documents": "generate",
    "functions": "localrun create delete update get restart stop start status getstatus stats list querystate putstate "
    "trigger upload download reload available-functions",
    "functions-worker": "function-stats monitoring-metrics get-cluster get-cluster-leader get-function-assignments "
    "rebalance",
    "namespaces": "list list-cluster topics destinations bundles policies create delete permissions grant-permission "
    "revoke-permission "
    "subscription-permission grant-subscription-permission revoke-subscription-permission set-clusters get-clusters "
    "set-allowed-clusters get-allowed-clusters get-backlog-quotas set-backlog-quota remove-backlog-quota unload "
    "split-bundle get-topic-positions clear-backlog unsubscribe get-anti-affinity-group set-anti-affinity-group "
    "get-anti-affinity-namespaces delete-anti-affinity-group get-bookie-affinity-group set-bookie-affinity-group "
    "delete-bookie-affinity-group get-encryption-required set-encryption-required get-subscription-auth-mode "
    "set-subscription-auth-mode get-offload-threshold set-offload-threshold get-offload-deletion-lag "
    "set-offload-deletion-lag clear-offload-deletion-lag get-schema-autoupdate-strategy set-schema-autoupdate-strategy "
    "get-schema-compatibility-strategy set-schema-compatibility-strategy get-is-allow-auto-update-schema "
    "set-is-allow-auto-update-schema get-schema-validation-enforce set-schema-validation-enforce get-property "
    "set-property remove-property get-properties set-properties clear-properties update-migration-state "
    + _cross(
        _POLICIES,
        "auto-subscription-creation auto-topic-creation compaction-threshold deduplication "
        "deduplication-snapshot-interval delayed-delivery dispatch-rate "
        "dispatcher-pause-on-ack-state-persistent entry-filters inactive-topic-policies "
        "max-consumers-per-subscription max-consumers-per-topic max-producers-per-topic "
        "max-subscriptions-per-topic max-topics-per-namespace max-unacked-messages-per-consumer "
        "max-unacked-messages-per-subscription message-ttl offload-policies persistence publish-rate "
        "replicator-dispatch-rate resource-group retention subscribe-rate subscription-dispatch-rate "
        "subscription-expiration-time subscription-types-enabled",
    ),
    "non-persistent": "create-partitioned-topic lookup stats stats-internal get-partitioned-topic-metadata list "
    "list-in-bundle",
    "ns-isolation-policy": "set get list delete brokers broker",
    "packages": "get-metadata update-metadata upload download list list-versions delete",
    "persistent": "list list-partitioned-topics permissions grant-permission revoke-permission lookup bundle-range "
    "delete unload subscriptions unsubscribe create-subscription stats stats-internal info-internal partitioned-stats "
    "partitioned-stats-internal skip skip-all expire-messages expire-messages-all-subscriptions "
    "create-partitioned-topic update-partitioned-topic get-partitioned-topic-metadata delete-partitioned-topic "
    "peek-messages get-message-by-id last-message-id reset-cursor terminate truncate compact compaction-status",
    "properties": "list get create update delete",
    "proxy-stats": "connections topics",
    "resource-quotas": "get set reset-namespace-bundle-quota",
    "resourcegroups": "list get create update delete",
    "scalable-topics": "list create get-metadata stats delete split-segment merge-segments",
    "schemas": "get delete upload extract compatibility metadata",
    "sinks": f"{_SINK_VERBS} available-sinks",
    "sources": f"{_SINK_VERBS} available-sources",
    "tenants": "list get create update delete",
    "topicPolicies": "delete get-backlog-quota set-backlog-quota remove-backlog-quota "
    + _cross(
        _POLICIES,
        "auto-subscription-creation compaction-threshold deduplication deduplication-snapshot-interval "
        "delayed-delivery dispatch-rate dispatcher-pause-on-ack-state-persistent entry-filters-per-topic "
        "inactive-topic-policies max-consumers max-consumers-per-subscription max-message-size max-producers "
        "max-subscriptions-per-topic max-unacked-messages-per-consumer max-unacked-messages-per-subscription "
        "message-ttl offload-policies persistence publish-rate replication-clusters replicator-dispatch-rate "
        "retention schema-compatibility-strategy subscribe-rate subscription-dispatch-rate "
        "subscription-types-enabled",
    ),
    "topics": "list list-partitioned-topics permissions grant-permission revoke-permission lookup partitioned-lookup "
    "bundle-range delete truncate unload subscriptions unsubscribe create-subscription update-subscription-properties "
    "get-subscription-properties stats stats-internal info-internal partitioned-stats partitioned-stats-internal skip "
    "clear-backlog expire-messages expire-messages-all-subscriptions create-partitioned-topic create-missed-partitions "
    "create update-partitioned-topic get-partitioned-topic-metadata get-properties update-properties remove-properties "
    "delete-partitioned-topic peek-messages examine-messages get-message-by-id get-message-id reset-cursor terminate "
    "partitioned-terminate compact compaction-status offload offload-status last-message-id get-backlog-quotas "
    "set-backlog-quota remove-backlog-quota enable-deduplication disable-deduplication get-deduplication-enabled "
    "set-replicated-subscription-status get-replicated-subscription-status get-backlog-size analyze-backlog "
    "create-shadow-topic get-shadow-source get-schema-validation-enforce set-schema-validation-enforce trim-topic "
    + _cross(
        _POLICIES,
        "compaction-threshold deduplication deduplication-snapshot-interval delayed-delivery dispatch-rate "
        "inactive-topic-policies maxProducers max-consumers max-consumers-per-subscription max-message-size "
        "max-producers max-subscriptions max-unacked-messages-on-consumer "
        "max-unacked-messages-on-subscription max-unacked-messages-per-consumer "
        "max-unacked-messages-per-subscription message-ttl offload-policies persistence publish-rate "
        "replication-clusters replicator-dispatch-rate retention shadow-topics subscribe-rate "
        "subscription-dispatch-rate subscription-types-enabled",
    ),
    "transactions": "coordinator-internal-stats pending-ack-internal-stats buffer-snapshot-internal-stats "
    "coordinator-stats transaction-buffer-stats pending-ack-stats transaction-in-buffer-stats "
    "transaction-in-pending-ack-stats transaction-metadata slow-transactions scale-transactionCoordinators "
    "position-stats-in-pending-ack coordinators-list abort-transaction",
}
TREE: Final[Mapping[str, frozenset[str]]] = {group: frozenset(names.split()) for group, names in _TREE.items()}
"""Commands of each group."""


def reason_for(group: str, command: str | None = None) -> str:
    """Return why a command is not offered, empty if there is nothing to add."""
    if command is None or group in ABSENT_GROUPS:
        return ABSENT_GROUPS[group]
    return next((reason for part, reason in _REASONS if re.search(part, command)), "")


def refusal(group: str, command: str | None = None) -> str:
    """Return the sentence that refuses a command."""
    reason = reason_for(group, command)
    name = f"{group} {command}" if command else group
    sentence = f"Apache Pulsar has the command {name}, Interpulse does not offer it"
    return f"{sentence}: {reason}" if reason else sentence
