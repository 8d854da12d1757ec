"""Group ``brokers``: active brokers, their health and their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.admin.wide_lists import print_brokers
from interpulse.cli.support.call_commands import call_command
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


_call = partial(call_command, brokers.add_command, "brokers", None)
_key = click.option("-c", "--config", "name", required=True, help="Key.")
_value = click.option("-v", "--value", required=True, help="New value.")
_topic_version = click.option(
    "-tv",
    "--topic-version",
    type=click.Choice(["V1", "V2"]),
    help="Of the topic that a real broker checks itself with; here one check serves both.",
)


def _print_ok(answer: object) -> None:
    print_text("ok")


_call("leader-broker", "leader", "Print the broker that balances load.", show=print_json)
_call("version", "version", "Print the version of the broker.", show=print_text)
_call(
    "backlog-quota-check", "check_backlog_quotas", "Compare backlogs with their quotas now; print ok.", show=_print_ok
)
_call("healthcheck", "health", "Check the broker with a message to itself; print ok.", _topic_version, show=print_text)
_call("get-runtime-config", "runtime_configuration", "Print every key with its value in force.", show=print_pairs)
_call(
    "list-dynamic-config",
    "dynamic_configuration_names",
    "List the keys that can be changed while the broker runs.",
    show=print_lines,
)
_call(
    "get-all-dynamic-config", "dynamic_configuration", "Print the keys that were changed at run time.", show=print_pairs
)
_call("update-dynamic-config", "set_dynamic_configuration", "Change a key at run time.", _key, _value)
_call(
    "delete-dynamic-config",
    "delete_dynamic_configuration",
    "Remove the change of a key; the value of the configuration file applies again.",
    _key,
)
