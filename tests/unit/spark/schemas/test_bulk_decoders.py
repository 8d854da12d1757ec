"""Payloads read at once are what they are one by one."""

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.schemas import payload_decoder
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder, UnreadablePayload

RECORD = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "device", "type": "string"},
        {"name": "count", "type": "long"},
        {"name": "celsius", "type": ["null", "double"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "place", "type": {"type": "record", "name": "Place", "fields": [{"name": "floor", "type": "int"}]}},
    ],
}
VALUES = st.fixed_dictionaries(
    {
        "device": st.text(max_size=5),
        "count": st.integers(-(2**63), 2**63 - 1),
        "celsius": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "tags": st.lists(st.text(max_size=3), max_size=3),
        "place": st.fixed_dictionaries({"floor": st.integers(-(2**31), 2**31 - 1)}),
    }
)


def schema_of(kind: SchemaType) -> SchemaInfo:
    return SchemaInfo(kind, json.dumps(RECORD).encode())


def avro(value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, RECORD, value)
    return out.getvalue()


def payloads_of(values: list[bytes | None]) -> list[Payload]:
    return [Payload("t", (7, index, -1), b"", value, None) for index, value in enumerate(values)]


def rows(kind: SchemaType, values: list[bytes | None], *, bulk: bool, **options: Any) -> list[dict[str, Any]]:
    schema = schema_of(kind)
    fields = payload_fields(schema)
    assert fields is not None
    decoder = PayloadDecoder(schema, fields, lambda topic, version: None, **options)
    with pytest.MonkeyPatch.context() as patch:
        if not bulk:
            patch.setattr(payload_decoder, "bulk_decoder", lambda *_: None)
        columns = decoder.arrays(payloads_of(values))
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*(c.to_pylist() for c in columns.values()), strict=True)
    ]


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
@given(values=st.lists(VALUES, min_size=1, max_size=6))
def test_payloads_read_at_once_are_the_same(kind: SchemaType, values: list[Any]) -> None:
    encoded = [avro(value) if kind is SchemaType.AVRO else json.dumps(value).encode() for value in values]
    assert rows(kind, [*encoded], bulk=True) == rows(kind, [*encoded], bulk=False) == values


GOOD = {"device": "a", "count": 1, "celsius": 2.5, "tags": [], "place": {"floor": 1}}


@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        (SchemaType.AVRO, avro(GOOD)[:-1]),
        (SchemaType.AVRO, b""),
        (SchemaType.JSON, b"{"),
        (SchemaType.JSON, b'{"count": "many"}'),
        (SchemaType.JSON, b'{"a": 1}\n{"a": 2}'),
        (SchemaType.JSON, b""),
        (SchemaType.JSON, b"[1]"),
    ],
)
def test_odd_payload_is_found_among_good_ones(kind: SchemaType, odd: bytes) -> None:
    good = avro(GOOD) if kind is SchemaType.AVRO else json.dumps(GOOD).encode()
    with pytest.raises(UnreadablePayload, match=r"message at 7:1 of t does not fit its schema"):
        rows(kind, [good, odd, good], bulk=True)
    found = rows(kind, [good, odd, good], bulk=True, corrupt_column="bad")
    assert [row.pop("bad") for row in found] == [None, odd, None]
    assert (found[0], found[2]) == (GOOD, GOOD)


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (SchemaType.AVRO, avro(GOOD) + b"\x00", avro(GOOD)),
        (SchemaType.JSON, json.dumps(GOOD, indent=1).encode(), b'{"device": "b", "more": [1]}'),
        (SchemaType.JSON, b' {"device": "a"} ', b'{"device": "b"}'),
        (SchemaType.AVRO, avro(GOOD), None),
    ],
)
def test_unusual_payloads_are_read_one_by_one(kind: SchemaType, first: bytes, second: bytes | None) -> None:
    assert rows(kind, [first, second], bulk=True) == rows(kind, [first, second], bulk=False)


def test_good_payloads_after_a_corrupt_batch_have_no_corrupt_bytes() -> None:
    found = rows(SchemaType.JSON, [json.dumps(GOOD).encode()], bulk=True, corrupt_column="bad")
    assert found == [{**GOOD, "bad": None}]


COLOURS = {
    "type": "record",
    "name": "Painted",
    "fields": [
        {"name": "colour", "type": ["null", {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}]},
        {"name": "part", "type": {"type": "record", "name": "Part", "fields": [{"name": "colour", "type": "Colour"}]}},
    ],
}


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (b'{"colour": "GREEN", "part": {"colour": "RED"}}', ["GREEN", "RED"]),
        (b'{"colour": null, "part": {"colour": 1}}', [None, "GREEN"]),
        (b'{"colour": "BLUE", "part": {"colour": "RED"}}', 'column colour: "BLUE" does not fit ENUM'),
        (b'{"colour": "RED", "part": {"colour": "BLUE"}}', r'column part\.colour: "BLUE" does not fit ENUM'),
    ],
)
def test_symbols_read_at_once_are_those_of_the_schema(payload: bytes, found: Any) -> None:
    schema = SchemaInfo(SchemaType.JSON, json.dumps(COLOURS).encode())
    fields = payload_fields(schema)
    assert fields is not None
    decoder = PayloadDecoder(schema, fields, lambda topic, version: None)
    if isinstance(found, str):
        with pytest.raises(UnreadablePayload, match=found):
            decoder.arrays(payloads_of([payload]))
    else:
        columns = decoder.arrays(payloads_of([payload]))
        assert [columns["colour"].to_pylist()[0], columns["part"].to_pylist()[0]["colour"]] == found
