"""Whatever a peer sends: frames, or RemoteProtocolError, and the same however it is cut."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_one, unpack_batch
from interpulse.wire.codec import Codec, native_codec, python_codec
from interpulse.wire.compression import decompress
from interpulse.wire.entries import build_entry, parse_entry, verify_checksum
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import FrameDecoder
from interpulse.wire.protocols import ServerProtocol
from tests.support import commands
from tests.support.codecs import CODECS, CODECS_HERE, NATIVE_NEEDED, columns_of, said

ENTRY = build_entry(pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1).SerializeToString(), b"hi")
GREETING = commands.connect(client_version="x", protocol_version=21, feature_flags=pb.FeatureFlags())
GOOD_FRAMES = st.sampled_from(
    [
        commands.PING,
        GREETING,
        commands.flow(1, 1000),
        commands.send(1, 7, ENTRY),
        commands.send(1, 8, ENTRY, num_messages=3),
        commands.send(2, 2**63, ENTRY),
        commands.ack_one(1, 2, 3),
        commands.ack(
            1, [pb.MessageIdData(ledgerId=1, entryId=2), pb.MessageIdData(ledgerId=1, entryId=3, ack_set=[1])]
        ),
        commands.partitioned_metadata(1, "persistent://a/b/t"),
        commands.partitioned_metadata(2**40, "persistent://a/b/t", create=False),
        commands.partitioned_metadata(3, "persistent://a/b/\u00e4", create=False),
        commands.lookup(1, "persistent://a/b/t"),
        commands.lookup(2, "persistent://a/b/t", authoritative=True),
        commands.lookup(3, "persistent://a/b/t", listener_name="inside"),
        commands.subscribe(1, 2, "t", "s"),
        commands.producer(1, 2, "t"),
        commands.batch_lookup(1, ["a"]),
        commands.flow(1, 500),
    ]
)
PROPERTIES = [pb.KeyValue(key="k", value="v")]
METADATA = pb.MessageMetadata(
    producer_name="p", sequence_id=7, publish_time=1, properties=PROPERTIES, partition_key="key", event_time=2**50
)
METADATA_ORDERED = pb.MessageMetadata(
    producer_name="p", sequence_id=7, publish_time=1, partition_key_b64_encoded=False, ordering_key=b"order"
)
GOOD_METADATA = st.sampled_from([METADATA.SerializeToString(), METADATA_ORDERED.SerializeToString()])


@st.composite
def damaged(draw: st.DrawFn, good: st.SearchStrategy[bytes] = GOOD_FRAMES) -> bytes:
    """Good ones with a few bytes changed, lost or put in."""
    data = bytearray(b"".join(draw(st.lists(good, min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        data[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


STREAMS = st.binary(max_size=200) | damaged()


def outcome(receive: Callable[[bytes], list], data: bytes, cuts: list[int]) -> list[object]:
    """What comes out of ``data`` cut at ``cuts``: the frames, then whether the peer was at fault."""
    seen: list[object] = []
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    try:
        for start, end in itertools.pairwise(borders):
            seen += [(frame.command, frame.entry) for frame in receive(data[start:end])]
    except RemoteProtocolError:
        return ["error"]
    return seen


@given(STREAMS, st.lists(st.integers(0, 1000), max_size=5))
def test_any_bytes_when_cut_differently_then_decode_the_same(data: bytes, cuts: list[int]) -> None:
    whole = outcome(FrameDecoder(10_000).feed, data, [])
    assert outcome(FrameDecoder(10_000).feed, data, cuts) == whole
    assert outcome(FrameDecoder(10_000).feed, data, list(range(len(data)))) == whole


@pytest.mark.parametrize("codec", CODECS)
@given(data=STREAMS, cuts=st.lists(st.integers(0, 1000), max_size=5))
def test_any_bytes_when_read_in_runs_then_say_the_same(codec: Codec, data: bytes, cuts: list[int]) -> None:
    for places in ([], cuts, list(range(len(data)))):
        decoder = FrameDecoder(10_000)
        decoder.gather_runs(codec)
        assert told(decoder, data, places) == told(FrameDecoder(10_000), data, places)


def told(decoder: FrameDecoder, data: bytes, cuts: list[int]) -> list[object]:
    """What a broker learns from ``data`` cut at ``cuts``, or the error."""
    seen: list[object] = []
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    try:
        for start, end in itertools.pairwise(borders):
            seen += said(decoder.feed_runs(data[start:end]))
    except RemoteProtocolError as error:
        return ["error", str(error)]
    return seen


@given(STREAMS)
def test_any_bytes_when_sent_to_a_broker_then_frames_or_remote_protocol_error(data: bytes) -> None:
    server = ServerProtocol(server_version="v", feature_flags=pb.FeatureFlags(), now=0.0)
    outcome(server.receive_data, GREETING + data, [])
    server.data_to_send()


@NATIVE_NEEDED
@given(damaged(GOOD_METADATA) | st.binary(max_size=60))
def test_any_metadata_when_asked_for_key_and_count_then_none_or_what_protobuf_reads(data: bytes) -> None:
    for entry in (build_entry(data, b"payload"), ENTRY[:6] + data):
        [key] = native_codec().sticky_keys([entry])
        assert key in (None, *python_codec().sticky_keys([entry]))
        [count] = native_codec().message_counts([entry])
        assert count in (0, *python_codec().message_counts([entry]))


GOOD_BATCHES = st.builds(
    lambda payload, fields: pack_one(pb.SingleMessageMetadata(payload_size=0, **fields), payload),
    st.binary(max_size=300),
    st.sampled_from(
        [
            {},
            {"sequence_id": 7},
            {"sequence_id": 2**63},
            {"partition_key": "k", "properties": [pb.KeyValue(key="name", value="value")]},
            {"partition_key": "a2V5", "partition_key_b64_encoded": True, "event_time": 2**64 - 1},
            {"ordering_key": b"o", "null_value": True, "null_partition_key": True, "compacted_out": True},
        ]
    ),
)


@given(damaged(GOOD_BATCHES), st.integers(0, 5), st.binary(max_size=5))
def test_any_batch_when_read_then_columns_of_what_protobuf_reads_or_refused(
    batch: bytes, count: int, head: bytes
) -> None:
    batches = [(head + batch, len(head), count)]
    try:
        messages = [
            (index, *message)
            for index, message in enumerate(unpack_batch(batch, count))
            if not message.metadata.compacted_out
        ]
    except RemoteProtocolError:
        for codec in CODECS_HERE:
            with pytest.raises(RemoteProtocolError):
                codec.read_batches(batches)
        return
    found, *others = [columns_of(codec, *batches) for codec in CODECS_HERE]
    assert all(other == found for other in others)
    assert found.counts == [len(messages)]
    assert memoryview(found.indexes).cast("i").tolist() == [index for index, _, _ in messages]
    assert found.payloads[1] == b"".join(payload for _, _, payload in messages)
    assert memoryview(found.event_times).cast("Q").tolist() == [metadata.event_time for _, metadata, _ in messages]
    ends = memoryview(found.property_ends).cast("i").tolist()
    assert [end - begin for begin, end in itertools.pairwise(ends)] == [
        len(metadata.properties) for _, metadata, _ in messages
    ]


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: ENTRY[:-2] + tail))
def test_any_bytes_when_taken_for_an_entry_then_parsed_or_refused(data: bytes) -> None:
    verify_checksum(data)
    try:
        entry = parse_entry(data)
        unpack_batch(entry.payload, 3)
    except RemoteProtocolError:
        return


@given(st.sampled_from([pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY]), st.binary(max_size=60), st.integers(0, 10_000))
def test_any_bytes_when_decompressed_then_read_or_refused(
    codec: pb.CompressionType.ValueType, data: bytes, size: int
) -> None:
    try:
        assert len(decompress(codec, data, size)) == size
    except RemoteProtocolError:
        return
