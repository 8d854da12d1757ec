"""A generator that miscounts would make every figure wrong."""

import pytest

from benchmarks.raw_frames import (
    FrameCounter,
    encode,
    encode_flow,
    encode_lookup,
    encode_partitions,
    encode_send,
    encode_sends,
)
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import parse_entry, verify_checksum
from interpulse.wire.frames import FrameDecoder

PING = bytes.fromhex("00000009000000050812920100")


def test_sends_when_decoded_then_are_what_a_broker_accepts() -> None:
    frames = FrameDecoder().feed(encode_sends(3, 100))
    assert [frame.command.send.sequence_id for frame in frames] == [0, 1, 2]
    for frame in frames:
        assert frame.entry is not None
        assert verify_checksum(frame.entry)
        assert bytes(parse_entry(frame.entry).payload) == b"x" * 100


def test_flow_when_decoded_then_carries_consumer_and_permits() -> None:
    (frame,) = FrameDecoder().feed(encode_flow(1, 500))
    assert (frame.command.flow.consumer_id, frame.command.flow.messagePermits) == (1, 500)


def test_questions_when_decoded_then_name_their_topic_and_create_nothing() -> None:
    partitions, lookup = FrameDecoder().feed(encode_partitions(7, "a") + encode_lookup(8, "b"))
    assert (partitions.command.partitionMetadata.topic, partitions.command.partitionMetadata.request_id) == ("a", 7)
    assert not partitions.command.partitionMetadata.metadata_auto_creation_enabled
    assert (lookup.command.lookupTopic.topic, lookup.command.lookupTopic.request_id) == ("b", 8)


@pytest.mark.parametrize("piece_bytes", [1, 7, 64, 100_000])
def test_counter_when_fed_in_pieces_then_counts_only_its_type(piece_bytes: int) -> None:
    stream = b"".join(encode_send(n, b"payload") + PING + encode_flow(1, n) for n in range(50))
    counter = FrameCounter(pb.BaseCommand.SEND)
    found = sum(counter.feed(stream[start : start + piece_bytes]) for start in range(0, len(stream), piece_bytes))
    assert found == counter.count == 50


def test_encode_when_given_a_ping_then_gives_the_golden_bytes() -> None:
    assert encode(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())) == PING
