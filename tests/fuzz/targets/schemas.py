"""Definitions of schemas as clients register them: checked, then compared with the one before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.model.errors import IncompatibleSchema
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.policy_checks import SCHEMA_STRATEGIES
from interpulse.rules.schema_compatibility.definitions import check_definition, find_conflict

TYPES: Final = (
    SchemaType.AVRO,
    SchemaType.JSON,
    SchemaType.PROTOBUF_NATIVE,
    SchemaType.KEY_VALUE,
    SchemaType.STRING,
)
BETWEEN: Final = b"\0\n\0"
PAIR: Final = {"key.schema.type": "AVRO", "value.schema.type": "JSON"}


def one(data: bytes) -> None:
    """The first byte chooses type and strategy; two definitions may follow, ``BETWEEN`` them."""
    if not data:
        return
    kind = TYPES[data[0] % len(TYPES)]
    strategy = SCHEMA_STRATEGIES[data[0] // len(TYPES) % len(SCHEMA_STRATEGIES)]
    first, _, second = data[1:].partition(BETWEEN)
    properties = PAIR if kind is SchemaType.KEY_VALUE else {}
    schemas = [SchemaInfo(kind, definition, properties) for definition in (first, second)]
    try:
        for each in schemas:
            check_definition(each)
        find_conflict(schemas[:1], schemas[1], strategy)
    except IncompatibleSchema as error:
        assert str(error)


RECORDS: Final = (
    b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}',
    b'{"type":"record","name":"R","namespace":"n","aliases":["Q"],"fields":[{"name":"a","type":["null","long"],'
    b'"default":null},{"name":"e","type":{"type":"enum","name":"E","symbols":["X"]}},{"name":"f","type":{"type":"fixed",'
    b'"name":"F","size":4}},{"name":"m","type":{"type":"map","values":{"type":"array","items":"R"}}}]}',
)


def seeds() -> Iterator[bytes]:
    for first in range(2):
        yield bytes([first]) + RECORDS[0] + BETWEEN + RECORDS[1]
    yield bytes([2]) + b'{"fileDescriptorSet":"CgA=","rootMessageTypeName":"M","rootFileDescriptorName":"f.proto"}'
    yield bytes([3]) + len(RECORDS[0]).to_bytes(4, "big") + RECORDS[0] + len(RECORDS[1]).to_bytes(4, "big") + RECORDS[1]
    yield bytes([9]) + b"null"
