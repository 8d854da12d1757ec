"""Group ``tenants``: administrators of a tenant, and the clusters of its namespaces."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.support.call_commands import call_command, print_record
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.completion import complete_tenants
from interpulse.cli.support.params import STRINGS, preview_option
from interpulse.cli.support.running import admin_command
from interpulse.model.clusters import TenantInfo
from interpulse.terminal.output import print_changes, print_lines

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_admin_roles = click.option("-r", "--admin-roles", type=STRINGS, help="Roles that may administer the tenant.")
_allowed_clusters = click.option("-c", "--allowed-clusters", type=STRINGS, help="Clusters of the tenant.")


@click.group(cls=CommandGroup)
def tenants() -> None:
    """Operations about tenants."""


_tenant = click.argument("name", metavar="TENANT", shell_complete=complete_tenants)
_call = partial(call_command, tenants.add_command, "tenants", _tenant)
_force = click.option("-f", "--force", is_flag=True, help="Delete the namespaces of the tenant too.")

call_command(tenants.add_command, "tenants", None, "list", "list", "List the tenants.", show=print_lines)
_call("get", "get", "Print roles and clusters of a tenant.", show=print_record)
_call("delete", "delete", "Delete a tenant.", _force, preview_option, show=print_changes)


@tenants.command("create")
@_tenant
@_admin_roles
@_allowed_clusters
@preview_option
@admin_command
async def create_tenant(
    admin: AdminClient,
    name: str,
    admin_roles: list[str] | None,
    allowed_clusters: list[str] | None,
    previewed: bool,
) -> None:
    """Create a tenant, on all clusters by default."""
    clusters = allowed_clusters or await admin.clusters.list()
    created = TenantInfo(tuple(admin_roles or ()), tuple(clusters))
    print_changes(await admin.tenants.create(name, created, previewed=previewed))


@tenants.command("update")
@_tenant
@_admin_roles
@_allowed_clusters
@preview_option
@admin_command
async def update_tenant(
    admin: AdminClient,
    name: str,
    admin_roles: list[str] | None,
    allowed_clusters: list[str] | None,
    previewed: bool,
) -> None:
    """Change the roles or the clusters of a tenant. A missing option changes nothing."""
    current = await admin.tenants.get(name)
    roles = current.admin_roles if admin_roles is None else tuple(admin_roles)
    clusters = current.allowed_clusters if allowed_clusters is None else tuple(allowed_clusters)
    changes = await admin.tenants.update(name, TenantInfo(roles, clusters), previewed=previewed)
    print_changes(changes)
