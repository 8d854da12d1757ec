"""``interpulse standalone``: a broker in this process."""

from __future__ import annotations

import gc
import logging
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from interpulse import __version__
from interpulse.cli.serving import CannotStart, announce, config_text, run, stop_signal
from interpulse.cli.support.codec import codec_name
from interpulse.cli.support.logs import LogFormat, configure_logging, log_options

if TYPE_CHECKING:
    from interpulse.broker.app import BrokerApp
    from interpulse.broker.config.broker_config import BrokerConfig
    from interpulse.serving.settings_sources import LoadedConfig

__all__ = ["standalone"]

_logger = logging.getLogger(__name__)

_BROKER_PACKAGES: Final = ("prometheus_client", "structlog")


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
    data_dir: str | None,
    config_file: str | None,
    settings: tuple[str, ...],
    log_level: str,
    log_format: LogFormat,
) -> None:
    """Run a broker in this process.

    Flags override --set, which overrides the environment, which overrides the configuration file.
    Prints the line "ready" when clients can publish.

    As in Apache Pulsar, a topic without subscriptions is deleted with its messages after a minute without clients.
    --set brokerDeleteInactiveTopicsEnabled=false keeps all topics.
    """
    given = {
        "clusterName": cluster_name,
        "brokerServicePort": port,
        "webServicePort": http_port,
        "bindAddress": bind,
        "advertisedAddress": advertised_address,
        "dataDir": data_dir,
    }
    options = {key: str(value) for key, value in given.items() if value is not None}
    _check_broker_extra()
    loaded = _load(config_file, settings, options)
    codec = codec_name()
    configure_logging(log_level, log_format)
    _logger.info("starting version=%s codec=%s", __version__, codec)
    for warning in loaded.warnings:
        _logger.warning("settings without effect reason=%s", warning)
    run(_serve(loaded.config, ("--log-level", log_level, "--log-format", log_format)))


def _check_broker_extra() -> None:
    missing = [name.replace("_", "-") for name in _BROKER_PACKAGES if find_spec(name) is None]
    if missing:
        raise CannotStart(f"a broker needs {' and '.join(missing)} as well: pip install 'interpulse[broker]'")


def _load(config_file: str | None, settings: tuple[str, ...], options: dict[str, str]) -> LoadedConfig[BrokerConfig]:
    from interpulse.broker.config.broker_config import ConfigError
    from interpulse.broker.config.config_sources import load_config

    try:
        return load_config(
            file_text=config_text(config_file),
            file_name=config_file or "broker.conf",
            environment=os.environ,
            settings=settings,
            options=options,
        )
    except ConfigError as error:
        raise CannotStart("; ".join(error.problems)) from error


async def _serve(config: BrokerConfig, job_arguments: tuple[str, ...]) -> None:
    """Start, print the addresses, wait for a signal, stop. The replication job logs in the form of the broker."""
    from interpulse.broker.app import BrokerApp, CannotServe
    from interpulse.storage.api import DataDirectoryInUse, DataDirectoryUnusable

    app = BrokerApp(config, job_arguments=job_arguments)
    stopping = stop_signal()
    try:
        await app.start()
    except (CannotServe, DataDirectoryInUse, DataDirectoryUnusable) as error:
        raise CannotStart(str(error)) from error
    _calm_garbage_collector()
    try:
        _announce(app)
        await stopping.wait()
        _logger.info("stopping")
    finally:
        await app.stop()
    _logger.info("stopped")


def _calm_garbage_collector() -> None:
    """Collect garbage less often: a publish keeps a handful of objects until its group is durable, and frequent
    collections cost a tenth of the time of publishing. Objects of the start are never searched again.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _announce(app: BrokerApp) -> None:
    announce(
        f"binary service: {app.service_url}",
        f"web service: {app.web_url}",
        f"data directory: {app.data_dir.resolve()}",
    )
    _logger.info("ready binary=%s web=%s data_dir=%s", app.service_url, app.web_url, app.data_dir)
