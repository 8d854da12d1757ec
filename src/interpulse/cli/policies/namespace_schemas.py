"""The policies of a namespace about schemas: commands of the forms ``set-...`` and ``get-...``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.policies.policy_options import one_of, switch
from interpulse.cli.support.command_lists import namespace_command
from interpulse.cli.support.output import print_json, print_text
from interpulse.model.names import NamespaceName
from interpulse.rules.policies import check_schema_switch
from interpulse.rules.policy_checks import SCHEMA_STRATEGIES

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

__all__ = ["SCHEMA_POLICY_COMMANDS"]

_STRATEGIES = ("UNDEFINED", *SCHEMA_STRATEGIES)
_OLD_STRATEGIES = {"FULL": "Full", "BACKWARD": "Backward", "FORWARD": "Forward", "NONE": "AlwaysCompatible"}
SCHEMA_POLICY_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_policy_command = partial(namespace_command, SCHEMA_POLICY_COMMANDS)

_enable_for_replicator = click.option(
    "--enable-for-replicator",
    type=bool,
    is_flag=False,
    flag_value="true",
    default=None,
    help="Whether replicators may bring schemas although it is disabled; unchanged if not given.",
)


@_policy_command("set-is-allow-auto-update-schema")
@switch("new schemas brought by producers")
@_enable_for_replicator
async def set_auto_update_schema(
    admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool, enable_for_replicator: bool | None
) -> None:
    """Say whether producers may bring new schemas."""
    allowed = one_of(enable, disable)
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
@switch("the demand that producers bring a schema")
async def set_schema_validation(admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool) -> None:
    """Say whether producers need a schema on a topic that has one."""
    await admin.namespaces.set_schema_validation_enforced(namespace, one_of(enable, disable))


@_policy_command("get-schema-validation-enforce")
@click.option("-ap", "--applied", is_flag=True, help="What is in force, the broker's setting included.")
async def get_schema_validation(admin: AdminClient, namespace: NamespaceName, applied: bool) -> None:
    """Print whether producers need a schema."""
    print_json(await admin.namespaces.schema_validation_enforced(namespace, applied=applied))


@_policy_command("set-schema-autoupdate-strategy")
@click.option("-c", "--compatibility", "level", help="How a new schema must fit: Full, Backward, Forward or None.")
@click.option("-d", "--disabled", is_flag=True, help="New schemas are refused unless the topic has none.")
@_enable_for_replicator
async def set_schema_auto_update_strategy(
    admin: AdminClient, namespace: NamespaceName, level: str | None, disabled: bool, enable_for_replicator: bool | None
) -> None:
    """Say how a new schema must fit, as older clusters know it; the compatibility strategy goes before it.

    --enable-for-replicator is a call of its own, that of set-is-allow-auto-update-schema; what is in force for other
    producers becomes the word of the namespace with it.
    """
    strategy = "AutoUpdateDisabled" if disabled else _OLD_STRATEGIES.get((level or "").upper())
    if strategy is None:
        raise click.UsageError("Need to specify --compatibility (Full, Backward, Forward or None) or --disabled")
    if enable_for_replicator is not None:
        allowed = await admin.namespaces.auto_update_schema_allowed(namespace)
        check_schema_switch(allowed, enable_for_replicator)
        await admin.namespaces.set_auto_update_schema_allowed(namespace, allowed, with_replicator=enable_for_replicator)
    await admin.namespaces.set_schema_auto_update_strategy(namespace, strategy)


@_policy_command("get-schema-autoupdate-strategy")
async def get_schema_auto_update_strategy(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print that strategy in capitals, null if it was never set."""
    strategy = await admin.namespaces.schema_auto_update_strategy(namespace)
    print_text("null" if strategy is None else strategy.upper())
