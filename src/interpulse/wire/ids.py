"""Positions as the wire writes them: unsigned, so that -1 travels as 2^64-1."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.model.ids import MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb

__all__ = ["UINT64_NONE", "message_id_from_wire", "message_id_to_wire", "position_from_wire", "signed", "unsigned"]

UINT64_NONE = 2**64 - 1
"""-1 in an unsigned field: no request, no position, no sequence id."""


def unsigned(value: int) -> int:
    """A signed 64-bit number in the form an unsigned field takes."""
    return value & UINT64_NONE


def signed(value: int) -> int:
    """The inverse of :func:`unsigned`."""
    return value - 2**64 if value >= 2**63 else value


def position_from_wire(message_id: pb.MessageIdData) -> Position:
    """The entry a message id points to; the unsigned numbers of the wire become signed again."""
    return Position(signed(message_id.ledgerId), signed(message_id.entryId))


def message_id_from_wire(message_id: pb.MessageIdData) -> MessageId:
    """The message id with its partition and batch index, -1 where the wire has none."""
    return MessageId(
        signed(message_id.ledgerId), signed(message_id.entryId), message_id.partition, message_id.batch_index
    )


def message_id_to_wire(position: Position | MessageId, ack_set: Sequence[int] = ()) -> pb.MessageIdData:
    """Partition and batch index are left out where they are -1, as Pulsar's clients do; ``ack_set`` as in
    :mod:`interpulse.wire.ack_sets`."""
    wire = pb.MessageIdData(ledgerId=unsigned(position.ledger), entryId=unsigned(position.entry), ack_set=ack_set)
    if isinstance(position, MessageId):
        if position.partition >= 0:
            wire.partition = position.partition
        if position.batch_index >= 0:
            wire.batch_index = position.batch_index
    return wire
