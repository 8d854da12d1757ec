"""What stands behind the binary door: the rooms its handlers ask, and the limits it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpulse.wire.frames import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from interpulse.broker.binary.permits import LookupPermits
    from interpulse.broker.lifecycle import TopicLifecycle
    from interpulse.broker.live.registry import TopicRegistry
    from interpulse.broker.lookup import Lookups
    from interpulse.broker.namespaces import Namespaces
    from interpulse.broker.refusals import Refusals
    from interpulse.broker.schemas import Schemas

__all__ = ["ConnectionLimits", "Rooms"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How much one connection may have going on; above a limit we stop reading from it, nothing is refused."""

    keep_alive_seconds: float = 30.0
    message_bytes_max: int = MESSAGE_BYTES_MAX
    pending_publishes_max: int = 1000
    """Entries taken in but not answered yet (``maxPendingPublishRequestsPerConnection``)."""
    pending_publish_bytes_max: int = 64 * 1024 * 1024
    liveness_check_seconds: float = 5.0
    """How long a silent client may keep a producer name from another one (``connectionLivenessCheckTimeoutMillis``)."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms that the handlers of the binary door ask. No handler holds a rule of its own."""

    registry: TopicRegistry
    lifecycle: TopicLifecycle
    namespaces: Namespaces
    schemas: Schemas
    lookups: Lookups
    permits: LookupPermits
    refusals: Refusals
    replicator_prefix: str = "pulsar.repl"
