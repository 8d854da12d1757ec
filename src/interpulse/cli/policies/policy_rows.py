"""The policies whose commands namespaces and topics have alike."""

from __future__ import annotations

from interpulse.cli.policies.policy_commands import PolicyRow
from interpulse.cli.policies.policy_forms import (
    DELAYED_DELIVERY,
    DISPATCH_RATE,
    ENABLED_TYPES,
    PERSISTENCE,
    PUBLISH_RATE,
    RETENTION,
    SNAPSHOT_INTERVAL,
    SUBSCRIBE_RATE,
    count,
    switch,
)

__all__ = ["shared_rows"]


def shared_rows(topic: str, subscription: str) -> tuple[PolicyRow, ...]:
    """A row for each; the two arguments name the topic and the subscription in the help."""
    return (
        PolicyRow(
            "deduplication", "deduplication_enabled", switch("deduplication"), "whether repeated messages are dropped"
        ),
        PolicyRow(
            "deduplication-snapshot-interval",
            "deduplication_snapshot_seconds",
            SNAPSHOT_INTERVAL,
            "how often the state of deduplication is stored",
        ),
        PolicyRow("retention", "retention", RETENTION, "how long acknowledged messages are kept"),
        PolicyRow("publish-rate", "publish_rate", PUBLISH_RATE, f"the rate at which {topic} takes messages"),
        PolicyRow("dispatch-rate", "dispatch_rate", DISPATCH_RATE, f"the rate at which {topic} hands out messages"),
        PolicyRow(
            "subscription-dispatch-rate",
            "subscription_dispatch_rate",
            DISPATCH_RATE,
            f"the rate at which {subscription} hands out messages",
        ),
        PolicyRow("subscribe-rate", "subscribe_rate", SUBSCRIBE_RATE, "how often a consumer may subscribe"),
        PolicyRow(
            "replicator-dispatch-rate",
            "replicator_dispatch_rate",
            DISPATCH_RATE,
            f"the rate at which {topic} is copied to each other cluster",
        ),
        PolicyRow(
            "max-consumers-per-subscription",
            "max_consumers_per_subscription",
            count("-c", "--max-consumers-per-subscription", "Most consumers"),
            f"how many consumers {subscription} may have",
        ),
        PolicyRow("delayed-delivery", "delayed_delivery", DELAYED_DELIVERY, "whether messages may be delivered later"),
        PolicyRow("persistence", "persistence", PERSISTENCE, f"how many copies bookies keep of {topic}"),
        PolicyRow(
            "subscription-types-enabled",
            "subscription_types_enabled",
            ENABLED_TYPES,
            "which types subscriptions may have",
        ),
    )
