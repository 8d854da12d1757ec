"""Group ``namespaces``: creation, replication, and the policies of their topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interpulse.cli.admin.namespace_bundles import BUNDLE_COMMANDS
from interpulse.cli.admin.namespace_properties import PROPERTY_COMMANDS
from interpulse.cli.admin.permissions import NAMESPACE_PERMISSION_COMMANDS
from interpulse.cli.admin.replication_status import show_status
from interpulse.cli.admin.wide_lists import print_topics
from interpulse.cli.policies.namespace_messaging import MESSAGING_COMMANDS
from interpulse.cli.policies.namespace_policies import POLICY_COMMANDS
from interpulse.cli.policies.namespace_schemas import SCHEMA_POLICY_COMMANDS
from interpulse.cli.policies.policy_forms import CLUSTERS
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.completion import complete_tenants
from interpulse.cli.support.params import NAMESPACE, STRINGS, domains_of, preview_option
from interpulse.cli.support.running import admin_command
from interpulse.cli.support.watched import watch_option
from interpulse.model.errors import Conflict
from interpulse.model.names import NamespaceName
from interpulse.terminal.output import is_wide, print_changes, print_json, print_lines

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_MODES = {
    "persistent": "PERSISTENT",
    "non-persistent": "NON_PERSISTENT",
    "non_persistent": "NON_PERSISTENT",
    "all": "ALL",
}
_namespace = click.argument("namespace", type=NAMESPACE)


@click.group(cls=CommandGroup)
def namespaces() -> None:
    """Operations about namespaces."""


for command in (
    *POLICY_COMMANDS,
    *MESSAGING_COMMANDS,
    *PROPERTY_COMMANDS,
    *SCHEMA_POLICY_COMMANDS,
    *BUNDLE_COMMANDS,
    *NAMESPACE_PERMISSION_COMMANDS,
):
    namespaces.add_command(command)


@namespaces.command("list")
@click.argument("tenant", shell_complete=complete_tenants)
@admin_command
async def list_namespaces(admin: AdminClient, tenant: str) -> None:
    """List the namespaces of a tenant."""
    print_lines(await admin.namespaces.list(tenant))


@namespaces.command("topics")
@_namespace
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


@namespaces.command("policies")
@_namespace
@admin_command
async def get_policies(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print all policies of a namespace."""
    print_json(await admin.namespaces.policies_json(namespace))


@namespaces.command("create")
@_namespace
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


@namespaces.command("delete")
@_namespace
@click.option("-f", "--force", is_flag=True, help="Delete the topics of the namespace too.")
@preview_option
@admin_command
async def delete_namespace(admin: AdminClient, namespace: NamespaceName, force: bool, previewed: bool) -> None:
    """Delete a namespace."""
    print_changes(await admin.namespaces.delete(namespace, force=force, previewed=previewed))


@namespaces.command("set-clusters")
@_namespace
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


@namespaces.command("get-clusters")
@_namespace
@admin_command
async def get_clusters(admin: AdminClient, namespace: NamespaceName) -> None:
    """List the clusters that a namespace is replicated to."""
    print_lines(await admin.namespaces.replication_clusters(namespace))


@namespaces.command("set-allowed-clusters")
@_namespace
@CLUSTERS.add
@admin_command
async def set_allowed_clusters(admin: AdminClient, namespace: NamespaceName, clusters: list[str]) -> None:
    """Set the clusters that a namespace may be replicated to."""
    await admin.namespaces.set_allowed_clusters(namespace, clusters)


@namespaces.command("get-allowed-clusters")
@_namespace
@admin_command
async def get_allowed_clusters(admin: AdminClient, namespace: NamespaceName) -> None:
    """List the clusters that a namespace may be replicated to."""
    print_lines(await admin.namespaces.allowed_clusters(namespace))


@namespaces.command("replication-status")
@_namespace
@watch_option
@admin_command
async def replication_status(admin: AdminClient, namespace: NamespaceName, watched: bool) -> None:
    """Print the progress of each topic on each remote cluster, with obstacles and remedies."""
    await show_status(lambda: admin.namespaces.replication_status(namespace), watched=watched)
