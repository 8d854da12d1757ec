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


def _command(target: str, summary: str, section: str) -> LazyCommand:
    return LazyCommand(f"interpulse.cli.{target}", summary, section)


_COMMANDS = {
    "admin": _command("admin.admin:admin", "Administer a cluster, with the commands of pulsar-admin.", _ADMINISTRATION),
    "alerts": _command("monitoring.commands:alerts", "Print alert rules for Prometheus.", _ADMINISTRATION),
    "broker": _command("programs.broker:broker", "Run a broker of a cluster in this process.", _PROGRAMS),
    "check": _command("watching.check:check", "Check what needs attention in a cluster.", _ADMINISTRATION),
    "cluster": _command("cluster:cluster", "Prepare a cluster of brokers.", _ADMINISTRATION),
    "console": _command("console:console", "Show a cluster in the browser.", _PROGRAMS),
    "consume": _command("receiving:consume", "Receive messages and print them.", _MESSAGES),
    "context": _command("context:context", "Keep addresses and credentials of clusters under names.", _ADMINISTRATION),
    "dashboards": _command(
        "monitoring.commands:dashboards", "Print or install dashboards for Grafana.", _ADMINISTRATION
    ),
    "failover": _command("failover.group:failover", "Switch between the two clusters of a pair.", _ADMINISTRATION),
    "metadata": _command("metadata:metadata", "Read and repair the metadata of a stopped broker.", _ADMINISTRATION),
    "perf": _command("perf.commands:perf", "Put load on a cluster and measure it, as pulsar-perf does.", _MESSAGES),
    "produce": _command("produce:produce", "Send messages.", _MESSAGES),
    "read": _command("receiving:read", "Print messages without a subscription.", _MESSAGES),
    "republish": _command("republish:republish", "Publish the messages of a topic to another one.", _MESSAGES),
    "proxy": _command("programs.proxy:proxy", "Run a lookup proxy in front of brokers.", _PROGRAMS),
    "standalone": _command("programs.broker:standalone", "Run a broker in this process.", _PROGRAMS),
    "top": _command("watching.top:top", "Watch topics, subscriptions and replication.", _ADMINISTRATION),
    "tokens": _command("tokens:tokens", "Make and check keys and tokens for authentication.", _ADMINISTRATION),
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
