"""Unpacking: permits, acknowledged and unwanted messages, chunks."""

import pytest

from interpulse.client.consuming.ack_tracker import AckTracker
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.unpacker import Assembled, ChunkAssembler, Start, Unpacker
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.entries import ParsedEntry, build_entry
from interpulse.wire.errors import RemoteProtocolError


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


@pytest.mark.parametrize(
    ("start", "included", "message", "admitted"),
    [
        pytest.param(MessageId(*EARLIEST), False, MessageId(0, 0), True, id="earliest"),
        pytest.param(MessageId(*LATEST), False, MessageId(0, 0), True, id="latest-is-the-brokers-to-keep"),
        pytest.param(MessageId(1, 5), False, MessageId(1, 4), False, id="before"),
        pytest.param(MessageId(1, 5), False, MessageId(1, 5), False, id="the-entry"),
        pytest.param(MessageId(1, 5), True, MessageId(1, 5), True, id="the-entry-included"),
        pytest.param(MessageId(1, 5), False, MessageId(2, 0), True, id="behind"),
        pytest.param(MessageId(1, 5, -1, 1), False, MessageId(1, 5, -1, 1), False, id="in-a-batch"),
        pytest.param(MessageId(1, 5, -1, 1), True, MessageId(1, 5, -1, 1), True, id="in-a-batch-included"),
        pytest.param(MessageId(1, 5, -1, 1), False, MessageId(1, 5, -1, 2), True, id="later-in-the-batch"),
        pytest.param(MessageId(1, 5), False, MessageId(1, 5, -1, 2), False, id="whole-batch"),
    ],
)
def test_start_when_asked_for_a_message_then_admits_what_lies_behind(
    start: MessageId, included: bool, message: MessageId, admitted: bool
) -> None:
    assert Start(start, included).admits(message) is admitted


def entry(content: bytes, **fields: object) -> memoryview:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **fields)  # type: ignore[arg-type]
    return memoryview(build_entry(metadata.SerializeToString(), content))


def unpacker_of(acks: AckTracker) -> Unpacker:
    return Unpacker(TopicName.parse("t"), acks, ConsumerConfig())


def test_entry_when_unpacked_then_permits_are_counted_for_what_the_broker_sends() -> None:
    acks = AckTracker()
    unpacker = unpacker_of(acks)
    batch = pack_batch((pb.SingleMessageMetadata(), b"%d" % number) for number in range(3))
    stored = entry(batch, num_messages_in_batch=3)
    position = Position(1, 0)
    start = Start(MessageId(1, 0, -1, 0))
    messages, permits, _ = unpacker.unpack(position, stored, 2, [0b110], start)
    assert ([message.content for message in messages], permits) == ([b"1", b"2"], 2)  # the broker charges what it sends
    assert {message.redelivery_count for message in messages} == {2}
    acks.acknowledge(messages[0])
    again = unpacker.unpack(position, stored, start=start)
    assert ([message.content for message in again.messages], again.permits) == ([b"2"], 3)
    acks.acknowledge(again.messages[0])
    assert acks.pending_count == 1  # what was left out does not keep the entry open


@pytest.mark.parametrize("batch_size", [0, 2])
def test_entry_when_nothing_of_it_is_wanted_then_it_is_acknowledged(batch_size: int) -> None:
    acks = AckTracker()
    batch = pack_batch((pb.SingleMessageMetadata(), b"x") for _ in range(batch_size))
    stored = entry(batch, num_messages_in_batch=batch_size) if batch_size else entry(b"x")
    unpacked = unpacker_of(acks).unpack(Position(1, 0), stored, start=Start(MessageId(1, 0)))
    assert unpacked == ([], max(batch_size, 1), None)
    assert acks.pending_count == 1


def test_chunks_when_unpacked_then_come_as_one_message_with_the_last() -> None:
    unpacker = unpacker_of(AckTracker())

    def chunk(number: int) -> tuple[list[object], int]:
        stored = entry(b"%d" % number, uuid="u", num_chunks_from_msg=2, chunk_id=number, total_chunk_msg_size=2)
        messages, permits, _ = unpacker.unpack(Position(1, number), stored)
        return [(message.content, message.id.first_chunk) for message in messages], permits

    assert [chunk(0), chunk(1)] == [([], 1), ([(b"01", Position(1, 0))], 1)]
    chunk(0)
    unpacker.clear()
    assert chunk(1) == ([], 1)


@pytest.mark.parametrize("made_up", [-1, 0])
def test_batch_when_its_producer_says_that_it_is_none_then_takes_a_permit(made_up: int) -> None:
    stored = entry(b"", num_messages_in_batch=made_up)
    assert unpacker_of(AckTracker()).unpack(Position(1, 0), stored)[:2] == ([], 1)


def test_entry_when_it_is_garbage_then_a_protocol_error() -> None:
    with pytest.raises(RemoteProtocolError):
        unpacker_of(AckTracker()).unpack(Position(1, 0), memoryview(b"\x0e\x01"))
