"""Entry points: ``interpulse`` with everything, ``interpulse-admin`` with the administration alone."""

from __future__ import annotations

import logging

import click

from interpulse import __version__
from interpulse.cli.support.codec import codec_name
from interpulse.spark.commands import COMMANDS
from interpulse.terminal.lazy import LazyCommand, LazyGroup
from interpulse.terminal.logs import configure_logging
from interpulse.terminal.option_groups import flag

_PROGRAMS = "Run"
_MESSAGES = "Send and receive messages"
_ADMINISTRATION = "Administer"
_COMMANDS = {
    "admin": LazyCommand(
        "interpulse.cli.admin.admin:admin", "Administer a cluster, with the commands of pulsar-admin.", _ADMINISTRATION
    ),
    "alerts": LazyCommand(
        "interpulse.cli.monitoring.commands:alerts", "Print alert rules for Prometheus.", _ADMINISTRATION
    ),
    "broker": LazyCommand(
        "interpulse.cli.programs.broker:broker", "Run a broker of a cluster in this process.", _PROGRAMS
    ),
    "check": LazyCommand(
        "interpulse.cli.watching.check:check", "Check what needs attention in a cluster.", _ADMINISTRATION
    ),
    "cluster": LazyCommand("interpulse.cli.cluster:cluster", "Prepare a cluster of brokers.", _ADMINISTRATION),
    "console": LazyCommand("interpulse.cli.console:console", "Show a cluster in the browser.", _PROGRAMS),
    "consume": LazyCommand("interpulse.cli.consume:consume", "Receive messages and print them.", _MESSAGES),
    "context": LazyCommand(
        "interpulse.cli.context:context", "Keep addresses and credentials of clusters under names.", _ADMINISTRATION
    ),
    "dashboards": LazyCommand(
        "interpulse.cli.monitoring.commands:dashboards", "Print or install dashboards for Grafana.", _ADMINISTRATION
    ),
    "metadata": LazyCommand(
        "interpulse.cli.metadata:metadata", "Read and repair the metadata of a stopped broker.", _ADMINISTRATION
    ),
    "perf": LazyCommand(
        "interpulse.cli.perf.commands:perf", "Put load on a cluster and measure it, as pulsar-perf does.", _MESSAGES
    ),
    "produce": LazyCommand("interpulse.cli.produce:produce", "Send messages.", _MESSAGES),
    "read": LazyCommand("interpulse.cli.read:read", "Print messages without a subscription.", _MESSAGES),
    "republish": LazyCommand(
        "interpulse.cli.republish:republish", "Publish the messages of a topic to another one.", _MESSAGES
    ),
    "proxy": LazyCommand("interpulse.cli.programs.proxy:proxy", "Run a lookup proxy in front of brokers.", _PROGRAMS),
    "standalone": LazyCommand(
        "interpulse.cli.programs.standalone:standalone", "Run a broker in this process.", _PROGRAMS
    ),
    "top": LazyCommand(
        "interpulse.cli.watching.top:top", "Watch topics, subscriptions and replication.", _ADMINISTRATION
    ),
    "tokens": LazyCommand(
        "interpulse.cli.tokens:tokens", "Make and check keys and tokens for authentication.", _ADMINISTRATION
    ),
    **COMMANDS,
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@flag(
    "--version",
    "Show the version, and the codec that reads and writes frames.",
    expose_value=False,
    is_eager=True,
    callback=lambda context, _, asked: _show_version(context) if asked else None,
)
def main() -> None:
    """Run the topic plane of Apache Pulsar: broker, client, administration, geo-replication on Spark."""
    _show_log()


def admin_main() -> None:
    """Run ``interpulse-admin``."""
    from interpulse.cli.admin.admin import admin

    _show_log()
    admin(prog_name="interpulse-admin")


def _show_version(context: click.Context) -> None:
    click.echo(f"{__version__} ({codec_name()} codec)")
    context.exit()


def _show_log() -> None:
    """Show warnings of the client on standard error, unless the embedding program has configured logging."""
    if not logging.getLogger().handlers:
        configure_logging()
