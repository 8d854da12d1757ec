"""Messages in several entries."""

import pytest

from interpulse.client.consuming.chunk_assembler import Assembled, ChunkAssembler
from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import ParsedEntry


def chunk(uuid: str, index: int, total: int = 3) -> ParsedEntry:
    metadata = pb.MessageMetadata(
        producer_name="p", sequence_id=1, publish_time=1, uuid=uuid, num_chunks_from_msg=total, chunk_id=index
    )
    return ParsedEntry(metadata, b"", memoryview(f"{uuid}{index} ".encode()))


def feed(assembler: ChunkAssembler, uuid: str, *indexes: int) -> Assembled | None:
    whole = None
    for index in indexes:
        whole = assembler.add(chunk(uuid, index), Position(1, index))
    return whole


def test_chunks_when_all_came_then_are_one_message() -> None:
    whole = feed(ChunkAssembler(), "a", 0, 1, 2)
    assert whole is not None
    assert bytes(whole.entry.payload) == b"a0 a1 a2 "
    assert whole.positions == [Position(1, 0), Position(1, 1), Position(1, 2)]


def test_chunks_of_two_messages_when_mixed_then_both_are_assembled() -> None:
    assembler = ChunkAssembler()
    feed(assembler, "a", 0, 1)
    assert feed(assembler, "b", 0, 1, 2) is not None
    assert feed(assembler, "a", 2) is not None


def test_chunk_when_one_before_it_is_missing_then_message_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    assert feed(ChunkAssembler(), "a", 0, 2) is None
    assert feed(ChunkAssembler(), "a", 1, 2) is None
    assert [record.args for record in caplog.records] == [("a", 2), ("a", 1), ("a", 2)]


def test_chunks_when_the_first_comes_again_then_begin_anew() -> None:
    whole = feed(ChunkAssembler(), "a", 0, 1, 0, 1, 2)
    assert whole is not None
    assert len(whole.positions) == 3


def test_unfinished_messages_when_too_many_then_the_oldest_is_dropped() -> None:
    assembler = ChunkAssembler(messages_max=2)
    for uuid in "abc":
        feed(assembler, uuid, 0, 1)
    assert feed(assembler, "a", 2) is None
    assert feed(assembler, "c", 2) is not None


def test_message_when_it_gives_way_then_its_chunks_are_told() -> None:
    given_up: list[Position] = []
    assembler = ChunkAssembler(messages_max=1, on_given_up=given_up.extend)
    feed(assembler, "a", 0, 1)
    feed(assembler, "b", 0)
    assert given_up == [Position(1, 0), Position(1, 1)]
