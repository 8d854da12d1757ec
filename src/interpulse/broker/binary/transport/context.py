"""The objects that handlers of the binary protocol call, and the limits of each connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interpulse.broker.binary.transport.reading import PublishBuffer
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
