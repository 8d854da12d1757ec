"""Constructors of commands; each returns the bytes of a complete frame.

A constructor prevents the errors that the message classes allow: -1 in unsigned fields, answers whose ``response`` must
be set, fields that must be absent. Arguments that are None (or empty) leave their field out. Requests need none:
`encode` takes their content.

The frames that are sent once per message - SEND, SEND_RECEIPT, MESSAGE, FLOW and an ACK of one id - are written without
message objects, byte for byte as protobuf would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple, cast

from google.protobuf.message import Message

from interpulse.model.errors import PulsarError
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.ids import UINT64_NONE, unsigned
from interpulse.wire.schemas import schema_to_wire

pack_sizes: Final = Struct(">II").pack
_SMALL: Final = 1 << 10
SMALL_VARINTS: Final = [bytes((n,)) if n < 128 else bytes((n & 127 | 128, n >> 7)) for n in range(_SMALL)]


def varint(number: int) -> bytes:
    """Encode a number of 0 to 2^64-1 in protobuf's form."""
    if number < _SMALL:
        return SMALL_VARINTS[number]
    low = b""
    while number >= _SMALL:
        low += bytes((number & 127 | 128,))
        number >>= 7
    return low + SMALL_VARINTS[number]


_ENVELOPES: Final[dict[str, bytes]] = {
    field.message_type.name: b"\x08" + varint(field.number) + varint(field.number << 3 | 2)
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}
"""The bytes before the size of each content: the type of the command and the tag of its content."""


def encode(content: Message) -> bytes:
    """Return the frame of any command, given its content: ``encode(pb.CommandSuccess(request_id=1))``."""
    return frame(_ENVELOPES[content.DESCRIPTOR.name], content.SerializeToString())


def frame(head: bytes, content: bytes, entry_bytes: int = 0) -> bytes:
    """Return a frame up to its entry. ``head`` is the type of the command and the tag of its content."""
    head += varint(len(content))
    size = len(head) + len(content)
    return b"%b%b%b" % (pack_sizes(size + 4 + entry_bytes, size), head, content)


class AnswerTemplate(NamedTuple):
    """Frames that differ only in the request id, between ``before`` (which ends with its tag) and ``after``."""

    head: bytes
    """The type of the command and the tag of its content."""
    before: bytes
    after: bytes

    @classmethod
    def of(cls, before: Message, after: Message) -> AnswerTemplate:
        """Return a template of the fields before the request id and those behind it."""
        tag = varint(before.DESCRIPTOR.fields_by_name["request_id"].number << 3)
        head = _ENVELOPES[before.DESCRIPTOR.name]
        return cls(head, before.SerializePartialToString() + tag, after.SerializePartialToString())

    def frame(self, request_id: int) -> bytes:
        """Return the frame that answers this request."""
        return frame(self.head, b"%b%b%b" % (self.before, varint(request_id), self.after))


def error_code(error: int) -> pb.ServerError.ValueType:
    return cast(pb.ServerError.ValueType, int(error))


def pairs(mapping: Mapping[str, str]) -> list[pb.KeyValue]:
    return [pb.KeyValue(key=key, value=value) for key, value in mapping.items()]


PING: Final = encode(pb.CommandPing())
PONG: Final = encode(pb.CommandPong())


@dataclass(frozen=True, slots=True)
class OriginalClient:
    """The client that a proxy speaks for, as reported to brokers."""

    principal: str
    proxy_version: str
    auth_method: str | None = None
    """None if its credentials are not forwarded."""
    auth_data: str | None = field(default=None, repr=False)

    def write(self, greeting: pb.CommandConnect) -> None:
        """Set the client in CONNECT."""
        greeting.proxy_version = self.proxy_version
        greeting.original_principal = self.principal
        if self.auth_method is not None:
            greeting.original_auth_method = self.auth_method
            greeting.original_auth_data = self.auth_data or ""


def success(request_id: int) -> bytes:
    return encode(pb.CommandSuccess(request_id=request_id))


def error(request_id: int, code: int, message: str) -> bytes:
    """Report an error. ``request_id`` -1: not the answer to a request, for example during the handshake."""
    return encode(pb.CommandError(request_id=unsigned(request_id), error=error_code(code), message=message))


def error_of(request_id: int, failure: PulsarError) -> bytes:
    """Return the ERROR frame for an error of the catalogue."""
    return error(request_id, failure.wire_code, str(failure))


@lru_cache(maxsize=100)
def partitioned_metadata_answer(partitions: int) -> AnswerTemplate:
    """Answer with the partition count, 0 for a topic that is not partitioned."""
    answer = pb.CommandPartitionedTopicMetadataResponse
    return AnswerTemplate.of(answer(partitions=partitions), answer(response=answer.Success))


@lru_cache(maxsize=100)
def lookup_answer(
    *,
    broker_url: str,
    broker_url_tls: str = "",
    redirect: bool = False,
    authoritative: bool = True,
    proxy_through_service_url: bool = False,
) -> AnswerTemplate:
    """Answer with the broker that serves the topic or, with ``redirect``, the broker to ask next."""
    answer = pb.CommandLookupTopicResponse
    kind = answer.Redirect if redirect else answer.Connect
    return AnswerTemplate.of(
        answer(brokerServiceUrl=broker_url or None, brokerServiceUrlTls=broker_url_tls or None, response=kind),
        answer(authoritative=authoritative, proxy_through_service_url=proxy_through_service_url),
    )


def batch_lookup_response(
    request_id: int,
    *,
    groups: Iterable[pb.BatchLookupGroup] = (),
    failures: Iterable[pb.BatchLookupFailure] = (),
    partitions: Mapping[str, int] | None = None,
) -> bytes:
    """Answer a batch lookup. Every requested topic appears once, in a group or in a failure."""
    counts = [pb.BatchLookupPartitions(topic=topic, partitions=count) for topic, count in (partitions or {}).items()]
    return encode(
        pb.CommandBatchLookupTopicResponse(request_id=request_id, groups=groups, failures=failures, partitions=counts)
    )


def get_schema_response(request_id: int, schema: SchemaInfo, version: bytes) -> bytes:
    return encode(
        pb.CommandGetSchemaResponse(request_id=request_id, schema=schema_to_wire(schema), schema_version=version)
    )


def send_head(
    producer_id: int,
    sequence_id: int,
    entry_bytes: int,
    *,
    num_messages: int = 1,
    highest_sequence_id: int = 0,
    is_chunk: bool = False,
    marker: bool = False,
) -> bytes:
    """Return a SEND frame up to its entry of ``entry_bytes`` bytes, which must follow."""
    content = b"\x08%b\x10%b" % (varint(producer_id), varint(sequence_id))
    if num_messages != 1:
        content += b"\x18" + varint(num_messages)
    if highest_sequence_id:
        content += b"\x30" + varint(highest_sequence_id)
    if is_chunk:
        content += b"\x38\x01"
    if marker:
        content += b"\x40\x01"
    return frame(b"\x08\x06\x32", content, entry_bytes)


def send_receipt(
    producer_id: int, sequence_id: int, highest_sequence_id: int, ledger: int, entry: int, partition: int = -1
) -> bytes:
    """Confirm an entry, with both sequence ids exactly as they were sent. Ledger and entry -1: it was a duplicate."""
    position = b"\x08%b\x10%b" % (varint(ledger & UINT64_NONE), varint(entry & UINT64_NONE))
    if partition >= 0:
        position += b"\x18" + varint(partition)
    numbers = (varint(producer_id), varint(sequence_id), SMALL_VARINTS[len(position)], position)
    content = b"\x08%b\x10%b\x1a%b%b" % numbers
    if highest_sequence_id:
        content += b"\x20" + varint(highest_sequence_id)
    size = len(content)
    return b"%b\x08\x07\x3a%b%b" % (pack_sizes(size + 8, size + 4), SMALL_VARINTS[size], content)


def send_error(producer_id: int, sequence_id: int, code: int, message: str) -> bytes:
    return encode(
        pb.CommandSendError(producer_id=producer_id, sequence_id=sequence_id, error=error_code(code), message=message)
    )


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


def flow(consumer_id: int, permits: int) -> bytes:
    """Grant permits, which count messages and not entries."""
    return frame(b"\x08\x0b\x5a", b"\x08%b\x10%b" % (varint(consumer_id), varint(permits)))


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


def producer_moved(producer_id: int, service_url: str, service_url_tls: str) -> bytes:
    """Send a producer to another cluster: TOPIC_MIGRATED, and the CLOSE_PRODUCER that must follow it."""
    moved = _topic_migrated(producer_id, pb.CommandTopicMigrated.Producer, service_url, service_url_tls)
    return moved + encode(pb.CommandCloseProducer(producer_id=producer_id, request_id=UINT64_NONE))


def consumer_moved(consumer_id: int, service_url: str, service_url_tls: str) -> bytes:
    """Send a consumer to another cluster: TOPIC_MIGRATED, and the CLOSE_CONSUMER that must follow it."""
    moved = _topic_migrated(consumer_id, pb.CommandTopicMigrated.Consumer, service_url, service_url_tls)
    return moved + encode(pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=UINT64_NONE))


def _topic_migrated(
    resource_id: int, kind: pb.CommandTopicMigrated.ResourceType.ValueType, service_url: str, service_url_tls: str
) -> bytes:
    return encode(
        pb.CommandTopicMigrated(
            resource_id=resource_id,
            resource_type=kind,
            brokerServiceUrl=service_url or None,
            brokerServiceUrlTls=service_url_tls or None,
        )
    )
