"""Group ``namespaces``: creation, replication, and the policies of their topics."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.admin.permissions import NAMESPACE_PERMISSION_COMMANDS
from interpulse.cli.admin.replication_status import show_status
from interpulse.cli.admin.wide_lists import print_topics
from interpulse.cli.policies.namespace_policies import POLICY_COMMANDS
from interpulse.cli.policies.policy_forms import CLUSTERS
from interpulse.cli.support.call_commands import call_command, namespace_argument, pairs_option
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.completion import complete_tenants
from interpulse.cli.support.params import BUNDLE, COUNT, NUMBERS, STRINGS, domains_of, preview_option
from interpulse.cli.support.running import admin_command
from interpulse.cli.support.watched import watch_option
from interpulse.model.errors import Conflict
from interpulse.model.names import NamespaceName
from interpulse.terminal.output import is_wide, print_changes, print_json, print_lines, print_pairs, print_text

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_MODES = {
    "persistent": "PERSISTENT",
    "non-persistent": "NON_PERSISTENT",
    "non_persistent": "NON_PERSISTENT",
    "all": "ALL",
}


@click.group(cls=CommandGroup)
def namespaces() -> None:
    """Operations about namespaces."""


for command in (
    *POLICY_COMMANDS,
    *NAMESPACE_PERMISSION_COMMANDS,
):
    namespaces.add_command(command)


_call = partial(call_command, namespaces.add_command, "namespaces", namespace_argument)
_tenant = click.argument("tenant", shell_complete=complete_tenants)
_force = click.option("-f", "--force", is_flag=True, help="Delete the topics of the namespace too.")
_bundle = click.option("-b", "--bundle", type=BUNDLE, help="A single bundle: 0x00000000_0x40000000.")
_subscription = click.option("-s", "--sub", "subscription", required=True, help="Name of the subscription.")
_key = click.option("-k", "--key", required=True, help="Name of the property.")
_value = click.option("-v", "--value", required=True, help="Value of the property.")
_pairs = pairs_option("-p", "--properties", required=True, help="Properties: a=b,c=d.")


def _print_property(value: str | None) -> None:
    if value is None:
        print_json(None)
    else:
        print_text(value)


call_command(
    namespaces.add_command, "namespaces", _tenant, "list", "list", "List the namespaces of a tenant.", show=print_lines
)
_call("policies", "policies_json", "Print all policies of a namespace.", show=print_json)
_call("delete", "delete", "Delete a namespace.", _force, preview_option, show=print_changes)
_call("get-clusters", "replication_clusters", "List the clusters that a namespace is replicated to.", show=print_lines)
_call(
    "set-allowed-clusters",
    "set_allowed_clusters",
    "Set the clusters that a namespace may be replicated to.",
    CLUSTERS.add,
)
_call(
    "get-allowed-clusters",
    "allowed_clusters",
    "List the clusters that a namespace may be replicated to.",
    show=print_lines,
)
_call("bundles", "bundles", "Print the bundles of a namespace, which are hash ranges.", show=print_json)
_call("unsubscribe", "unsubscribe", "Delete a subscription from all topics of a namespace.", _subscription, _bundle)
_call("set-property", "set_property", "Set one property. Others stay.", _key, _value)
_call("set-properties", "update_properties", "Set properties. Others stay.", _pairs)
_call(
    "get-property", "property", "Print the value of one property, or null if there is none.", _key, show=_print_property
)
_call("get-properties", "properties", "Print all properties.", show=print_pairs)
_call("clear-properties", "clear_properties", "Remove all properties.")


_migrated = click.option("--migrated", is_flag=True, help="Redirect the clients; without it, that ends.")
_role = click.option("--role", type=click.Choice(("active", "fenced", "standby", "moved")), required=True, help="Role.")
_epoch = click.option("--epoch", type=COUNT, required=True, help="Number of the change, at least the stored one.")
_url = click.option("--url", help="For moved: broker service URL of the site that serves the namespace.")
_url_tls = click.option("--url-tls", help="Broker service URL of that site with TLS.")
_ready = click.option(
    "--subscriptions-ready",
    is_flag=True,
    help="That site has the subscriptions with their acknowledgements: redirect consumers before they have drained.",
)
_closed_to = click.option("--closed-to", metavar="CLUSTER", help="Refuse copies from this cluster.")
_hold = click.option(
    "--hold-consumers-for", type=COUNT, metavar="SECONDS", help="Refuse consumers of replicated subscriptions so long."
)

_call(
    "update-migration-state",
    "set_migrated",
    "Redirect the clients of a namespace to the cluster of clusters update-cluster-migration.",
    _migrated,
)
_call("get-failover-role", "failover_role", "Print the role of a namespace in a pair of clusters.", show=print_json)
_call(
    "set-failover-role",
    "set_failover_role",
    "Set the role of a namespace. Print the last position of every topic once local producers are closed.",
    _role,
    _epoch,
    _url,
    _url_tls,
    _ready,
    _closed_to,
    _hold,
    show=print_json,
)


@namespaces.command("remove-property")
@namespace_argument
@_key
@admin_command
async def remove_property(admin: AdminClient, namespace: NamespaceName, key: str) -> None:
    """Remove one property, and print the value it had."""
    value = await admin.namespaces.property(namespace, key)
    await admin.namespaces.remove_property(namespace, key)
    _print_property(value)


@namespaces.command("topics")
@namespace_argument
@click.option(
    "-m", "--mode", type=click.Choice(sorted(_MODES), case_sensitive=False), help="Which topics; persistent by default."
)
@click.option("-ist", "--include-system-topic", "system_included", is_flag=True, help="List system topics too.")
@admin_command
async def list_topics(admin: AdminClient, namespace: NamespaceName, mode: str | None, system_included: bool) -> None:
    """List the topics of a namespace.

    -o wide adds the columns of topics list -o wide.
    """
    wanted = _MODES[(mode or "persistent").lower()]
    names = await admin.namespaces.topics(namespace, mode=wanted, system_included=system_included)  # type: ignore[arg-type]
    if is_wide():
        await print_topics(admin, namespace, names, domains_of(None))
    else:
        print_lines(names)


@namespaces.command("create")
@namespace_argument
@click.option(
    "-c", "--clusters", type=STRINGS, multiple=True, help="Clusters of the namespace; the local one by default."
)
@click.option("-b", "--bundles", type=click.IntRange(min=0), default=0, help="Number of bundles.")
@preview_option
@admin_command
async def create_namespace(
    admin: AdminClient, namespace: NamespaceName, clusters: tuple[list[str], ...], bundles: int, previewed: bool
) -> None:
    """Create a namespace."""
    names = [name for part in clusters for name in part]
    changes = await admin.namespaces.create(
        namespace, clusters=names or None, bundles=bundles or None, previewed=previewed
    )
    print_changes(changes)


@namespaces.command("set-clusters")
@namespace_argument
@CLUSTERS.add
@click.option(
    "--skipCompareTopicPartitions",
    "--skip-compare-topic-partitions",
    "comparison_skipped",
    is_flag=True,
    help="Do not compare topics and policies with clusters that are new in the list.",
)
@click.option(
    "--adjust-namespace-level-policies-automatically",
    "adjusted",
    is_flag=True,
    help="First change the differences on those clusters: auto-creation, schema policies, partition counts.",
)
@preview_option
@click.option(
    "--plan-digest",
    "shown_digest",
    metavar="DIGEST",
    help="Change them only by the plan with this digest; --preview -o json tells it.",
)
@admin_command
async def set_clusters(
    admin: AdminClient,
    namespace: NamespaceName,
    clusters: list[str],
    comparison_skipped: bool,
    adjusted: bool,
    previewed: bool,
    shown_digest: str | None,
) -> None:
    """Replicate a namespace to clusters.

    With --preview or --adjust-namespace-level-policies-automatically, a plan is printed (PIP-433). Its exit codes: 0
    ready or applied, 1 changes are needed or failed, 3 conflicts that only an operator can solve.
    """
    if comparison_skipped and (adjusted or previewed):
        raise click.UsageError(
            "--skipCompareTopicPartitions excludes --preview and --adjust-namespace-level-policies-automatically"
        )
    if shown_digest is not None and (previewed or not adjusted):
        raise click.UsageError("--plan-digest goes with --adjust-namespace-level-policies-automatically")
    if adjusted or previewed:
        from interpulse.cli.admin.replication_plan import set_clusters_by_plan

        await set_clusters_by_plan(admin, namespace, clusters, previewed=previewed, shown_digest=shown_digest)
        return
    try:
        await admin.namespaces.set_replication_clusters(namespace, clusters, partitions_compared=not comparison_skipped)
    except Conflict as error:
        if not comparison_skipped:
            error.add_note("if the clusters differ, --preview shows the changes that make them equal")
        raise


@namespaces.command("replication-status")
@namespace_argument
@watch_option
@admin_command
async def replication_status(admin: AdminClient, namespace: NamespaceName, watched: bool) -> None:
    """Print the progress of each topic on each remote cluster, with obstacles and remedies."""
    await show_status(lambda: admin.namespaces.replication_status(namespace), watched=watched)


@namespaces.command("unload")
@namespace_argument
@_bundle
@click.option("-d", "--destinationBroker", "destination", help="Broker that takes the bundle.")
@admin_command
async def unload_namespace(
    admin: AdminClient, namespace: NamespaceName, bundle: str | None, destination: str | None
) -> None:
    """Close the topics of a namespace in their brokers. The next clients load them again."""
    if destination is not None and bundle is None:
        raise click.UsageError("--destinationBroker needs --bundle: a namespace may be spread over brokers")
    await admin.namespaces.unload(namespace, bundle=bundle, destination_broker=destination)


@namespaces.command("split-bundle")
@namespace_argument
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
@admin_command
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


@namespaces.command("clear-backlog")
@namespace_argument
@click.option("-s", "--sub", "subscription", help="A single subscription.")
@_bundle
@click.option("-force", "--force", "forced", is_flag=True, help="Do not ask for confirmation.")
@admin_command
async def clear_backlog(
    admin: AdminClient, namespace: NamespaceName, subscription: str | None, bundle: str | None, forced: bool
) -> None:
    """Acknowledge the backlog of all subscriptions of a namespace."""
    if forced or click.confirm("Are you sure you want to clear the backlog?"):
        await admin.namespaces.clear_backlog(namespace, subscription=subscription, bundle=bundle)
