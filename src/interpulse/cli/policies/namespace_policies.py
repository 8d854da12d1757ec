"""Commands of ``namespaces`` about policies: those of the catalogue, and those with options of their own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.policies.policy_commands import Calls, policy_commands, quota_commands
from interpulse.cli.policies.policy_forms import STRATEGIES, enabled, one_of, switch
from interpulse.cli.support.call_commands import call_command, namespace_argument, namespace_command
from interpulse.cli.support.params import NAMESPACE
from interpulse.cli.support.running import CommandFailed
from interpulse.model.names import NamespaceName
from interpulse.model.policies.catalogue import OF_NAMESPACES
from interpulse.model.policies.policy_records import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.rules.inventory import as_override, broker_auto_creation
from interpulse.rules.policy_checks import check_schema_switch
from interpulse.terminal.output import print_json, print_text

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_target = click.argument("target", metavar="NAMESPACE", type=NAMESPACE)
_CALLS: Final = Calls("namespaces", "policy", "set_policy", "remove_policy", _target)

POLICY_COMMANDS: list[click.Command] = [
    *policy_commands(OF_NAMESPACES, "namespaces", _CALLS),
    *quota_commands("get-backlog-quotas", _CALLS),
]
"""Every command of this module."""

_OLD_STRATEGIES: Final = {"FULL": "Full", "BACKWARD": "Backward", "FORWARD": "Forward", "NONE": "AlwaysCompatible"}

_policy_command = partial(namespace_command, POLICY_COMMANDS)
_call = partial(call_command, POLICY_COMMANDS.append, "namespaces", namespace_argument)
_topics = click.option(
    "-t", "--max-topics-per-namespace", "count", type=int, required=True, help="Number of topics; 0 = no limit."
)
_strategy = click.option(
    "-c", "--compatibility", "strategy", type=click.Choice(STRATEGIES), required=True, help="The strategy."
)
_applied = click.option(
    "-ap", "--applied", is_flag=True, help="Print the value in force, the broker's setting included."
)
_enable_for_replicator = click.option(
    "--enable-for-replicator",
    type=bool,
    is_flag=False,
    flag_value="true",
    default=None,
    help="Whether replicators may register schemas although it is disabled; unchanged if not given.",
)


def _print_subscription_creation(allowed: bool | None) -> None:
    print_json(None if allowed is None else {"allowAutoSubscriptionCreation": allowed})


def _print_old_strategy(strategy: str | None) -> None:
    print_text("null" if strategy is None else strategy.upper())


_REMOVED: Final = "Remove the override; the broker's settings apply again."

_call("remove-auto-topic-creation", "remove_auto_topic_creation", _REMOVED)
_call("remove-auto-subscription-creation", "remove_auto_subscription_creation", _REMOVED)
_call(
    "get-auto-subscription-creation",
    "auto_subscription_creation",
    "Print the override of the namespace, null if there is none.",
    show=_print_subscription_creation,
)
_call("set-max-topics-per-namespace", "set_max_topics", "Limit the number of topics of a namespace.", _topics)
_call("get-max-topics-per-namespace", "max_topics", "Print the limit, 0 or null if there is none.", show=print_json)
_call("remove-max-topics-per-namespace", "remove_max_topics", "Remove the limit; the broker's limit applies again.")
_call(
    "get-is-allow-auto-update-schema",
    "auto_update_schema_allowed",
    "Print whether producers may register new schemas.",
    show=print_json,
)
_call(
    "set-schema-compatibility-strategy",
    "set_schema_compatibility_strategy",
    "Set how a new schema must be compatible with those before it.",
    _strategy,
)
_call(
    "get-schema-compatibility-strategy",
    "schema_compatibility_strategy",
    "Print the strategy, UNDEFINED if the broker's applies.",
    show=print_text,
)
_call(
    "get-schema-validation-enforce",
    "schema_validation_enforced",
    "Print whether producers need a schema.",
    _applied,
    show=print_json,
)
_call(
    "get-schema-autoupdate-strategy",
    "schema_auto_update_strategy",
    "Print the strategy that older clusters know, in capitals; null if it is not set.",
    show=_print_old_strategy,
)


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


@_policy_command("set-auto-subscription-creation")
@switch("automatic creation of subscriptions")
async def set_auto_subscription_creation(
    admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool
) -> None:
    """Set whether subscribing creates a missing subscription; it does not without --enable."""
    await admin.namespaces.set_auto_subscription_creation(namespace, enabled(enable, disable))


@_policy_command("set-is-allow-auto-update-schema")
@switch("new schemas of producers")
@_enable_for_replicator
async def set_auto_update_schema(
    admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool, enable_for_replicator: bool | None
) -> None:
    """Set whether producers may register new schemas."""
    allowed = one_of(enable, disable)
    if allowed and enable_for_replicator is False:
        raise click.UsageError(
            "--enable-for-replicator=false needs --disable: replicators may do all that producers may do"
        )
    await admin.namespaces.set_auto_update_schema_allowed(namespace, allowed, with_replicator=enable_for_replicator)


@_policy_command("set-schema-validation-enforce")
@switch("the requirement that producers have a schema")
async def set_schema_validation(admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool) -> None:
    """Set whether producers need a schema on a topic that has one."""
    await admin.namespaces.set_schema_validation_enforced(namespace, one_of(enable, disable))


@_policy_command("set-schema-autoupdate-strategy")
@click.option("-c", "--compatibility", "level", help="Compatibility of a new schema: Full, Backward, Forward or None.")
@click.option("-d", "--disabled", is_flag=True, help="Refuse new schemas unless the topic has none.")
@_enable_for_replicator
async def set_schema_auto_update_strategy(
    admin: AdminClient, namespace: NamespaceName, level: str | None, disabled: bool, enable_for_replicator: bool | None
) -> None:
    """Set the schema compatibility that older clusters know; the compatibility strategy overrides it.

    --enable-for-replicator calls set-is-allow-auto-update-schema, with the value in force for other producers.
    """
    strategy = "AutoUpdateDisabled" if disabled else _OLD_STRATEGIES.get((level or "").upper())
    if strategy is None:
        raise click.UsageError("Need to specify --compatibility (Full, Backward, Forward or None) or --disabled")
    if enable_for_replicator is not None:
        allowed = await admin.namespaces.auto_update_schema_allowed(namespace)
        check_schema_switch(allowed, enable_for_replicator)
        await admin.namespaces.set_auto_update_schema_allowed(namespace, allowed, with_replicator=enable_for_replicator)
    await admin.namespaces.set_schema_auto_update_strategy(namespace, strategy)
