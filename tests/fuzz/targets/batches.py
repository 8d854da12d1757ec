"""Payloads that consumers unpack: compressed ones and batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch, unpack_batch
from interpulse.wire.codec import native_codec, python_codec
from interpulse.wire.compression import compress, decompress
from interpulse.wire.errors import RemoteProtocolError
from tests.support.codecs import NATIVE_INSTALLED

KINDS: Final = (pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
SIZE_STEP: Final = 64
_CODECS: Final = [python_codec(), *([native_codec()] if NATIVE_INSTALLED else [])]


def one(data: bytes) -> None:
    """Two bytes say how it is compressed, and which size its producer announces; the next how many messages it has."""
    if len(data) < 3:
        return
    try:
        payload = decompress(KINDS[data[0] % len(KINDS)], data[3:], data[1] * SIZE_STEP + data[0] // len(KINDS))
    except RemoteProtocolError:
        payload = data[3:]
    found = [codec.split_batch(payload, 0, data[2]) for codec in _CODECS]
    try:
        messages = unpack_batch(payload, data[2])
    except RemoteProtocolError:
        assert not any(found)
        return
    assert len(messages) == data[2]
    for codec, bounds in zip(_CODECS, found, strict=True):
        if bounds is not None:
            assert codec.join_payloads([(payload, bounds)])[0] == b"".join(message.payload for message in messages)


def seeds() -> Iterator[bytes]:
    batch = pack_batch((pb.SingleMessageMetadata(payload_size=2, partition_key="k"), b"hi") for _ in range(3))
    plain = pack_batch((pb.SingleMessageMetadata(payload_size=2, sequence_id=number), b"hi") for number in range(3))
    yield bytes((0, 0, 3)) + plain
    for number, kind in enumerate(KINDS):
        for size, payload in ((len(batch), batch), (SIZE_STEP, bytes(SIZE_STEP))):
            steps, rest = divmod(size, SIZE_STEP)
            yield bytes((number + len(KINDS) * min(rest, 50), steps, 3)) + compress(kind, payload)
