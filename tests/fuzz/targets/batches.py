"""Payloads that consumers unpack: compressed ones and batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import BatchColumns, pack_batch, unpack_batch
from interpulse.wire.codec import Codec
from interpulse.wire.compression import compress, decompress
from interpulse.wire.errors import RemoteProtocolError
from tests.support.codecs import CODECS_HERE, columns_of

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
    found = [_outcome(codec, payload, data[2]) for codec in CODECS_HERE]
    assert all(columns == found[0] for columns in found)
    try:
        messages = unpack_batch(payload, data[2])
    except RemoteProtocolError:
        assert found[0] is None
        return
    assert len(messages) == data[2]
    assert found[0] is not None
    left = [message.payload for message in messages if not message.metadata.compacted_out]
    assert (found[0].counts, found[0].payloads[1]) == ([len(left)], b"".join(left))


def _outcome(codec: Codec, payload: bytes, count: int) -> BatchColumns | None:
    """The columns, or None if the batch is refused."""
    try:
        return columns_of(codec, (payload, 0, count))
    except RemoteProtocolError:
        return None


def seeds() -> Iterator[bytes]:
    batch = pack_batch((pb.SingleMessageMetadata(payload_size=2, partition_key="k"), b"hi") for _ in range(3))
    plain = pack_batch((pb.SingleMessageMetadata(payload_size=2, sequence_id=number), b"hi") for number in range(3))
    yield bytes((0, 0, 3)) + plain
    properties = [pb.KeyValue(key="n", value="v")]
    rich = pb.SingleMessageMetadata(payload_size=2, properties=properties, ordering_key=b"o", event_time=9)
    gone = pb.SingleMessageMetadata(payload_size=2, properties=properties, null_value=True, compacted_out=True)
    yield bytes((0, 0, 3)) + pack_batch((single, b"hi") for single in (rich, gone, rich))
    for number, kind in enumerate(KINDS):
        for size, payload in ((len(batch), batch), (SIZE_STEP, bytes(SIZE_STEP))):
            steps, rest = divmod(size, SIZE_STEP)
            yield bytes((number + len(KINDS) * min(rest, 50), steps, 3)) + compress(kind, payload)
