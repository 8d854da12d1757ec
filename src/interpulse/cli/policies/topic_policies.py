"""Policies of topics: the group ``topicPolicies``, and the older commands of ``topics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.policies.policy_commands import Calls, PolicyRow, command, policy_commands, quota_commands
from interpulse.cli.policies.policy_forms import (
    AUTO_SUBSCRIPTION,
    CLUSTERS,
    EXPIRATION,
    EXPIRATION_ABOUT,
    INACTIVE_TOPICS,
    STRATEGY,
    THRESHOLD,
    Form,
    count,
    message_ttl,
    switch,
)
from interpulse.cli.policies.policy_rows import shared_rows
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import SIZE, TOPIC
from interpulse.cli.support.running import NOT_OFFERED, CommandFailed
from interpulse.model.names import TopicName
from interpulse.terminal.output import print_json

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

__all__ = ["POLICY_COMMANDS", "topic_policies"]

_MESSAGE_SIZE: Final = Form(
    (click.option("-m", "--max-message-size", "value", type=SIZE, required=True, help="100K; 0 = the broker's."),),
    lambda value: value,
)
_UNACKED: Final = count("-m", "--maxNum", "Most messages")
_UNACKED_OF_CONSUMER: Final = "how many messages a consumer may leave unacknowledged"
_UNACKED_OF_SUBSCRIPTION: Final = "how many messages a subscription may leave unacknowledged"
_SUBSCRIPTIONS: Final = "how many subscriptions the topic may have"

_COMMON: Final = (
    *shared_rows("the topic", "each subscription"),
    PolicyRow(
        "inactive-topic-policies", "inactive_topics", INACTIVE_TOPICS, "when the topic is deleted for inactivity"
    ),
    PolicyRow("message-ttl", "message_ttl_seconds", message_ttl("-t", "--ttl"), "when unacknowledged messages expire"),
    PolicyRow(
        "max-producers",
        "max_producers",
        count("-p", "--max-producers", "Most producers"),
        "how many producers the topic may have",
    ),
    PolicyRow(
        "max-consumers",
        "max_consumers",
        count("-c", "--max-consumers", "Most consumers"),
        "how many consumers the topic may have",
    ),
    PolicyRow("max-unacked-messages-per-consumer", "max_unacked_per_consumer", _UNACKED, _UNACKED_OF_CONSUMER),
    PolicyRow(
        "max-unacked-messages-per-subscription", "max_unacked_per_subscription", _UNACKED, _UNACKED_OF_SUBSCRIPTION
    ),
    PolicyRow("max-message-size", "max_message_size", _MESSAGE_SIZE, "how large a message may be"),
    PolicyRow("compaction-threshold", "compaction_threshold_bytes", THRESHOLD, "when the topic is compacted"),
    PolicyRow(
        "auto-subscription-creation",
        "auto_subscription_creation_allowed",
        AUTO_SUBSCRIPTION,
        "whether subscribing creates a missing subscription",
        shown=lambda allowed: {"allowAutoSubscriptionCreation": allowed},
    ),
    PolicyRow(
        "schema-compatibility-strategy", "schema_compatibility_strategy", STRATEGY, "how new schemas must be compatible"
    ),
)
_OF_TOPICS: Final = (  # older names of pulsar-admin, and what it has only here
    PolicyRow("max-unacked-messages-on-consumer", "max_unacked_per_consumer", _UNACKED, _UNACKED_OF_CONSUMER),
    PolicyRow(
        "max-unacked-messages-on-subscription", "max_unacked_per_subscription", _UNACKED, _UNACKED_OF_SUBSCRIPTION
    ),
    PolicyRow(
        "max-subscriptions",
        "max_subscriptions",
        count("-m", "--max-subscriptions-per-topic", "Most subscriptions"),
        _SUBSCRIPTIONS,
    ),
    PolicyRow(
        "schema-validation-enforce",
        "schema_validation_enforced",
        switch("the requirement that producers have a schema"),
        "whether producers need a schema",
        removable=False,
    ),
)
_OF_THE_GROUP: Final = (
    PolicyRow("subscription-expiration-time", "subscription_expiration_minutes", EXPIRATION, EXPIRATION_ABOUT),
    PolicyRow("replication-clusters", "replication_clusters", CLUSTERS, "the clusters that the topic is replicated to"),
    PolicyRow(
        "max-subscriptions-per-topic",
        "max_subscriptions",
        count("-s", "--max-subscriptions-per-topic", "Most subscriptions"),
        _SUBSCRIPTIONS,
    ),
)

_topic = click.argument("target", metavar="TOPIC", type=TOPIC)
_applied = click.option(
    "-ap", "-a", "--applied", is_flag=True, help="Print the value in force, namespace and broker included."
)
_everywhere = click.option("-g", "--global", "everywhere", is_flag=True, help="Set it for all clusters of the topic.")


def _calls(*options: Any) -> Calls:
    return Calls(
        get=lambda admin, topic, name, **given: admin.topic_policies.get(topic, name, **given),
        set=lambda admin, topic, name, value, **given: admin.topic_policies.set(topic, name, value, **given),
        remove=lambda admin, topic, name, **given: admin.topic_policies.remove(topic, name, **given),
        quotas=lambda admin: admin.topic_policies,
        target=_topic,
        options=options,
        get_options=(_applied,),
    )


async def _delete(admin: AdminClient, target: TopicName) -> None:
    await admin.topic_policies.delete(target)


async def _enable_deduplication(admin: AdminClient, target: TopicName) -> None:
    await admin.topic_policies.set(target, "deduplication_enabled", True)


async def _disable_deduplication(admin: AdminClient, target: TopicName) -> None:
    await admin.topic_policies.set(target, "deduplication_enabled", False)


async def _get_deduplication(admin: AdminClient, target: TopicName) -> None:
    print_json(await admin.topic_policies.get(target, "deduplication_enabled"))


_OLDER_NAMES: Final = (
    command("enable-deduplication", "As set-deduplication --enable.", _enable_deduplication, _topic),
    command("disable-deduplication", "As set-deduplication --disable.", _disable_deduplication, _topic),
    command("get-deduplication-enabled", "As get-deduplication.", _get_deduplication, _topic),
)
POLICY_COMMANDS: Final = (
    *policy_commands((*_COMMON, *_OF_TOPICS), _calls()),
    *quota_commands("get-backlog-quotas", _calls()),
    *_OLDER_NAMES,
)
"""Those of the group ``topics``."""


@click.group("topicPolicies", cls=CommandGroup)
def topic_policies() -> None:
    """Operations about the policies of topics."""


for each in policy_commands((*_COMMON, *_OF_THE_GROUP), _calls(_everywhere)):
    topic_policies.add_command(each)
for each in quota_commands("get-backlog-quota", _calls(_everywhere)):
    topic_policies.add_command(each)
topic_policies.add_command(command("delete", "Remove all policies of the topic.", _delete, _topic))


def _refuse_subscription(context: click.Context, option: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise CommandFailed(
            "The dispatch rate of a single subscription (-s) is not offered; without -s it is that of each of them",
            NOT_OFFERED,
        )


for verb in ("get", "set", "remove"):
    topic_policies.commands[f"{verb}-subscription-dispatch-rate"].params.append(
        click.Option(["-s", "--subscription"], expose_value=False, hidden=True, callback=_refuse_subscription)
    )
