"""One event loop thread and one client per process and broker address.

Python workers are reused by Spark and rotate, so this is a bonus and never a requirement. Nothing is made at import,
and never in a parent that forks: the cache belongs to the process that filled it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from interpulse.client.config import ClientConfig
from interpulse.client.session import Session
from interpulse.spark.access import Access

__all__ = ["Portal", "portal", "relaxed_collector", "session_for"]

Result = TypeVar("Result")


class Portal:
    """An event loop in a daemon thread, and the way into it."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.process_id = os.getpid()
        self.sessions: dict[tuple[str, int, Access], Session] = {}
        self._thread = threading.Thread(target=self._run, name="interpulse-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and wait for its result; an interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _new_loop() -> asyncio.AbstractEventLoop:
    """The faster loop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


_COLLECT_AFTER: Final = 100_000


@contextmanager
def relaxed_collector() -> Iterator[None]:
    """Let the garbage collector look less often while a task moves entries.

    Each entry is a few objects that live for a moment and form no cycles; with Python's usual thresholds half of a
    task's time goes into looking at them again and again.
    """
    usual = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, 50, usual[2])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


_portal: Portal | None = None
_lock = threading.Lock()


def portal() -> Portal:
    """The loop of this process, started when first asked for."""
    global _portal
    with _lock:
        if _portal is None or _portal.process_id != os.getpid():
            _portal = Portal()
        return _portal


async def session_for(service_url: str, operation_timeout_ms: int, access: Access) -> Session:
    """The client of this process for a cluster. Call it in the portal's loop."""
    key = (service_url, operation_timeout_ms, access)
    sessions = portal().sessions
    session = sessions.get(key)
    if session is None or session.is_closed:
        config = ClientConfig(
            service_url,
            operation_timeout_ms=operation_timeout_ms,
            lookup_timeout_ms=operation_timeout_ms,
            backoff_max_ms=2_000,
            credentials=access.credentials,
            tls=access.tls,
            listener_name=access.listener_name,
        )
        session = sessions[key] = Session(config)
    return session
