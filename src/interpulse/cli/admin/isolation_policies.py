"""Group ``ns-isolation-policy``: the brokers of a cluster that may serve a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import PAIRS, STRINGS, joined_pairs
from interpulse.cli.support.running import admin_command
from interpulse.model.isolation import MIN_AVAILABLE, IsolationPolicy, UnloadScope
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
@click.option(
    "--auto-failover-policy-params",
    "parameters",
    type=PAIRS,
    multiple=True,
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
    parameters: tuple[dict[str, str], ...],
    unload_scope: str | None,
) -> None:
    """Create or replace a policy of a cluster."""
    value = IsolationPolicy(
        tuple(namespaces), tuple(primary), tuple(secondary), joined_pairs(parameters), policy_type, unload_scope
    )
    await admin.clusters.set_isolation_policy(cluster, policy, value)


@isolation_policies.command("get")
@click.argument("cluster")
@click.argument("policy")
@admin_command
async def get_policy(admin: AdminClient, cluster: str, policy: str) -> None:
    """Print a policy of a cluster."""
    print_json((await admin.clusters.isolation_policy(cluster, policy)).to_json())


@isolation_policies.command("list")
@click.argument("cluster")
@admin_command
async def list_policies(admin: AdminClient, cluster: str) -> None:
    """Print all policies of a cluster."""
    found = await admin.clusters.isolation_policies(cluster)
    print_json({name: policy.to_json() for name, policy in found.items()})


@isolation_policies.command("delete")
@click.argument("cluster")
@click.argument("policy")
@admin_command
async def delete_policy(admin: AdminClient, cluster: str, policy: str) -> None:
    """Delete a policy of a cluster. Bundles stay where they are until they are unloaded."""
    await admin.clusters.delete_isolation_policy(cluster, policy)


@isolation_policies.command("brokers")
@click.argument("cluster")
@admin_command
async def list_brokers(admin: AdminClient, cluster: str) -> None:
    """Print how the policies apply to each active broker. Expressions are matched with host:port here."""
    print_json(
        [isolation_of_broker.to_json() for isolation_of_broker in await admin.clusters.isolation_of_brokers(cluster)]
    )


@isolation_policies.command("broker")
@click.argument("cluster")
@click.option("--broker", required=True, help="The broker, host:port.")
@admin_command
async def get_broker(admin: AdminClient, cluster: str, broker: str) -> None:
    """Print how the policies apply to a broker, which need not be active."""
    print_json((await admin.clusters.isolation_of_broker(cluster, broker)).to_json())
