"""Opening a producer, sending, and receipts."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.model.schemas import SchemaInfo
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands.encoding import SMALL_VARINTS, encode, error_code, frame, pack_sizes, pairs, varint
from interpulse.wire.ids import UINT64_NONE, unsigned
from interpulse.wire.schemas import schema_to_wire


def producer(
    request_id: int,
    producer_id: int,
    topic: str,
    *,
    name: str | None = None,
    name_given_by_user: bool = True,
    epoch: int = 0,
    schema: SchemaInfo | None = None,
    access_mode: pb.ProducerAccessMode.ValueType = pb.Shared,
    topic_epoch: int | None = None,
    encrypted: bool = False,
    properties: Mapping[str, str] | None = None,
    initial_subscription_name: str | None = None,
) -> bytes:
    """Open a producer. ``epoch`` grows by one with every attempt of the same producer to reconnect."""
    return encode(
        pb.CommandProducer(
            topic=topic,
            producer_id=producer_id,
            request_id=request_id,
            producer_name=name,
            user_provided_producer_name=name_given_by_user,
            epoch=epoch,
            schema=schema_to_wire(schema) if schema is not None else None,
            producer_access_mode=access_mode,
            topic_epoch=topic_epoch,
            encrypted=encrypted,
            metadata=pairs(properties or {}),
            initial_subscription_name=initial_subscription_name,
        )
    )


def producer_success(
    request_id: int,
    *,
    name: str,
    last_sequence_id: int = -1,
    schema_version: bytes = b"",
    topic_epoch: int | None = None,
    ready: bool = True,
) -> bytes:
    """Confirm a producer. ``ready=False``: it waits for exclusive access, and a second answer follows."""
    return encode(
        pb.CommandProducerSuccess(
            request_id=request_id,
            producer_name=name,
            last_sequence_id=last_sequence_id,
            schema_version=schema_version,
            topic_epoch=topic_epoch,
            producer_ready=ready,
        )
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


def send(
    producer_id: int,
    sequence_id: int,
    entry: bytes | memoryview,
    *,
    num_messages: int = 1,
    highest_sequence_id: int = 0,
    is_chunk: bool = False,
) -> bytes:
    """Send an entry built by frames.build_entry."""
    head = send_head(
        producer_id,
        sequence_id,
        len(entry),
        num_messages=num_messages,
        highest_sequence_id=highest_sequence_id,
        is_chunk=is_chunk,
    )
    return b"".join((head, entry))


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


def close_producer(
    producer_id: int, request_id: int = -1, *, broker_url: str | None = None, broker_url_tls: str | None = None
) -> bytes:
    """Close a producer. From a broker, without request id, the client reopens it, at the given address or by lookup."""
    return encode(
        pb.CommandCloseProducer(
            producer_id=producer_id,
            request_id=unsigned(request_id),
            assignedBrokerServiceUrl=broker_url,
            assignedBrokerServiceUrlTls=broker_url_tls,
        )
    )
