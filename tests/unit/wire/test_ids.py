"""Positions and acknowledged sets on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import EARLIEST, LATEST, ChunkMessageId, MessageId, Position
from interpulse.wire.ids import (
    deserialize_message_id,
    mask_of,
    message_id_from_wire,
    message_id_to_wire,
    of_batch,
    position_from_wire,
    serialize_message_id,
    words_of,
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


@given(st.integers(0, 2**200))
def test_words_of_then_mask_of_gives_the_mask_back(mask: int) -> None:
    assert mask_of(words_of(mask)) == mask
    assert all(-(2**63) <= word < 2**63 for word in words_of(mask))


@pytest.mark.parametrize(
    ("words", "mask"),
    [
        pytest.param([5], 0b101, id="three-the-second-acknowledged"),
        pytest.param([-1, 1], 2**65 - 1, id="sixty-five-none-acknowledged"),
        pytest.param([0, 1], 2**64, id="sixty-five-the-last-waits"),
    ],
)
def test_mask_of_words_then_bit_i_is_message_i(words: list[int], mask: int) -> None:
    assert mask_of(words) == mask
    assert words_of(mask) == tuple(words)


@pytest.mark.parametrize(
    ("messages", "left"),
    [
        pytest.param(2, 0b01, id="more-words-than-messages"),
        pytest.param(3, 0b101, id="as-many"),
        pytest.param(2**31 - 1, 0b101, id="a-made-up-number"),
        pytest.param(-1, 0, id="less-than-nothing"),
    ],
)
def test_mask_when_the_batch_is_so_large_then_the_rest_is_cut_off(messages: int, left: int) -> None:
    assert of_batch(0b101, messages) == left
