"""What a copied entry says beyond its original: who copied it under which number, and what it was.

In protobuf the last occurrence of a scalar field wins and repeated fields add up, so these fields are appended to the
raw metadata of the original, which is not encoded anew.
"""

from __future__ import annotations

from typing import Final

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands.encoding import varint

__all__ = ["StampEncoder", "schema_version_field", "text_field"]

_SHORT: Final = 64
_PRODUCERS_MAX: Final = 1000


class StampEncoder:
    """Once per entry, so what does not change is encoded beforehand."""

    def __init__(self, constant: bytes, keys: tuple[bytes, bytes, bytes]) -> None:
        """``constant`` are the fields before the sequence id. ``keys`` are those of the properties that tell the
        position, the producer name and the sequence id of the original."""
        self._constant = constant + b"\x10"
        position, self._producer_key, sequence = keys
        self._position_heads, self._sequence_heads = _property_heads(position), _property_heads(sequence)
        self._producers: dict[str, bytes] = {}

    def fields(self, metadata: pb.MessageMetadata, position: tuple[int, int], sequence_id: int) -> bytes:
        """What to append to ``metadata``."""
        number = varint(sequence_id)
        position_text = b"%d:%d" % position
        original = b"%d" % metadata.sequence_id
        producer = metadata.producer_name
        return b"".join(
            (
                self._constant,
                number,
                self._position_heads[len(position_text)],
                position_text,
                self._producers.get(producer) or self._producer_property(producer),
                self._sequence_heads[len(original)],
                original,
                b"\xc0\x01",
                number,
            )
        )

    def _producer_property(self, name: str) -> bytes:
        """A topic has few producers; should it have very many, the memory of them starts anew."""
        if len(self._producers) >= _PRODUCERS_MAX:
            self._producers.clear()
        pair = _bytes_field(1, self._producer_key) + text_field(2, name)
        encoded = self._producers[name] = b"\x22" + varint(len(pair)) + pair
        return encoded


def schema_version_field(version: bytes) -> bytes:
    """The version of a schema, as a field of metadata."""
    return _bytes_field(16, version)


def text_field(number: int, text: str) -> bytes:
    """A text as a field of metadata."""
    return _bytes_field(number, text.encode())


def _bytes_field(number: int, raw: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def _property_heads(key: bytes) -> list[bytes]:
    """What stands before the value of a property, by the length of the value: short ones only."""
    name = _bytes_field(1, key)
    return [b"\x22%b%b\x12%b" % (varint(len(name) + 2 + length), name, varint(length)) for length in range(_SHORT)]
