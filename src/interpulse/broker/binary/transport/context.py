"""The surroundings of the handlers of commands: the parts of the broker that they call, and the client's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from interpulse.broker.binary.transport.flow_control import PublishBuffer
from interpulse.broker.binary.transport.session import SessionConnection
from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.serving.address_events import DroppedConnections
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import MESSAGE_BYTES_MAX, Frame, Received

if TYPE_CHECKING:
    from interpulse.broker.access.setup import Access
    from interpulse.broker.inconsistencies import InconsistencyCounters
    from interpulse.broker.live.registry.topic_registry import TopicRegistry
    from interpulse.broker.tenancy.namespaces import Namespaces
    from interpulse.broker.topics.lifecycle import TopicLifecycle
    from interpulse.broker.topics.lookup.lookup import Lookups
    from interpulse.broker.topics.lookup.topic_watches import TopicWatches
    from interpulse.broker.topics.schemas import Schemas
    from interpulse.serving.admission import LookupPermits


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection. Above a limit the broker stops reading and refuses nothing."""

    keep_alive_seconds: float = 30.0
    message_bytes_max: int = MESSAGE_BYTES_MAX
    pending_publishes_max: int = 1000
    """Entries without an answer (``maxPendingPublishRequestsPerConnection``)."""
    pending_publish_bytes_max: int = 64 * 1024 * 1024
    output_bytes_high: int = 64 * 1024
    """Waiting output above which a consumer gets no more entries (``pulsarChannelWriteBufferHighWaterMark``)."""
    output_bytes_low: int = 32 * 1024
    """Waiting output at which deliveries resume (``pulsarChannelWriteBufferLowWaterMark``)."""
    liveness_check_seconds: float = 5.0
    """Seconds that a silent client may hold a producer name (``connectionLivenessCheckTimeoutMillis``)."""
    patterns_evaluated: bool = True
    """True if the broker matches topic patterns (``enableBrokerSideSubscriptionPatternEvaluation``)."""
    pattern_length_max: int = 50
    """Characters of a pattern (``subscriptionPatternMaxLength``)."""
    topic_watchers_allowed: bool = True
    """True if clients may watch lists of topics (``enableBrokerTopicListWatcher``)."""
    broker_entry_metadata_exposed: bool = False
    """True if clients get broker entry metadata (``exposingBrokerEntryMetadataToClientEnabled``)."""


@dataclass(frozen=True, slots=True)
class BinaryContext:
    """The parts of the broker that handlers of the binary protocol call. Handlers hold no rules."""

    registry: TopicRegistry
    lifecycle: TopicLifecycle
    namespaces: Namespaces
    schemas: Schemas
    lookups: Lookups
    permits: LookupPermits
    inconsistencies: InconsistencyCounters
    topic_watches: TopicWatches
    publish_buffer: PublishBuffer = field(default_factory=PublishBuffer)
    replicator_prefix: str = "pulsar.repl"
    access: Access | None = None
    """Access control. None: authentication is off, and every client may do everything."""
    check_disk_space: Callable[[], None] = lambda: None
    """Raise NoRoomLeft while messages cannot be stored."""
    dropped: DroppedConnections = field(default_factory=DroppedConnections)
    """Connections that the broker closed because of their clients."""
    serving: Callable[[], bool] | None = None
    """Return True while entries may be sent and acknowledgements answered. None: always; the broker is standalone."""


class CommandConnection(SessionConnection, Protocol):
    """One client's connection, as handlers see it."""

    address: str
    """``/host:port`` of the client."""
    context: BinaryContext
    limits: ConnectionLimits
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
