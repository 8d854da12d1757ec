"""The clients of a Spark process: one event loop in one thread, and one session per cluster.

Spark reuses and rotates its Python workers. An open client saves time, but no task relies on it. Nothing is created at
import, and a forked child creates its own: an event loop belongs to the process that started it.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from interpulse.client.config import ClientConfig
from interpulse.client.outages import Outages, ResolvedOutage
from interpulse.client.portal import Portal
from interpulse.client.session import Session
from interpulse.client.transport.backoff import retry
from interpulse.spark.options.connection_options import Access
from interpulse.spark.processes.workers import settle_memory
from interpulse.wire.checksum import crc32c, crc32c_slowly

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class Patience(NamedTuple):
    """Limits for readers and senders while a cluster is away or has no room."""

    outage_timeout_ms: int | None = None
    """Longest wait. None waits without a limit."""
    waits_for_room: bool = True


_ENDLESS: Final = Patience()
_REQUEST_MIN_MS: Final = 1_000
"""Shortest timeout of a request. A cluster that runs may need this long, even if outages are given up earlier."""


class _SessionKey(NamedTuple):
    """A session belongs to the event loop in which it was opened."""

    loop: asyncio.AbstractEventLoop
    service_url: str
    operation_timeout_ms: int
    access: Access
    patience: Patience


@dataclass(frozen=True, slots=True)
class _ProcessClient:
    process_id: int = field(default_factory=os.getpid)
    portal: Portal = field(default_factory=lambda: Portal("interpulse-client", new_loop=_new_loop))
    sessions: dict[_SessionKey, Session] = field(default_factory=dict)


_client: _ProcessClient | None = None
_lock = threading.Lock()


def _process_client() -> _ProcessClient:
    global _client
    with _lock:
        if _client is None or _client.process_id != os.getpid():
            _client = _ProcessClient()
            if crc32c is crc32c_slowly:
                log.warning("checksums are slow: package crc32c is not installed, and runs from no archive")
        return _client


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a uvloop event loop if that is installed, else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def process_portal() -> Portal:
    """Return the portal of this process. The first call starts its thread."""
    return _process_client().portal


def in_portal(function: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Make a coroutine function one that blocks while its coroutine runs in the portal's loop."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        return process_portal().call(lambda: function(*args, **named))

    return call


async def session_for(
    service_url: str, operation_timeout_ms: int, access: Access, patience: Patience = _ENDLESS
) -> Session:
    """Return the session of the running event loop, usually the portal's, with a cluster."""
    key = _SessionKey(asyncio.get_running_loop(), service_url, operation_timeout_ms, access, patience)
    sessions = _process_client().sessions
    session = sessions.get(key)
    if session is None or session.is_closed:
        usual = ClientConfig(service_url)
        # No single wait for a cluster that is away is longer.
        longest = max(_REQUEST_MIN_MS, patience.outage_timeout_ms or sys.maxsize)
        config = ClientConfig(
            service_url,
            operation_timeout_ms=min(longest, operation_timeout_ms),
            lookup_timeout_ms=min(longest, access.lookup_timeout_ms or operation_timeout_ms),
            connect_timeout_ms=min(longest, access.connect_timeout_ms or usual.connect_timeout_ms),
            keep_alive_interval_ms=access.keep_alive_interval_ms or usual.keep_alive_interval_ms,
            backoff_max_ms=2_000,
            credentials=access.credentials,
            tls=access.tls,
            listener_name=access.listener_name,
        )
        outages = Outages(
            service_url,
            timeout_ms=patience.outage_timeout_ms,
            waits_for_room=patience.waits_for_room,
            rereads_credentials=access.rereads_credentials,
        )
        session = sessions[key] = Session(config, outages, remembers_brokers=True)  # tasks open and close it
    return session


async def close_sessions() -> None:
    """Close the sessions of the running event loop."""
    sessions, loop = _process_client().sessions, asyncio.get_running_loop()
    for key in [key for key in sessions if key.loop is loop]:
        await sessions.pop(key).close()


def healed_here() -> list[ResolvedOutage]:
    """Return the outages of this process that healed since the last call. Each task calls this at its end."""
    sessions = list(_process_client().sessions.values())
    return [outage for session in sessions if session.outages is not None for outage in session.outages.take_resolved()]


async def patiently(session: Session, attempt: Callable[[], Awaitable[Result]]) -> Result:
    """Return the result of ``attempt``, repeated while the cluster is away, as long as the session's patience allows.

    Raises errors that waiting does not fix.
    """
    outages = session.outages
    if outages is None:
        return await attempt()
    loop = asyncio.get_running_loop()
    began = loop.time()
    waiter = object()
    try:
        answer = await retry(
            attempt,
            backoff=session.backoff(),
            timeout_ms=outages.timeout_ms,
            retriable=outages.may_resolve,
            patient=True,
            on_pause=lambda error, pause: outages.note(error, loop.time(), began=began, waiter=waiter),
        )
        outages.over(loop.time())
    finally:
        outages.given_up(waiter)  # unless there is an answer: it failed, or the task was ended
    return answer


_COLLECT_AFTER: Final = 100_000


@contextmanager
def relaxed_collector() -> Iterator[None]:
    """Run the garbage collector less often while a task moves entries.

    Each entry is a few short-lived objects without cycles. With Python's usual thresholds a task spends half of its
    time searching them.
    """
    usual = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, 50, usual[2])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        settle_memory()
