"""Commands of ``namespaces`` about bundles, and about the subscriptions of all topics together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.support.command_lists import namespace_command
from interpulse.cli.support.params import BUNDLE, NUMBERS
from interpulse.model.names import NamespaceName
from interpulse.terminal.output import print_json

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

BUNDLE_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_namespace_command = partial(namespace_command, BUNDLE_COMMANDS)
_bundle = click.option("-b", "--bundle", type=BUNDLE, help="A single bundle: 0x00000000_0x40000000.")


@_namespace_command("bundles")
async def get_bundles(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the bundles of a namespace, which are hash ranges."""
    print_json(await admin.namespaces.bundles(namespace))


@_namespace_command("unload")
@_bundle
@click.option("-d", "--destinationBroker", "destination", help="Broker that takes the bundle.")
async def unload_namespace(
    admin: AdminClient, namespace: NamespaceName, bundle: str | None, destination: str | None
) -> None:
    """Close the topics of a namespace in their brokers. The next clients load them again."""
    if destination is not None and bundle is None:
        raise click.UsageError("--destinationBroker needs --bundle: a namespace may be spread over brokers")
    await admin.namespaces.unload(namespace, bundle=bundle, destination_broker=destination)


@_namespace_command("split-bundle")
@click.option("-b", "--bundle", type=BUNDLE, help="The bundle: 0x00000000_0x40000000.")
@click.option(
    "-bt", "--bundle-type", type=click.Choice(["LARGEST", "HOT"]), help="The bundle with most topics, or most load."
)
@click.option("-u", "--unload", "unloaded", is_flag=True, help="Close the topics of the bundle afterwards.")
@click.option(
    "-san",
    "--split-algorithm-name",
    "algorithm",
    help="range_equally_divide, topic_count_equally_divide, specified_positions_divide or flow_or_qps_equally_divide; "
    "the broker chooses if not given.",
)
@click.option("-sb", "--split-boundaries", "positions", type=NUMBERS, help="Boundaries for specified_positions_divide.")
async def split_bundle(
    admin: AdminClient,
    namespace: NamespaceName,
    bundle: str | None,
    bundle_type: str | None,
    unloaded: bool,
    algorithm: str | None,
    positions: list[int] | None,
) -> None:
    """Split a bundle of a namespace."""
    if (bundle is None) == (bundle_type is None):
        raise click.UsageError("Need to specify either --bundle or --bundle-type")
    chosen = bundle or str(bundle_type)
    await admin.namespaces.split_bundle(
        namespace, chosen, algorithm=algorithm, positions=positions or (), unload=unloaded
    )


@_namespace_command("clear-backlog")
@click.option("-s", "--sub", "subscription", help="A single subscription.")
@_bundle
@click.option("-force", "--force", "forced", is_flag=True, help="Do not ask for confirmation.")
async def clear_backlog(
    admin: AdminClient, namespace: NamespaceName, subscription: str | None, bundle: str | None, forced: bool
) -> None:
    """Acknowledge the backlog of all subscriptions of a namespace."""
    if forced or click.confirm("Are you sure you want to clear the backlog?"):
        await admin.namespaces.clear_backlog(namespace, subscription=subscription, bundle=bundle)


@_namespace_command("unsubscribe")
@click.option("-s", "--sub", "subscription", required=True, help="Name of the subscription.")
@_bundle
async def unsubscribe(admin: AdminClient, namespace: NamespaceName, subscription: str, bundle: str | None) -> None:
    """Delete a subscription from all topics of a namespace."""
    await admin.namespaces.unsubscribe(namespace, subscription, bundle=bundle)
