"""Command ``interpulse proxy``: a lookup proxy in this process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from interpulse import __version__
from interpulse.cli.programs.serving import CannotStart, announce, completed, load_settings, run, stop_signal
from interpulse.serving.admission import raise_open_files
from interpulse.terminal.logs import LogFormat, configure_logging, log_options
from interpulse.terminal.option_groups import option

if TYPE_CHECKING:
    from interpulse.proxy.app import ProxyApp
    from interpulse.proxy.proxy_config import ProxyConfig

_logger = logging.getLogger(__name__)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@option("--port servicePort", "Port of the binary protocol, 0 = a free one.  [default: 6650]", int)
@option("--http-port webServicePort", "Port of the admin API, 0 = a free one.  [default: 8080]", int)
@option("--bind bindAddress", "Address to listen on; 0.0.0.0 = all addresses.  [default: 127.0.0.1]")
@option("--config config_file", "A proxy.conf: key=value lines with Pulsar's keys.", metavar="FILE")
@option("--set settings", "Set one key of proxy.conf.", metavar="KEY=VALUE", multiple=True)
@log_options
def proxy(
    config_file: str | None, settings: tuple[str, ...], log_level: str, log_format: LogFormat, **flags: str | int | None
) -> None:
    """Run a proxy for clients that cannot connect to brokers directly.

    Name the brokers with --set brokerServiceURL=pulsar://HOST:6650 --set brokerWebServiceURL=http://HOST:8080, or the
    ZooKeeper where they register with --set metadataStoreUrl=zk:HOST:2181.

    Flags override --set, which overrides the environment, which overrides the configuration file. Prints the line
    "ready" when clients can connect.
    """
    from interpulse.proxy.proxy_config import load_config

    options = {key: str(value) for key, value in flags.items() if value is not None}
    loaded = load_settings(load_config, config_file, settings, options)
    configure_logging(log_level, log_format)
    _logger.info("starting version=%s open_files=%d", __version__, raise_open_files())
    for warning in loaded.warnings:
        _logger.warning("settings without effect reason=%s", warning)
    run(_serve(loaded.config))


async def _serve(config: ProxyConfig) -> None:
    """Start, print the addresses, wait for a signal, stop. A signal also ends the start."""
    from interpulse.proxy.app import CannotStartProxy, ProxyApp

    stopping = stop_signal()
    try:
        app = ProxyApp(config)
    except CannotStartProxy as error:
        raise CannotStart(str(error)) from error
    try:
        if await completed(app.start(), stopping):
            _announce(app)
            await stopping.wait()
        _logger.info("stopping")
    except CannotStartProxy as error:
        raise CannotStart(str(error)) from error
    finally:
        await app.stop()
    _logger.info("stopped")


def _announce(app: ProxyApp) -> None:
    encrypted = [
        f"{service} with TLS: {url}"
        for service, url in (("binary service", app.service_url_tls), ("web service", app.web_url_tls))
        if url
    ]
    announce(f"binary service: {app.service_url}", f"web service: {app.web_url}", *encrypted)
    _logger.info("ready binary=%s web=%s brokers=%d", app.service_url, app.web_url, app.brokers.count)
