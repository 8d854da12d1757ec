"""Positions on the wire: -1 travels as 2^64-1."""

import pytest

from interpulse.model.ids import EARLIEST, LATEST, ChunkMessageId, MessageId, Position
from interpulse.wire.ids import (
    deserialize_message_id,
    message_id_from_wire,
    message_id_to_wire,
    position_from_wire,
    serialize_message_id,
)


@pytest.mark.parametrize("position", [EARLIEST, LATEST, Position(5, -1), Position(0, 0), Position(2**40, 7)])
def test_position_when_sent_and_read_then_is_the_same(position: Position) -> None:
    assert position_from_wire(message_id_to_wire(position)) == position


@pytest.mark.parametrize(
    "message_id",
    [MessageId(1, 2), MessageId(1, 2, 3), MessageId(1, 2, 3, 4), ChunkMessageId(1, 2, 3, -1, Position(0, 9))],
)
def test_message_id_when_sent_and_read_then_is_the_same(message_id: MessageId) -> None:
    for read in (
        message_id_from_wire(message_id_to_wire(message_id)),
        deserialize_message_id(serialize_message_id(message_id)),
    ):
        assert (read, read.first_chunk) == (message_id, message_id.first_chunk)


@pytest.mark.parametrize("content", [b"", b"1:2:-1", b"\x08\x01"])
def test_message_id_when_the_bytes_are_none_then_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="no serialized message id"):
        deserialize_message_id(content)


def test_position_when_sent_then_has_no_partition() -> None:
    wire = message_id_to_wire(Position(1, 2))
    assert not wire.HasField("partition")
    assert not wire.HasField("batch_index")
