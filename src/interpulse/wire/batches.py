"""Many messages in one entry: ``(size, SingleMessageMetadata, payload)`` repeated, compressed as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError

_U32: Final = Struct(">I")


class BatchedMessage(NamedTuple):
    """One message of a batch."""

    metadata: pb.SingleMessageMetadata
    payload: memoryview


def pack_one(metadata: pb.SingleMessageMetadata, payload: bytes) -> bytes:
    """Return one message in the form of a batch. Set ``payload_size`` of the metadata."""
    metadata.payload_size = len(payload)
    raw = metadata.SerializeToString()
    return b"%b%b%b" % (_U32.pack(len(raw)), raw, payload)


def pack_batch(messages: Iterable[tuple[pb.SingleMessageMetadata, bytes]]) -> bytes:
    """Return the payload of a batch before compression."""
    return b"".join(pack_one(metadata, payload) for metadata, payload in messages)


def unpack_batch(payload: bytes | memoryview, count: int) -> list[BatchedMessage]:
    """Return the ``count`` messages of a decompressed batch. Raise RemoteProtocolError if it has more or fewer."""
    view = memoryview(payload)
    messages: list[BatchedMessage] = []
    start = 0
    try:
        for _ in range(count):
            (size,) = _U32.unpack_from(view, start)
            body = start + 4 + size
            if body > len(view):
                raise RemoteProtocolError("batch that is cut off")
            metadata = pb.SingleMessageMetadata.FromString(bytes(view[start + 4 : body]))
            start = body + metadata.payload_size
            if metadata.payload_size < 0 or start > len(view):
                raise RemoteProtocolError("batch that is cut off")
            messages.append(BatchedMessage(metadata, view[body:start]))
    except (StructError, DecodeError) as error:
        raise RemoteProtocolError(f"batch that cannot be parsed: {error}") from None
    return messages
