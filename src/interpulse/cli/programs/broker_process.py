"""Process of a broker: reads settings, starts the broker, and stops it on a signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Final

from interpulse import __version__
from interpulse.cli.programs.serving import CannotStart, announce, load_settings, run, stop_signal
from interpulse.cli.programs.trial_tls import with_trial_certificates
from interpulse.cli.support.codec import codec_name
from interpulse.serving.admission import raise_open_files
from interpulse.terminal.logs import LogFormat, configure_audit_log, configure_logging

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

    from interpulse.broker.app import BrokerApp
    from interpulse.broker.config.broker_config import BrokerConfig
    from interpulse.broker.stores import OpenStores
    from interpulse.serving.settings import LoadedConfig

_logger = logging.getLogger(__name__)

_LAST_EXPORT_MS_MAX: Final = 2000


def run_broker(
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
    _check_broker_extra()
    load = partial(_load, config_file, options=options, in_cluster=in_cluster)
    if trial_tls:
        loaded, *notes = with_trial_certificates(load, settings)
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
    run(_serve(loaded.config, arguments, _stores_of_cluster() if in_cluster else None, notes))


def _stores_of_cluster() -> OpenStores:
    from interpulse.broker.cluster_stores import in_cluster

    return in_cluster


def _check_broker_extra() -> None:
    from interpulse.broker.packages import need

    if sentence := need():
        raise CannotStart(sentence)


def _load(
    config_file: str | None, settings: tuple[str, ...], options: dict[str, str], *, in_cluster: bool
) -> LoadedConfig[BrokerConfig]:
    from interpulse.broker.config.config_sources import load_config

    load = partial(load_config, in_cluster=in_cluster)
    return load_settings(load, config_file, settings, options)


async def _serve(
    config: BrokerConfig, job_arguments: tuple[str, ...], open_stores: OpenStores | None, notes: list[str]
) -> None:
    """Start, print the addresses, wait for a signal, stop. The replication job logs in the broker's format.

    Raises CannotStart, also if the broker stops by itself.
    """
    import interpulse.serving.web_connections  # noqa: F401  # the HTTP library first: the heap ends 2 MB smaller
    from interpulse.broker.app import BrokerApp
    from interpulse.broker.assembly import CannotServe
    from interpulse.storage.api import DataDirectoryInUse, DataDirectoryUnusable

    provider = _meter_provider(config)
    app = BrokerApp(config, open_stores=open_stores, job_arguments=job_arguments, meter_provider=provider)
    stopping = stop_signal()
    try:
        await app.start()
    except (CannotServe, DataDirectoryInUse, DataDirectoryUnusable) as error:
        raise CannotStart(str(error)) from error
    _calm_garbage_collector()
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
    publishing time. Objects created during the start are never scanned again.
    """
    gc.freeze()
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
    binary, web = (urls.service_url, urls.service_url_tls), (urls.web_url, urls.web_url_tls)
    _logger.info("ready binary=%s web=%s data_dir=%s", _listed(binary), _listed(web), app.data_dir)


def _listed(urls: tuple[str, str]) -> str:
    return ",".join(filter(None, urls))
