"""Group ``brokers``: active brokers, their health and their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.admin.wide_lists import print_brokers
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.running import admin_command
from interpulse.terminal.output import (
    is_wide,
    print_json,
    print_lines,
    print_pairs,
    print_text,
    print_value,
    print_wide,
)

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_OWNERSHIP: Final = ("broker_assignment", "is_controlled", "is_active")


@click.group(cls=CommandGroup)
def brokers() -> None:
    """Operations about brokers."""


@brokers.command("list")
@click.argument("cluster", required=False)
@admin_command
async def list_brokers(admin: AdminClient, cluster: str | None) -> None:
    """List the active brokers.

    -o wide shows which of them balances load.
    """
    names = await admin.brokers.list(cluster)
    if is_wide():
        await print_brokers(admin, names)
    else:
        print_lines(names)


@brokers.command("leader-broker")
@admin_command
async def leader_broker(admin: AdminClient) -> None:
    """Print the broker that balances load."""
    print_json(await admin.brokers.leader())


@brokers.command("namespaces")
@click.argument("cluster")
@click.option("-u", "--url", "broker", required=True, help="Address of the broker, as list prints it: host:port.")
@admin_command
async def list_owned_namespaces(admin: AdminClient, cluster: str, broker: str) -> None:
    """List the bundles that a broker serves.

    -o wide prints them as a table.
    """
    owned = await admin.brokers.owned_namespaces(cluster, broker)
    if is_wide():
        rows = [(bundle, *map(status.get, _OWNERSHIP)) for bundle, status in owned.items()]
        print_wide(("bundle", *_OWNERSHIP), rows)
        return
    print_value(owned, "\n".join(f"{bundle}    {_ownership(status)}" for bundle, status in owned.items()))


def _ownership(status: Mapping[str, Any]) -> str:
    return f"[{' '.join(f'{name}={str(status.get(name)).lower()}' for name in _OWNERSHIP)}]"


@brokers.command("version")
@admin_command
async def version(admin: AdminClient) -> None:
    """Print the version of the broker."""
    print_text(await admin.brokers.version())


@brokers.command("backlog-quota-check")
@admin_command
async def check_backlog_quotas(admin: AdminClient) -> None:
    """Compare backlogs with their quotas now; print ok."""
    await admin.brokers.check_backlog_quotas()
    print_text("ok")


@brokers.command("healthcheck")
@click.option(
    "-tv",
    "--topic-version",
    type=click.Choice(["V1", "V2"]),
    help="Of the topic that a real broker checks itself with; here one check serves both.",
)
@admin_command
async def healthcheck(admin: AdminClient, topic_version: str | None) -> None:
    """Check the broker with a message to itself; print ok."""
    print_text(await admin.brokers.health(topic_version=topic_version))


@brokers.command("get-runtime-config")
@admin_command
async def get_runtime_config(admin: AdminClient) -> None:
    """Print every key with its value in force."""
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
@click.option("-c", "--config", "name", required=True, help="Key.")
@click.option("-v", "--value", required=True, help="New value.")
@admin_command
async def update_dynamic_config(admin: AdminClient, name: str, value: str) -> None:
    """Change a key at run time."""
    await admin.brokers.set_dynamic_configuration(name, value)


@brokers.command("delete-dynamic-config")
@click.option("-c", "--config", "name", required=True, help="Key.")
@admin_command
async def delete_dynamic_config(admin: AdminClient, name: str) -> None:
    """Remove the change of a key; the value of the configuration file applies again."""
    await admin.brokers.delete_dynamic_configuration(name)
