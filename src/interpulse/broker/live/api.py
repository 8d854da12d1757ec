"""The interface of the live objects: requests, settings, deliveries and sinks of front ends, and the host of topics.

Front ends have checked the permissions of their requests. The live objects answer through the two sinks that a front
end passes when it opens a producer or a consumer. Everything happens in the event loop. Calls into a sink are plain
calls: a sink collects output and never blocks, never raises and never calls back into the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from interpulse.broker.committer import Layout
from interpulse.broker.live.shared_reads import ReadBufferLimiter
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.errors import PulsarError
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from interpulse.rules.failover_role import ACTIVE, FailoverRole
from interpulse.storage.api import MetadataStore
from interpulse.storage.cursors import CursorStore
from interpulse.wire.cursor_promise import CURSOR_PROPERTY, ENTRY_READER_PROPERTY

_SUB_TYPE_LABELS = ("Exclusive", "Shared", "Failover", "Key_Shared")


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
    epoch: int | None = None
    """The number of full redeliveries that the client asked for, where it counts them (PIP-84)."""
    address: str = ""
    client_version: str = ""
    auto_consume: bool = False
    """True for the schema AUTO_CONSUME: the consumer reads messages by the topic's schemas."""

    @property
    def copied_cursor(self) -> str | None:
        """The replication cursor that a task copies from with this consumer; see `wire/cursor_promise.py`."""
        return self.metadata.get(CURSOR_PROPERTY)

    @property
    def reads_entries(self) -> bool:
        """True for a reader of whole entries. Its positions mean nothing on another cluster."""
        return ENTRY_READER_PROPERTY in self.metadata or CURSOR_PROPERTY in self.metadata


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The effective policies of one topic; replaced as a whole when a policy changes.

    A rate without limit is None and a count without limit 0, so that a topic can skip the work.
    """

    deduplication_enabled: bool = False
    deduplication_entries_interval: int = 1000
    deduplication_snapshot_seconds: int = 0
    """Seconds that an entry may wait for a snapshot; 0 = until enough entries wait."""
    retention: RetentionPolicies = field(default_factory=RetentionPolicies)
    message_ttl_seconds: int = 0
    subscription_expiration_minutes: int = 0
    """Time without a consumer after which a durable subscription is deleted; 0 = never."""
    auto_subscription_creation_allowed: bool = True
    deduplication_inactivity_minutes: int = 360
    remote_clusters: tuple[str, ...] = ()
    replication_cursors_opened: bool = True
    """True to retain everything for remote clusters from the start; else from the job's first request on."""
    replicated_subscriptions_enabled: bool = True
    """False: no client marks a subscription as replicated, and updates from other clusters are ignored."""
    inactive_topics: InactiveTopicPolicies = field(default_factory=InactiveTopicPolicies)
    publish_rate: PublishRate | None = None
    dispatch_rate: DispatchRate | None = None
    """The rate of the whole topic."""
    subscription_dispatch_rate: DispatchRate | None = None
    """The rate of each subscription."""
    subscribe_rate: SubscribeRate | None = None
    backlog_quotas: Mapping[str, BacklogQuota] = field(default_factory=dict)
    """Quotas in force, by type: `DESTINATION_STORAGE` or `MESSAGE_AGE`."""
    backlog_ages_shown: bool = False
    """True to look up the age of each subscription's backlog together with the quotas."""
    max_producers: int = 0
    max_consumers: int = 0
    max_consumers_per_subscription: int = 0
    max_subscriptions: int = 0
    max_unacked_per_consumer: int = 0
    max_unacked_per_subscription: int = 0
    delayed_delivery: DelayedDelivery | None = None
    """The delays that messages may ask for. None: messages are delivered immediately."""
    compaction_threshold_bytes: int = 0
    """New bytes that start a compaction automatically; 0 = never."""
    compaction_keeps_keyless: bool = False
    """True if messages without a key survive compaction."""
    encryption_required: bool = False
    subscription_types_enabled: frozenset[str] | None = None
    """Enabled labels of `SubType`; None = all."""
    max_message_size: int = 0
    """Bytes, below the broker's own maximum; 0 = only that one applies."""
    role: FailoverRole = ACTIVE
    """The role of the namespace in a pair of clusters."""
    standby_consumers_allowed: bool = True
    """False to refuse consumers while the role is standby."""


class Delivery(NamedTuple):
    """An entry on its way to a consumer.

    ``ack_set``: signed 64-bit words, bit 1 = that message of the batch is unacknowledged; () = all of them are.
    ``message_count`` is the cost of the entry in permits.
    """

    position: Position
    entry: bytes
    redelivery_count: int = 0
    ack_set: tuple[int, ...] = ()
    message_count: int = 1


class LastMessage(NamedTuple):
    """The answer to GET_LAST_MESSAGE_ID: ``batch_index`` is n-1 for a batch, else -1; an empty topic has -1:-1."""

    position: Position
    batch_index: int


class ProducerSink(Protocol):
    """The receiver of a producer's answers."""

    def receipts(self, producer_id: int, receipts: Sequence[tuple[int, int, int, int]]) -> None:
        """Report durable entries: (sequence id, highest sequence id, ledger, entry) each, oldest first.

        The sequence ids are those of the publish; a duplicate has the position -1:-1.
        """

    def send_failed(self, producer_id: int, sequence_id: int, error: PulsarError) -> None:
        """Report an entry that will never be stored; ``sequence_id`` is the higher of the two published."""

    def throttle(self, wait_ms: int) -> None:
        """Stop reading from the client for ``wait_ms``: the topic is over its publish rate; 0 = read again."""

    def producer_ready(self, producer_id: int, topic_epoch: int) -> None:
        """Report that a producer that waited for exclusivity now has it."""

    def producer_refused(self, producer_id: int, error: PulsarError) -> None:
        """Answer the open request of a producer that will not get exclusivity; it is closed."""

    def producer_closed(self, producer_id: int) -> None:
        """Report that the broker closed the producer: the client looks the topic up and opens it again."""

    def producer_moved(self, producer_id: int, moved: FailoverRole) -> None:
        """Report that the broker closed the producer: the client opens it at the cluster that ``moved`` names."""

    async def is_alive(self) -> bool:
        """Return True if the peer still answers; asked when another connection wants the same producer name."""


class ConsumerSink(Protocol):
    """The receiver of entries for a consumer."""

    @property
    def writable(self) -> bool:
        """False while too much output waits; deliveries pause until `Consumer.resume`."""

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        """Send these entries in this order."""

    def active_changed(self, consumer_id: int, active: bool) -> None:
        """Report that a Failover consumer became, or stopped being, the one that gets entries."""

    def end_of_topic(self, consumer_id: int) -> None:
        """Report that the topic is terminated and drained. Only some clients understand the command."""

    def consumer_closed(self, consumer_id: int) -> None:
        """Report that the broker closed the consumer: the client looks the topic up and subscribes again."""

    def consumer_moved(self, consumer_id: int, moved: FailoverRole) -> None:
        """Report that the broker closed the consumer: the client subscribes at the cluster that ``moved`` names."""

    async def is_alive(self) -> bool:
        """Return True if the peer still answers; asked when another one wants the exclusive subscription."""


class HostedTopic(Protocol):
    """The interface of a topic for its host."""

    name: TopicName

    async def flush(self) -> None: ...
    async def close(self) -> None: ...


class TopicHost(Protocol):
    """The interface of the registry for topics."""

    now_ms: Callable[[], int]
    metadata: MetadataStore
    cursor_store: CursorStore
    layout: Layout
    cluster: str
    replicator_prefix: str
    compaction_permits: asyncio.Semaphore
    """The semaphore of compaction: every run holds one permit."""

    read_buffer_limiter: ReadBufferLimiter
    broker_entry_fields: BrokerEntryFields | None
    """The broker entry metadata in front of the entries of persistent topics."""

    serving: Callable[[], bool] | None
    """Return True while topics without a log may take entries. None: always; the broker is standalone."""

    def generate_producer_name(self) -> str: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...
    def call_later(self, wait_ms: int, call: Callable[[], None]) -> None: ...

    def cursors_changed(self, topic: HostedTopic) -> None:
        """Schedule the topic's `flush`."""

    def topic_failed(self, topic: HostedTopic) -> None:
        """Unload the topic."""
