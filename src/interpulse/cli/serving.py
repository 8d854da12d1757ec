"""What programs that are a broker share: their settings are read, the broker is started, and stopped by a signal."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse import __version__
from interpulse.cli.support.codec import codec_name
from interpulse.cli.support.logs import LogFormat, configure_logging
from interpulse.cli.support.running import UNUSABLE

if TYPE_CHECKING:
    from interpulse.broker.app import BrokerApp
    from interpulse.broker.config.broker_config import BrokerConfig
    from interpulse.broker.config.config_sources import LoadedConfig
    from interpulse.broker.stores import OpenStores

__all__ = ["CannotStart", "run_broker"]

_logger = logging.getLogger(__name__)

_BROKER_PACKAGES: Final = ("prometheus_client", "structlog")


class CannotStart(click.ClickException):
    """One sentence on standard error, exit code 2."""

    exit_code = UNUSABLE


def run_broker(
    config_file: str | None,
    settings: tuple[str, ...],
    options: dict[str, str],
    *,
    log_level: str,
    log_format: LogFormat,
    in_cluster: bool = False,
) -> None:
    """Serve until a signal comes; raises CannotStart. ``options`` are values of the command line by their keys."""
    _check_broker_extra()
    loaded = _load(config_file, settings, options, in_cluster=in_cluster)
    codec = codec_name()
    configure_logging(log_level, log_format)
    _logger.info("starting version=%s codec=%s", __version__, codec)
    for warning in loaded.warnings:
        _logger.warning("settings without effect reason=%s", warning)
    arguments = ("--log-level", log_level, "--log-format", log_format)
    _run(_serve(loaded.config, arguments, _stores_of_cluster() if in_cluster else None))


def _stores_of_cluster() -> OpenStores:
    from interpulse.broker.cluster_stores import in_cluster

    return in_cluster


def _check_broker_extra() -> None:
    missing = [name.replace("_", "-") for name in _BROKER_PACKAGES if find_spec(name) is None]
    if missing:
        raise CannotStart(f"a broker needs {' and '.join(missing)} as well: pip install 'interpulse[broker]'")


def _load(
    config_file: str | None, settings: tuple[str, ...], options: dict[str, str], *, in_cluster: bool
) -> LoadedConfig:
    from interpulse.broker.config.broker_config import ConfigError
    from interpulse.broker.config.config_sources import load_config

    text = ""
    if config_file is not None:
        try:
            text = Path(config_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise CannotStart(f"configuration file {config_file} cannot be read: {reason}") from error
    try:
        return load_config(
            file_text=text,
            file_name=config_file or "broker.conf",
            environment=os.environ,
            settings=settings,
            options=options,
            in_cluster=in_cluster,
        )
    except ConfigError as error:
        raise CannotStart("; ".join(error.problems)) from error


async def _serve(config: BrokerConfig, job_arguments: tuple[str, ...], open_stores: OpenStores | None) -> None:
    """Start, print the addresses, wait for a signal, stop. The replication job logs in the form of the broker.

    Raises CannotStart, also of a broker that has to stop by itself.
    """
    from interpulse.broker.app import BrokerApp, CannotServe
    from interpulse.storage.api import DataDirectoryInUse, DataDirectoryUnusable

    app = BrokerApp(config, open_stores=open_stores, job_arguments=job_arguments)
    stopping = _stop_signal()
    try:
        await app.start()
    except (CannotServe, DataDirectoryInUse, DataDirectoryUnusable) as error:
        raise CannotStart(str(error)) from error
    _calm_garbage_collector()
    try:
        _announce(app)
        await _first_of(stopping, app.must_stop)
        _logger.info("stopping")
    finally:
        await app.stop()
    _logger.info("stopped")
    if app.must_stop.is_set():
        raise CannotStart("this broker must not serve beside another one of the cluster and has stopped; see the log")


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def _calm_garbage_collector() -> None:
    """Collect garbage less often: a publish keeps a handful of objects until its group is durable, and frequent
    collections cost a tenth of the time of publishing. Objects of the start are never searched again.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _announce(app: BrokerApp) -> None:
    lines = (
        f"binary service: {app.service_url}",
        f"web service: {app.web_url}",
        f"data directory: {app.data_dir.resolve()}",
        "ready",
    )
    # The starting process may have closed the pipe after the line "ready"; the broker serves all the same.
    with contextlib.suppress(BrokenPipeError):
        click.echo("\n".join(lines))
    _logger.info("ready binary=%s web=%s data_dir=%s", app.service_url, app.web_url, app.data_dir)


def _stop_signal() -> asyncio.Event:
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, event.set)
    return event


def _run(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where it is installed: lower latency for small requests, the same throughput in bulk."""
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        from uvloop import new_event_loop as new_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main)
