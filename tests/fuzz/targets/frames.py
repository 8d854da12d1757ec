"""A client that was let in sends anything: both codecs and the plain decoder learn the same of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import Codec, native_codec, python_codec
from interpulse.wire.entries import build_entry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import FrameDecoder
from interpulse.wire.protocols import ServerProtocol
from tests.support import commands
from tests.support.codecs import NATIVE_INSTALLED, said

FRAME_BYTES_MAX = 10_000
CODECS: list[Codec] = [python_codec(), *([native_codec()] if NATIVE_INSTALLED else [])]
GREETING = commands.connect(client_version="x", protocol_version=21, feature_flags=pb.FeatureFlags())


def one(data: bytes) -> None:
    """The first byte says where the rest is cut."""
    cut, sent = data[0] if data else 0, data[1:]
    parts = [sent[:cut], sent[cut:]]
    plain = learned(FrameDecoder(FRAME_BYTES_MAX), parts)
    for codec in CODECS:
        decoder = FrameDecoder(FRAME_BYTES_MAX)
        decoder.gather_runs(codec)
        assert learned(decoder, parts) == plain, codec
    protocol = ServerProtocol(server_version="v", feature_flags=pb.FeatureFlags(), now=0.0)
    tried(lambda: protocol.receive_data(parts[0]))
    protocol = ServerProtocol(server_version="v", feature_flags=pb.FeatureFlags(), now=0.0, gathers_runs=True)
    protocol.receive_data(GREETING)
    protocol.accept()
    tried(lambda: [protocol.receive_data(part) for part in parts])
    protocol.data_to_send()


def learned(decoder: FrameDecoder, parts: Sequence[bytes]) -> list[Any]:
    seen: list[Any] = []
    try:
        for part in parts:
            seen += said(decoder.feed_runs(part))
    except RemoteProtocolError as error:
        return ["error", str(error)]
    return seen


def tried(receive: Callable[[], object]) -> None:
    try:
        receive()
    except RemoteProtocolError:
        return


def seeds() -> Iterator[bytes]:
    entry = build_entry(pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1).SerializeToString(), b"hi")
    yield b"\x10" + commands.PING + commands.send(1, 7, entry) + commands.send(1, 8, entry, num_messages=3)
    yield b"\x20" + commands.ack_one(1, 2, 3) + commands.ack(1, [pb.MessageIdData(ledgerId=1, entryId=3, ack_set=[1])])
    yield b"\x05" + commands.partitioned_metadata(1, "persistent://a/b/t") + commands.lookup(1, "persistent://a/b/t")
    yield b"\x00" + commands.subscribe(1, 2, "t", "s") + commands.producer(1, 2, "t") + commands.flow(1, 1000) * 2
    yield b"\x04" + GREETING
