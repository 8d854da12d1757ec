"""Commands of ``namespaces`` about properties."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.support.command_lists import namespace_command
from interpulse.cli.support.params import PAIRS, joined_pairs
from interpulse.model.names import NamespaceName
from interpulse.terminal.output import print_json, print_pairs, print_text

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

PROPERTY_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_property_command = partial(namespace_command, PROPERTY_COMMANDS)
_key = click.option("-k", "--key", required=True, help="Name of the property.")


@_property_command("set-property")
@_key
@click.option("-v", "--value", required=True, help="Value of the property.")
async def set_property(admin: AdminClient, namespace: NamespaceName, key: str, value: str) -> None:
    """Set one property. Others stay."""
    await admin.namespaces.set_property(namespace, key, value)


@_property_command("set-properties")
@click.option("-p", "--properties", type=PAIRS, multiple=True, required=True, help="Properties: a=b,c=d.")
async def set_properties(admin: AdminClient, namespace: NamespaceName, properties: tuple[dict[str, str], ...]) -> None:
    """Set properties. Others stay."""
    await admin.namespaces.update_properties(namespace, joined_pairs(properties))


@_property_command("get-property")
@_key
async def get_property(admin: AdminClient, namespace: NamespaceName, key: str) -> None:
    """Print the value of one property, or null if there is none."""
    _print_value(await admin.namespaces.property(namespace, key))


@_property_command("get-properties")
async def get_properties(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print all properties."""
    print_pairs(await admin.namespaces.properties(namespace))


@_property_command("remove-property")
@_key
async def remove_property(admin: AdminClient, namespace: NamespaceName, key: str) -> None:
    """Remove one property, and print the value it had."""
    value = await admin.namespaces.property(namespace, key)
    await admin.namespaces.remove_property(namespace, key)
    _print_value(value)


@_property_command("clear-properties")
async def clear_properties(admin: AdminClient, namespace: NamespaceName) -> None:
    """Remove all properties."""
    await admin.namespaces.clear_properties(namespace)


def _print_value(value: str | None) -> None:
    if value is None:
        print_json(None)
    else:
        print_text(value)
