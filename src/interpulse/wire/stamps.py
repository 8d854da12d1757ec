"""The metadata that a copied entry adds to its original: its copier, its new sequence id, and its origin.

In protobuf the last occurrence of a scalar field counts and repeated fields accumulate, so these fields are appended to
the raw metadata of the original, which is not encoded again.
"""

from __future__ import annotations

import re
from typing import Final

from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import varint
from interpulse.wire.entries import build_entry, parse_entry

SOURCE_POSITION: Final = "__MSG_PROP_REPL_SOURCE_POSITION"
"""Property with ``ledger:entry`` of the source, the key of Pulsar's own replicators."""

_POSITION: Final = re.compile(r"(\d{1,19}):(\d{1,19})", re.ASCII)
_NUMBER_MAX: Final = 2**63 - 1
_SHORT: Final = 64
_PRODUCERS_MAX: Final = 1000


def source_positions(metadata: pb.MessageMetadata) -> list[Position]:
    """Return the source positions that an entry names, oldest first. Invalid ones are omitted.

    The last one is the original's. Earlier ones belong to other topics: applications pass on the properties of
    replicated messages, and each replicator appends its own.
    """
    positions = []
    for item in metadata.properties:
        match = _POSITION.fullmatch(str(item.value)) if item.key == SOURCE_POSITION else None  # bytes unless UTF-8
        if match is not None and max(position := Position(*map(int, match.groups()))) <= _NUMBER_MAX:
            positions.append(position)
    return positions


class StampEncoder:
    """The appended fields of copies. What all copies share is encoded once."""

    def __init__(self, constant: bytes, keys: tuple[bytes, bytes, bytes]) -> None:
        """``constant`` are the fields before the sequence id.

        ``keys`` name the properties for position, producer name and sequence id of the original.
        """
        self._constant = constant + b"\x10"
        position, self._producer_key, sequence = keys
        self._position_heads, self._sequence_heads = _property_heads(position), _property_heads(sequence)
        self._producers: dict[str, bytes] = {}

    def fields(self, metadata: pb.MessageMetadata, position: tuple[int, int], sequence_id: int) -> bytes:
        """Return the fields to append to ``metadata``."""
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
        """Return the property of a producer. A topic has few producers; the cache starts over if it has very many."""
        if len(self._producers) >= _PRODUCERS_MAX:
            self._producers.clear()
        encoded = self._producers[name] = property_field(self._producer_key, name.encode())
        return encoded


def schema_version_field(version: bytes) -> bytes:
    """Return the version of a schema as a field of metadata."""
    return _bytes_field(16, version)


def with_schema_version(entry: bytes, before: bytes, after: bytes) -> bytes:
    """Return an entry whose messages have the schema version ``after`` if they had ``before``; empty: none."""
    parsed = parse_entry(entry)
    metadata = parsed.metadata
    if metadata.schema_version != before:
        return entry
    metadata.ClearField("schema_version")
    if after:
        metadata.schema_version = after
    return build_entry(metadata.SerializePartialToString(), parsed.payload)


def property_field(key: bytes, value: bytes) -> bytes:
    """Return a property as a field of metadata."""
    return _bytes_field(4, _bytes_field(1, key) + _bytes_field(2, value))


def text_field(number: int, text: str) -> bytes:
    """Return a text as a field of metadata."""
    return _bytes_field(number, text.encode())


def _bytes_field(number: int, raw: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def _property_heads(key: bytes) -> list[bytes]:
    """Return the bytes before the value of a property, by the length of the value, for short values."""
    name = _bytes_field(1, key)
    return [b"\x22%b%b\x12%b" % (varint(len(name) + 2 + length), name, varint(length)) for length in range(_SHORT)]
