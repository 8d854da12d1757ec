"""Positions on the wire: -1 travels as 2^64-1."""

import pytest

from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.wire.ids import message_id_from_wire, message_id_to_wire, position_from_wire


@pytest.mark.parametrize("position", [EARLIEST, LATEST, Position(5, -1), Position(0, 0), Position(2**40, 7)])
def test_position_when_sent_and_read_then_is_the_same(position: Position) -> None:
    assert position_from_wire(message_id_to_wire(position)) == position


@pytest.mark.parametrize("message_id", [MessageId(1, 2), MessageId(1, 2, 3), MessageId(1, 2, 3, 4)])
def test_message_id_when_sent_and_read_then_is_the_same(message_id: MessageId) -> None:
    assert message_id_from_wire(message_id_to_wire(message_id)) == message_id


def test_position_when_sent_then_has_no_partition() -> None:
    wire = message_id_to_wire(Position(1, 2))
    assert not wire.HasField("partition")
    assert not wire.HasField("batch_index")
