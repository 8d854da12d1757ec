"""Commands ``interpulse standalone`` and ``interpulse broker``: a broker in this process, until a signal stops it."""

from __future__ import annotations

import asyncio
import datetime
import gc
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from interpulse import __version__
from interpulse.cli.programs.serving import CannotStart, announce, load_settings, run, stop_signal
from interpulse.cli.support.codec import codec_name
from interpulse.serving.admission import raise_open_files
from interpulse.terminal.logs import LogFormat, configure_audit_log, configure_logging, log_options
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

    from interpulse.broker.app import BrokerApp
    from interpulse.broker.config.broker_config import BrokerConfig
    from interpulse.broker.stores import OpenStores
    from interpulse.serving.settings import LoadedConfig

_logger = logging.getLogger(__name__)

_LAST_EXPORT_MS_MAX: Final = 2000
_MADE: Final = "made for the trial"
_SETTINGS: Final = (
    "brokerServicePortTls=6651",
    "webServicePortTls=8443",
    f"tlsCertificateFilePath={_MADE}",
    f"tlsKeyFilePath={_MADE}",
    "brokerClientTlsEnabled=true",
    f"brokerClientTrustCertsFilePath={_MADE}",
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@option("--cluster-name clusterName", "Name of the broker's cluster.  [default: standalone]")
@option("--port brokerServicePort", "Port of the binary protocol, 0 = a free one.  [default: 6650]", int)
@option("--http-port webServicePort", "Port of the admin API, 0 = a free one.  [default: 8080]", int)
@option(
    "--bind bindAddress",
    "Address to listen on; 0.0.0.0 = all addresses. Clients on other machines then need --advertised-address.  "
    "[default: 127.0.0.1]",
)
@option(
    "-a --advertised-address advertisedAddress",
    "Host name or address that clients connect to.  [default: that of --bind, localhost for 0.0.0.0]",
    metavar="HOST",
)
@flag(
    "--tls trial_tls",
    "Listen inside TLS as well, on 6651 and 8443, with certificates made for a trial in the data directory.",
)
@option("--data-dir dataDir", "Data directory; created if missing.  [default: ./data]")
@option("--config config_file", "A broker.conf: key=value lines with Pulsar's keys.", metavar="FILE")
@option("--set settings", "Set one key of broker.conf.", metavar="KEY=VALUE", multiple=True)
@log_options
def standalone(
    config_file: str | None,
    settings: tuple[str, ...],
    trial_tls: bool,
    log_level: str,
    log_format: LogFormat,
    **flags: str | int | None,
) -> None:
    """Run a broker in this process.

    Flags override --set, which overrides the environment, which overrides the configuration file. Prints the line
    "ready" when clients can publish.

    As in Apache Pulsar, a topic without subscriptions is deleted together with its messages after a minute without
    clients. To keep all topics, add --set brokerDeleteInactiveTopicsEnabled=false.
    """
    options = {key: str(value) for key, value in flags.items() if value is not None}
    _run_broker(config_file, settings, options, log_level=log_level, log_format=log_format, trial_tls=trial_tls)


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
    _run_broker(config_file, settings, {}, log_level=log_level, log_format=log_format, in_cluster=True)


def _run_broker(
    config_file: str | None,
    settings: tuple[str, ...],
    options: dict[str, str],
    *,
    log_level: str,
    log_format: LogFormat,
    in_cluster: bool = False,
    trial_tls: bool = False,
) -> None:
    """Serve until a signal arrives. Raise CannotStart. ``options`` are command line values by setting key.

    With ``trial_tls``, TLS ports are added, with certificates created for the trial.
    """
    from interpulse.broker.packages import need

    if sentence := need():
        raise CannotStart(sentence)
    from interpulse.broker.config.config_sources import load_config

    def load(of_settings: tuple[str, ...]) -> LoadedConfig[BrokerConfig]:
        sources = partial(load_config, in_cluster=in_cluster)
        return load_settings(sources, config_file, of_settings, options)

    if trial_tls:
        loaded, *notes = _with_trial_certificates(load, settings)
    else:
        loaded, notes = load(settings), []
    codec = codec_name()
    configure_logging(log_level, log_format)
    if loaded.config.audit_log_file:
        from interpulse.broker.access.change_log import AUDIT_LOGGER

        configure_audit_log(AUDIT_LOGGER, loaded.config.audit_log_file)
    _logger.info("starting version=%s codec=%s open_files=%d", __version__, codec, raise_open_files())
    for warning in loaded.warnings:
        _logger.warning("settings without effect reason=%s", warning)
    arguments = ("--log-level", log_level, "--log-format", log_format)
    run(_serve(loaded.config, arguments, notes, in_cluster=in_cluster))


async def _serve(config: BrokerConfig, job_arguments: tuple[str, ...], notes: list[str], *, in_cluster: bool) -> None:
    """Start, print the addresses, wait for a signal, stop. The replication job logs in the broker's format.

    Raises CannotStart, also if the broker stops by itself.
    """
    _calm_garbage_collector()
    import interpulse.serving.web_connections  # noqa: F401  # the HTTP library first: the heap ends 2 MB smaller
    from interpulse.broker.app import BrokerApp
    from interpulse.broker.assembly import CannotServe
    from interpulse.storage.api import DataDirectoryInUse, DataDirectoryUnusable

    open_stores: OpenStores | None = None
    if in_cluster:
        from interpulse.broker.cluster_stores import in_cluster as open_stores
    provider = _meter_provider(config)
    app = BrokerApp(config, open_stores=open_stores, job_arguments=job_arguments, meter_provider=provider)
    stopping = stop_signal()
    try:
        await app.start()
    except (CannotServe, DataDirectoryInUse, DataDirectoryUnusable) as error:
        raise CannotStart(str(error)) from error
    gc.freeze()  # what the start created is never scanned again
    try:
        _announce(app, notes)
        await _first_of(stopping, app.must_stop)
        _logger.info("stopping")
    finally:
        if provider is not None:
            await asyncio.to_thread(provider.shutdown, _LAST_EXPORT_MS_MAX)
        await app.stop()
    _logger.info("stopped")
    if app.must_stop.is_set():
        raise CannotStart("this broker had to stop, which its log gives the reason of")


def _meter_provider(config: BrokerConfig) -> MeterProvider | None:
    """Return the OpenTelemetry meter provider if OTEL_SDK_DISABLED=false."""
    from interpulse.serving.telemetry import TelemetryUnusable, meter_provider

    try:
        return meter_provider(os.environ, service="pulsar-broker", cluster=config.cluster_name)
    except TelemetryUnusable as error:
        raise CannotStart(str(error)) from error


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def _calm_garbage_collector() -> None:
    """Collect garbage less often.

    A publish keeps a handful of objects until its group is durable, and frequent collections cost a tenth of the
    publishing time. The start creates objects that stay: scanning them again and again would take a twentieth of it.
    """
    gc.set_threshold(50_000, 20, 50)


def _announce(app: BrokerApp, notes: list[str]) -> None:
    urls = app.addresses
    offered = {
        "binary service": urls.service_url,
        "binary service with TLS": urls.service_url_tls,
        "web service": urls.web_url,
        "web service with TLS": urls.web_url_tls,
    }
    addresses = [f"{name}: {url}" for name, url in offered.items() if url]
    announce(*addresses, f"data directory: {app.data_dir.resolve()}", *notes)
    binary = ",".join(filter(None, (urls.service_url, urls.service_url_tls)))
    web = ",".join(filter(None, (urls.web_url, urls.web_url_tls)))
    _logger.info("ready binary=%s web=%s data_dir=%s", binary, web, app.data_dir)


def _with_trial_certificates(
    load: Callable[[tuple[str, ...]], LoadedConfig[BrokerConfig]], settings: tuple[str, ...]
) -> tuple[LoadedConfig[BrokerConfig], str]:
    """Return settings with trial certificates and a note for users; ``settings`` win. Raise CannotStart."""
    from interpulse.broker.access.trial_authority import TrialAuthority

    loaded = load((*_SETTINGS, *settings))
    config = loaded.config
    if config.tls_certificate_file_path != _MADE or config.tls_key_file_path != _MADE:
        raise CannotStart("--tls makes the certificates: take tlsCertificateFilePath and tlsKeyFilePath out of --set")
    names = (config.bind_address, config.advertised_address, socket.gethostname())
    hosts = ["localhost", "127.0.0.1", "::1", *(name for name in names if name and name not in ("0.0.0.0", "::"))]
    trial = TrialAuthority(Path(config.data_dir).resolve() / "tls")
    try:
        trial.prepare(hosts, datetime.datetime.now(datetime.UTC))
    except (OSError, ValueError) as error:
        raise CannotStart(f"--tls cannot make certificates in {trial.directory}: {error}") from error
    config = replace(
        config,
        tls_certificate_file_path=str(trial.certificate),
        tls_key_file_path=str(trial.key),
        broker_client_trust_certs_file_path=str(trial.authority),
    )
    return replace(loaded, config=config), f"clients trust it with: tlsTrustCertsFilePath={trial.authority}"
