"""PROTOBUF_NATIVE definitions: the files of a protobuf schema, and its root message."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from interpulse.model.errors import InvalidSchemaDefinition

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
