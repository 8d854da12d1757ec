"""What a namespace lets its topics do: rates, limits, quotas, and how messages are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.params import NAMESPACE
from interpulse.cli.policy_commands import Calls, PolicyRow, command, policy_commands, print_quotas
from interpulse.cli.policy_forms import (
    BACKLOG_QUOTA,
    DELAYED_DELIVERY,
    DISPATCH_RATE,
    ENABLED_TYPES,
    INACTIVE_TOPICS,
    PUBLISH_RATE,
    QUOTA_TYPE,
    RETENTION,
    SNAPSHOT_INTERVAL,
    SUBSCRIBE_RATE,
    THRESHOLD,
    count,
    message_ttl,
    switch,
)
from interpulse.model.messaging_policies import BacklogQuota
from interpulse.model.names import NamespaceName

if TYPE_CHECKING:
    from interpulse.client.admin import AdminClient
    from interpulse.client.admin_policies import QuotaType

__all__ = ["MESSAGING_COMMANDS"]

_ROWS: Final = (
    PolicyRow("inactive-topic-policies", "inactive_topics", INACTIVE_TOPICS, "what becomes of topics nobody needs"),
    PolicyRow("deduplication", "deduplication_enabled", switch("deduplication"), "whether repeated messages go"),
    PolicyRow(
        "deduplication-snapshot-interval",
        "deduplication_snapshot_seconds",
        SNAPSHOT_INTERVAL,
        "after which time the state of deduplication is stored",
    ),
    PolicyRow("retention", "retention", RETENTION, "how long acknowledged messages are kept"),
    PolicyRow(
        "message-ttl", "message_ttl_seconds", message_ttl("-ttl", "--messageTTL"), "when unacknowledged messages expire"
    ),
    PolicyRow("publish-rate", "publish_rate", PUBLISH_RATE, "the rate at which a topic takes messages"),
    PolicyRow("dispatch-rate", "dispatch_rate", DISPATCH_RATE, "the rate at which a topic hands out messages"),
    PolicyRow(
        "subscription-dispatch-rate",
        "subscription_dispatch_rate",
        DISPATCH_RATE,
        "the rate at which a subscription hands out messages",
    ),
    PolicyRow("subscribe-rate", "subscribe_rate", SUBSCRIBE_RATE, "how often a consumer may subscribe"),
    PolicyRow(
        "max-producers-per-topic",
        "max_producers",
        count("-p", "--max-producers-per-topic", "Most producers"),
        "how many producers a topic may have",
    ),
    PolicyRow(
        "max-consumers-per-topic",
        "max_consumers",
        count("-c", "--max-consumers-per-topic", "Most consumers"),
        "how many consumers a topic may have",
    ),
    PolicyRow(
        "max-consumers-per-subscription",
        "max_consumers_per_subscription",
        count("-c", "--max-consumers-per-subscription", "Most consumers"),
        "how many consumers a subscription may have",
    ),
    PolicyRow(
        "max-subscriptions-per-topic",
        "max_subscriptions",
        count("-m", "--max-subscriptions-per-topic", "Most subscriptions"),
        "how many subscriptions a topic may have",
    ),
    PolicyRow(
        "max-unacked-messages-per-consumer",
        "max_unacked_per_consumer",
        count("-c", "--max-unacked-messages-per-topic", "Most messages"),  # pulsar-admin's name for it
        "how many messages a consumer may leave unacknowledged",
    ),
    PolicyRow(
        "max-unacked-messages-per-subscription",
        "max_unacked_per_subscription",
        count("-c", "--max-unacked-messages-per-subscription", "Most messages"),
        "how many messages a subscription may leave unacknowledged",
    ),
    PolicyRow("delayed-delivery", "delayed_delivery", DELAYED_DELIVERY, "whether messages may be delivered later"),
    PolicyRow("compaction-threshold", "compaction_threshold_bytes", THRESHOLD, "when topics are compacted"),
    PolicyRow(
        "encryption-required",
        "encryption_required",
        switch("the demand that producers encrypt"),
        "whether producers have to encrypt",
        removable=False,
    ),
    PolicyRow(
        "subscription-types-enabled", "subscription_types_enabled", ENABLED_TYPES, "which types subscriptions may have"
    ),
)

_QUOTA: Final = "Say how much may be unacknowledged, and what happens beyond."
_NO_QUOTA: Final = "No longer say how much, for a type; what is set above applies again."

_namespace = click.argument("target", metavar="NAMESPACE", type=NAMESPACE)
_CALLS: Final = Calls(
    get=lambda admin, namespace, name: admin.namespaces.policy(namespace, name),
    set=lambda admin, namespace, name, value: admin.namespaces.set_policy(namespace, name, value),
    remove=lambda admin, namespace, name: admin.namespaces.remove_policy(namespace, name),
    target=_namespace,
)


async def _set_quota(admin: AdminClient, target: NamespaceName, quota: tuple[BacklogQuota, QuotaType]) -> None:
    await admin.namespaces.set_backlog_quota(target, *quota)


async def _get_quotas(admin: AdminClient, target: NamespaceName) -> None:
    print_quotas(await admin.namespaces.backlog_quotas(target))


async def _remove_quota(admin: AdminClient, target: NamespaceName, kind: QuotaType) -> None:
    await admin.namespaces.remove_backlog_quota(target, kind)


MESSAGING_COMMANDS: Final = (
    *policy_commands(_ROWS, _CALLS),
    command(
        "set-backlog-quota",
        _QUOTA,
        BACKLOG_QUOTA.joined("quota", _set_quota),
        _namespace,
        BACKLOG_QUOTA.add,
    ),
    command("get-backlog-quotas", "Print how much may be unacknowledged, by type.", _get_quotas, _namespace),
    command(
        "remove-backlog-quota",
        _NO_QUOTA,
        _remove_quota,
        _namespace,
        QUOTA_TYPE,
    ),
)
