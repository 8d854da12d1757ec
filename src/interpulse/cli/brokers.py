"""``brokers``: who is there, is it well, and how is it configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interpulse.cli.output import print_lines, print_pairs, print_text
from interpulse.cli.running import admin_command

if TYPE_CHECKING:
    from interpulse.client.admin import AdminClient

__all__ = ["brokers"]


@click.group()
def brokers() -> None:
    """Operations about brokers."""


@brokers.command("list")
@click.argument("cluster", required=False)
@admin_command
async def list_brokers(admin: AdminClient, cluster: str | None) -> None:
    """List the active brokers."""
    print_lines(await admin.brokers.list(cluster))


@brokers.command("healthcheck")
@admin_command
async def healthcheck(admin: AdminClient) -> None:
    """Let the broker send a message to itself; print ok."""
    print_text(await admin.brokers.health())


@brokers.command("get-runtime-config")
@admin_command
async def get_runtime_config(admin: AdminClient) -> None:
    """Print every key with the value in force."""
    print_pairs(await admin.brokers.runtime_configuration())


@brokers.command("list-dynamic-config")
@admin_command
async def list_dynamic_config(admin: AdminClient) -> None:
    """List the keys that can be changed while the broker runs."""
    print_lines(await admin.brokers.dynamic_configuration_names())


@brokers.command("get-all-dynamic-config")
@admin_command
async def get_all_dynamic_config(admin: AdminClient) -> None:
    """Print the keys that were changed at run time."""
    print_pairs(await admin.brokers.dynamic_configuration())


@brokers.command("update-dynamic-config")
@click.option("--config", "name", required=True, help="Key.")
@click.option("--value", required=True, help="New value.")
@admin_command
async def update_dynamic_config(admin: AdminClient, name: str, value: str) -> None:
    """Change a key at run time."""
    await admin.brokers.set_dynamic_configuration(name, value)


@brokers.command("delete-dynamic-config")
@click.option("--config", "name", required=True, help="Key.")
@admin_command
async def delete_dynamic_config(admin: AdminClient, name: str) -> None:
    """Take a change back: the value of the start-up file counts again."""
    await admin.brokers.delete_dynamic_configuration(name)
