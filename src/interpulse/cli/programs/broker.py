"""Command ``interpulse broker``: a broker of a cluster in this process."""

from __future__ import annotations

import click

from interpulse.cli.programs.broker_process import run_broker
from interpulse.terminal.logs import LogFormat, log_options
from interpulse.terminal.option_groups import option


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@option("-c --config config_file", "A broker.conf: key=value lines with Pulsar's keys.", metavar="FILE", required=True)
@option("--set settings", "Set one key of broker.conf.", metavar="KEY=VALUE", multiple=True)
@log_options
def broker(config_file: str, settings: tuple[str, ...], log_level: str, log_format: LogFormat) -> None:
    """Run a broker of a cluster in this process.

    The cluster uses ZooKeeper (metadataStoreUrl=zk:host:2181) and BookKeeper in the layout of Apache Pulsar. Initialize
    it first with `interpulse cluster init` or with Pulsar's own tool. Its brokers share all namespaces.

    --set overrides the environment, which overrides the configuration file. Prints the line "ready" when clients can
    publish.
    """
    run_broker(config_file, settings, {}, log_level=log_level, log_format=log_format, in_cluster=True)
