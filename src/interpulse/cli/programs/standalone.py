"""Command ``interpulse standalone``: a broker in this process."""

from __future__ import annotations

import click

from interpulse.cli.programs.broker_process import run_broker
from interpulse.terminal.logs import LogFormat, log_options


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--cluster-name", help="Name of the broker's cluster.  [default: standalone]")
@click.option("--port", type=int, help="Port of the binary protocol, 0 = a free one.  [default: 6650]")
@click.option("--http-port", type=int, help="Port of the admin API, 0 = a free one.  [default: 8080]")
@click.option(
    "--bind",
    help="Address to listen on; 0.0.0.0 = all addresses. Clients on other machines then need --advertised-address.  "
    "[default: 127.0.0.1]",
)
@click.option(
    "-a",
    "--advertised-address",
    metavar="HOST",
    help="Host name or address that clients connect to.  [default: that of --bind, localhost for 0.0.0.0]",
)
@click.option(
    "--tls",
    "trial_tls",
    is_flag=True,
    help="Listen inside TLS as well, on 6651 and 8443, with certificates made for a trial in the data directory.",
)
@click.option("--data-dir", help="Data directory; created if missing.  [default: ./data]")
@click.option("--config", "config_file", metavar="FILE", help="A broker.conf: key=value lines with Pulsar's keys.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one key of broker.conf.")
@log_options
def standalone(
    cluster_name: str | None,
    port: int | None,
    http_port: int | None,
    bind: str | None,
    advertised_address: str | None,
    trial_tls: bool,
    data_dir: str | None,
    config_file: str | None,
    settings: tuple[str, ...],
    log_level: str,
    log_format: LogFormat,
) -> None:
    """Run a broker in this process.

    Flags override --set, which overrides the environment, which overrides the configuration file. Prints the line
    "ready" when clients can publish.

    As in Apache Pulsar, a topic without subscriptions is deleted together with its messages after a minute without
    clients. To keep all topics, add --set brokerDeleteInactiveTopicsEnabled=false.
    """
    flags = {
        "clusterName": cluster_name,
        "brokerServicePort": port,
        "webServicePort": http_port,
        "bindAddress": bind,
        "advertisedAddress": advertised_address,
        "dataDir": data_dir,
    }
    options = {key: str(value) for key, value in flags.items() if value is not None}
    run_broker(config_file, settings, options, log_level=log_level, log_format=log_format, trial_tls=trial_tls)
