"""Schemas as values: versions, and definitions of key/value schemas over REST."""

import json

import pytest

from interpulse.model.schemas import (
    SchemaInfo,
    SchemaType,
    definition_from_text,
    definition_to_text,
    split_key_value,
    version_from_bytes,
    version_to_bytes,
)
from interpulse.wire import pulsar_api_pb2 as pb

RECORD = b'{"type":"record","name":"R","fields":[]}'


def test_types_when_compared_with_the_protocol_then_have_its_numbers() -> None:
    assert {member.value for member in SchemaType} == set(pb.Schema.Type.values())
    numbers = {name.upper(): number for name, number in pb.Schema.Type.items()}
    for member in SchemaType:
        assert numbers.get(member.name.replace("_", ""), member.value) == member.value


@pytest.mark.parametrize("version", [0, 1, 2**40])
def test_version_when_written_then_reads_back(version: int) -> None:
    assert version_from_bytes(version_to_bytes(version)) == version


def test_version_when_not_eight_bytes_then_is_refused() -> None:
    with pytest.raises(ValueError, match="8 bytes"):
        version_from_bytes(b"\x00")


def test_key_value_definition_when_shown_then_is_an_object_and_reads_back() -> None:
    raw = len(RECORD).to_bytes(4, "big") + RECORD + (0).to_bytes(4, "big")
    text = definition_to_text(SchemaInfo(SchemaType.KEY_VALUE, raw))
    assert json.loads(text) == {"key": json.loads(RECORD), "value": ""}
    assert definition_from_text(SchemaType.KEY_VALUE, text) == raw


def test_other_definition_when_shown_then_is_its_text() -> None:
    assert definition_to_text(SchemaInfo(SchemaType.AVRO, RECORD)) == RECORD.decode()
    assert definition_from_text(SchemaType.AVRO, RECORD.decode()) == RECORD


def test_key_value_definition_when_cut_short_or_no_object_then_is_refused() -> None:
    with pytest.raises(ValueError, match="cut short"):
        definition_to_text(SchemaInfo(SchemaType.KEY_VALUE, b"\x00\x00\x00\x09abc"))
    with pytest.raises(ValueError, match="key and value"):
        definition_from_text(SchemaType.KEY_VALUE, "{}")


def test_key_value_definition_when_a_part_is_marked_empty_then_it_is_empty() -> None:
    raw = b"\xff\xff\xff\xff" + len(RECORD).to_bytes(4, "big") + RECORD
    assert split_key_value(raw) == (b"", RECORD)
    assert json.loads(definition_to_text(SchemaInfo(SchemaType.KEY_VALUE, raw))) == {
        "key": "",
        "value": json.loads(RECORD),
    }


def test_external_definition_when_it_is_no_text_or_no_json_then_is_shown() -> None:
    assert definition_to_text(SchemaInfo(SchemaType.EXTERNAL, b"a\xff")) == "a\ufffd"
    parts = b"".join(len(part).to_bytes(4, "big") + part for part in (b"{", b"\xff"))
    assert json.loads(definition_to_text(SchemaInfo(SchemaType.KEY_VALUE, parts))) == {"key": "{", "value": "\ufffd"}
