"""Key and value schemas of a KEY_VALUE schema, stored in its definition and properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType, split_key_value

_BYTES: Final = "BYTES"


class KeyValueParts(NamedTuple):
    """Schemas of keys and of values. Type None means plain bytes."""

    key: SchemaInfo
    value: SchemaInfo


def key_value_parts(schema: SchemaInfo) -> KeyValueParts:
    """Return the parts of a KEY_VALUE schema. Raise InvalidSchemaDefinition if they cannot be separated."""
    try:
        key, value = split_key_value(schema.definition)
    except ValueError as error:
        raise InvalidSchemaDefinition(f"Invalid KEY_VALUE definition: {error}") from None
    return KeyValueParts(_part("key", key, schema.properties), _part("value", value, schema.properties))


def _part(side: str, definition: bytes, properties: Mapping[str, str]) -> SchemaInfo:
    kind = properties.get(f"{side}.schema.type", _BYTES)
    if kind != _BYTES and kind not in SchemaType.__members__:
        raise InvalidSchemaDefinition(
            f"The property {side}.schema.type of the KeyValue schema is {kind!r}; "
            f"known are {_BYTES}, {', '.join(SchemaType.__members__)}"
        )
    part_type = SchemaType.NONE if kind == _BYTES else SchemaType[kind]
    return SchemaInfo(part_type, definition, _part_properties(side, properties))


def _part_properties(side: str, properties: Mapping[str, str]) -> dict[str, str]:
    name = f"{side}.schema.properties"
    text = properties.get(name)
    if not text:
        return {}
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InvalidSchemaDefinition(f"The property {name} of the KeyValue schema is no JSON object: {text[:80]!r}")
    return {str(key): str(value) for key, value in body.items()}
