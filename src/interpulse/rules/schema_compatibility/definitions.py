"""Definitions of schemas: the check against their type, the strategies that compare them, and their parts.

A KEY_VALUE schema has two parts, a PROTOBUF_NATIVE schema a root message.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType, split_key_value
from interpulse.rules.schema_compatibility.avro import find_unreadable
from interpulse.rules.schema_compatibility.avro_types import parse_avro

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


if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

_FILES: Final = "fileDescriptorSet"
_ROOT_FILE: Final = "rootFileDescriptorName"
_ROOT: Final = "rootMessageTypeName"


def root_message(definition: bytes) -> str:
    """Return the full name of the root message. Raise InvalidSchemaDefinition if it or a dependency is missing."""
    try:
        body = json.loads(definition.decode())
    except (ValueError, RecursionError) as error:
        raise _invalid(f"it is no JSON: {error}") from None
    if not isinstance(body, dict) or not all(isinstance(body.get(key), str) for key in (_FILES, _ROOT_FILE, _ROOT)):
        raise _invalid(f"it is an object with the texts {_FILES}, {_ROOT_FILE} and {_ROOT}")
    files = _files(body[_FILES])
    if body[_ROOT_FILE] not in files:
        raise _invalid(f"the file {body[_ROOT_FILE]} is not among {', '.join(files) or 'no files'}")
    return _find(files, body[_ROOT_FILE], body[_ROOT])


def _files(text: str) -> dict[str, FileDescriptorProto]:
    # Imported here: the module takes four megabytes, needed only with a schema of this type.
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    try:
        parsed = FileDescriptorSet.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError) as error:
        raise _invalid(f"{_FILES} holds no files: {error}") from None
    return {file.name: file for file in parsed.file}


def _find(files: Mapping[str, FileDescriptorProto], root_file: str, root: str) -> str:
    pool = DescriptorPool()
    try:
        for file in _in_order(files, root_file, set()):
            pool.AddSerializedFile(file.SerializeToString())
        message = pool.FindMessageTypeByName(root)
    except KeyError:
        raise _invalid(f"the message {root} is in none of the files {', '.join(files)}") from None
    except (TypeError, RecursionError) as error:
        raise _invalid(f"its files do not fit together: {error}") from None
    if message.file.name != root_file:
        raise _invalid(f"the message {root} is in {message.file.name}, not in {root_file}")
    return str(message.full_name)


def _in_order(files: Mapping[str, FileDescriptorProto], name: str, seen: set[str]) -> Iterator[FileDescriptorProto]:
    """Yield files after those they import."""
    if name in seen:
        return
    seen.add(name)
    if name not in files:
        raise _invalid(f"the file {name} is imported and missing")
    for imported in files[name].dependency:
        yield from _in_order(files, imported, seen)
    yield files[name]


def _invalid(reason: str) -> InvalidSchemaDefinition:
    return InvalidSchemaDefinition(f"Invalid PROTOBUF_NATIVE definition: {reason}")


AVRO_DEFINED: Final = frozenset({SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF})
"""Types whose definitions are in Avro's language."""


def check_definition(schema: SchemaInfo) -> None:
    """Raise InvalidSchemaDefinition unless the schema can decode messages."""
    match schema.type:
        case SchemaType.AVRO | SchemaType.JSON | SchemaType.PROTOBUF:
            _check_avro(schema)
        case SchemaType.PROTOBUF_NATIVE:
            root_message(schema.definition)
        case SchemaType.KEY_VALUE:
            for part in key_value_parts(schema):
                check_definition(part)
        case SchemaType.NONE | SchemaType.EXTERNAL:
            pass  # plain bytes, as a part of KEY_VALUE; the definition belongs to a registry elsewhere
        case SchemaType.AUTO_CONSUME:
            raise InvalidSchemaDefinition("Schema AUTO_CONSUME is a client-side schema type")
        case _:
            _check_primitive(schema)


def _check_avro(schema: SchemaInfo) -> None:
    try:
        parsed = parse_avro(schema.definition)
    except InvalidSchemaDefinition as error:
        raise InvalidSchemaDefinition(
            f"Invalid schema definition data for {schema.type.name} schema: {error}"
        ) from None
    if schema.type is SchemaType.AVRO and parsed.kind == "union":
        raise InvalidSchemaDefinition("Avro schema typed [UNION] is not supported")


def _check_primitive(schema: SchemaInfo) -> None:
    # Old Python clients define a string as "null".
    if schema.definition and not (schema.type is SchemaType.STRING and schema.definition == b"null"):
        raise InvalidSchemaDefinition(
            f"Invalid schema definition data for {schema.type.name} schema: a primitive type has none, "
            f"but {len(schema.definition)} bytes are given"
        )


ALWAYS_COMPATIBLE: Final = "ALWAYS_COMPATIBLE"
ALWAYS_INCOMPATIBLE: Final = "ALWAYS_INCOMPATIBLE"
_NEW_READS_OLD: Final = frozenset({"BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"})
_OLD_READS_NEW: Final = frozenset({"FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"})
TRANSITIVE: Final = frozenset({"BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"})
"""Strategies that compare with every version, not only with the latest."""

STRATEGIES: Final = frozenset({ALWAYS_COMPATIBLE, ALWAYS_INCOMPATIBLE}) | _NEW_READS_OLD | _OLD_READS_NEW


def find_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo, strategy: str) -> str | None:
    """Return the reason why ``new`` conflicts with ``existing`` schemas of its type; None if it does not.

    Definitions were checked when they were registered. Types other than AVRO, JSON, KEY_VALUE and PROTOBUF_NATIVE have
    nothing to compare. PROTOBUF is not compared either: Apache Pulsar has no checker for it. EXTERNAL schemas are
    compared by their own registry, so even ALWAYS_INCOMPATIBLE accepts another one.
    """
    assert strategy in STRATEGIES, strategy
    if strategy == ALWAYS_COMPATIBLE:
        return None
    if new.type is SchemaType.KEY_VALUE:
        return _key_value_conflict(existing, new, strategy)
    if new.type is SchemaType.EXTERNAL:
        return None
    if strategy == ALWAYS_INCOMPATIBLE:
        return "Schema compatibility strategy is ALWAYS_INCOMPATIBLE"
    if new.type in (SchemaType.AVRO, SchemaType.JSON):
        return _avro_conflict(existing, new, strategy)
    if new.type is SchemaType.PROTOBUF_NATIVE:
        return _root_conflict(existing, new)
    return None


def _avro_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo, strategy: str) -> str | None:
    theirs = parse_avro(new.definition)
    for old in reversed(existing):
        try:
            ours = parse_avro(old.definition)
        except InvalidSchemaDefinition as error:
            return f"Unable to read schema: an existing schema cannot be compared: {error}"
        if strategy in _NEW_READS_OLD and (reason := find_unreadable(writer=ours, reader=theirs)):
            return f"Unable to read schema: the new schema cannot read what is written with an existing one: {reason}"
        if strategy in _OLD_READS_NEW and (reason := find_unreadable(writer=theirs, reader=ours)):
            return f"Unable to read schema: an existing schema cannot read what is written with the new one: {reason}"
    return None


def _root_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo) -> str | None:
    root = root_message(new.definition)
    for old in existing:
        existing_name = root_message(old.definition)
        if existing_name != root:
            return f"Protobuf root message isn't allow change: existing {existing_name}, new {root}"
    return None


def _key_value_conflict(existing: Sequence[SchemaInfo], new: SchemaInfo, strategy: str) -> str | None:
    theirs, ours = key_value_parts(new), [key_value_parts(old) for old in existing]
    for parts in ours:
        if (parts.key.type, parts.value.type) != (theirs.key.type, theirs.value.type):
            return (
                f"Key schema type or value schema type is different: exists {_shown(parts.key)} and "
                f"{_shown(parts.value)}, new {_shown(theirs.key)} and {_shown(theirs.value)}"
            )
    key = find_conflict([parts.key for parts in ours], theirs.key, strategy)
    value = key or find_conflict([parts.value for parts in ours], theirs.value, strategy)
    return value and f"{'key' if key else 'value'} schema: {value}"


def _shown(part: SchemaInfo) -> str:
    return "BYTES" if part.type is SchemaType.NONE else part.type.name
