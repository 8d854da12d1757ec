"""The client of a Spark process: one event loop in one thread, and one session per cluster.

Python workers are reused by Spark and rotate: a client that is still there saves time, and no task relies on it.
Nothing is made at import, and a forked child makes its own: an event loop belongs to the process that started it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from interpulse.client.config import ClientConfig
from interpulse.client.portal import Portal
from interpulse.client.session import Session
from interpulse.spark.access import Access

__all__ = ["process_portal", "relaxed_collector", "session_for"]


@dataclass(frozen=True, slots=True)
class _ProcessClient:
    process_id: int = field(default_factory=os.getpid)
    portal: Portal = field(default_factory=lambda: Portal("interpulse-client", new_loop=_new_loop))
    sessions: dict[tuple[str, int, Access], Session] = field(default_factory=dict)


_client: _ProcessClient | None = None
_lock = threading.Lock()


def _process_client() -> _ProcessClient:
    global _client
    with _lock:
        if _client is None or _client.process_id != os.getpid():
            _client = _ProcessClient()
        return _client


def _new_loop() -> asyncio.AbstractEventLoop:
    """The faster loop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def process_portal() -> Portal:
    """The portal of this process; its first call starts the thread."""
    return _process_client().portal


async def session_for(service_url: str, operation_timeout_ms: int, access: Access) -> Session:
    """The session of this process with a cluster. Call it in the portal's loop."""
    key = (service_url, operation_timeout_ms, access)
    sessions = _process_client().sessions
    session = sessions.get(key)
    if session is None or session.is_closed:
        usual = ClientConfig(service_url)
        config = ClientConfig(
            service_url,
            operation_timeout_ms=operation_timeout_ms,
            lookup_timeout_ms=access.lookup_timeout_ms or operation_timeout_ms,
            connect_timeout_ms=access.connect_timeout_ms or usual.connect_timeout_ms,
            keep_alive_interval_ms=access.keep_alive_interval_ms or usual.keep_alive_interval_ms,
            backoff_max_ms=2_000,
            credentials=access.credentials,
            tls=access.tls,
            listener_name=access.listener_name,
        )
        session = sessions[key] = Session(config)
    return session


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
