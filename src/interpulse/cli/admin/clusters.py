"""Group ``clusters``: the registered clusters, including the local one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.support.call_commands import call_command, command, print_record, print_records
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import STRINGS, preview_option
from interpulse.cli.support.running import UNUSABLE, CommandFailed, admin_command
from interpulse.model.clusters import JAVA_KEYS, ClusterData, ClusterMigration, FailureDomain
from interpulse.model.names import SYSTEM_NAMESPACE
from interpulse.terminal.option_groups import option_group
from interpulse.terminal.output import print_changes, print_json, print_lines

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient


@click.group(cls=CommandGroup)
def clusters() -> None:
    """Operations about clusters."""


_KEPT: Final = "For replicators in Java, which alone can use it: kept in the record."

_cluster_fields = option_group(
    click.option("--url", "service_url", help="Web service URL."),
    click.option("--url-secure", "service_url_tls", help="Web service URL with TLS."),
    click.option("--broker-url", "broker_service_url", help="Broker service URL."),
    click.option("--broker-url-secure", "broker_service_url_tls", help="Broker service URL with TLS."),
    click.option("--proxy-url", "proxy_service_url", help="Proxy service URL."),
    click.option("--proxy-protocol", help="Routing of the proxy, for example SNI."),
    click.option("--auth-plugin", "authentication_plugin", help="Authentication plug-in for this cluster."),
    click.option("--auth-parameters", "authentication_parameters", help="Parameters of the plug-in."),
    click.option("--tls-enable", "broker_client_tls_enabled", is_flag=True, help="Connect with TLS."),
    click.option("--tls-allow-insecure", "tls_allow_insecure_connection", is_flag=True, help="Trust any server."),
    click.option("--tls-trust-certs-filepath", "broker_client_trust_certs_file_path", help="Trusted certificates."),
    click.option("--tls-key-filepath", "broker_client_key_file_path", help="Private key of the client."),
    click.option("--tls-certs-filepath", "broker_client_certificate_file_path", help="Certificate of the client."),
    click.option("--tls-enable-keystore", "brokerClientTlsEnabledWithKeyStore", is_flag=True, help=_KEPT),
    click.option("--tls-trust-store-type", "brokerClientTlsTrustStoreType", help=_KEPT),
    click.option("--tls-trust-store", "brokerClientTlsTrustStore", help=_KEPT),
    click.option("--tls-trust-store-pwd", "brokerClientTlsTrustStorePassword", help=_KEPT),
    click.option("--tls-key-store-type", "brokerClientTlsKeyStoreType", help=_KEPT),
    click.option("--tls-key-store", "brokerClientTlsKeyStore", help=_KEPT),
    click.option("--tls-key-store-pwd", "brokerClientTlsKeyStorePassword", help=_KEPT),
    click.option("--tls-factory-plugin", "brokerClientSslFactoryPlugin", help=_KEPT),
    click.option("--tls-factory-plugin-params", "brokerClientSslFactoryPluginParams", help=_KEPT),
    click.option("--listener-name", help="Listener to use for connections to this cluster."),
    click.option(
        "--cluster-config-file",
        "file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="JSON as get prints it; options override its fields.",
    ),
)


def _described(file: Path | None, options: dict[str, Any]) -> ClusterData:
    """Return the values of the options, and of the file for missing ones. Raise CommandFailed."""
    record = ClusterData() if file is None else _read_cluster_file(file)
    values = {name: value for name, value in options.items() if value not in (None, False)}
    of_java = {name: values.pop(name) for name in JAVA_KEYS & values.keys()}
    return replace(record, other={**record.other, **of_java}, **values)


def _read_cluster_file(file: Path) -> ClusterData:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}", UNUSABLE) from error
    except ValueError as error:
        raise CommandFailed(
            f"{file} is not JSON as clusters get prints it (YAML is not read): {error}", UNUSABLE
        ) from error
    if not isinstance(body, dict):
        raise CommandFailed(f"{file} is not a cluster: an object is expected, as clusters get prints it", UNUSABLE)
    return ClusterData.from_json(body)


@clusters.command("list")
@click.option("-c", "--current", is_flag=True, help="Mark the cluster of the broker with (*).")
@admin_command
async def list_clusters(admin: AdminClient, current: bool) -> None:
    """List the registered clusters."""
    names = await admin.clusters.list()
    own = (await admin.brokers.runtime_configuration()).get("clusterName") if current else None
    print_lines(f"{name}(*)" if name == own else name for name in names)


def _record_command(method: str, about: str) -> click.Command:
    async def run(admin: AdminClient, /, cluster: str, file: Path | None, previewed: bool, **values: Any) -> None:
        record = _described(file, values)
        print_changes(await getattr(admin.clusters, method)(cluster, record, previewed=previewed))

    return command(method, about, run, click.argument("cluster"), _cluster_fields, preview_option)


clusters.add_command(_record_command("create", "Register a cluster."))
clusters.add_command(_record_command("update", "Replace the record of a cluster."))


@clusters.command("delete")
@click.argument("cluster")
@click.option(
    "-a",
    "--all",
    "everything",
    is_flag=True,
    help="Delete all tenants of the broker first, but pulsar, with all their namespaces and topics.",
)
@preview_option
@admin_command
async def delete_cluster(admin: AdminClient, cluster: str, everything: bool, previewed: bool) -> None:
    """Delete the record of a cluster."""
    if everything and previewed:
        raise click.UsageError("--all excludes --preview")
    if everything:
        for tenant in await admin.tenants.list():
            if tenant != SYSTEM_NAMESPACE.tenant:  # brokers need it
                await _delete_tenant(admin, tenant)
    print_changes(await admin.clusters.delete(cluster, previewed=previewed))


async def _delete_tenant(admin: AdminClient, tenant: str) -> None:
    """Delete a tenant with everything in it, and report each deletion."""
    for namespace in await admin.namespaces.list(tenant):
        for topic in await admin.topics.list_partitioned(namespace, system_included=True):
            await admin.topics.delete_partitioned(topic, force=True)
            click.echo(f"{topic} deleted", err=True)
        for topic in await admin.topics.list(namespace, system_included=True):
            await admin.topics.delete(topic, force=True)
            click.echo(f"{topic} deleted", err=True)
        await admin.namespaces.delete(namespace)
        click.echo(f"{namespace} deleted", err=True)
    await admin.tenants.delete(tenant)
    click.echo(f"{tenant} deleted", err=True)


@clusters.command("update-cluster-migration")
@click.argument("cluster")
@click.option("--migrated", is_flag=True, help="Redirect the clients; without it, that ends.")
@click.option("--service-url", help="Web service URL of the other cluster.")
@click.option("--service-url-secure", "service_url_tls", help="Web service URL with TLS.")
@click.option("--broker-url", "broker_service_url", help="Broker service URL, to which clients are redirected.")
@click.option("--broker-url-secure", "broker_service_url_tls", help="Broker service URL with TLS.")
@admin_command
async def update_migration(admin: AdminClient, /, cluster: str, migrated: bool, **urls: str | None) -> None:
    """Redirect the clients of a cluster to another one. No topic is terminated."""
    await admin.clusters.set_migration(cluster, ClusterMigration(migrated, **urls))


_name = click.argument("name", metavar="CLUSTER")
_call = partial(call_command, clusters.add_command, "clusters", _name)
_peers = click.option(
    "--peer-clusters", "peers", type=STRINGS, required=True, help="Clusters, separated by commas; '' for none."
)
_domain = click.option("--domain-name", "domain", required=True, help="Name of the failure domain.")


def _join(context: click.Context, option: click.Parameter, brokers: list[str]) -> FailureDomain:
    return FailureDomain(tuple(brokers))


_brokers = click.option(
    "--broker-list", "value", type=STRINGS, default="", callback=_join, help="Brokers: host:port,..."
)
_CREATED: Final = "Create a failure domain: brokers of a cluster that fail together."
_REPLACED: Final = "Replace the brokers of a failure domain; it is created if it is missing."

_call("get", "get_json", "Print the addresses of a cluster.", show=print_json)
_call("update-peer-clusters", "set_peers", "Set the peer clusters of a cluster. Peers share no namespace.", _peers)
_call("get-peer-clusters", "peers", "List the peer clusters of a cluster.", show=lambda peers: print_lines(peers or ()))
_call("get-cluster-migration", "migration", "Print where the clients of a cluster are redirected.", show=print_record)
_call("create-failure-domain", "set_failure_domain", _CREATED, _domain, _brokers)
_call("update-failure-domain", "set_failure_domain", _REPLACED, _domain, _brokers)
_call("get-failure-domain", "failure_domain", "Print the brokers of a failure domain.", _domain, show=print_record)
_call("list-failure-domains", "failure_domains", "Print all failure domains of a cluster.", show=print_records)
_call("delete-failure-domain", "delete_failure_domain", "Delete a failure domain.", _domain)
