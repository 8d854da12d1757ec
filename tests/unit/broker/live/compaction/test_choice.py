"""Which messages compaction keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.broker.live.compaction.choice import (
    Choice,
    Chunk,
    EntryView,
    KeyShare,
    MessageView,
    Treatment,
    last_index_left,
    survivor_of,
    survivors,
    view_of,
)
from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry
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


A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


def value(key: bytes | None) -> EntryView:
    return EntryView(Treatment.SINGLE, (MessageView(key),))


def tombstone(key: bytes) -> EntryView:
    return EntryView(Treatment.SINGLE, (MessageView(key, is_tombstone=True),))


def in_batch(*messages: MessageView) -> EntryView:
    return EntryView(Treatment.BATCH, messages)


def chunk(key: bytes | None, uuid: str, *, last: bool = False, producer: str = "p") -> EntryView:
    return EntryView(Treatment.SINGLE, (MessageView(key),), Chunk(producer, uuid, last))


def kept(views: Iterable[EntryView], *, keys_max: int = 100, keyless_kept: bool = False) -> list[int]:
    views = list(views)
    choice = Choice(keys_max=keys_max, keyless_kept=keyless_kept)
    while choice.looks_needed:
        look = choice.next_look()
        look.see(views)
        look.end()
    assert look.messages == sum(len(view.messages) for view in views)
    numbers = [number for number in range(look.messages) if choice.keeps(number)]
    assert choice.count == len(numbers)
    return numbers


MARKER = EntryView(Treatment.DROPPED)
OPAQUE = EntryView(Treatment.KEPT)


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([value(A), value(B), value(A)], [1, 2], id="the newest of each key, in order"),
        pytest.param([value(A), tombstone(A)], [], id="a tombstone removes its key, and itself"),
        pytest.param([tombstone(A), value(A)], [1], id="a value after a tombstone stays"),
        pytest.param([tombstone(A)], [], id="a tombstone of nothing"),
        pytest.param([value(None), value(A)], [1], id="no key"),
        pytest.param([MARKER, value(A), MARKER], [1], id="markers"),
        pytest.param([OPAQUE, value(A), OPAQUE], [0, 1, 2], id="what cannot be read"),
        pytest.param(
            [in_batch(MessageView(A), MessageView(B), MessageView(A)), value(B)], [2, 3], id="messages of batches"
        ),
        pytest.param([value(A), in_batch(MessageView(A, is_tombstone=True), MessageView(B))], [2], id="in a batch"),
        pytest.param([in_batch(MessageView(None, is_gone=True), MessageView(A))], [1], id="removed before"),
        pytest.param([chunk(A, "u"), chunk(A, "u", last=True)], [0, 1], id="all chunks of a message"),
        pytest.param(
            [chunk(A, "u"), chunk(A, "u", last=True), chunk(A, "v"), chunk(A, "v", last=True)], [2, 3], id="the newest"
        ),
        pytest.param([chunk(A, "u"), chunk(A, "u", last=True), value(A)], [2], id="replaced by a small message"),
        pytest.param([value(A), chunk(A, "u")], [0, 1], id="the end of a message is still to come"),
        pytest.param(
            [chunk(A, "u"), chunk(A, "v"), chunk(A, "v", last=True)], [1, 2], id="a message that was given up"
        ),
        pytest.param(
            [chunk(A, "u", producer="p"), chunk(B, "v", producer="q"), chunk(A, "u", last=True, producer="p")],
            [0, 1, 2],
            id="chunks of several producers",
        ),
        pytest.param([chunk(None, "u"), chunk(None, "u", last=True)], [], id="chunks without a key"),
    ],
)
def test_choice(views: list[EntryView], expected: list[int]) -> None:
    assert kept(views) == expected


def test_choice_when_messages_without_a_key_stay_then_all_of_them_do() -> None:
    views = [value(None), value(A), value(None), chunk(None, "u"), chunk(None, "u", last=True)]
    assert kept(views, keyless_kept=True) == [0, 1, 2, 3, 4]


steps = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["value", "tombstone", "batch"])), max_size=120)


@given(steps, st.integers(1, 40))
def test_choice_with_little_memory_is_the_same(plan: list[tuple[int, str]], keys_max: int) -> None:
    views: list[EntryView] = []
    newest: dict[bytes, int] = {}
    number = 0
    for key_number, kind in plan:
        key = (key_number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(16, "little")
        if kind == "batch":
            views.append(in_batch(MessageView(key), MessageView(key)))
        else:
            views.append(value(key) if kind == "value" else tombstone(key))
        number += len(views[-1].messages)
        newest[key] = number - 1
        if kind == "tombstone":
            del newest[key]
    assert kept(views, keys_max=keys_max) == sorted(newest.values())


def test_look_never_remembers_more_keys_than_it_may() -> None:
    choice = Choice(keys_max=10)
    most = 0
    while choice.looks_needed:
        look = choice.next_look()
        for number in range(100):
            look.see([value((number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(16, "little"))])
            most = max(most, len(look._newest))
        look.end()
    assert choice.count == 100
    assert most == 10


def test_halves_of_a_share_have_every_key_once() -> None:
    keys = [number.to_bytes(16, "little") for number in range(64)]
    shares = [KeyShare()]
    for _ in range(4):
        shares = [half for share in shares for half in share.halves()]
    assert [sum(share.has(key) for share in shares) for key in keys] == [1] * 64


def test_survivors_keep_their_positions() -> None:
    entries = [
        LogEntry(Position(7, 0), single(b"old", partition_key="a")),
        LogEntry(Position(7, 1), batch(("a", b"1"), ("b", b"2"), ("a", b""))),
        LogEntry(Position(8, 0), single(b"new", partition_key="c")),
    ]
    choice = Choice(keys_max=9)
    choice.keep(2)
    choice.keep(4)
    found, number = survivors(entries, choice, 0)
    assert number == 5
    assert [each.position for each in found] == [Position(7, 1), Position(8, 0)]
    assert messages_of(found[0].entry) == [("", b"", True), ("b", b"2", False), ("", b"", True)]
    assert found[1] is entries[2]
