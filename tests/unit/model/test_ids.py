"""Positions and message ids."""

import pickle

import pytest

from interpulse.model.ids import EARLIEST, LATEST, ChunkMessageId, MessageId, Position, SiteMessageId


def test_positions_when_compared_then_the_ledger_counts_first() -> None:
    ordered = [EARLIEST, Position(0, -1), Position(0, 0), Position(0, 9), Position(1, -1), Position(10, 0), LATEST]
    shuffled = [ordered[n] for n in (3, 0, 6, 1, 5, 2, 4)]
    assert sorted(shuffled) == ordered


@pytest.mark.parametrize("position", [EARLIEST, LATEST, Position(12, 0), Position(7, -1)])
def test_position_when_written_then_reads_back(position: Position) -> None:
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize("text", ["", "7", "7-1", "a:b", "1:"])
def test_position_when_the_text_is_none_then_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"position|invalid literal"):
        Position.parse(text)


def test_message_id_when_written_then_shows_a_batch_index_only_if_it_has_one() -> None:
    assert str(MessageId(3, 4)) == "3:4:-1"
    assert str(MessageId(3, 4, 1, 0)) == "3:4:1:0"
    assert MessageId(3, 4, 1, 0).position == Position(3, 4)


def test_chunk_message_id_when_compared_then_is_the_id_of_its_last_chunk() -> None:
    chunked = ChunkMessageId(3, 4, 1, -1, Position(2, 9))
    assert (chunked, hash(chunked), str(chunked)) == (MessageId(3, 4, 1), hash(MessageId(3, 4, 1)), "3:4:1")
    assert MessageId(3, 3, 1) < chunked < MessageId(3, 5, 1)
    assert (chunked.position, chunked.first_chunk) == (Position(3, 4), Position(2, 9))
    assert pickle.loads(pickle.dumps(chunked)).first_chunk == Position(2, 9)


def test_message_id_of_a_position_then_has_that_position() -> None:
    chunked = ChunkMessageId(3, 4, 1, -1, Position(2, 9))
    assert MessageId.of(chunked) is chunked
    assert MessageId.of(LATEST) == MessageId(*LATEST)


@pytest.mark.parametrize("plain", [MessageId(3, 4, 1, 0), ChunkMessageId(3, 4, 1, -1, Position(3, 2))])
def test_message_id_when_it_has_a_site_then_equals_the_plain_one(plain: MessageId) -> None:
    assert (plain.cluster, plain.source) == (None, None)
    sited = plain.of_site("pulsar://east", Position(9, 1))
    assert (sited, hash(sited), str(sited)) == (plain, hash(plain), str(plain))
    assert sited < MessageId(3, 5)
    again = pickle.loads(pickle.dumps(sited))
    for each in (sited, again):
        assert isinstance(each, SiteMessageId)
        assert (each.cluster, each.source) == ("pulsar://east", Position(9, 1))
        assert each.first_chunk == plain.first_chunk
