"""Subscribing, messages, acknowledgements, positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from interpulse.model.errors import PulsarError
from interpulse.model.ids import MessageId, Position
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands.encoding import SMALL_VARINTS, encode, error_code, frame, pack_sizes, pairs, varint
from interpulse.wire.ids import UINT64_NONE, message_id_to_wire, unsigned
from interpulse.wire.schemas import schema_to_wire


def subscribe(
    request_id: int,
    consumer_id: int,
    topic: str,
    subscription: str,
    *,
    kind: pb.CommandSubscribe.SubType.ValueType = pb.CommandSubscribe.Exclusive,
    name: str | None = None,
    durable: bool = True,
    start: Position | MessageId | None = None,
    initial_position: pb.CommandSubscribe.InitialPosition.ValueType = pb.CommandSubscribe.Latest,
    force_topic_creation: bool = True,
    read_compacted: bool = False,
    priority_level: int = 0,
    schema: SchemaInfo | None = None,
    key_shared: pb.KeySharedMeta | None = None,
    properties: Mapping[str, str] | None = None,
    subscription_properties: Mapping[str, str] | None = None,
    replicate_state: bool = False,
    consumer_epoch: int | None = None,
) -> bytes:
    """Subscribe. ``start`` is for ``durable=False``: the broker begins at that entry."""
    return encode(
        pb.CommandSubscribe(
            topic=topic,
            subscription=subscription,
            subType=kind,
            consumer_id=consumer_id,
            request_id=request_id,
            consumer_name=name,
            durable=durable,
            start_message_id=message_id_to_wire(start) if start is not None else None,
            initialPosition=initial_position,
            force_topic_creation=force_topic_creation,
            read_compacted=read_compacted or None,
            priority_level=priority_level or None,
            schema=schema_to_wire(schema) if schema is not None else None,
            keySharedMeta=key_shared,
            metadata=pairs(properties or {}),
            subscription_properties=pairs(subscription_properties or {}),
            replicate_subscription_state=replicate_state or None,
            consumer_epoch=consumer_epoch,
        )
    )


def flow(consumer_id: int, permits: int) -> bytes:
    """Grant permits, which count messages and not entries."""
    return frame(b"\x08\x0b\x5a", b"\x08%b\x10%b" % (varint(consumer_id), varint(permits)))


def message_head(
    consumer_id: int,
    ledger: int,
    entry: int,
    entry_bytes: int,
    *,
    partition: int = -1,
    redelivery_count: int = 0,
    ack_set: Sequence[int] = (),
    consumer_epoch: int | None = None,
) -> bytes:
    """Return a MESSAGE frame up to its stored entry of ``entry_bytes`` bytes, which must follow."""
    position = b"\x08%b\x10%b" % (varint(ledger), varint(entry))
    if partition >= 0:
        position += b"\x18" + varint(partition)
    content = b"\x08%b\x12%b%b" % (varint(consumer_id), SMALL_VARINTS[len(position)], position)
    if redelivery_count:
        content += b"\x18" + varint(redelivery_count)
    for word in ack_set:
        content += b"\x20" + varint(word & UINT64_NONE)
    if consumer_epoch is not None:
        content += b"\x28" + varint(consumer_epoch)
    return frame(b"\x08\x09\x4a", content, entry_bytes)


class MessageHeadEncoder:
    """The heads of the MESSAGE frames of one consumer: one message object, in which only the numbers change."""

    __slots__ = ("_ledger", "_message_id", "_serialize")

    def __init__(self, consumer_id: int, partition: int = -1) -> None:
        command = pb.BaseCommand(type=pb.BaseCommand.MESSAGE)
        command.message.consumer_id = consumer_id
        self._message_id = command.message.message_id
        if partition >= 0:
            self._message_id.partition = partition
        self._ledger = -1
        self._serialize = command.SerializeToString

    def encode(self, ledger: int, entry: int, entry_bytes: int) -> bytes:
        """Return a head as `message_head` does, for an entry that is delivered whole and for the first time."""
        if ledger != self._ledger:
            self._message_id.ledgerId = self._ledger = ledger
        self._message_id.entryId = entry
        raw = self._serialize()
        size = len(raw)
        return pack_sizes(size + 4 + entry_bytes, size) + raw


def message(
    consumer_id: int,
    position: Position,
    entry: bytes | memoryview,
    *,
    partition: int = -1,
    redelivery_count: int = 0,
    ack_set: Sequence[int] = (),
    consumer_epoch: int | None = None,
) -> bytes:
    """Deliver a stored entry."""
    head = message_head(
        consumer_id,
        position.ledger,
        position.entry,
        len(entry),
        partition=partition,
        redelivery_count=redelivery_count,
        ack_set=ack_set,
        consumer_epoch=consumer_epoch,
    )
    return b"".join((head, entry))


def ack_one(consumer_id: int, ledger: int, entry: int) -> bytes:
    """Acknowledge one whole entry, without an answer."""
    position = b"\x08%b\x10%b" % (varint(ledger & UINT64_NONE), varint(entry & UINT64_NONE))
    content = b"\x08%b\x10\x00\x1a%b%b" % (varint(consumer_id), SMALL_VARINTS[len(position)], position)
    return frame(b"\x08\x0a\x52", content)


def ack(
    consumer_id: int,
    message_ids: Iterable[pb.MessageIdData],
    *,
    cumulative: bool = False,
    request_id: int | None = None,
    validation_error: pb.CommandAck.ValidationError.ValueType | None = None,
) -> bytes:
    """Acknowledge ids; cumulative takes exactly one. With ``request_id`` the broker answers ACK_RESPONSE."""
    return encode(
        pb.CommandAck(
            consumer_id=consumer_id,
            ack_type=pb.CommandAck.Cumulative if cumulative else pb.CommandAck.Individual,
            message_id=message_ids,
            request_id=request_id,
            validation_error=validation_error,
        )
    )


def ack_response(consumer_id: int, request_id: int, failure: PulsarError | None = None) -> bytes:
    """Answer an ACK. Success must omit error and message: some clients take any message for an error."""
    answer = pb.CommandAckResponse(consumer_id=consumer_id, request_id=request_id)
    if failure is not None:
        answer.error = error_code(failure.wire_code)
        answer.message = str(failure)
    return encode(answer)


def redeliver_unacknowledged(
    consumer_id: int, message_ids: Iterable[pb.MessageIdData] = (), *, consumer_epoch: int | None = None
) -> bytes:
    """Ask for redelivery. Without ids it covers everything that this consumer has not acknowledged."""
    return encode(
        pb.CommandRedeliverUnacknowledgedMessages(
            consumer_id=consumer_id, message_ids=message_ids, consumer_epoch=consumer_epoch
        )
    )


def active_consumer_change(consumer_id: int, *, active: bool) -> bytes:
    return encode(pb.CommandActiveConsumerChange(consumer_id=consumer_id, is_active=active))


def reached_end_of_topic(consumer_id: int) -> bytes:
    """Report the end of a terminated topic. Java clients only: C++ and Go clients close the connection on it."""
    return encode(pb.CommandReachedEndOfTopic(consumer_id=consumer_id))


def seek(request_id: int, consumer_id: int, target: Position | MessageId | int) -> bytes:
    """Seek to a position or, for an int, to a publish time in ms since the epoch."""
    if isinstance(target, int):
        return encode(pb.CommandSeek(consumer_id=consumer_id, request_id=request_id, message_publish_time=target))
    position = message_id_to_wire(target)
    return encode(pb.CommandSeek(consumer_id=consumer_id, request_id=request_id, message_id=position))


def unsubscribe(request_id: int, consumer_id: int, *, force: bool = False) -> bytes:
    return encode(pb.CommandUnsubscribe(consumer_id=consumer_id, request_id=request_id, force=force))


def close_consumer(
    consumer_id: int, request_id: int = -1, *, broker_url: str | None = None, broker_url_tls: str | None = None
) -> bytes:
    """Close a consumer. From a broker, without request id, the client subscribes again, there or by lookup."""
    return encode(
        pb.CommandCloseConsumer(
            consumer_id=consumer_id,
            request_id=unsigned(request_id),
            assignedBrokerServiceUrl=broker_url,
            assignedBrokerServiceUrlTls=broker_url_tls,
        )
    )


def get_last_message_id(request_id: int, consumer_id: int) -> bytes:
    return encode(pb.CommandGetLastMessageId(consumer_id=consumer_id, request_id=request_id))


def get_last_message_id_response(request_id: int, last: MessageId, mark_delete: Position) -> bytes:
    """Answer with the last id, -1:-1 twice for an empty topic. Clients rely on the second position."""
    return encode(
        pb.CommandGetLastMessageIdResponse(
            request_id=request_id,
            last_message_id=message_id_to_wire(last),
            consumer_mark_delete_position=message_id_to_wire(mark_delete),
        )
    )


def consumer_stats(request_id: int, consumer_id: int) -> bytes:
    return encode(pb.CommandConsumerStats(consumer_id=consumer_id, request_id=request_id))


def topic_migrated(
    resource_id: int,
    kind: pb.CommandTopicMigrated.ResourceType.ValueType,
    *,
    broker_url: str,
    broker_url_tls: str | None = None,
) -> bytes:
    """Redirect a client to another cluster. CLOSE_PRODUCER or CLOSE_CONSUMER follows."""
    return encode(
        pb.CommandTopicMigrated(
            resource_id=resource_id,
            resource_type=kind,
            brokerServiceUrl=broker_url,
            brokerServiceUrlTls=broker_url_tls,
        )
    )
