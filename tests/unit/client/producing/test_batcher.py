"""Entries built from outgoing messages, read back as a consumer would."""

import pytest

from interpulse.client.messages import Message, OutgoingMessage, messages_of
from interpulse.client.producing.batcher import Batcher, EntryBuilder
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import parse_entry, verify_checksum

CODECS = [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY]


def make_builder(codec: pb.CompressionType.ValueType = pb.NONE) -> EntryBuilder:
    builder = EntryBuilder(codec=codec)
    builder.producer_name = "p"
    builder.schema_version = b"\0" * 8
    return builder


def read(entry: bytes) -> list[Message]:
    assert verify_checksum(entry)
    return list(messages_of(parse_entry(entry), topic="t", ledger=1, entry_id=2, partition=-1, redelivery_count=0))


@pytest.mark.parametrize("codec", CODECS)
def test_single_message_when_read_back_then_has_everything(codec: pb.CompressionType.ValueType) -> None:
    outgoing = OutgoingMessage(
        b"hello",
        key=b"\x00\xff",
        properties={"a": "1"},
        event_time_ms=5,
        ordering_key=b"o",
        deliver_at_ms=99,
        replication_clusters=("x",),
    )
    built = make_builder(codec).single(outgoing, 7, 1234)
    assert (built.sequence_ids, built.counts) == ([7], [1])
    (message,) = read(built.entries[0])
    assert (message.content, message.key_bytes, message.properties) == (b"hello", b"\x00\xff", {"a": "1"})
    assert (message.event_time_ms, message.publish_time_ms, message.ordering_key) == (5, 1234, b"o")
    assert (message.sequence_id, message.deliver_at_ms, message.batch_size) == (7, 99, 0)
    assert list(parse_entry(built.entries[0]).metadata.replicate_to) == ["x"]


def test_event_times_before_1970_are_negative() -> None:
    """Pulsar's clients store them so, in an unsigned field."""
    outgoing = OutgoingMessage(b"x", event_time_ms=-5)
    builder = make_builder()
    (single,) = read(builder.single(outgoing, 7, 1234).entries[0])
    (packed,) = read(builder.batch([(outgoing, 7)], [builder.pack(outgoing, 7)], 1234).entries[0])
    assert (single.event_time_ms, packed.event_time_ms) == (-5, -5)


@pytest.mark.parametrize("codec", CODECS)
def test_batch_when_read_back_then_has_every_message(codec: pb.CompressionType.ValueType) -> None:
    builder = make_builder(codec)
    batcher = Batcher(builder, messages_max=3, bytes_max=1000)
    for number, content in enumerate((b"a", None, b"c")):
        assert not batcher.is_full
        batcher.add(OutgoingMessage(content, key=f"k{number}"), 10 + number)
    assert batcher.is_full
    built = batcher.take(1234)
    assert len(batcher) == 0
    assert (built.sequence_ids, built.highest_sequence_id, built.counts) == ([10], 12, [3])
    messages = read(built.entries[0])
    assert [message.content for message in messages] == [b"a", None, b"c"]
    assert [message.key for message in messages] == ["k0", "k1", "k2"]
    assert [message.sequence_id for message in messages] == [10, 11, 12]
    assert [message.id.batch_index for message in messages] == [0, 1, 2]


def test_batch_when_a_message_does_not_belong_then_it_does_not_fit() -> None:
    batcher = Batcher(make_builder(), messages_max=10, bytes_max=200)
    assert batcher.fits(OutgoingMessage(b"x" * 1000))
    batcher.add(OutgoingMessage(b"x" * 100), 0)
    assert not batcher.fits(OutgoingMessage(b"x" * 100))
    assert batcher.fits(OutgoingMessage(b"x"))
    assert not batcher.fits(OutgoingMessage(b"x", replication_clusters=("y",)))
