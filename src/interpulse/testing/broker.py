"""A real broker inside a test: its own thread and event loop, free ports, its own data directory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from interpulse.broker.app import BrokerApp
from interpulse.client.sync.admin_client import AdminClient
from interpulse.testing.faults import Faults
from interpulse.testing.settings import Setting, broker_config

T = TypeVar("T")


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
        self._faults = Faults(self._in_loop)
        self._app = self._faults.build(self._config)
        self._admin: AdminClient | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event

    @property
    def service_url(self) -> str:
        """Address of the binary protocol: ``pulsar://127.0.0.1:<port>``.

        It is ``pulsar+ssl://`` if the settings disable the plain port.
        """
        return self._app.service_url

    @property
    def web_url(self) -> str:
        """Address of the admin API: ``http://127.0.0.1:<port>``, or ``https://`` if the settings disable that port."""
        return self._app.web_url

    @property
    def service_url_tls(self) -> str:
        """Address of the binary protocol with TLS: ``pulsar+ssl://127.0.0.1:<port>``.

        Empty without ``brokerServicePortTls``.
        """
        return self._app.addresses.service_url_tls

    @property
    def web_url_tls(self) -> str:
        """Address of the admin API with TLS: ``https://127.0.0.1:<port>``. Empty without ``webServicePortTls``."""
        return self._app.addresses.web_url_tls

    @property
    def app(self) -> BrokerApp:
        """The broker itself. Use it only through :meth:`call`."""
        return self._app

    @property
    def admin(self) -> AdminClient:
        """A blocking admin client without credentials, created on first use. :meth:`stop` closes it."""
        if self._admin is None:
            self._admin = AdminClient(self.web_url)
        return self._admin

    @property
    def faults(self) -> Faults:
        """Faults that this broker can show."""
        return self._faults

    def start(self) -> Self:
        """Return when clients can publish. Raises the error that prevented the start."""
        assert self._thread is None, "the broker runs already"
        started: Future[None] = Future()
        self._app = self._faults.build(self._config)
        thread = threading.Thread(target=self._serve, args=(started,), name="broker", daemon=True)
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
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None

    def restart(self) -> None:
        """Stop and start again on the same ports with the same data. Clients reconnect by themselves.

        In a coroutine, use ``await asyncio.to_thread(broker.restart)``, so that clients of that event loop can go on.
        """
        urls = self._app.addresses
        self._stop_serving()
        self._config = replace(
            self._config,
            broker_service_port=_port(urls.service_url),
            broker_service_port_tls=_port(urls.service_url_tls),
            web_service_port=_port(urls.web_url),
            web_service_port_tls=_port(urls.web_url_tls),
        )
        self.start()

    def call(self, work: Callable[[BrokerApp], Awaitable[T]]) -> T:
        """Run ``await work(app)`` in the broker's event loop and return its result."""

        async def run() -> T:
            return await work(self._app)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _in_loop(self, work: Callable[[], T]) -> T:
        """Call ``work`` in the broker's loop, or directly if the broker is not running."""
        if self._thread is None or threading.current_thread() is self._thread:
            return work()

        async def run() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _serve(self, started: Future[None]) -> None:
        asyncio.run(self._serve_until_stopped(started))

    async def _serve_until_stopped(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            await self._app.start()
        except BaseException as error:  # noqa: BLE001  # raised again where the broker is started
            started.set_exception(error)
            return
        started.set_result(None)
        await self._stopping.wait()
        await self._app.stop()


def _port(url: str) -> int | None:
    return int(url.rpartition(":")[2]) if url else None
