"""Frames: cut from a stream, joined from pieces, refused if they are damaged or have texts that are not UTF-8."""

import struct
import tracemalloc
from typing import Any

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import encode
from interpulse.wire.entries import (
    build_entry,
)
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import FRAME_BYTES_MAX, Frame, FrameDecoder, encode_command
from tests.support import commands
from tests.support.commands import encode_with_entry

PING = bytes.fromhex("00000009000000050812920100")
PONG = bytes.fromhex("000000090000000508139a0100")
GOLDEN_ENTRY = bytes.fromhex("0e0168943508000000070a01701007180168656c6c6f")
GOLDEN_SEND = bytes.fromhex("00000022000000080806320408011007") + GOLDEN_ENTRY


def feed_all(data: bytes, chunk: int = 0) -> list[Frame]:
    decoder = FrameDecoder()
    step = chunk or len(data)
    return [frame for start in range(0, len(data), step) for frame in decoder.feed(data[start : start + step])]


def raw_frame(command: bytes, payload: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(command) + len(payload), len(command)) + command + payload


def test_ping_and_pong_when_encoded_then_are_the_golden_bytes() -> None:
    assert commands.PING == PING
    assert commands.PONG == PONG
    assert encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())) == PING


def test_send_when_encoded_then_is_the_golden_frame() -> None:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1).SerializeToString()
    entry = build_entry(metadata, b"hello")
    assert entry == GOLDEN_ENTRY
    assert commands.send(1, 7, entry) == GOLDEN_SEND
    command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=pb.CommandSend(producer_id=1, sequence_id=7))
    assert encode_with_entry(command, entry) == GOLDEN_SEND


@pytest.mark.parametrize("chunk", [0, 1, 2, 3, 5, 7, 13, 100])
def test_stream_when_cut_anywhere_then_gives_the_same_frames(chunk: int) -> None:
    frames = feed_all((PING + GOLDEN_SEND) * 3 + PONG, chunk)
    kinds = [frame.command.type for frame in frames]
    assert kinds == [pb.BaseCommand.PING, pb.BaseCommand.SEND] * 3 + [pb.BaseCommand.PONG]
    assert frames[0].entry is None
    assert bytes(frames[1].entry or b"") == GOLDEN_ENTRY


@pytest.mark.parametrize("chunk", [65536, 1025, 1000])
def test_large_frame_when_it_comes_in_pieces_then_is_joined_once(chunk: int) -> None:
    entry = build_entry(GOLDEN_ENTRY[10:17], bytes(1_000_000))
    frames = feed_all(commands.send(1, 7, entry) * 2, chunk)
    assert [frame.entry for frame in frames] == [entry, entry]


def test_frame_when_it_trickles_in_then_takes_little_more_memory_than_it_is_long() -> None:
    decoder = FrameDecoder()
    decoder.feed(struct.pack(">II", 1_000_000, 20))
    tracemalloc.start()
    try:
        for number in range(10_000):
            assert decoder.feed(bytes((number % 256, 1))) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * decoder.bytes_pending


@pytest.mark.parametrize(
    ("data", "case"),
    [
        (struct.pack(">I", 2**31), "size-2^31"),
        (struct.pack(">I", FRAME_BYTES_MAX + 1), "size-above-limit"),
        (struct.pack(">I", 3), "size-below-command-size"),
        (struct.pack(">II", 9, 6), "command-longer-than-frame"),
        (raw_frame(b""), "empty-command"),
        (raw_frame(b"\xff\xff\xff\xff"), "garbage"),
        (raw_frame(bytes.fromhex("08d20f")), "unknown-type"),
        (
            raw_frame(
                bytes.fromhex("08d20f")
                + pb.BaseCommand(
                    type=pb.BaseCommand.CONNECT, connect=pb.CommandConnect(client_version="x")
                ).SerializeToString()[2:]
            ),
            "unknown-type-beside-a-connect",
        ),
        (raw_frame(bytes.fromhex("0806")), "type-without-content"),
        (raw_frame(bytes.fromhex("0806320208 01".replace(" ", ""))), "send-without-sequence-id"),
        (raw_frame(bytes.fromhex("080b5a020801")), "flow-without-permits"),
        (raw_frame(bytes.fromhex("080a52020801")), "ack-without-type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_decoder_when_the_peer_breaks_the_rules_then_remote_protocol_error(data: bytes, case: str) -> None:
    with pytest.raises(RemoteProtocolError):
        feed_all(data)
    with pytest.raises(RemoteProtocolError):
        feed_all(data, 1)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"HTTP/1.1 400 Illegal character CNTL=0x0\r\n", "port of the web service"),
        (bytes.fromhex("15030300020246"), r"pulsar\+ssl://"),
        (bytes.fromhex("1603010200010001fc"), r"pulsar\+ssl://"),
    ],
)
def test_decoder_when_the_peer_speaks_another_protocol_then_says_which(data: bytes, told: str) -> None:
    for chunk in (1, len(data)):
        with pytest.raises(RemoteProtocolError, match=told):
            feed_all(data, chunk)


def test_decoder_when_a_frame_is_cut_off_then_waits_and_says_so() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(GOLDEN_SEND[:-1]) == []
    assert decoder.bytes_pending == len(GOLDEN_SEND) - 1
    assert len(decoder.feed(GOLDEN_SEND[-1:])) == 1
    assert decoder.bytes_pending == 0


def test_decoder_when_the_limit_is_raised_then_takes_larger_frames() -> None:
    decoder = FrameDecoder(100)
    large = commands.send(1, 7, bytes(200))
    with pytest.raises(RemoteProtocolError):
        decoder.feed(large)
    decoder = FrameDecoder(100)
    decoder.raise_limit(1000)
    assert len(decoder.feed(large)) == 1


@pytest.mark.parametrize(("above", "taken"), [(0, True), (1, False)])
def test_frame_when_as_large_as_allowed_then_taken_and_one_byte_above_refused(above: int, taken: bool) -> None:
    frame = commands.send(1, 7, build_entry(b"", bytes(500)))
    decoder = FrameDecoder(len(frame) - 4 - above)
    if taken:
        assert len(decoder.feed(frame)) == 1
    else:
        with pytest.raises(RemoteProtocolError):
            decoder.feed(frame)


COMMANDS = {
    "single": pb.BaseCommand(
        type=pb.BaseCommand.LOOKUP,
        lookupTopic=pb.CommandLookupTopic(topic="AAAA", request_id=1, original_principal="p"),
    ),
    "repeated": pb.BaseCommand(
        type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        getTopicsOfNamespaceResponse=pb.CommandGetTopicsOfNamespaceResponse(request_id=1, topics=["x", "AAAA"]),
    ),
    "inner": pb.BaseCommand(
        type=pb.BaseCommand.PRODUCER,
        producer=pb.CommandProducer(
            topic="x",
            producer_id=1,
            request_id=1,
            schema=pb.Schema(name="AAAA", schema_data=b"", type=pb.Schema.String),
        ),
    ),
    "inner repeated": pb.BaseCommand(
        type=pb.BaseCommand.PRODUCER,
        producer=pb.CommandProducer(
            topic="x", producer_id=1, request_id=1, metadata=[pb.KeyValue(key="k", value="AAAA")]
        ),
    ),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_command_when_a_text_is_not_utf8_then_remote_protocol_error(command: pb.BaseCommand) -> None:
    good = encode_command(command)
    assert len(FrameDecoder().feed(good)) == 1
    with pytest.raises(RemoteProtocolError, match="that is not UTF-8"):
        FrameDecoder().feed(good.replace(b"AAAA", b"\xff\xfe\xed\xa0"))


QUESTIONS = [
    pb.CommandPartitionedTopicMetadata(
        topic="x", request_id=1, original_principal="x", original_auth_data="x", original_auth_method="x"
    ),
    pb.CommandLookupTopic(
        topic="x",
        request_id=1,
        original_principal="x",
        original_auth_data="x",
        original_auth_method="x",
        advertised_listener_name="x",
        properties=[pb.KeyValue(key="k", value="x")],
    ),
]


@pytest.mark.parametrize(
    ("question", "field"),
    [
        (question, field.name)
        for question in QUESTIONS
        for field, value in question.ListFields()
        if field.type == field.TYPE_STRING
    ]
    + [(QUESTIONS[1], "properties")],
)
def test_request_when_a_text_is_not_utf8_then_remote_protocol_error(question: Any, field: str) -> None:
    """Questions have a short way in."""
    asked = type(question)(topic="x", request_id=1)
    if field == "properties":
        asked.properties.add(key="k", value="AAAA")
    else:
        setattr(asked, field, "AAAA")
    good = encode(asked)
    assert len(FrameDecoder().feed(good)) == 1
    with pytest.raises(RemoteProtocolError, match="that is not UTF-8"):
        FrameDecoder().feed(good.replace(b"AAAA", b"\xff\xfe\xed\xa0"))


@pytest.mark.parametrize("question", QUESTIONS, ids=["partitions", "lookup"])
@pytest.mark.parametrize("field", ["topic", "request_id"])
def test_request_when_a_required_field_is_missing_then_remote_protocol_error(question: Any, field: str) -> None:
    command = FrameDecoder().feed(encode(type(question)(topic="x", request_id=1)))[0].command
    command.ListFields()[1][1].ClearField(field)
    with pytest.raises(RemoteProtocolError, match="without a required field"):
        FrameDecoder().feed(encode_with_entry(command, b""))


@pytest.mark.parametrize("question", QUESTIONS, ids=["partitions", "lookup"])
def test_request_when_its_id_is_zero_then_is_accepted(question: Any) -> None:
    asked = type(question)(topic="", request_id=0)
    assert FrameDecoder().feed(encode(asked))[0].command.ListFields()[1][1] == asked


def test_bytes_when_they_are_no_utf8_then_are_bytes() -> None:
    schema = pb.Schema(name="x", schema_data=b"\xff\xfe", type=pb.Schema.String)
    producer = pb.CommandProducer(topic="x", producer_id=1, request_id=1, schema=schema)
    frame = encode_command(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer))
    assert FrameDecoder().feed(frame)[0].command.producer.schema.schema_data == b"\xff\xfe"
