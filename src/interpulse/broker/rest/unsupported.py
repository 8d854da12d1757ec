"""What real Pulsar offers under these paths and this broker does not: 501 with a sentence, instead of "not found"."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.call import Answer, Call, Route
from interpulse.model.errors import NotImplementedYet

__all__ = ["ROUTES"]

_METHODS: Final = ("GET", "PUT", "POST", "DELETE")
_OF_NAMESPACES: Final = [
    "antiAffinity",
    "backlogQuota",
    "backlogQuotaMap",
    "clearBacklog",
    "compactionThreshold",
    "deduplicationSnapshotInterval",
    "delayedDelivery",
    "dispatchRate",
    "dispatcherPauseOnAckStatePersistent",
    "encryptionRequired",
    "entryFilters",
    "maxConsumersPerSubscription",
    "maxConsumersPerTopic",
    "maxProducersPerTopic",
    "maxSubscriptionsPerTopic",
    "maxUnackedMessagesPerConsumer",
    "maxUnackedMessagesPerSubscription",
    "migration",
    "offloadPolicies",
    "offloadThreshold",
    "persistence",
    "properties",
    "publishRate",
    "replicatorDispatchRate",
    "resourcegroup",
    "subscribeRate",
    "subscriptionAuthMode",
    "subscriptionDispatchRate",
    "subscriptionExpirationTime",
    "subscriptionTypesEnabled",
]
_OF_TOPICS: Final = [
    "backlog",
    "backlogQuota",
    "backlogQuotaMap",
    "compaction",
    "compactionThreshold",
    "deduplicationEnabled",
    "delayedDelivery",
    "dispatchRate",
    "expireMessages",
    "maxConsumers",
    "maxMessageSize",
    "maxProducers",
    "messageTTL",
    "offload",
    "permissions",
    "persistence",
    "publishRate",
    "replication",
    "retention",
    "schemaCompatibilityStrategy",
    "schemaValidationEnforced",
    "shadowTopics",
    "subscribeRate",
    "subscriptionDispatchRate",
    "subscriptionTypesEnabled",
]


async def refuse(call: Call) -> Answer:
    raise NotImplementedYet("Apache Pulsar has this operation, this broker does not offer it")


ROUTES: Final = tuple(
    Route(method, path, refuse)
    for method in _METHODS
    for path in (
        *(f"/admin/v2/namespaces/{{tenant}}/{{namespace}}/{name}" for name in _OF_NAMESPACES),
        *(f"/admin/v2/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}/{name}" for name in _OF_TOPICS),
        "/admin/v2/namespaces/{tenant}/{namespace}/permissions/{role}",
        "/admin/v2/brokers/internal-configuration",
    )
)
