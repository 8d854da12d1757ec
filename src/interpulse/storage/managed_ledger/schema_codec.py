"""The schemas of a topic in Pulsar's protobuf: a locator, and one ledger with one entry for each version.

The numbers of types differ from those of the wire protocol, and there is no field for a name. Source:
docs/reference/cluster-protocol.md#schemas.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from interpulse.model.ids import Position
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.storage.managed_ledger import managed_ledger_pb2 as pb
from interpulse.storage.managed_ledger.compression import parsed

_NUMBERS: Final[Mapping[SchemaType, int]] = {
    SchemaType.NONE: 1,
    SchemaType.STRING: 2,
    SchemaType.JSON: 3,
    SchemaType.PROTOBUF: 4,
    SchemaType.AVRO: 5,
    SchemaType.BOOLEAN: 6,
    SchemaType.INT8: 7,
    SchemaType.INT16: 8,
    SchemaType.INT32: 9,
    SchemaType.INT64: 10,
    SchemaType.FLOAT: 11,
    SchemaType.DOUBLE: 12,
    SchemaType.DATE: 13,
    SchemaType.TIME: 14,
    SchemaType.TIMESTAMP: 15,
    SchemaType.KEY_VALUE: 16,
    SchemaType.INSTANT: 17,
    SchemaType.LOCAL_DATE: 18,
    SchemaType.LOCAL_TIME: 19,
    SchemaType.LOCAL_DATE_TIME: 20,
    SchemaType.PROTOBUF_NATIVE: 21,
    SchemaType.EXTERNAL: 22,
}
_TYPES: Final = {number: kind for kind, number in _NUMBERS.items()}
_NOWHERE: Final = Position(-1, -1)
"""The position of the first version in its own entry, which cannot know it."""


class VersionEntry(NamedTuple):
    """The position of a version's schema, and the digest of its definition."""

    version: int
    position: Position
    digest: bytes


class StoredSchema(NamedTuple):
    """One version; ``schema`` is None if the schema was deleted."""

    schema: SchemaInfo | None
    created_ms: int


def decode_locator(value: bytes) -> list[VersionEntry]:
    """Return every version, oldest first. Raise ValueError if the value is no locator."""
    message = parsed(pb.SchemaLocator, value)
    return [
        VersionEntry(entry.version, Position(entry.position.ledgerId, entry.position.entryId), entry.hash)
        for entry in message.index
    ]


def encode_locator(versions: list[VersionEntry], *, previous: bytes = b"") -> bytes:
    """Encode the locator of these versions, at least one. ``previous`` is the one that it replaces."""
    message = pb.SchemaLocator.FromString(previous)
    for version in versions[len(message.index) :]:
        _put(message.index.add(), version)
    message.info.CopyFrom(message.index[-1])
    return message.SerializeToString(deterministic=True)


def decode_schema(entry: bytes) -> StoredSchema:
    """Decode the schema in its ledger's entry. Raise ValueError if there is none, or for an unknown type."""
    message = parsed(pb.SchemaInfo, parsed(pb.SchemaEntry, entry).schema_data)
    if message.deleted:
        return StoredSchema(None, message.timestamp)
    if message.type not in _TYPES:
        raise ValueError(f"schemas of type {message.type} are not supported")
    properties = {pair.key: pair.value for pair in message.props}
    return StoredSchema(SchemaInfo(_TYPES[message.type], message.schema, properties), message.timestamp)


def encode_schema(
    schema_id: str, schema: SchemaInfo | None, created_ms: int, versions: list[VersionEntry]
) -> tuple[bytes, bytes]:
    """Return the entry for the ledger of a version after ``versions``, and the digest of its definition."""
    definition = schema.definition if schema is not None else b""
    digest = hashlib.sha256(definition).digest()
    info = pb.SchemaInfo(
        schema_id=schema_id,
        user="",
        type=_NUMBERS[schema.type if schema is not None else SchemaType.NONE],
        schema=definition,
        timestamp=created_ms,
        deleted=schema is None,
    )
    if schema is not None:
        for key, value in schema.properties.items():
            info.props.add(key=key, value=value)
    entry = pb.SchemaEntry(schema_data=info.SerializeToString(deterministic=True))
    for version in versions or [VersionEntry(0, _NOWHERE, digest)]:
        _put(entry.index.add(), version)
    return entry.SerializeToString(deterministic=True), digest


def _put(target: pb.SchemaIndexEntry, version: VersionEntry) -> None:
    target.version, target.hash = version.version, version.digest
    target.position.ledgerId, target.position.entryId = version.position
