"""The requests of producers and consumers to a topic; the front ends have checked their permissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from interpulse.model.ids import MessageId


class SubType(IntEnum):
    """The type of a subscription, with the numbers of the binary protocol."""

    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2
    KEY_SHARED = 3

    @property
    def label(self) -> str:
        """Pulsar's spelling in statistics and messages."""
        return _SUB_TYPE_LABELS[self]


_SUB_TYPE_LABELS = ("Exclusive", "Shared", "Failover", "Key_Shared")


class AccessMode(IntEnum):
    """The access mode of a producer; the numbers of the binary protocol."""

    SHARED = 0
    EXCLUSIVE = 1
    WAIT_FOR_EXCLUSIVE = 2
    EXCLUSIVE_WITH_FENCING = 3


class InitialPosition(IntEnum):
    """The start of a new durable subscription; the numbers of the binary protocol."""

    LATEST = 0
    EARLIEST = 1


class KeyRange(NamedTuple):
    """A range of sticky key slots, both ends included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KeySharing:
    """The keys of a Key_Shared consumer: its own ranges (sticky), or a share of all without ranges."""

    sticky_ranges: tuple[KeyRange, ...] = ()
    out_of_order_allowed: bool = False

    @property
    def mode(self) -> str:
        """Pulsar's spelling in statistics and messages."""
        return "STICKY" if self.sticky_ranges else "AUTO_SPLIT"


@dataclass(frozen=True, slots=True)
class ProducerRequest:
    """A PRODUCER command, already checked for access and schema.

    ``name`` None or "" asks for a generated one. A client that reconnects sends the generated name back with
    ``user_provided_name`` False and a higher ``epoch``.
    """

    producer_id: int
    name: str | None = None
    user_provided_name: bool = True
    epoch: int = 0
    access_mode: AccessMode = AccessMode.SHARED
    topic_epoch: int | None = None
    encrypted: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    client_version: str = ""
    remote: bool = False
    """True for the replicator of another cluster."""

    by_source_position: bool = False
    """True if the client expects source positions in the receipts of entries that name one (feature flag 6)."""

    remote_cluster: str | None = None
    """The cluster in a replicator's name: such a producer counts for no limit, and is listed separately."""


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    """A SUBSCRIBE command, already checked for access and schema.

    ``start_message_id`` is what the client sent, with negative numbers as such (``MessageId(-1, -1)`` = earliest,
    both 2^63-1 = latest); it counts for non-durable subscriptions only.
    """

    consumer_id: int
    subscription: str
    sub_type: SubType = SubType.EXCLUSIVE
    consumer_name: str = ""
    priority_level: int = 0
    durable: bool = True
    start_message_id: MessageId | None = None
    start_rollback_seconds: int = 0
    initial_position: InitialPosition = InitialPosition.LATEST
    read_compacted: bool = False
    replicate_state: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    key_sharing: KeySharing = field(default_factory=KeySharing)
    epoch: int = 0
    address: str = ""
    client_version: str = ""
    auto_consume: bool = False
    """True for the schema AUTO_CONSUME: the consumer reads messages by the topic's schemas."""
