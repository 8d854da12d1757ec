"""What compaction sees in an entry, and what it leaves of one."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.compaction.compaction_entries import (
    Chunk,
    EntryView,
    MessageView,
    Treatment,
    last_index_left,
    survivor_of,
    view_of,
)
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch, unpack_batch
from interpulse.wire.compression import compress, decompress
from interpulse.wire.entries import build_entry, parse_entry, verify_checksum

CODECS = [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY]


def single(payload: bytes = b"x", **metadata: Any) -> bytes:
    made = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=2, **metadata)
    return build_entry(made.SerializeToString(), payload)


def batch(*messages: tuple[str | None, bytes], codec: Any = pb.NONE, **metadata: Any) -> bytes:
    plain = pack_batch(
        (pb.SingleMessageMetadata(partition_key=key) if key is not None else pb.SingleMessageMetadata(), payload)
        for key, payload in messages
    )
    return single(
        compress(codec, plain),
        num_messages_in_batch=len(messages),
        uncompressed_size=len(plain),
        compression=codec,
        **metadata,
    )


def messages_of(entry: bytes) -> list[tuple[str, bytes, bool]]:
    parsed = parse_entry(entry)
    plain = decompress(parsed.metadata.compression, parsed.payload, parsed.metadata.uncompressed_size)
    return [
        (each.metadata.partition_key, bytes(each.payload), each.metadata.compacted_out)
        for each in unpack_batch(plain, parsed.metadata.num_messages_in_batch)
    ]


def key_of(view: EntryView) -> bytes | None:
    (message,) = view.messages
    return message.key


@pytest.mark.parametrize(
    ("entry", "is_tombstone"),
    [
        pytest.param(single(b"x", partition_key="k"), False, id="value"),
        pytest.param(single(b"", partition_key="k"), True, id="nothing"),
        pytest.param(single(b"", partition_key="k", null_value=True), True, id="null value"),
        pytest.param(single(b"x", partition_key="k", null_value=True), True, id="null value, encrypted"),
        pytest.param(single(b"packed", partition_key="k", uncompressed_size=0), True, id="nothing, compressed"),
        pytest.param(single(b"packed", partition_key="k", uncompressed_size=9), False, id="value, compressed"),
    ],
)
def test_single_message_without_payload_is_a_tombstone(entry: bytes, is_tombstone: bool) -> None:
    view = view_of(entry)
    assert view.treatment is Treatment.SINGLE
    assert view.messages[0].is_tombstone is is_tombstone


def test_keys_are_told_apart_by_their_text() -> None:
    assert key_of(view_of(single(partition_key="a"))) == key_of(view_of(single(b"other", partition_key="a")))
    assert key_of(view_of(single(partition_key="a"))) != key_of(view_of(single(partition_key="b")))
    assert key_of(view_of(single(partition_key=""))) is not None, "an empty key is a key"
    assert key_of(view_of(single())) is None
    in_a_batch = view_of(batch(("a", b"1"))).messages[0].key
    assert in_a_batch == key_of(view_of(single(partition_key="a")))


def test_chunk_names_its_message() -> None:
    pieces = {"num_chunks_from_msg": 2, "uuid": "u", "total_chunk_msg_size": 9, "partition_key": "k"}
    first, last = (view_of(single(chunk_id=number, **pieces)) for number in (0, 1))  # type: ignore[arg-type]
    assert first.chunk == Chunk("p", "u", is_last=False)
    assert last.chunk == Chunk("p", "u", is_last=True)


def test_marker_is_dropped() -> None:
    assert view_of(single(marker_type=10)).treatment is Treatment.DROPPED


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(b"no entry at all", id="no entry"),
        pytest.param(
            batch(("k", b"1"), encryption_keys=[pb.EncryptionKeys(key="e", value=b"v")]), id="encrypted batch"
        ),
        pytest.param(
            single(b"garbage", num_messages_in_batch=3, uncompressed_size=7, partition_key="k"), id="broken batch"
        ),
        pytest.param(single(b"x", num_messages_in_batch=1, uncompressed_size=2**31), id="batch beyond all measure"),
        pytest.param(
            single(b"x", num_messages_in_batch=1, uncompressed_size=9, compression=pb.ZLIB), id="cannot be decompressed"
        ),
    ],
)
def test_what_cannot_be_read_is_kept_whole(entry: bytes) -> None:
    assert view_of(entry) == EntryView(Treatment.KEPT, (MessageView(None),), None)


def test_encrypted_single_message_has_its_key_in_the_open() -> None:
    view = view_of(single(partition_key="k", encryption_keys=[pb.EncryptionKeys(key="e", value=b"v")]))
    assert view == view_of(single(partition_key="k"))


@pytest.mark.parametrize("codec", CODECS, ids=pb.CompressionType.Name)
def test_survivor_keeps_indexes_codec_and_metadata(codec: Any) -> None:
    entry = batch(("a", b"1"), ("b", b"2"), (None, b"3"), codec=codec, event_time=7, schema_version=b"s")
    left = survivor_of(entry, [False, True, False])
    assert left is not None
    assert verify_checksum(left)
    assert messages_of(left) == [("", b"", True), ("b", b"2", False), ("", b"", True)]
    before, after = parse_entry(entry).metadata, parse_entry(left).metadata
    assert after.uncompressed_size < before.uncompressed_size
    after.uncompressed_size = before.uncompressed_size
    assert after == before


def test_survivor_of_all_is_the_entry_itself_and_of_none_nothing() -> None:
    entry = batch(("a", b"1"), ("b", b"2"))
    assert survivor_of(entry, [True, True]) is entry
    assert survivor_of(entry, [False, False]) is None


def test_what_was_removed_before_stays_removed() -> None:
    once = survivor_of(batch(("a", b"1"), ("b", b"2"), ("c", b"3")), [False, True, True])
    assert once is not None
    assert [each.is_gone for each in view_of(once).messages] == [True, False, False]
    assert survivor_of(once, [False, True, True]) is once, "nothing to do"
    twice = survivor_of(once, [False, False, True])
    assert twice is not None
    assert messages_of(twice) == [("", b"", True), ("", b"", True), ("c", b"3", False)]


def test_survivor_keeps_what_the_broker_put_in_front() -> None:
    front = pb.BrokerEntryMetadata(broker_timestamp=5, index=6).SerializeToString()
    entry = b"\x0e\x02" + len(front).to_bytes(4, "big") + front + batch(("a", b"1"), ("b", b"2"))
    left = survivor_of(entry, [True, False])
    assert left is not None
    assert parse_entry(left).broker_metadata == pb.BrokerEntryMetadata(broker_timestamp=5, index=6)
    assert messages_of(left) == [("a", b"1", False), ("", b"", True)]


def test_last_index_left_looks_past_what_was_removed() -> None:
    entry = batch(("a", b"1"), ("b", b"2"), ("c", b"3"))
    left = survivor_of(entry, [True, True, False])
    assert left is not None
    assert last_index_left(entry) == 2
    assert last_index_left(left) == 1
    assert last_index_left(single()) == -1
