"""Command ``interpulse standalone``: a broker in this process."""

from __future__ import annotations

import click

from interpulse.cli.programs.broker_process import run_broker
from interpulse.terminal.logs import LogFormat, log_options
from interpulse.terminal.option_groups import flag, option


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@option("--cluster-name", "Name of the broker's cluster.  [default: standalone]")
@option("--port", "Port of the binary protocol, 0 = a free one.  [default: 6650]", int)
@option("--http-port", "Port of the admin API, 0 = a free one.  [default: 8080]", int)
@option(
    "--bind",
    "Address to listen on; 0.0.0.0 = all addresses. Clients on other machines then need --advertised-address.  "
    "[default: 127.0.0.1]",
)
@option(
    "-a --advertised-address",
    "Host name or address that clients connect to.  [default: that of --bind, localhost for 0.0.0.0]",
    metavar="HOST",
)
@flag(
    "--tls trial_tls",
    "Listen inside TLS as well, on 6651 and 8443, with certificates made for a trial in the data directory.",
)
@option("--data-dir", "Data directory; created if missing.  [default: ./data]")
@option("--config config_file", "A broker.conf: key=value lines with Pulsar's keys.", metavar="FILE")
@option("--set settings", "Set one key of broker.conf.", metavar="KEY=VALUE", multiple=True)
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
