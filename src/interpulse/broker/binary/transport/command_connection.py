"""The interface of a connection for the handlers of commands, and the table of these handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from interpulse.broker.binary.transport.session import SessionConnection
from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame, Received


class CommandConnection(SessionConnection, Protocol):
    """One client's connection, as handlers see it."""

    address: str
    """``/host:port`` of the client."""
    opening_consumers: dict[int, asyncio.Task[None]]
    opening_producers: dict[int, asyncio.Task[None]]

    def settle(self, work: Coroutine[Any, Any, None]) -> None:
        """Check the client's credentials: immediately where possible, else in a task."""

    def answer_failure(self, command: pb.BaseCommand, error: PulsarError) -> None: ...

    def calls_itself_replicator(self, producer_name: str) -> bool:
        """Return True if this producer name belongs to a replicator and the client may use it."""

    def recently_closed(self, producer_id: int) -> bool:
        """Return True if a SEND to this unknown producer may have been sent before the producer closed."""


@contextmanager
def being_opened(opening: dict[int, asyncio.Task[None]], opened_id: int, kind: str) -> Iterator[None]:
    """Note that the current task opens a producer or consumer. Raise ServiceNotReady if another one does."""
    if opened_id in opening:
        raise ServiceNotReady(f"{kind} is already being created on this connection")
    task = asyncio.current_task()
    assert task is not None
    opening[opened_id] = task
    try:
        yield
    finally:
        del opening[opened_id]


class Handlers(NamedTuple):
    """The broker's handlers for the commands of clients."""

    inline: Mapping[int, Callable[[CommandConnection, Frame], None]]
    """Handlers that run immediately, in the order of the frames, by type of command."""
    runs: Mapping[type, Callable[[CommandConnection, Any], Sequence[Received]]]
    """Handlers of runs, by type of run. They return the frames that must be handled one by one."""
    work_on: Callable[[CommandConnection, pb.BaseCommand], Coroutine[Any, Any, None]]
    """Return the work that answers any other command. Raise RemoteProtocolError for one that no broker receives."""
