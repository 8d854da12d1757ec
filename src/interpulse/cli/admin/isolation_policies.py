"""Group ``ns-isolation-policy``: the brokers of a cluster that may serve a namespace."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.support.call_commands import call_command, pairs_option, print_record, print_records
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import STRINGS
from interpulse.cli.support.running import admin_command
from interpulse.model.isolation import MIN_AVAILABLE, BrokerIsolation, IsolationPolicy, UnloadScope
from interpulse.terminal.output import print_json

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient


@click.group(cls=CommandGroup)
def isolation_policies() -> None:
    """Operations about namespace isolation policies, which select the brokers that may serve a namespace."""


@isolation_policies.command("set")
@click.argument("cluster")
@click.argument("policy")
@click.option(
    "--namespaces", type=STRINGS, required=True, help="Regular expressions of tenant/namespace, separated by commas."
)
@click.option(
    "--primary",
    type=STRINGS,
    required=True,
    help="Regular expressions of host names, without port: such brokers serve these namespaces and no others.",
)
@click.option(
    "--secondary",
    type=STRINGS,
    default="",
    help="Regular expressions of host names: such brokers serve them too while there are too few primary ones.",
)
@click.option(
    "--auto-failover-policy-type",
    "policy_type",
    type=click.Choice([MIN_AVAILABLE]),
    required=True,
    help="When secondary brokers serve.",
)
@pairs_option(
    "--auto-failover-policy-params",
    "parameters",
    required=True,
    help="min_limit=1,usage_threshold=80: secondary brokers serve while there are fewer primary ones than min_limit. "
    "usage_threshold has to be given, and has no effect.",
)
@click.option(
    "--unload-scope",
    type=click.Choice([each.value for each in UnloadScope]),
    help="Namespaces to unload, so that they are placed again: those whose brokers change (the default), all that the "
    "policy names or named before, or none.",
)
@admin_command
async def set_policy(
    admin: AdminClient,
    cluster: str,
    policy: str,
    namespaces: list[str],
    primary: list[str],
    secondary: list[str],
    policy_type: str,
    parameters: dict[str, str],
    unload_scope: str | None,
) -> None:
    """Create or replace a policy of a cluster."""
    value = IsolationPolicy(tuple(namespaces), tuple(primary), tuple(secondary), parameters, policy_type, unload_scope)
    await admin.clusters.set_isolation_policy(cluster, policy, value)


def _print_list(values: list[BrokerIsolation]) -> None:
    print_json([value.to_json() for value in values])


_cluster = click.argument("name", metavar="CLUSTER")
_call = partial(call_command, isolation_policies.add_command, "clusters", _cluster)
_policy = click.argument("policy_name", metavar="POLICY")
_broker = click.option("--broker", required=True, help="The broker, host:port.")

_call("get", "isolation_policy", "Print a policy of a cluster.", _policy, show=print_record)
_call("list", "isolation_policies", "Print all policies of a cluster.", show=print_records)
_call(
    "delete",
    "delete_isolation_policy",
    "Delete a policy of a cluster. Bundles stay where they are until they are unloaded.",
    _policy,
)
_call(
    "brokers",
    "isolation_of_brokers",
    "Print how the policies apply to each active broker. Expressions are matched with host:port here.",
    show=_print_list,
)
_call(
    "broker",
    "isolation_of_broker",
    "Print how the policies apply to a broker, which need not be active.",
    _broker,
    show=print_record,
)
