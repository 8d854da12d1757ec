"""Real brokers inside a test, each with its own thread and event loop, free ports, and its own data directory."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Self, TypeAlias, TypeVar

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig, settings_by_key
from interpulse.broker.config.config_sources import load_config
from interpulse.client.sync.admin_client import AdminClient
from interpulse.serving.settings import ConfigError, as_text
from interpulse.testing.faults import Faults

Setting: TypeAlias = bool | int | str

T = TypeVar("T")


class IgnoredSettingWarning(UserWarning):
    """A Pulsar key that has no effect on this broker."""


def broker_config(settings: Mapping[str, Setting], defaults: Mapping[str, str], *, stacklevel: int = 1) -> BrokerConfig:
    """Return the configuration of a broker with these settings, and ``defaults`` for other keys.

    Raises ConfigError that lists every unknown key with the nearest known one, and every invalid value. Warns with
    IgnoredSettingWarning of each key without effect; ``stacklevel`` counts from the caller.
    """
    problems = [
        f"{key}={value!r}: must be a bool, an int or a str, and is a {type(value).__name__}"
        for key, value in settings.items()
        if not isinstance(value, Setting)
    ]
    texts = {key: as_text(value) for key, value in settings.items() if isinstance(value, Setting)}
    can_be_off = {key for key, setting in settings_by_key().items() if setting.can_be_off}
    unset = {key: text for key, text in defaults.items() if not texts.get(key) and key not in texts.keys() & can_be_off}
    try:
        loaded = load_config(options=texts | unset)
    except ConfigError as error:
        raise ConfigError(*problems, *error.problems) from None
    if problems:
        raise ConfigError(*problems)
    for warning in loaded.warnings:
        warnings.warn(warning, IgnoredSettingWarning, stacklevel=stacklevel + 1)
    return loaded.config


class InProcessBroker:
    """Starts and stops a broker around blocking code, for example an official client.

    ``settings`` are keys of ``broker.conf`` with Python values: ``{"allowAutoTopicCreation": False}``. An unknown key
    or an invalid value raises ConfigError. A Pulsar key without effect here warns with IgnoredSettingWarning. A later
    broker may serve the same directory again, with everything that was acknowledged.
    """

    def __init__(self, data_dir: Path, settings: Mapping[str, Setting] | None = None) -> None:
        defaults = {
            "dataDir": str(data_dir),
            "bindAddress": "127.0.0.1",
            "brokerServicePort": "0",
            "webServicePort": "0",
        }
        self._config = broker_config(settings or {}, defaults, stacklevel=2)
        self.faults = Faults(self._in_loop)
        """Faults that this broker can show."""
        self.app = self.faults.build(self._config)
        """The broker itself. Use it only through :meth:`call`."""
        self._admin: AdminClient | None = None
        self._thread: threading.Thread | None = None
        self._resumed = threading.Event()
        self._resumed.set()
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event

    @property
    def service_url(self) -> str:
        """Address of the binary protocol: ``pulsar://127.0.0.1:<port>``.

        It is ``pulsar+ssl://`` if the settings disable the plain port.
        """
        return self.app.service_url

    @property
    def web_url(self) -> str:
        """Address of the admin API: ``http://127.0.0.1:<port>``, or ``https://`` if the settings disable that port."""
        return self.app.web_url

    @property
    def service_url_tls(self) -> str:
        """Address of the binary protocol with TLS: ``pulsar+ssl://127.0.0.1:<port>``.

        Empty without ``brokerServicePortTls``.
        """
        return self.app.addresses.service_url_tls

    @property
    def web_url_tls(self) -> str:
        """Address of the admin API with TLS: ``https://127.0.0.1:<port>``. Empty without ``webServicePortTls``."""
        return self.app.addresses.web_url_tls

    @property
    def admin(self) -> AdminClient:
        """A blocking admin client without credentials, created on first use. :meth:`stop` closes it."""
        if self._admin is None:
            self._admin = AdminClient(self.web_url)
        return self._admin

    def start(self) -> Self:
        """Return when clients can publish. Raises the error that prevented the start."""
        assert self._thread is None, "the broker runs already"
        started: Future[None] = Future()
        self.app = self.faults.build(self._config)
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), name="broker", daemon=True)
        thread.start()
        try:
            started.result()
        except BaseException:
            thread.join()
            raise
        self._thread = thread
        return self

    def stop(self) -> None:
        """Stop as SIGTERM would, and wait for it."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        self._stop_serving()

    def _stop_serving(self) -> None:
        if self._thread is not None:
            self.resume()
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None

    def restart(self) -> None:
        """Stop and start again on the same ports with the same data. Clients reconnect by themselves.

        In a coroutine, use ``await asyncio.to_thread(broker.restart)``, so that clients of that event loop can go on.
        """
        self._stop_serving()
        self.start_again()

    def start_again(self) -> None:
        """Start on the ports of the last start, with the same data."""
        urls = self.app.addresses
        self._config = replace(
            self._config,
            broker_service_port=_port(urls.service_url),
            broker_service_port_tls=_port(urls.service_url_tls),
            web_service_port=_port(urls.web_url),
            web_service_port_tls=_port(urls.web_url_tls),
        )
        self.start()

    def lose(self) -> None:
        """Stop serving without a word to clients: their connections break, and new ones are refused.

        Returns when the data directory is free. Everything acknowledged is kept; :meth:`start_again` serves it.
        """

        def break_off() -> None:
            server = self.app.parts.binary_server
            server.sockets.close()
            server.drop_all("the test has lost this broker")

        self.resume()
        self._in_loop(break_off)
        self._stop_serving()

    def suspend(self) -> None:
        """Stop answering, as a process that got SIGSTOP: connections stay open, and no timer runs until :meth:`resume`.

        Meanwhile :meth:`call` and the faults wait.
        """
        assert self._thread is not None, "the broker does not run"
        if self._resumed.is_set():
            self._resumed.clear()
            self._loop.call_soon_threadsafe(self._resumed.wait)

    def resume(self) -> None:
        """Go on after :meth:`suspend`. No effect if the broker is not suspended."""
        self._resumed.set()

    def call(self, work: Callable[[BrokerApp], Awaitable[T]]) -> T:
        """Run ``await work(app)`` in the broker's event loop and return its result."""

        async def run() -> T:
            return await work(self.app)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _in_loop(self, work: Callable[[], T]) -> T:
        """Call ``work`` in the broker's loop, or directly if the broker is not running."""
        if self._thread is None or threading.current_thread() is self._thread:
            return work()

        async def run(app: BrokerApp) -> T:
            return work()

        return self.call(run)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def _serve(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            await self.app.start()
        except BaseException as error:  # noqa: BLE001  # raised again where the broker is started
            started.set_exception(error)
            return
        started.set_result(None)
        await self._stopping.wait()
        await self.app.stop()


def _port(url: str) -> int | None:
    return int(url.rpartition(":")[2]) if url else None


class BrokerFactory:
    """Starts a broker with every call, each with its own data below ``directory``. :meth:`close` stops all of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)
        self._running = ExitStack()

    def __call__(self, **settings: Setting) -> InProcessBroker:
        """Start a broker. ``settings`` are keys of ``broker.conf``, as in ``factory(clusterName="east")``."""
        broker = InProcessBroker(self._directory / f"pulsar-{next(self._numbers)}", settings)
        return self._running.enter_context(broker)

    def close(self) -> None:
        """Stop every broker, the newest first."""
        self._running.close()
