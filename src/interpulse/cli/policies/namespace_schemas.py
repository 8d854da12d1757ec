"""The policies of a namespace about schemas: commands of the forms ``set-...`` and ``get-...``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.policies.policy_options import one_of, switch
from interpulse.cli.support.command_lists import namespace_command
from interpulse.model.names import NamespaceName
from interpulse.rules.policy_checks import SCHEMA_STRATEGIES, check_schema_switch
from interpulse.terminal.output import print_json, print_text

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

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
    help="Whether replicators may register schemas although it is disabled; unchanged if not given.",
)


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


@_policy_command("get-is-allow-auto-update-schema")
async def get_auto_update_schema(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print whether producers may register new schemas."""
    print_json(await admin.namespaces.auto_update_schema_allowed(namespace))


@_policy_command("set-schema-compatibility-strategy")
@click.option("-c", "--compatibility", "strategy", type=click.Choice(_STRATEGIES), required=True, help="The strategy.")
async def set_schema_compatibility_strategy(admin: AdminClient, namespace: NamespaceName, strategy: str) -> None:
    """Set how a new schema must be compatible with those before it."""
    await admin.namespaces.set_schema_compatibility_strategy(namespace, strategy)


@_policy_command("get-schema-compatibility-strategy")
async def get_schema_compatibility_strategy(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the strategy, UNDEFINED if the broker's applies."""
    print_text(await admin.namespaces.schema_compatibility_strategy(namespace))


@_policy_command("set-schema-validation-enforce")
@switch("the requirement that producers have a schema")
async def set_schema_validation(admin: AdminClient, namespace: NamespaceName, enable: bool, disable: bool) -> None:
    """Set whether producers need a schema on a topic that has one."""
    await admin.namespaces.set_schema_validation_enforced(namespace, one_of(enable, disable))


@_policy_command("get-schema-validation-enforce")
@click.option("-ap", "--applied", is_flag=True, help="Print the value in force, the broker's setting included.")
async def get_schema_validation(admin: AdminClient, namespace: NamespaceName, applied: bool) -> None:
    """Print whether producers need a schema."""
    print_json(await admin.namespaces.schema_validation_enforced(namespace, applied=applied))


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


@_policy_command("get-schema-autoupdate-strategy")
async def get_schema_auto_update_strategy(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the strategy that older clusters know, in capitals; null if it is not set."""
    strategy = await admin.namespaces.schema_auto_update_strategy(namespace)
    print_text("null" if strategy is None else strategy.upper())
