"""What both codecs read in runs, what they leave to protobuf, and what they write."""

from __future__ import annotations

import itertools
import re
import struct
import sys
from array import array
from types import ModuleType
from typing import Any

import pytest

from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import (
    HAS_KEY,
    HAS_ORDERING_KEY,
    HAS_SEQUENCE_ID,
    HAS_VALUE,
    KEY_IN_BASE64,
    BatchColumns,
    pack_one,
)
from interpulse.wire.codec import Codec, chosen_codec, chosen_name, native_codec, python_codec
from interpulse.wire.entries import build_entry, parse_entry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import (
    AckRun,
    FlowRun,
    FrameDecoder,
    LookupRun,
    MessageRun,
    PartitionsRun,
    ReceiptRun,
    SendRun,
    encode_command,
)
from tests.support import commands
from tests.support.codecs import CODECS, NATIVE_INSTALLED, NATIVE_NEEDED, columns_of, said
from tests.support.commands import encode_with_entry

LIMIT = 100_000
METADATA = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1).SerializeToString()
ENTRIES = [build_entry(METADATA, bytes([65 + number]) * number) for number in range(5)]
ENTRY = ENTRIES[4]
FLOW = commands.flow(1, 5)
NUMBERS = (0, 1, 127, 128, 16383, 16384, 2**21, 2**32, 2**62)


@pytest.fixture(params=CODECS)
def codec(request: pytest.FixtureRequest) -> Codec:
    found: Codec = request.param
    return found


def runs_of(codec: Codec, data: bytes) -> list[Any]:
    decoder = FrameDecoder(LIMIT)
    decoder.gather_runs(codec)
    return list(decoder.feed_runs(data))


def runs_for_client(codec: Codec, *pieces: bytes) -> list[Any]:
    decoder = FrameDecoder(LIMIT)
    decoder.gather_runs(codec, from_broker=True)
    return list(decoder.feed_runs(b"".join(pieces)))


def send(entry: bytes = ENTRY, **fields: Any) -> bytes:
    content = pb.CommandSend(**{"producer_id": 1, "sequence_id": 7, **fields})
    return encode_with_entry(pb.BaseCommand(type=pb.BaseCommand.SEND, send=content), entry)


def ack(*ids: pb.MessageIdData, **fields: Any) -> bytes:
    content = pb.CommandAck(**{"consumer_id": 1, "ack_type": pb.CommandAck.Individual, "message_id": ids, **fields})
    return commands.encode(content)


def place(entry: int, **fields: Any) -> pb.MessageIdData:
    return pb.MessageIdData(ledgerId=3, entryId=entry, **fields)


def test_sends_of_one_producer_when_they_follow_each_other_then_one_run(codec: Codec) -> None:
    data = b"".join(commands.send(1, 5 + number, entry) for number, entry in enumerate(ENTRIES))
    assert runs_of(codec, data) == [SendRun(1, [5, 6, 7, 8, 9], ENTRIES)]


def test_run_when_another_producer_or_command_comes_then_ends(codec: Codec) -> None:
    first, other, flow, last = runs_of(codec, send() + send(producer_id=2) + FLOW + send() + send())
    assert (first, other) == (SendRun(1, [7], [ENTRY]), SendRun(2, [7], [ENTRY]))
    assert flow == FlowRun(1, 5, 1)
    assert last == SendRun(1, [7, 7], [ENTRY, ENTRY])


def test_ids_when_they_are_the_largest_then_read_as_they_are(codec: Codec) -> None:
    largest = 2**64 - 1
    assert runs_of(codec, send(producer_id=largest, sequence_id=largest)) == [SendRun(largest, [largest], [ENTRY])]
    run = AckRun(largest, [Position(-1, -1)])
    position = pb.MessageIdData(ledgerId=largest, entryId=largest)
    assert runs_of(codec, ack(position, consumer_id=largest)) == [run]


@pytest.mark.parametrize(
    "plain",
    [
        send(num_messages=1),
        send(highest_sequence_id=0, is_chunk=False, marker=False),
        encode_with_entry(
            pb.BaseCommand.FromString(bytes.fromhex("080632041007 0801".replace(" ", ""))), ENTRY
        ),  # the numbers in the other order
    ],
    ids=["one-message", "defaults-spelled-out", "other-order"],
)
def test_send_when_plain_then_is_part_of_a_run(codec: Codec, plain: bytes) -> None:
    assert runs_of(codec, send() + plain + send()) == [SendRun(1, [7, 7, 7], [ENTRY] * 3)]


@pytest.mark.parametrize(
    "frame",
    [
        send(num_messages=2),
        send(num_messages=0),
        send(highest_sequence_id=9),
        send(is_chunk=True),
        send(marker=True),
        send(ENTRY[6:]),
        send(ENTRY[:-1] + b"x"),
        send(ENTRY[:5]),
        send(b""),
    ],
    ids=["batch", "no-message", "highest", "chunk", "marker", "no-checksum", "wrong-checksum", "cut-off", "no-entry"],
)
def test_send_when_unusual_then_is_an_equal_frame(codec: Codec, frame: bytes) -> None:
    received = runs_of(codec, send() + frame + send())
    assert [type(each) for each in (received[0], received[-1])] == [SendRun, SendRun]
    assert len(received) == 3
    assert said(received) == said(FrameDecoder(LIMIT).feed(send() + frame + send()))


def test_acks_of_one_consumer_when_they_follow_each_other_then_one_run(codec: Codec) -> None:
    data = commands.ack_one(1, 3, 4) + ack(place(5), place(6, partition=2, batch_index=-1, batch_size=0)) + FLOW
    run, _ = runs_of(codec, data)
    assert run == AckRun(1, [Position(3, 4), Position(3, 5), Position(3, 6)])
    assert {type(each) for each in run.positions} == {Position}


@pytest.mark.parametrize(
    "frame",
    [
        ack(place(5), ack_type=pb.CommandAck.Cumulative),
        ack(place(5), request_id=0),
        ack(place(4), place(5, ack_set=[1])),
        ack(place(5), properties=[pb.KeyLongValue(key="k", value=1)]),
        ack(),
    ],
    ids=["cumulative", "answer-wanted", "part-of-a-batch", "properties", "no-id"],
)
def test_ack_when_unusual_then_is_an_equal_frame(codec: Codec, frame: bytes) -> None:
    data = commands.ack_one(1, 3, 4) + frame + commands.ack_one(1, 3, 9)
    received = runs_of(codec, data)
    assert [type(each) is AckRun for each in received] == [True, False, True]
    assert said(received) == said(FrameDecoder(LIMIT).feed(data))


def test_flows_when_they_are_the_same_then_one_run(codec: Codec) -> None:
    other, last = commands.flow(1, 6), commands.flow(2**64 - 1, 2**32 - 1)
    received = runs_of(codec, FLOW + FLOW + other + send() + FLOW + last + FLOW[:-1])
    assert received == [
        FlowRun(1, 5, 2),
        FlowRun(1, 6, 1),
        SendRun(1, [7], [ENTRY]),
        FlowRun(1, 5, 1),
        FlowRun(2**64 - 1, 2**32 - 1, 1),
    ]


@pytest.mark.parametrize(
    "frame",
    [
        encode_with_entry(pb.BaseCommand.FromString(FLOW[8:]), b"x"),
        encode_with_entry(pb.BaseCommand.FromString(FLOW[8:]), b"x" * 100),
        b"\0\0\0\x0f\0\0\0\x0b" + FLOW[8:] + b"\x08\x12",
        b"\0\0\0\x0d\0\0\0\x09\x08\x0b\x5a\x05\x10\x05\x08\x01\x18",
    ],
    ids=["entry", "large-entry", "other-type-behind", "damaged"],
)
def test_flow_when_unusual_then_says_the_same(codec: Codec, frame: bytes) -> None:
    decoder = FrameDecoder(LIMIT)
    decoder.gather_runs(codec)
    assert outcome(decoder, FLOW + frame + FLOW) == outcome(FrameDecoder(LIMIT), FLOW + frame + FLOW)


@pytest.mark.parametrize("from_broker", [False, True], ids=["from-client", "from-broker"])
@pytest.mark.parametrize("name", ["send", "ack", "flow", "partitioned_metadata", "lookup", "message", "send_receipt"])
def test_command_when_a_second_type_follows_then_the_last_counts(codec: Codec, name: str, from_broker: bool) -> None:
    plain = {
        "send": send(),
        "ack": commands.ack_one(1, 3, 4),
        "flow": FLOW,
        "partitioned_metadata": partitions(1),
        "lookup": lookup(1),
        "message": message(ENTRY),
        "send_receipt": commands.send_receipt(1, 7, 0, 3, 4),
    }[name]
    (total_size, command_size), body = struct.unpack_from(">II", plain), plain[8:]
    other = struct.pack(">II", total_size + 2, command_size + 2) + body[:2] + b"\x08\x0e" + body[2:]
    decoder = FrameDecoder(LIMIT)
    decoder.gather_runs(codec, from_broker=from_broker)
    expected = outcome(FrameDecoder(LIMIT), plain + other)
    assert outcome(decoder, plain + other) == expected
    assert "unknown type" in expected[-1]


def outcome(decoder: FrameDecoder, data: bytes) -> list[Any]:
    try:
        return said(decoder.feed_runs(data))
    except RemoteProtocolError as error:
        return [str(error)]


def test_run_when_the_last_frame_is_not_complete_then_ends_before_it(codec: Codec) -> None:
    whole = send() * 3
    for end in range(2 * len(send()), len(whole)):
        decoder = FrameDecoder(LIMIT)
        decoder.gather_runs(codec)
        received = [*decoder.feed_runs(whole[:end]), *decoder.feed_runs(whole[end:])]
        assert received[0] == SendRun(1, [7, 7], [ENTRY, ENTRY])
        assert said(received) == said(FrameDecoder(LIMIT).feed(whole))


def test_frame_when_above_the_limit_then_is_in_no_run(codec: Codec) -> None:
    frame = send()
    assert codec.take_sends(frame, 0, len(frame) - 4) is not None
    assert codec.take_sends(frame, 0, len(frame) - 5) is None
    assert codec.take_acks(commands.ack_one(1, 2, 3), 0, 5) is None


@pytest.mark.parametrize("start", [0, 1, 7, 8, 1000])
def test_take_when_nothing_begins_there_then_none(codec: Codec, start: int) -> None:
    for data in (b"", b"\0" * 8, b"\xff" * 40, FLOW):
        assert codec.take_sends(data, start, LIMIT) is None
        assert codec.take_acks(data, start, LIMIT) is None
        assert codec.take_questions(data, start, LIMIT) is None


X, Y = "persistent://public/default/x", "persistent://public/default/\u00fc"


def partitions(request_id: int, topic: str = X, **fields: Any) -> bytes:
    return commands.encode(pb.CommandPartitionedTopicMetadata(topic=topic, request_id=request_id, **fields))


def lookup(request_id: int, topic: str = X, **fields: Any) -> bytes:
    return commands.encode(pb.CommandLookupTopic(topic=topic, request_id=request_id, **fields))


def test_questions_of_one_type_and_flag_when_they_follow_each_other_then_one_run_by_topics(codec: Codec) -> None:
    data = [commands.partitioned_metadata(number, topic) for number, topic in enumerate([X, X, Y, X])]
    data += [commands.partitioned_metadata(2**64 - 1, X, create=False)]
    data += [commands.lookup(7, X), commands.lookup(0, X), lookup(9, Y), lookup(10, Y, authoritative=True)]
    assert runs_of(codec, b"".join(data)) == [
        PartitionsRun(True, [(X, [0, 1]), (Y, [2]), (X, [3])]),
        PartitionsRun(False, [(X, [2**64 - 1])]),
        LookupRun(False, [(X, [7, 0]), (Y, [9])]),
        LookupRun(True, [(Y, [10])]),
    ]


@pytest.mark.parametrize(
    ("plain", "run"),
    [
        (partitions(1, metadata_auto_creation_enabled=True), PartitionsRun(True, [(X, [1])])),
        (lookup(1, authoritative=False, advertised_listener_name=""), LookupRun(False, [(X, [1])])),
        (bytes.fromhex("0000000e0000000a 0817ba0105 10030a0174".replace(" ", "")), LookupRun(False, [("t", [3])])),
    ],
    ids=["default-spelled-out", "empty-listener-of-go", "other-order"],
)
def test_request_when_plain_then_is_a_run(codec: Codec, plain: bytes, run: Any) -> None:
    assert runs_of(codec, plain) == [run]


AS_SOMEONE: list[dict[str, Any]] = [
    {"original_principal": "someone"},
    {"original_auth_data": "secret"},
    {"original_auth_method": "token"},
]


@pytest.mark.parametrize(
    ("ask", "fields"),
    [
        *itertools.product([partitions, lookup], AS_SOMEONE),
        (lookup, {"advertised_listener_name": "inside"}),
        (lookup, {"properties": [pb.KeyValue(key="k", value="v")]}),
    ],
)
def test_request_when_not_plain_then_is_an_equal_frame(codec: Codec, ask: Any, fields: Any) -> None:
    data = ask(1) + ask(2, **fields) + ask(3)
    received = runs_of(codec, data)
    assert [type(each).__name__.endswith("Run") for each in received] == [True, False, True]
    assert said(received) == said(FrameDecoder(LIMIT).feed(data))


@pytest.mark.parametrize(
    "content",
    [b"\x0a\x01t", b"\x10\x01", b"\x0a\x01\xff\x10\x01", b"\x0a\x05t\x10\x01", b"\x0a\x01t\x10" + b"\xff" * 11],
    ids=["no-request-id", "no-topic", "not-utf-8", "cut-off", "number-too-large"],
)
def test_question_when_damaged_then_in_no_run(codec: Codec, content: bytes) -> None:
    for head in (b"\x08\x15\xaa\x01", b"\x08\x17\xba\x01"):
        command = head + bytes([len(content)]) + content
        frame = (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
        assert codec.take_questions(frame, 0, LIMIT) is None


def test_question_when_bytes_stand_behind_it_or_it_is_too_large_then_in_no_run(codec: Codec) -> None:
    question = pb.CommandLookupTopic(topic=X, request_id=1)
    command = pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=question)
    assert codec.take_questions(encode_with_entry(command, b"x"), 0, LIMIT) is None
    frame = encode_with_entry(command, b"")
    assert codec.take_questions(frame, 0, len(frame) - 4) is not None
    assert codec.take_questions(frame, 0, len(frame) - 5) is None


def test_questions_when_cut_at_every_byte_then_say_the_same(codec: Codec) -> None:
    whole = lookup(1) + lookup(300) + partitions(2, Y) + partitions(3, metadata_auto_creation_enabled=False)
    for end in range(len(whole)):
        decoder = FrameDecoder(LIMIT)
        decoder.gather_runs(codec)
        received = [*decoder.feed_runs(whole[:end]), *decoder.feed_runs(whole[end:])]
        assert said(received) == said(FrameDecoder(LIMIT).feed(whole))


def test_answers_when_numbers_vary_then_the_frames_of_each(codec: Codec) -> None:
    request_ids = [*NUMBERS, 2**63, 2**64 - 1]
    answer = commands.partitioned_metadata_answer(300)
    frames = [commands.partitioned_metadata_response(each, 300) for each in request_ids]
    assert codec.encode_answers(*answer, request_ids) == b"".join(frames)
    url = "pulsar://" + "h" * 200
    wide = commands.AnswerTemplate(answer.head, url.encode() * 100, b"")
    assert codec.encode_answers(*wide, request_ids) == b"".join(map(wide.frame, request_ids))
    assert codec.encode_answers(*answer, []) == b""


def entry_of(**metadata: Any) -> bytes:
    full = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, **metadata)
    return build_entry(full.SerializeToString(), b"payload")


PROPERTY = [pb.KeyValue(key="k", value="v" * 200)]
KEYED = entry_of(partition_key="key", properties=PROPERTY, num_messages_in_batch=3)


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        (entry_of(partition_key="key"), b"key"),
        (entry_of(partition_key=""), b""),
        (entry_of(partition_key="key", ordering_key=b"order"), b"order"),
        (entry_of(partition_key="key", ordering_key=b""), b"key"),
        (entry_of(ordering_key=b"\xff"), b"\xff"),
        (entry_of(partition_key="k" * 20_000, partition_key_b64_encoded=False), b"k" * 20_000),
        (entry_of(partition_key="AAAA").replace(b"AAAA", b"\xff\xfe\xed\xa0"), b"\xff\xfe\xed\xa0"),
        (KEYED, b"key"),
        (entry_of(partition_key="key", event_time=1, schema_version=bytes(8), compression=pb.ZSTD), b"key"),
        (entry_of(partition_key="key", replicated_from="a", replicate_to=["b", "c"], deliver_at_time=2**62), b"key"),
        (entry_of(partition_key="one") + entry_of(partition_key="two"), b"one"),
    ],
)
def test_key_when_an_entry_is_plain_then_that_of_key_shared(codec: Codec, entry: bytes, key: bytes) -> None:
    assert codec.sticky_keys([entry, entry]) == [key, key]


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        KEYED[:9],
        KEYED[:20],
        KEYED[6:],
        b"\x0e\x02\0\0\0\0" + KEYED,
        entry_of(),
        entry_of(partition_key="a2V5", partition_key_b64_encoded=True),
        build_entry(METADATA + b"\x32\x05k", b"payload"),
        build_entry(METADATA + b"\x32\x01k\x22\x02\x0a\x05", b"payload"),
    ],
    ids=["empty", "short", "cut-off", "no-checksum", "broker-metadata", "no-key", "base64", "damaged", "property"],
)
def test_key_when_an_entry_is_not_plain_then_none(codec: Codec, entry: bytes) -> None:
    assert codec.sticky_keys([KEYED, entry, KEYED]) == [b"key", None, b"key"]


def single(payload: bytes, **fields: Any) -> bytes:
    return pack_one(pb.SingleMessageMetadata(payload_size=0, **fields), payload)


def numbers(kind: str, *values: int) -> bytes:
    return array(kind, values).tobytes()


def pieces(*content: bytes) -> tuple[bytes, bytes]:
    return numbers("i", *itertools.accumulate(map(len, content), initial=0)), b"".join(content)


def test_batches_when_metadata_is_plain_then_columns_of_payloads(codec: Codec) -> None:
    first = single(b"") + single(b"x" * 300, sequence_id=2**64 - 1) + single(b"y" * 20_000, sequence_id=0)
    assert columns_of(codec, (b"head" + first + b"tail", 4, 3), (b"", 0, 0), (single(b"z"), 0, 1)) == BatchColumns(
        counts=[3, 0, 1],
        indexes=numbers("i", 0, 1, 2, 0),
        flags=bytes((HAS_VALUE, HAS_VALUE | HAS_SEQUENCE_ID, HAS_VALUE | HAS_SEQUENCE_ID, HAS_VALUE)),
        sequence_ids=numbers("Q", 0, 2**64 - 1, 0, 0),
        event_times=numbers("Q", 0, 0, 0, 0),
        property_ends=numbers("i", 0, 0, 0, 0, 0),
        payloads=pieces(b"", b"x" * 300, b"y" * 20_000, b"z"),
        keys=pieces(b"", b"", b"", b""),
        ordering_keys=pieces(b"", b"", b"", b""),
        property_names=pieces(),
        property_values=pieces(),
    )


RICH = (
    single(b"a", partition_key="k", properties=[pb.KeyValue(key="n", value="v"), pb.KeyValue(key="", value="w")])
    + single(b"gone", partition_key="g", properties=[pb.KeyValue(key="g", value="g")], compacted_out=True)
    + single(b"", partition_key="a2V5", partition_key_b64_encoded=True, null_value=True, event_time=2**64 - 1)
    + single(b"b", partition_key="", ordering_key=b"o", sequence_id=7)
    + single(b"c", partition_key="k", null_partition_key=True, properties=[pb.KeyValue(key="m", value="")])
)


def test_batches_when_metadata_is_rich_then_columns_of_it_without_what_was_compacted(codec: Codec) -> None:
    assert columns_of(codec, (RICH, 0, 5)) == BatchColumns(
        counts=[4],
        indexes=numbers("i", 0, 2, 3, 4),
        flags=bytes(
            (
                HAS_VALUE | HAS_KEY,
                HAS_KEY | KEY_IN_BASE64,
                HAS_VALUE | HAS_KEY | HAS_ORDERING_KEY | HAS_SEQUENCE_ID,
                HAS_VALUE,
            )
        ),
        sequence_ids=numbers("Q", 0, 0, 7, 0),
        event_times=numbers("Q", 0, 2**64 - 1, 0, 0),
        property_ends=numbers("i", 0, 2, 2, 2, 3),
        payloads=pieces(b"a", b"", b"b", b"c"),
        keys=pieces(b"k", b"a2V5", b"", b""),
        ordering_keys=pieces(b"", b"", b"o", b""),
        property_names=pieces(b"n", b"", b"m"),
        property_values=pieces(b"v", b"w", b""),
    )


@NATIVE_NEEDED
def test_batches_when_metadata_is_known_then_read_by_the_compiled_codec_alone() -> None:
    import interpulse_codec

    assert interpulse_codec.read_batches([(RICH, 0, 5)]) is not None


@NATIVE_NEEDED
@pytest.mark.parametrize(
    "batch",
    [
        b"\0\0\0\x04\x18\x01\x60\x01z",
        b"\0\0\0\x05\x98\x80\x80\0\x01z",
        b"\0\0\0\x07\x0a\x03\x0a\x01n\x18\x01z",
        b"\0\0\0\x0a\x0a\x06\x12\x01v\x0a\x01n\x18\x01z",
        b"\0\0\0\x0d\x18\x01\x40" + b"\xff" * 9 + b"\x02z",
        b"\0\0\0\x06\x18\x81\x80\x80\x80\x10z",
    ],
    ids=["unknown-field", "tag-of-4-bytes", "name-without-value", "value-before-name", "65-bits", "size-of-33-bits"],
)
def test_batch_when_it_is_unusual_then_read_by_protobuf(batch: bytes) -> None:
    import interpulse_codec

    batches = [(single(b"x") + batch, 0, 2)]
    assert interpulse_codec.read_batches(batches) is None
    found = columns_of(native_codec(), *batches)
    assert found == columns_of(python_codec(), *batches)
    assert found.payloads == pieces(b"x", b"z")


@pytest.mark.parametrize(
    "batch",
    [
        single(b"x") + single(b"y")[:-1],
        single(b"x") + single(b"y", partition_key="k")[:-1],
        single(b"x") + b"\0\0\0\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        single(b"x") + b"\0\0\0\x05\x18\x01\x40\x01\x01z",
        single(b"x") + b"\0\0\0\x0e\x18\x01\x40" + b"\xff" * 10 + b"\x01z",
        single(b"x") + b"\0\0\0\x04\x12\x05k\x18z",
        single(b"x") + b"\xff\xff\xff\xff",
        single(b"x"),
    ],
    ids=["cut-off", "rich", "negative", "more", "11-bytes", "key-cut-off", "huge", "one-less"],
)
def test_batch_when_it_is_damaged_then_error(codec: Codec, batch: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        codec.read_batches([(RICH, 0, 5), (batch, 0, 2)])


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        (ENTRY, 1),
        (KEYED, 3),
        (entry_of(num_messages_in_batch=1), 1),
        (entry_of(num_messages_in_batch=2**31 - 1), 2**31 - 1),
        (entry_of(marker_type=10), 0),
        (entry_of(uuid="u", num_chunks_from_msg=3, chunk_id=0), 0),
        (b"", 0),
        (KEYED[:20], 0),
        (KEYED[6:], 0),
        (b"\x0e\x02\0\0\0\0" + KEYED, 0),
        (build_entry(METADATA + b"\x32\x05k", b"payload"), 0),
    ],
)
def test_messages_of_an_entry_when_it_is_plain_then_counted(codec: Codec, entry: bytes, count: int) -> None:
    assert codec.message_counts([KEYED, entry]) == [3, count]


def message(entry: bytes, number: int = 5, **fields: Any) -> bytes:
    content = pb.CommandMessage(**{"consumer_id": 1, "message_id": place(number), **fields})
    return encode_with_entry(pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=content), entry)


BATCH = entry_of(num_messages_in_batch=3, compression=pb.ZSTD, uncompressed_size=9, schema_version=bytes(8))


def test_messages_to_one_consumer_when_they_follow_each_other_then_one_run(codec: Codec) -> None:
    received = runs_for_client(
        codec, message(ENTRY), message(BATCH, 6), message(KEYED, 7, message_id=place(7, partition=2, batch_size=0))
    )
    assert received == [
        MessageRun(1, [Position(3, 5), Position(3, 6), Position(3, 7)], [ENTRY, BATCH, KEYED], [1, 3, 3])
    ]
    assert {type(each) for each in received[0].positions} == {Position}


@pytest.mark.parametrize(
    "frame",
    [
        message(ENTRY, consumer_id=2),
        message(ENTRY, redelivery_count=1),
        message(ENTRY, ack_set=[1]),
        message(ENTRY, consumer_epoch=1),
        message(ENTRY[6:]),
        message(ENTRY[:-1] + b"x"),
        message(b""),
        message(b"\x0e\x02\0\0\0\0" + ENTRY),
        message(entry_of(marker_type=1)),
        message(entry_of(uuid="u", num_chunks_from_msg=2, chunk_id=0)),
        message(entry_of(encryption_algo="aes")),
        message(entry_of(num_messages_in_batch=0)),
        message(entry_of(num_messages_in_batch=-1)),
        message(build_entry(b"\x0a\x01p\x10\x07", b"without a publish time")),
        message(build_entry(METADATA + b"\x0a\x05p", b"damaged")),
    ],
    ids=[
        *("other-consumer", "redelivered", "part-of-a-batch", "epoch", "no-checksum", "wrong-checksum", "no-entry"),
        *("broker-metadata", "marker", "chunk", "encrypted", "no-message", "below-zero", "incomplete", "damaged"),
    ],
)
def test_message_when_unusual_then_in_no_run_with_others_and_says_the_same(codec: Codec, frame: bytes) -> None:
    received = runs_for_client(codec, message(ENTRY), frame, message(ENTRY, 9))
    assert len(received) == 3
    assert [received[0], received[-1]] == [MessageRun(1, [Position(3, n)], [ENTRY], [1]) for n in (5, 9)]
    assert said(received) == said(FrameDecoder(LIMIT).feed(message(ENTRY) + frame + message(ENTRY, 9)))


def test_receipts_of_one_producer_when_they_follow_each_other_then_one_run(codec: Codec) -> None:
    frames = [commands.send_receipt(1, 7, 0, 3, 4), commands.send_receipt(1, 2**63, 9, -1, -1, 2)]
    other = commands.send_receipt(2, 8, 0, 3, 5)
    received = runs_for_client(codec, *frames, other, commands.send_error(1, 9, 1, "no"))
    assert received[:2] == [
        ReceiptRun(1, [7, 2**63], [Position(3, 4), Position(-1, -1)]),
        ReceiptRun(2, [8], [Position(3, 5)]),
    ]
    assert received[2].command.type == pb.BaseCommand.SEND_ERROR


def test_receipt_when_it_has_no_position_then_is_a_frame(codec: Codec) -> None:
    bare = commands.encode(pb.CommandSendReceipt(producer_id=1, sequence_id=2))
    (frame,) = runs_for_client(codec, bare)
    assert frame.command.send_receipt.sequence_id == 2


def test_run_when_the_other_end_sends_it_then_is_a_frame(codec: Codec) -> None:
    """What only a broker sends is a violation from a client, and the other way round."""
    assert not any(isinstance(each, MessageRun) for each in runs_of(codec, message(ENTRY)))
    assert not any(isinstance(each, SendRun) for each in runs_for_client(codec, send()))


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([ENTRY], ("p", [7])),
        ([ENTRY, BATCH, entry_of(highest_sequence_id=5), entry_of(highest_sequence_id=9)], ("p", [7, 7, 7, 9])),
        ([entry_of(), build_entry(METADATA + b"\x0a\x01q\x10\x09", b"")], None),
        ([build_entry(METADATA + b"\x0a\x01q\x10\x09", b"")] * 2, ("q", [9, 9])),
        ([entry_of(highest_sequence_id=2**63)], None),
        ([ENTRY, ENTRY[6:]], None),
        ([ENTRY, entry_of(marker_type=1)], None),
        ([], None),
    ],
    ids=["one", "batch-is-not-counted", "names", "last-counts", "below-zero", "no-checksum", "marker", "none"],
)
def test_last_sequences_when_entries_are_plain_then_one_name_and_their_numbers(
    codec: Codec, entries: list[bytes], found: object
) -> None:
    assert codec.last_sequences(entries) == found


def test_sends_when_numbers_vary_then_bytes_of_send(codec: Codec) -> None:
    rows = [(number, count, size) for number in NUMBERS for count in (1, 2, 300) for size in (20, 40_000)]
    entries = [bytes(size) for _, _, size in rows]
    expected = [
        commands.send(5, number, entry, num_messages=count, highest_sequence_id=0 if count == 1 else number)
        for (number, count, _), entry in zip(rows, entries, strict=True)
    ]
    pieces = codec.send_encoder(5)([row[0] for row in rows], [row[1] for row in rows], entries)
    assert b"".join(pieces) == b"".join(expected)
    assert [piece for piece in pieces if len(piece) == 40_000] == [entry for entry in entries if len(entry) == 40_000]
    assert codec.send_encoder(5)([], [], []) == []


STAMP = (b"\x0a\x04lane\x2a\x04east", (b"position", b"producer", b"sequence"))


def test_copies_when_entries_are_plain_then_have_their_origin(codec: Codec) -> None:
    entries = [ENTRY, KEYED, BATCH, entry_of(partition_key="k" * 300)]
    positions = [Position(number, 2**31) for number in (1, 128, 2**31 - 1, 4)]
    numbers = [ledger << 32 | entry for ledger, entry in positions]
    copies, counts = codec.entry_stamper(*STAMP)(entries, positions, numbers, 0, [(b"x", b"y"), (bytes(8), b"v2")])
    assert list(counts) == [1, 3, 3, 1]
    for entry, copy, position, number in zip(entries, copies, positions, numbers, strict=True):
        before, after = parse_entry(entry), parse_entry(copy)
        assert copy == build_entry(after.metadata_bytes, after.payload), "the checksum fits"
        assert bytes(after.payload) == bytes(before.payload)
        expected = before.metadata
        for key, value in (("position", str(position)), ("producer", "p"), ("sequence", "7")):
            expected.properties.add(key=key, value=value)
        expected.producer_name, expected.replicated_from = "lane", "east"
        expected.sequence_id = expected.highest_sequence_id = number
        if expected.HasField("schema_version"):
            expected.schema_version = b"v2"
        assert after.metadata == expected


@pytest.mark.parametrize(
    "entry",
    [
        entry_of(replicated_from="west"),
        entry_of(replicate_to=["west"]),
        entry_of(txnid_least_bits=0),
        entry_of(txnid_most_bits=1),
        entry_of(marker_type=1),
        entry_of(uuid="u", num_chunks_from_msg=2, chunk_id=0),
        entry_of(schema_version=b"unknown"),
        entry_of(encryption_param=b"x"),
        ENTRY[6:],
        b"",
    ],
    ids=[
        *("replicated", "addressed", "transaction", "other-half-of-its-id", "marker", "chunk", "schema", "encrypted"),
        *("no-checksum", "empty"),
    ],
)
def test_copies_when_an_entry_is_not_plain_then_end_before_it(codec: Codec, entry: bytes) -> None:
    stamp = codec.entry_stamper(*STAMP)
    entries, positions, numbers = [ENTRY, ENTRY, entry, ENTRY], [Position(1, n) for n in range(4)], [5, 6, 7, 8]
    schemas = [(bytes(8), bytes(8))]
    copies, counts = stamp(entries, positions, numbers, 1, schemas)
    assert ([parse_entry(copy).metadata.sequence_id for copy in copies], list(counts)) == ([6], [1])
    assert [list(column) for column in stamp(entries, positions, numbers, 2, schemas)] == [[], []]
    assert len(stamp(entries, positions, numbers, 3, schemas)[0]) == 1
    assert list(stamp(entries, positions, numbers, 4, schemas)[0]) == []


@pytest.mark.parametrize("partition", [-1, 0, 3])
def test_receipts_when_numbers_vary_then_bytes_of_send_receipt(codec: Codec, partition: int) -> None:
    receipts = [
        (number, highest, ledger, entry)
        for number in (*NUMBERS, 2**64 - 1)
        for highest, ledger, entry in [(0, 1, 0), (-1, 5, 2**62), (number, 7, 8), (0, -1, -1), (0, 1, 1)]
    ]
    expected = [
        commands.send_receipt(5, number, max(highest, 0), ledger, entry, partition)
        for number, highest, ledger, entry in receipts
    ]
    encode = codec.receipt_encoder(5, partition)
    assert encode(receipts) == b"".join(expected)
    assert encode([]) == b""


@pytest.mark.parametrize("partition", [-1, 0, 3])
@pytest.mark.parametrize("epoch", [None, 0, 300])
def test_messages_when_numbers_vary_then_bytes_of_message(codec: Codec, partition: int, epoch: int | None) -> None:
    sets = [(), (-1,), (5, -(2**63), 2**63 - 1)]
    batch = [
        (Position(number, number), bytes(size), count, ack_set, 1)
        for number, count, ack_set in itertools.product(NUMBERS, (0, 200), sets)
        for size in (0, 100)
    ]
    expected = [
        commands.message(
            5, each[0], each[1], partition=partition, redelivery_count=each[2], ack_set=each[3], consumer_epoch=epoch
        )
        for each in batch
    ]
    assert b"".join(codec.message_encoder(5, partition)(batch, epoch)) == b"".join(expected)


def test_messages_when_large_then_their_entries_are_not_copied(codec: Codec) -> None:
    small, large = bytes(100), bytes(1_000_000)
    batch = [(Position(1, number), entry, 0, (), 1) for number, entry in enumerate([small, large, large, small])]
    pieces = codec.message_encoder(5, -1)(batch, None)
    assert [piece for piece in pieces if len(piece) >= len(large)] == [large, large]
    assert all(piece is large for piece in pieces if len(piece) >= len(large))
    expected = [commands.message(5, position, entry) for position, entry, *_ in batch]
    assert b"".join(pieces) == b"".join(expected)


def test_command_when_written_by_protobuf_then_no_frame_of_another_type_is_touched(codec: Codec) -> None:
    data = commands.PING + encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
    assert [each.command.type for each in runs_of(codec, data)] == [pb.BaseCommand.PING, pb.BaseCommand.PONG]


def test_codec_when_demanded_then_taken(codec: Codec) -> None:
    assert chosen_name({"INTERPULSE_CODEC": codec.name}) == codec.name
    assert chosen_codec({"INTERPULSE_CODEC": codec.name}).name == codec.name


class TestChoice:
    def test_codec_when_none_is_demanded_then_compiled_if_installed(self) -> None:
        assert chosen_codec({}).name == ("native" if NATIVE_INSTALLED else "python")

    def test_codec_when_not_installed_then_python_unless_demanded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "interpulse_codec", None)
        assert chosen_codec({}).name == "python"
        with pytest.raises(ImportError, match=re.escape("pip install ./native")):
            chosen_codec({"INTERPULSE_CODEC": "native"})

    def test_codec_when_its_version_is_older_then_refused_with_the_remedy(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        older = ModuleType("interpulse_codec")
        older.message_counts = None  # type: ignore[attr-defined]  # it had that, and not yet all of it
        monkeypatch.setitem(sys.modules, "interpulse_codec", older)
        with pytest.raises(ImportError, match=r"older than this interpulse: install it again .*pip install ./native"):
            native_codec()

    def test_codec_when_its_name_is_unknown_then_choices_are_named(self) -> None:
        text = "INTERPULSE_CODEC=rust names no codec: set it to native or python"
        with pytest.raises(ValueError, match=re.escape(text)):
            chosen_codec({"INTERPULSE_CODEC": "rust"})
