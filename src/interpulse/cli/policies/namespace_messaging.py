"""Policies of a namespace about messages: rates, limits, quotas, retention."""

from __future__ import annotations

from typing import Final

import click

from interpulse.cli.policies.policy_commands import Calls, PolicyRow, policy_commands, quota_commands
from interpulse.cli.policies.policy_forms import (
    EXPIRATION,
    EXPIRATION_ABOUT,
    INACTIVE_TOPICS,
    THRESHOLD,
    count,
    message_ttl,
    switch,
)
from interpulse.cli.policies.policy_rows import shared_rows
from interpulse.cli.support.params import NAMESPACE

__all__ = ["MESSAGING_COMMANDS"]

_ROWS: Final = (
    *shared_rows("a topic", "a subscription"),
    PolicyRow("inactive-topic-policies", "inactive_topics", INACTIVE_TOPICS, "when inactive topics are deleted"),
    PolicyRow(
        "message-ttl", "message_ttl_seconds", message_ttl("-ttl", "--messageTTL"), "when unacknowledged messages expire"
    ),
    PolicyRow("subscription-expiration-time", "subscription_expiration_minutes", EXPIRATION, EXPIRATION_ABOUT),
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
    PolicyRow("compaction-threshold", "compaction_threshold_bytes", THRESHOLD, "when topics are compacted"),
    PolicyRow(
        "encryption-required",
        "encryption_required",
        switch("the requirement that producers encrypt"),
        "whether producers must encrypt",
        removable=False,
    ),
)

_CALLS: Final = Calls(
    get=lambda admin, namespace, name: admin.namespaces.policy(namespace, name),
    set=lambda admin, namespace, name, value: admin.namespaces.set_policy(namespace, name, value),
    remove=lambda admin, namespace, name: admin.namespaces.remove_policy(namespace, name),
    quotas=lambda admin: admin.namespaces,
    target=click.argument("target", metavar="NAMESPACE", type=NAMESPACE),
)

MESSAGING_COMMANDS: Final = (*policy_commands(_ROWS, _CALLS), *quota_commands("get-backlog-quotas", _CALLS))
