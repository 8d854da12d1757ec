"""Command tree of the administration, for ``interpulse admin ...`` and ``interpulse-admin ...`` alike."""

from __future__ import annotations

import click

from interpulse import __version__
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.terminal.lazy import LazyCommand, LazyGroup
from interpulse.terminal.option_groups import option_group
from interpulse.terminal.output import format_option

_COMMANDS = {
    "brokers": LazyCommand("interpulse.cli.admin.brokers:brokers", "Operations about brokers."),
    "clusters": LazyCommand("interpulse.cli.admin.clusters:clusters", "Operations about clusters."),
    "namespaces": LazyCommand("interpulse.cli.admin.namespaces:namespaces", "Operations about namespaces."),
    "ns-isolation-policy": LazyCommand(
        "interpulse.cli.admin.isolation_policies:isolation_policies", "Operations about namespace isolation policies."
    ),
    "schemas": LazyCommand("interpulse.cli.admin.schemas:schemas", "Operations about schemas."),
    "tenants": LazyCommand("interpulse.cli.admin.tenants:tenants", "Operations about tenants."),
    "topicPolicies": LazyCommand(
        "interpulse.cli.policies.topic_policies:topic_policies", "Operations about the policies of topics."
    ),
    "topics": LazyCommand("interpulse.cli.admin.topics.topics:topics", "Operations about topics."),
}


def _absent_group(name: str) -> click.Command | None:
    from interpulse.cli.support.command_groups import absent_group

    return absent_group(name)


connection_options = option_group(
    click.option("--context", metavar="NAME", help="Address and credentials of this context; see interpulse context."),
    click.option("--auth-plugin", "authPlugin", help="Authentication plug-in, by its Java class name."),
    click.option(
        "--auth-params",
        "authParams",
        help="Parameters of the plug-in, best file:/path or env:NAME: others see token:... on a command line.",
    ),
    click.option("--tls-trust-cert-path", "tlsTrustCertsFilePath", help="File of trusted certificates (PEM)."),
    click.option("--tls-allow-insecure", "tlsAllowInsecureConnection", flag_value="true", help="Trust any server."),
    click.option(
        "--tls-enable-hostname-verification/--tls-disable-hostname-verification",
        "tlsEnableHostnameVerification",
        default=None,
        help="Whether the certificate must have the server's name; it must by default.",
    ),
)
"""Options for credentials and TLS, with the names of Pulsar's tools."""


@click.group(
    cls=LazyGroup,
    lazy_commands=_COMMANDS,
    otherwise=_absent_group,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--admin-url", "webServiceUrl", help="Web service URL, http://localhost:8080 unless configured.")
@click.option(
    "--request-timeout",
    "requestTimeoutSeconds",
    type=click.IntRange(min=1),
    help="Seconds per request; 300 by default.",
)
@connection_options
@format_option()
@click.version_option(__version__, "-v", "--version", message="%(version)s")
@click.pass_context
def admin(ctx: click.Context, /, **flags: str | bool | int | None) -> None:
    """Administer a cluster, with the commands of pulsar-admin.

    Settings come from flags, then from environment variables named like the keys of client.conf, then from the current
    context, then from the file named by PULSAR_CLIENT_CONF.
    """
    ctx.obj = ConnectionSettings.resolve(flags)
