"""Event loop in a thread, for blocking callers: ``interpulse.sync`` and Spark tasks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from interpulse.model.errors import AlreadyClosed

Result = TypeVar("Result")


class Portal:
    """One event loop in one thread, for blocking callers. The first call starts both, :meth:`close` ends both."""

    def __init__(
        self, name: str = "interpulse", *, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    ) -> None:
        self._name = name
        self._new_loop = new_loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False

    def call(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run the coroutine that ``work`` creates and wait for its result. An interrupt (Ctrl-C) cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        finally:
            future.cancel()

    def submit(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> concurrent.futures.Future[Result]:
        """Start the coroutine that ``work`` creates. Any other thread may wait for the future."""
        loop = self._running_loop()
        return asyncio.run_coroutine_threadsafe(work(), loop)

    def post(self, function: Callable[[], object]) -> None:
        """Run a function in the loop without waiting for it."""
        self._running_loop().call_soon_threadsafe(function)

    def run(self, work: Callable[[], Result]) -> Result:
        """Run a function in the loop and wait for its result."""

        async def in_loop() -> Result:
            return work()

        return self.call(in_loop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._closed:
                raise AlreadyClosed("the client is closed")
            if self._loop is None:
                self._loop = self._new_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Stop the loop and wait for the thread."""
        with self._starting:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
