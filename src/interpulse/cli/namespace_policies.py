"""The policies of a namespace: commands of the forms ``set-...``, ``get-...`` and ``remove-...``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.output import print_json, print_text
from interpulse.cli.params import NAMESPACE, SIZE, TIME
from interpulse.cli.running import admin_command
from interpulse.cli.topic_policies import inactive_topic_options
from interpulse.model.names import NamespaceName
from interpulse.model.policies import (
    NON_PARTITIONED,
    PARTITIONED,
    AutoTopicCreation,
    InactiveTopicPolicies,
    RetentionPolicies,
)
from interpulse.rules.compatibility import as_override

if TYPE_CHECKING:
    from interpulse.client.admin import AdminClient

__all__ = ["POLICY_COMMANDS"]

_STRATEGIES = (
    "UNDEFINED",
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
POLICY_COMMANDS: list[click.Command] = []
"""Every command of this module."""


def _policy_command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose first argument is the namespace."""

    def register(callback: Callable[..., Any]) -> click.Command:
        with_namespace = click.argument("namespace", type=NAMESPACE)(admin_command(callback))
        command = click.command(name)(with_namespace)
        POLICY_COMMANDS.append(command)
        return command

    return register


def _switch(subject: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The pair ``--enable``/``--disable``, of which exactly one must be given."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option("-d", "--disable", is_flag=True, help=f"Disable {subject}.")(command)
        return click.option("-e", "--enable", is_flag=True, help=f"Enable {subject}.")(command)

    return add


def _one_of(enable: bool, disable: bool) -> bool:
    if enable == disable:
        raise click.UsageError("Need to specify either --enable or --disable")
    return enable


# Creation by asking


@_policy_command("set-auto-topic-creation")
@_switch("creation of topics by asking for them")
@click.option(
    "-t",
    "--type",
    "topic_type",
    type=click.Choice([PARTITIONED, NON_PARTITIONED], case_sensitive=False),
    default=NON_PARTITIONED,
    help="Shape of a created topic; non-partitioned by default.",
)
@click.option("-n", "--num-partitions", "partitions", type=int, help="Number of partitions of a created topic.")
async def set_auto_topic_creation(
    admin: AdminClient,
    namespace: NamespaceName,
    enable: bool,
    disable: bool,
    topic_type: str,
    partitions: int | None,
) -> None:
    """Say whether asking for a missing topic creates it, instead of the broker's settings."""
    allowed = _one_of(enable, disable)
    if allowed and topic_type == PARTITIONED and (partitions is None or partitions <= 0):
        raise click.UsageError("Must specify num-partitions > 0 for partitioned topic type.")
    await admin.namespaces.set_auto_topic_creation(namespace, AutoTopicCreation(allowed, topic_type, partitions))


@_policy_command("get-auto-topic-creation")
@click.option("-ap", "--applied", is_flag=True, help="What is in force, the broker's settings included.")
async def get_auto_topic_creation(admin: AdminClient, namespace: NamespaceName, applied: bool) -> None:
    """Print the override of the namespace, null if there is none."""
    from interpulse.replication.snapshot import broker_auto_creation

    policy = await admin.namespaces.auto_topic_creation(namespace, applied=applied)
    if policy is None and applied:
        policy = as_override(broker_auto_creation(await admin.brokers.runtime_configuration()))
    print_json(policy and policy.to_json())


@_policy_command("remove-auto-topic-creation")
async def remove_auto_topic_creation(admin: AdminClient, namespace: NamespaceName) -> None:
    """Let the broker's settings apply again."""
    await admin.namespaces.remove_auto_topic_creation(namespace)


@_policy_command("set-auto-subscription-creation")
@_switch("creation of subscriptions by subscribing")
async def set_auto_subscription_creation(
    admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool
) -> None:
    """Say whether subscribing creates a missing subscription; not, unless --enable is given."""
    if enable and disable:
        raise click.UsageError("Specify either --enable or --disable")
    await admin.namespaces.set_auto_subscription_creation(namespace, enable)


@_policy_command("get-auto-subscription-creation")
async def get_auto_subscription_creation(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the override of the namespace, null if there is none."""
    allowed = await admin.namespaces.auto_subscription_creation(namespace)
    print_json(None if allowed is None else {"allowAutoSubscriptionCreation": allowed})


@_policy_command("remove-auto-subscription-creation")
async def remove_auto_subscription_creation(admin: AdminClient, namespace: NamespaceName) -> None:
    """Let the broker's settings apply again."""
    await admin.namespaces.remove_auto_subscription_creation(namespace)


# Topics that nobody needs any more


@_policy_command("set-inactive-topic-policies")
@inactive_topic_options
async def set_inactive_topic_policies(
    admin: AdminClient, namespace: NamespaceName, policies: InactiveTopicPolicies
) -> None:
    """Say whether topics that nobody needs are deleted, and after which time."""
    await admin.namespaces.set_inactive_topic_policies(namespace, policies)


@_policy_command("get-inactive-topic-policies")
async def get_inactive_topic_policies(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print what is set for the namespace, null if the broker's settings apply."""
    policies = await admin.namespaces.inactive_topic_policies(namespace)
    print_json(policies and policies.to_json())


@_policy_command("remove-inactive-topic-policies")
async def remove_inactive_topic_policies(admin: AdminClient, namespace: NamespaceName) -> None:
    """Let the broker's settings apply again."""
    await admin.namespaces.remove_inactive_topic_policies(namespace)


# Keeping messages


@_policy_command("set-deduplication")
@_switch("deduplication")
async def set_deduplication(admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool) -> None:
    """Say whether repeated messages of a producer are dropped."""
    await admin.namespaces.set_deduplication(namespace, _one_of(enable, disable))


@_policy_command("get-deduplication")
async def get_deduplication(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print true, false, or null if the broker's setting applies."""
    print_json(await admin.namespaces.deduplication(namespace))


@_policy_command("remove-deduplication")
async def remove_deduplication(admin: AdminClient, namespace: NamespaceName) -> None:
    """Let the broker's setting apply again."""
    await admin.namespaces.remove_deduplication(namespace)


@_policy_command("set-retention")
@click.option("-t", "--time", "time_seconds", type=TIME, required=True, help="How long: 100m, 3h, 2d, 5w; -1 for ever.")
@click.option("-s", "--size", "size_bytes", type=SIZE, required=True, help="How much: 10M, 16G, 3T; -1 without limit.")
async def set_retention(admin: AdminClient, namespace: NamespaceName, time_seconds: int, size_bytes: int) -> None:
    """Say how long acknowledged messages are kept; 0 = not at all."""
    time_minutes = -1 if time_seconds == -1 else time_seconds // 60
    size_mb = -1 if size_bytes == -1 else size_bytes // 2**20
    await admin.namespaces.set_retention(namespace, RetentionPolicies(time_minutes, size_mb))


@_policy_command("get-retention")
async def get_retention(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the retention, null if the broker's setting applies."""
    policy = await admin.namespaces.retention(namespace)
    print_json(policy and policy.to_json())


@_policy_command("remove-retention")
async def remove_retention(admin: AdminClient, namespace: NamespaceName) -> None:
    """Let the broker's setting apply again."""
    await admin.namespaces.remove_retention(namespace)


@_policy_command("set-message-ttl")
@click.option(
    "-ttl", "--messageTTL", "ttl_seconds", type=TIME, required=True, help="Seconds, or 100m, 3h, 2d, 5w; 0 = no expiry."
)
async def set_message_ttl(admin: AdminClient, namespace: NamespaceName, ttl_seconds: int) -> None:
    """Say after which time unacknowledged messages expire."""
    await admin.namespaces.set_message_ttl(namespace, ttl_seconds)


@_policy_command("get-message-ttl")
async def get_message_ttl(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the time in seconds, null if the broker's setting applies."""
    print_json(await admin.namespaces.message_ttl(namespace))


@_policy_command("remove-message-ttl")
async def remove_message_ttl(admin: AdminClient, namespace: NamespaceName) -> None:
    """Let the broker's setting apply again."""
    await admin.namespaces.remove_message_ttl(namespace)


# Limits


@_policy_command("set-max-topics-per-namespace")
@click.option("-t", "--max-topics-per-namespace", "count", type=int, required=True, help="How many; 0 = no limit.")
async def set_max_topics(admin: AdminClient, namespace: NamespaceName, count: int) -> None:
    """Limit the number of topics."""
    await admin.namespaces.set_max_topics(namespace, count)


@_policy_command("get-max-topics-per-namespace")
async def get_max_topics(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the limit, 0 or null if there is none."""
    print_json(await admin.namespaces.max_topics(namespace))


@_policy_command("remove-max-topics-per-namespace")
async def remove_max_topics(admin: AdminClient, namespace: NamespaceName) -> None:
    """Let the broker's limit apply again."""
    await admin.namespaces.remove_max_topics(namespace)


# Schemas


@_policy_command("set-is-allow-auto-update-schema")
@_switch("new schemas brought by producers")
@click.option(
    "--enable-for-replicator",
    type=bool,
    is_flag=False,
    flag_value="true",
    default=None,
    help="Whether replicators may bring schemas although it is disabled; unchanged if not given.",
)
async def set_auto_update_schema(
    admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool, enable_for_replicator: bool | None
) -> None:
    """Say whether producers may bring new schemas."""
    allowed = _one_of(enable, disable)
    if allowed and enable_for_replicator is False:
        raise click.UsageError("--enable-for-replicator=false needs --disable: replicators may do what producers may")
    await admin.namespaces.set_auto_update_schema_allowed(namespace, allowed, with_replicator=enable_for_replicator)


@_policy_command("get-is-allow-auto-update-schema")
async def get_auto_update_schema(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print whether producers may bring new schemas."""
    print_json(await admin.namespaces.auto_update_schema_allowed(namespace))


@_policy_command("set-schema-compatibility-strategy")
@click.option("-c", "--compatibility", "strategy", type=click.Choice(_STRATEGIES), required=True, help="Strategy.")
async def set_schema_compatibility_strategy(admin: AdminClient, namespace: NamespaceName, strategy: str) -> None:
    """Say how a new schema must fit the ones before it."""
    await admin.namespaces.set_schema_compatibility_strategy(namespace, strategy)


@_policy_command("get-schema-compatibility-strategy")
async def get_schema_compatibility_strategy(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the strategy, UNDEFINED if the broker's applies."""
    print_text(await admin.namespaces.schema_compatibility_strategy(namespace))


@_policy_command("set-schema-validation-enforce")
@_switch("the demand that producers bring a schema")
async def set_schema_validation(admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool) -> None:
    """Say whether producers need a schema on a topic that has one."""
    await admin.namespaces.set_schema_validation_enforced(namespace, _one_of(enable, disable))


@_policy_command("get-schema-validation-enforce")
@click.option("-ap", "--applied", is_flag=True, help="What is in force, the broker's setting included.")
async def get_schema_validation(admin: AdminClient, namespace: NamespaceName, applied: bool) -> None:
    """Print whether producers need a schema."""
    print_json(await admin.namespaces.schema_validation_enforced(namespace, applied=applied))
