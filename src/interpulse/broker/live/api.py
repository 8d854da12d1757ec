"""The interface between the front ends and the live objects.

The front ends call :class:`LiveTopic`, :class:`LiveProducer` and :class:`LiveConsumer`; the live objects answer through
the two sinks that a front end passes when it opens a producer or a consumer. Everything happens in the event loop.
Calls into a sink are plain calls: a sink collects output and never blocks, never raises and never calls back into the
topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from interpulse.broker.live.requests import InitialPosition, ProducerRequest, SubscribeRequest
from interpulse.model.errors import PulsarError
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName


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

    async def is_alive(self) -> bool:
        """Return True if the peer still answers; asked when another connection wants the same producer name."""


class ConsumerSink(Protocol):
    """The receiver of entries for a consumer."""

    @property
    def writable(self) -> bool:
        """False while too much output waits; deliveries pause until :meth:`LiveConsumer.resume`."""

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        """Send these entries in this order."""

    def active_changed(self, consumer_id: int, active: bool) -> None:
        """Report that a Failover consumer became, or stopped being, the one that gets entries."""

    def end_of_topic(self, consumer_id: int) -> None:
        """Report that the topic is terminated and drained. Only some clients understand the command."""

    def consumer_closed(self, consumer_id: int) -> None:
        """Report that the broker closed the consumer: the client looks the topic up and subscribes again."""

    async def is_alive(self) -> bool:
        """Return True if the peer still answers; asked when another one wants the exclusive subscription."""


class LiveProducer(Protocol):
    """An open producer."""

    producer_id: int
    name: str
    ready: bool
    """False while the producer waits for exclusivity; then :meth:`ProducerSink.producer_ready` follows."""

    @property
    def topic_epoch(self) -> int | None:
        """The topic's epoch of exclusive producers; None before the first one, and while this one waits."""

    @property
    def last_sequence_id(self) -> int:
        """The highest sequence id stored under this name according to de-duplication, else -1."""

    def takes_run(self, sequence_ids: Sequence[int], entries: Sequence[bytes]) -> bool:
        """Return True if these entries, each one whole message, can be published by one call.

        Entries that need a check or an answer of their own cannot.
        """

    def publish(
        self,
        sequence_ids: Sequence[int],
        entries: Sequence[bytes],
        *,
        highest_sequence_id: int = -1,
        num_messages: int = 1,
        is_chunk: bool = False,
        marker: bool = False,
    ) -> None:
        """Append one stored entry (checksum part first), or several that `takes_run` accepts.

        The sink gets a receipt or a failure for each, in call order. ``highest_sequence_id`` is -1 if the client sent
        none. A copy by a replicator that names its source position is identified by it, if the producer was opened so:
        its receipt has the ledger as sequence id and the entry as the highest one; that of a replication marker has
        2^63, which the wire reads as -2^63.
        """

    def close(self) -> None:
        """Close the producer after its client left. Pending entries are still stored, without a receipt."""

    def close_by_broker(self) -> None:
        """Close the producer, and have the client open it again."""


class LiveConsumer(Protocol):
    """An open consumer. All calls after :meth:`close` are ignored."""

    consumer_id: int
    name: str
    epoch: int
    """The epoch in MESSAGE commands, by which the client drops messages sent before a full redelivery."""

    @property
    def read_compacted(self) -> bool:
        """True for a consumer of the compacted topic."""

    @property
    def subscription_name(self) -> str:
        """The name of the subscription."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """The properties set by its client."""

    def flow(self, permits: int) -> None:
        """Grant ``permits`` more messages."""

    def resume(self) -> None:
        """Continue deliveries: the sink is writable again."""

    def acknowledge(self, *positions: Position, ack_set: Sequence[int] = ()) -> None:
        """Acknowledge entries, or those messages of a single batch whose bit is 0 in ``ack_set``."""

    def acknowledge_cumulative(self, position: Position, ack_set: Sequence[int] = ()) -> None:
        """Acknowledge everything up to this entry; raises NotAllowed on Shared and Key_Shared."""

    def redeliver(self, positions: Sequence[Position] = (), epoch: int | None = None) -> None:
        """Send these entries again. Without entries, or for an unshared type, send everything unacknowledged."""

    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None:
        """Close all consumers of the subscription, then move it so that ``position`` comes next."""

    async def seek_to_time(self, publish_time_ms: int) -> None:
        """Close all consumers of the subscription, then move it to the first entry published at or after this."""

    async def unsubscribe(self, force: bool = False) -> None:
        """Delete the subscription; raises MetadataError if others are connected and it is not forced."""

    def close(self) -> None:
        """Close the consumer after its client left. Others get the entries that it has not acknowledged."""

    def close_by_broker(self) -> None:
        """Close the consumer, and have the client subscribe again."""

    def stats(self) -> dict[str, Any]:
        """Return Pulsar's ConsumerStats as JSON; also the source of CONSUMER_STATS_RESPONSE."""


class LiveTopic(Protocol):
    """A loaded topic, persistent or not."""

    name: TopicName

    @property
    def broker_entry_metadata_possible(self) -> bool:
        """True if entries may begin with broker entry metadata, which not every client understands."""

    @property
    def has_consumers_without_auto_consume(self) -> bool:
        """True if a connected consumer has a schema of its own, or none, instead of AUTO_CONSUME."""

    async def add_producer(self, request: ProducerRequest, sink: ProducerSink) -> LiveProducer:
        """Open a producer; raises ProducerBusy, ProducerFenced, TopicTerminated, ServiceNotReady."""

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink) -> LiveConsumer:
        """Open a consumer; raises ConsumerBusy, SubscriptionNotFound, NotAllowed, ServiceNotReady."""

    async def create_subscription(
        self,
        subscription: str,
        *,
        position: MessageId | None = None,
        initial: InitialPosition = InitialPosition.LATEST,
        properties: Mapping[str, str] | None = None,
        replicate_state: bool = False,
    ) -> None:
        """Create a durable subscription without a consumer; raises AlreadyExists."""

    async def delete_subscription(self, subscription: str, *, force: bool = False) -> None:
        """Delete a subscription.

        Raises SubscriptionNotFound, or PreconditionFailed if consumers are connected and it is not forced.
        """

    def subscription_names(self) -> list[str]:
        """Return all names but those of replication cursors, sorted."""

    async def last_message(self, *, read_compacted: bool = False) -> LastMessage:
        """Return the last durable message, or the last compacted one."""

    def mark_delete_position(self, subscription: str) -> Position:
        """Return the position up to which everything is acknowledged; raises SubscriptionNotFound."""

    def promised_position(self, cursor: str) -> Position | None:
        """Return the mark-delete position for a task that copies from this replication cursor.

        It comes with the promise of `wire/cursor_promise.py`. None if it is no replication cursor; raises
        SubscriptionNotFound.
        """

    def stats(self) -> dict[str, Any]:
        """Return Pulsar's TopicStats as JSON."""

    def internal_stats(self) -> dict[str, Any]:
        """Return Pulsar's PersistentTopicInternalStats as JSON."""
