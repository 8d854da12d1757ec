"""What the handlers of commands need of the connection that a command came through, and the table of these handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from interpulse.broker.binary.transport.session import SessionConnection
from interpulse.broker.binary.transport.sinks import SinkConnection
from interpulse.broker.binary.transport.topic_watcher import WatchingConnection
from interpulse.model.errors import PulsarError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame, Received

__all__ = ["CommandConnection", "Handlers"]


class CommandConnection(SinkConnection, SessionConnection, WatchingConnection, Protocol):
    """One client's connection, as handlers see it."""

    address: str
    """``/host:port`` of the client."""
    opening_consumers: dict[int, asyncio.Task[None]]
    opening_producers: dict[int, asyncio.Task[None]]

    @property
    def client_version(self) -> str: ...

    @property
    def receives_broker_entry_metadata(self) -> bool:
        """Whether the client understands broker entry metadata, and the broker exposes it."""

    @property
    def knows_source_positions(self) -> bool:
        """True if the client announces that its replicators expect source positions in receipts (feature flag 6)."""

    def settle(self, work: Coroutine[Any, Any, None]) -> None:
        """Work on the credentials of the client; most is done at once, what waits goes on as a task."""

    def answer_failure(self, command: pb.BaseCommand, error: PulsarError) -> None:
        """Send the failure in the form that answers this command."""

    def calls_itself_replicator(self, producer_name: str) -> bool:
        """Whether a producer of this name is a replicator's, and the client may say so."""

    def recently_closed(self, producer_id: int) -> bool:
        """Whether a SEND to this unknown producer may have crossed its closing."""


class Handlers(NamedTuple):
    """What the broker does with the commands of a client."""

    inline: Mapping[int, Callable[[CommandConnection, Frame], None]]
    """By type of command: done at once, in the order of the frames."""
    runs: Mapping[type, Callable[[CommandConnection, Any], Sequence[Received]]]
    """By type of run: done at once, but for what is returned, which is handled next, one by one."""
    work_on: Callable[[CommandConnection, pb.BaseCommand], Coroutine[Any, Any, None]]
    """The work that answers any other command; raises RemoteProtocolError for one that no broker receives."""
