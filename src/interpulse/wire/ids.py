"""Positions on the wire, unsigned so that -1 is sent as 2^64-1, and the unacknowledged messages of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from interpulse.model.ids import ChunkMessageId, MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb

UINT64_NONE = 2**64 - 1
"""-1 in an unsigned field: no request, no position, no sequence id."""

_WORD = (1 << 64) - 1


def unsigned(value: int) -> int:
    """Return a signed 64-bit number in the form of an unsigned field."""
    return value & UINT64_NONE


def signed(value: int) -> int:
    """Return the signed number of an unsigned field."""
    return value - 2**64 if value >= 2**63 else value


def position_from_wire(message_id: pb.MessageIdData) -> Position:
    """Return the entry of a message id, with signed numbers."""
    return Position(signed(message_id.ledgerId), signed(message_id.entryId))


def message_id_from_wire(message_id: pb.MessageIdData) -> MessageId:
    """Return a message id with partition and batch index, -1 where the wire has none."""
    plain = MessageId(*position_from_wire(message_id), message_id.partition, message_id.batch_index)
    if not message_id.HasField("first_chunk_message_id"):
        return plain
    return ChunkMessageId(*plain, position_from_wire(message_id.first_chunk_message_id))


def message_id_to_wire(position: Position | MessageId, ack_set: Sequence[int] = ()) -> pb.MessageIdData:
    """Return a message id for the wire, without partition or batch index where they are -1, as in Pulsar's clients.

    ``ack_set`` marks the unacknowledged messages of a batch; see `mask_of`.
    """
    wire = pb.MessageIdData(ledgerId=unsigned(position.ledger), entryId=unsigned(position.entry), ack_set=ack_set)
    if isinstance(position, MessageId):
        if position.partition >= 0:
            wire.partition = position.partition
        if position.batch_index >= 0:
            wire.batch_index = position.batch_index
        if position.first_chunk is not None:
            first = MessageId(*position.first_chunk, position.partition)
            wire.first_chunk_message_id.CopyFrom(message_id_to_wire(first))
    return wire


def serialize_message_id(message_id: MessageId) -> bytes:
    """Serialize a message id for storage elsewhere, in the form of Pulsar's clients."""
    return message_id_to_wire(message_id).SerializeToString()


def deserialize_message_id(content: bytes) -> MessageId:
    """Deserialize a message id of ours or of Pulsar's clients. Raise ValueError for other bytes."""
    try:
        wire = pb.MessageIdData.FromString(content)
    except DecodeError as error:
        raise ValueError(f"no serialized message id: {content[:40]!r}") from error
    if not wire.IsInitialized():
        raise ValueError(f"no serialized message id, ledger or entry is missing: {content!r}")
    return message_id_from_wire(wire)


def mask_of(ack_set: Sequence[int]) -> int:
    """Return the words of an ``ack_set`` as one number: bit i is 1 while message i is not acknowledged."""
    mask = 0
    for index, word in enumerate(ack_set):
        mask |= (word & _WORD) << (64 * index)
    return mask


def of_batch(mask: int, messages: int) -> int:
    """Return the bits of ``mask`` that are messages of a batch of this size. An absurd size costs nothing."""
    return mask & ((1 << min(max(messages, 0), mask.bit_length())) - 1)


def words_of(mask: int) -> tuple[int, ...]:
    """Return the words of a mask, signed as on the wire."""
    words = []
    while mask:
        word = mask & _WORD
        words.append(word - (1 << 64) if word >> 63 else word)
        mask >>= 64
    return tuple(words)
