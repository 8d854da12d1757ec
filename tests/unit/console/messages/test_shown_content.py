"""Contents as people read them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from interpulse.console.messages.shown_content import VIEWS, hex_dump, show_content
from interpulse.model.schemas import SchemaInfo, SchemaType

RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}).encode()
AVRO = SchemaInfo(SchemaType.AVRO, RECORD)
NUMBER = SchemaInfo(SchemaType.INT32)


@pytest.mark.parametrize(
    ("content", "schema", "view", "text", "form"),
    [
        (None, None, "decoded", "", "null"),
        (b"hello", None, "decoded", "hello", "text"),
        ("größe".encode(), None, "raw", "größe", "text"),
        (b"\x00\x01", None, "decoded", hex_dump(b"\x00\x01"), "hex"),
        (b"a\x00b", None, "raw", hex_dump(b"a\x00b"), "hex"),
        (b"hello", None, "hex", hex_dump(b"hello"), "hex"),
        (b"\x02", AVRO, "decoded", '{\n "a": 1\n}', "AVRO"),
        (b"\x02", AVRO, "hex", hex_dump(b"\x02"), "hex"),
        (b"\x00\x00\x00\x07", NUMBER, "decoded", "7", "INT32"),
        (b"x", SchemaInfo(SchemaType.STRING), "decoded", "x", "STRING"),
    ],
)
def test_content_when_shown_then_reads_as_it_should(
    content: bytes | None, schema: SchemaInfo | None, view: str, text: str, form: str
) -> None:
    shown = show_content(content, schema=schema, view=view)
    assert (shown.text, shown.form, shown.problem, shown.cut) == (text, form, "", False)


@pytest.mark.parametrize("schema", [AVRO, NUMBER, SchemaInfo(SchemaType.JSON), SchemaInfo(SchemaType.AVRO, b"{")])
def test_content_when_it_is_not_of_its_schema_then_is_shown_all_the_same(schema: SchemaInfo) -> None:
    shown = show_content(b"not it", schema=schema)
    assert shown.text == "not it"
    assert shown.problem.startswith(f"It is not of its schema {schema.type.name}: ")


def test_content_when_it_is_encrypted_then_its_bytes_are_shown() -> None:
    assert show_content(b"secret", schema=AVRO, encrypted=True).form == "encrypted"


def test_hex_when_dumped_then_has_offsets_bytes_and_ascii() -> None:
    assert hex_dump(bytes(range(60, 78))).splitlines() == [
        "00000000  3c 3d 3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b  <=>?@ABCDEFGHIJK",
        "00000010  4c 4d                                            LM",
    ]


@given(some.binary(max_size=400) | some.text(max_size=400).map(str.encode), some.sampled_from(VIEWS))
def test_content_whatever_it_is_then_is_shown_within_its_bound(content: bytes, view: str) -> None:
    shown = show_content(content, view=view, most=100)
    assert shown.form in ("text", "hex")
    assert len(shown.text) <= 200
    assert shown.cut or shown.form == "hex" or shown.text.encode() == content
