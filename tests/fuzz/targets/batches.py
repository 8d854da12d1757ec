"""Payloads that consumers unpack: compressed ones and batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch, unpack_batch
from interpulse.wire.compression import compress, decompress
from interpulse.wire.errors import RemoteProtocolError

KINDS: Final = (pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
SIZE_STEP: Final = 64


def one(data: bytes) -> None:
    """Two bytes say how it is compressed, and which size its producer announces; the next how many messages it has."""
    if len(data) < 3:
        return
    try:
        payload = decompress(KINDS[data[0] % len(KINDS)], data[3:], data[1] * SIZE_STEP + data[0] // len(KINDS))
    except RemoteProtocolError:
        payload = data[3:]
    try:
        assert len(unpack_batch(payload, data[2])) == data[2]
    except RemoteProtocolError:
        return


def seeds() -> Iterator[bytes]:
    batch = pack_batch((pb.SingleMessageMetadata(payload_size=2, partition_key="k"), b"hi") for _ in range(3))
    for number, kind in enumerate(KINDS):
        for size, payload in ((len(batch), batch), (SIZE_STEP, bytes(SIZE_STEP))):
            steps, rest = divmod(size, SIZE_STEP)
            yield bytes((number + len(KINDS) * min(rest, 50), steps, 3)) + compress(kind, payload)
