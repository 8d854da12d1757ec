"""What the handlers of the binary protocol work with, and the limits of each connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interpulse.broker.binary.transport.pending_publishes import PublishBuffer
from interpulse.serving.address_events import DroppedConnections
from interpulse.wire.frames import MESSAGE_BYTES_MAX

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

__all__ = ["BinaryContext", "ConnectionLimits"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection may have open or pending; above a limit the broker stops reading it and refuses nothing."""

    keep_alive_seconds: float = 30.0
    message_bytes_max: int = MESSAGE_BYTES_MAX
    pending_publishes_max: int = 1000
    """Entries taken in but not answered yet (``maxPendingPublishRequestsPerConnection``)."""
    pending_publish_bytes_max: int = 64 * 1024 * 1024
    output_bytes_high: int = 64 * 1024
    """A consumer gets no more entries while more than this waits for its socket
    (``pulsarChannelWriteBufferHighWaterMark``)."""
    output_bytes_low: int = 32 * 1024
    """It goes on once no more than this waits (``pulsarChannelWriteBufferLowWaterMark``)."""
    liveness_check_seconds: float = 5.0
    """How long a silent client may keep a producer name from another one (``connectionLivenessCheckTimeoutMillis``)."""
    patterns_evaluated: bool = True
    """Patterns of topics are matched here (``enableBrokerSideSubscriptionPatternEvaluation``)."""
    pattern_length_max: int = 50
    """Characters of such a pattern (``subscriptionPatternMaxLength``)."""
    topic_watchers_allowed: bool = True
    """Clients hear that they may watch lists of topics (``enableBrokerTopicListWatcher``)."""
    broker_entry_metadata_exposed: bool = False
    """Clients get the broker entry metadata of entries (``exposingBrokerEntryMetadataToClientEnabled``)."""


@dataclass(frozen=True, slots=True)
class BinaryContext:
    """The parts of the broker that handlers of the binary protocol call. No handler holds a rule of its own."""

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
    """None: authentication is off, and every client may do everything."""
    check_disk_space: Callable[[], None] = lambda: None
    """Raises NoRoomLeft while messages cannot be stored."""
    dropped: DroppedConnections = field(default_factory=DroppedConnections)
    """Connections that the broker ends because of their clients."""
    serving: Callable[[], bool] | None = None
    """Whether entries may be sent and acknowledgements answered now; None: always, since the broker is alone."""
