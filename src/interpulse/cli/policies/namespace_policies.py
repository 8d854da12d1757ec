"""The policies of a namespace: commands of the forms ``set-...``, ``get-...`` and ``remove-...``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.policies.policy_options import enabled, one_of, switch
from interpulse.cli.support.command_lists import namespace_command
from interpulse.cli.support.running import CommandFailed
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_records import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.rules.inventory import as_override, broker_auto_creation
from interpulse.terminal.output import print_json

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

POLICY_COMMANDS: list[click.Command] = []
"""Every command of this module."""


_policy_command = partial(namespace_command, POLICY_COMMANDS)


# Creation by asking


@_policy_command("set-auto-topic-creation")
@switch("automatic creation of topics")
@click.option(
    "-t",
    "--type",
    "topic_type",
    type=click.Choice([PARTITIONED, NON_PARTITIONED], case_sensitive=False),
    default=NON_PARTITIONED,
    help="Type of a created topic; non-partitioned by default.",
)
@click.option("-n", "--num-partitions", "partitions", type=int, help="Number of partitions of a created topic.")
@click.option(
    "--always-allow-for-replicator",
    "for_replicator",
    type=bool,
    is_flag=False,
    flag_value="true",
    default=None,
    help="Whether replicators of other clusters may create topics although it is disabled; true by default.",
)
async def set_auto_topic_creation(
    admin: AdminClient,
    namespace: NamespaceName,
    enable: bool,
    disable: bool,
    topic_type: str,
    partitions: int | None,
    for_replicator: bool | None,
) -> None:
    """Set whether missing topics are created automatically, in place of the broker's settings."""
    allowed = one_of(enable, disable)
    if allowed and topic_type == PARTITIONED and (partitions is None or partitions <= 0):
        raise click.UsageError("Must specify num-partitions > 0 for partitioned topic type.")
    policy = AutoTopicCreation(allowed, topic_type, partitions, for_replicator)
    await admin.namespaces.set_auto_topic_creation(namespace, policy)
    if for_replicator is not None and await admin.namespaces.auto_topic_creation(namespace) != policy:
        raise CommandFailed("the override is stored without alwaysAllowForReplicator: this broker does not support it")


@_policy_command("get-auto-topic-creation")
@click.option("-ap", "--applied", is_flag=True, help="Print the value in force, the broker's settings included.")
async def get_auto_topic_creation(admin: AdminClient, namespace: NamespaceName, applied: bool) -> None:
    """Print the override of the namespace, null if there is none."""

    policy = await admin.namespaces.auto_topic_creation(namespace, applied=applied)
    if policy is None and applied:
        policy = as_override(broker_auto_creation(await admin.brokers.runtime_configuration()))
    print_json(policy and policy.to_json())


@_policy_command("remove-auto-topic-creation")
async def remove_auto_topic_creation(admin: AdminClient, namespace: NamespaceName) -> None:
    """Remove the override; the broker's settings apply again."""
    await admin.namespaces.remove_auto_topic_creation(namespace)


@_policy_command("set-auto-subscription-creation")
@switch("automatic creation of subscriptions")
async def set_auto_subscription_creation(
    admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool
) -> None:
    """Set whether subscribing creates a missing subscription; it does not without --enable."""
    await admin.namespaces.set_auto_subscription_creation(namespace, enabled(enable, disable))


@_policy_command("get-auto-subscription-creation")
async def get_auto_subscription_creation(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the override of the namespace, null if there is none."""
    allowed = await admin.namespaces.auto_subscription_creation(namespace)
    print_json(None if allowed is None else {"allowAutoSubscriptionCreation": allowed})


@_policy_command("remove-auto-subscription-creation")
async def remove_auto_subscription_creation(admin: AdminClient, namespace: NamespaceName) -> None:
    """Remove the override; the broker's settings apply again."""
    await admin.namespaces.remove_auto_subscription_creation(namespace)


# Limits


@_policy_command("set-max-topics-per-namespace")
@click.option(
    "-t", "--max-topics-per-namespace", "count", type=int, required=True, help="Number of topics; 0 = no limit."
)
async def set_max_topics(admin: AdminClient, namespace: NamespaceName, count: int) -> None:
    """Limit the number of topics of a namespace."""
    await admin.namespaces.set_max_topics(namespace, count)


@_policy_command("get-max-topics-per-namespace")
async def get_max_topics(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the limit, 0 or null if there is none."""
    print_json(await admin.namespaces.max_topics(namespace))


@_policy_command("remove-max-topics-per-namespace")
async def remove_max_topics(admin: AdminClient, namespace: NamespaceName) -> None:
    """Remove the limit; the broker's limit applies again."""
    await admin.namespaces.remove_max_topics(namespace)
