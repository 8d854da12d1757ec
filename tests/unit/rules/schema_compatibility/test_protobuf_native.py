"""The root message of protobuf files."""

from __future__ import annotations

import base64
import json

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.rules.schema_compatibility.protobuf_native import root_message


def definition(root: str = "n.Outer.Inner", file: str = "main.proto", *, with_import: bool = True) -> bytes:
    imported = FileDescriptorProto(name="imported.proto", package="i", syntax="proto3")
    imported.message_type.add(name="Other")
    main = FileDescriptorProto(name="main.proto", package="n", syntax="proto3", dependency=["imported.proto"])
    main.message_type.add(name="Outer").nested_type.add(name="Inner")
    files = FileDescriptorSet(file=[main, *([imported] if with_import else [])])
    encoded = base64.b64encode(files.SerializeToString()).decode()
    body = {"fileDescriptorSet": encoded, "rootMessageTypeName": root, "rootFileDescriptorName": file}
    return json.dumps(body).encode()


@pytest.mark.parametrize("root", ["n.Outer", "n.Outer.Inner"])
def test_root_when_found_then_its_full_name(root: str) -> None:
    assert root_message(definition(root)) == root


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "it is no JSON"),
        (b"[]", "it is an object with the texts fileDescriptorSet"),
        (definition("n.Nope"), "the message n.Nope is in none of the files"),
        (definition(file="nope.proto"), "the file nope.proto is not among main.proto, imported.proto"),
        (definition("i.Other"), "the message i.Other is in imported.proto, not in main.proto"),
        (definition(with_import=False), "the file imported.proto is imported and missing"),
        (definition().replace(b'Set": "', b'Set": "!'), "fileDescriptorSet holds no files"),
        (definition().replace(b'Set": "', b'Set": "AAAA'), "fileDescriptorSet holds no files"),
    ],
)
def test_definition_when_wrong_then_refused_with_what_is_wrong(raw: bytes, sentence: str) -> None:
    with pytest.raises(InvalidSchemaDefinition, match=f"Invalid PROTOBUF_NATIVE definition: .*{sentence}"):
        root_message(raw)
