"""The encoding of commands as frames."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple, cast

from google.protobuf.message import Message

from interpulse.wire import pulsar_api_pb2 as pb

pack_sizes: Final = Struct(">II").pack
_SMALL: Final = 1 << 10
SMALL_VARINTS: Final = [bytes((n,)) if n < 128 else bytes((n & 127 | 128, n >> 7)) for n in range(_SMALL)]


def varint(number: int) -> bytes:
    """Encode a number of 0 to 2^64-1 in protobuf's form."""
    if number < _SMALL:
        return SMALL_VARINTS[number]
    low = b""
    while number >= _SMALL:
        low += bytes((number & 127 | 128,))
        number >>= 7
    return low + SMALL_VARINTS[number]


_ENVELOPE: Final[dict[str, bytes]] = {
    field.message_type.name: b"\x08" + varint(field.number) + varint(field.number << 3 | 2)
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}


def envelope(content: type[Message]) -> bytes:
    """Return the bytes before the size of such a content: the type of the command and the tag of its content."""
    return _ENVELOPE[content.DESCRIPTOR.name]


def encode(content: Message) -> bytes:
    """Return the frame of any command, given its content: ``encode(pb.CommandSuccess(request_id=1))``."""
    return frame(_ENVELOPE[content.DESCRIPTOR.name], content.SerializeToString())


def frame(head: bytes, content: bytes, entry_bytes: int = 0) -> bytes:
    """Return a frame up to its entry. ``head`` is the `envelope` of the content."""
    head += varint(len(content))
    size = len(head) + len(content)
    return b"%b%b%b" % (pack_sizes(size + 4 + entry_bytes, size), head, content)


class AnswerTemplate(NamedTuple):
    """Frames that differ only in the request id, between ``before`` (which ends with its tag) and ``after``."""

    head: bytes
    """The `envelope` of the content."""
    before: bytes
    after: bytes

    def frame(self, request_id: int) -> bytes:
        """Return the frame that answers this request."""
        return frame(self.head, b"%b%b%b" % (self.before, varint(request_id), self.after))


def error_code(error: int) -> pb.ServerError.ValueType:
    return cast(pb.ServerError.ValueType, int(error))


def pairs(mapping: Mapping[str, str]) -> list[pb.KeyValue]:
    return [pb.KeyValue(key=key, value=value) for key, value in mapping.items()]
