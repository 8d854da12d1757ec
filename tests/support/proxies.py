"""Proxies to test with: in the loop of the test, or with a thread and loop of their own for blocking clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from interpulse.proxy.app import ProxyApp
from interpulse.proxy.proxy_config import ProxyConfig, load_config

T = TypeVar("T")


def proxy_config(service_url: str = "", web_url: str = "", **settings: object) -> ProxyConfig:
    """Free ports on loopback, in front of this broker; ``settings`` by Pulsar's keys."""
    given: dict[str, Any] = {
        "servicePort": 0,
        "webServicePort": 0,
        "brokerServiceURL": service_url,
        "brokerWebServiceURL": web_url,
        **settings,
    }
    return load_config(settings=[f"{key}={_text(value)}" for key, value in given.items()]).config


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@asynccontextmanager
async def running_proxy(service_url: str = "", web_url: str = "", **settings: object) -> AsyncIterator[ProxyApp]:
    """A proxy in this loop."""
    app = ProxyApp(proxy_config(service_url, web_url, **settings))
    try:
        await app.start()
        yield app
    finally:
        await app.stop()


class ProxyInThread:
    """A proxy beside blocking code."""

    def __init__(self, app: ProxyApp, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self._loop = loop
        self.service_url, self.web_url = app.service_url, app.web_url

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run in the loop of the proxy."""

        async def run() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()


@contextmanager
def proxy_in_thread(service_url: str = "", web_url: str = "", **settings: object) -> Iterator[ProxyInThread]:
    """A proxy with a thread of its own."""
    started: Future[ProxyInThread] = Future()
    stopping = threading.Event()

    async def serve() -> None:
        async with running_proxy(service_url, web_url, **settings) as app:
            started.set_result(ProxyInThread(app, asyncio.get_running_loop()))
            await asyncio.to_thread(stopping.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="proxy")
    thread.start()
    try:
        yield started.result()
    finally:
        stopping.set()
        thread.join()
