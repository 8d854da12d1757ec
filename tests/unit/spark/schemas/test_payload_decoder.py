"""Payloads as columns: each by the schema of its own version, as the schema of the query's start."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.schemas import payload_decoder
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder, PayloadRun, UnreadablePayload

OLD_FIELDS = [{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}]
NEW_FIELDS = [
    {"name": "a", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1000},
    {
        "name": "price",
        "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        "default": "\u0001",
    },
    {"name": "any", "type": ["null", "string", "int"], "default": None},
    {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
]


def schema(fields, name="R", kind=SchemaType.AVRO):
    return SchemaInfo(kind, json.dumps({"type": "record", "name": name, "fields": fields}).encode())


OLD, NEW = schema(OLD_FIELDS, "Old"), schema(NEW_FIELDS, "New")
VERSIONS = {b"0": OLD, b"1": NEW, b"2": SchemaInfo(SchemaType.STRING)}


def avro(written, value):
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, json.loads(written.definition), value)
    return payload.getvalue()


def payload(value, version=b"", key=None):
    return Payload("topic", (7, 3, -1), version, value, key)


def decoded(wanted, *payloads, **options):
    decoder = PayloadDecoder(wanted, payload_fields(wanted), lambda topic, version: VERSIONS.get(version), **options)  # type: ignore[arg-type]
    return {name: column.to_pylist() for name, column in decoder.arrays(payloads).items()}


def test_messages_of_two_versions_become_rows_of_the_newest():
    at = datetime(2024, 1, 2, tzinfo=UTC)
    new = avro(NEW, {"a": 6, "at": at, "price": Decimal("1.25"), "any": 4, "tags": {"k": 1}})
    found = decoded(NEW, payload(avro(OLD, {"a": 5, "gone": "x"}), b"0"), payload(new, b"1"), payload(None, b"1"))
    assert found == {
        "a": [5, 6, None],
        "at": [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), at, None],
        "price": [Decimal("0.01"), Decimal("1.25"), None],
        "any": [None, {"member0": None, "member1": 4}, None],
        "tags": [[], [("k", 1)], None],
    }


def test_message_without_version_has_the_schema_of_the_query():
    assert decoded(OLD, payload(avro(OLD, {"a": 5, "gone": "x"}))) == {"a": [5], "gone": ["x"]}


def test_json_may_lack_fields_and_have_others():
    wanted = schema(OLD_FIELDS, kind=SchemaType.JSON)
    assert decoded(wanted, payload(b'{"a": 5, "more": []}')) == {"a": [5], "gone": [None]}


@pytest.mark.parametrize(
    ("version", "said"),
    [(b"9", "does not know schema version 39"), (b"2", "has schema type STRING, the query reads AVRO")],
)
def test_version_that_cannot_be_read_is_told(version, said):
    with pytest.raises(UnreadablePayload, match=said):
        decoded(NEW, payload(b"", version))


@pytest.mark.parametrize("raw", [b'{"a": ', b'{"a": "text"}', b"[1]", b'{"a": 3000000000}'])
def test_payload_that_does_not_fit_is_named_or_kept(raw):
    wanted = schema(OLD_FIELDS, kind=SchemaType.JSON)
    fits = payload(b'{"a": 1}')
    with pytest.raises(UnreadablePayload, match=r"message at 7:3 of topic does not fit.*parseMode=PERMISSIVE"):
        decoded(wanted, fits, payload(raw))
    found = decoded(wanted, fits, payload(raw), corrupt_column="_corrupt")
    assert found == {"a": [1, None], "gone": [None, None], "_corrupt": [None, raw]}
    assert decoded(wanted, fits, payload(raw), corrupt_column="") == {"a": [1, None], "gone": [None, None]}


def pair(encoding):
    properties = {"key.schema.type": "STRING", "value.schema.type": "INT32", "kv.encoding.type": encoding}
    definition = definition_from_text(SchemaType.KEY_VALUE, '{"key": "", "value": ""}')
    return SchemaInfo(SchemaType.KEY_VALUE, definition, properties)


def test_inline_pair_is_cut():
    whole = b"\0\0\0\1k\0\0\0\4\0\0\0\7"
    half = b"\xff\xff\xff\xff\0\0\0\4\0\0\0\7"
    assert decoded(pair("INLINE"), payload(whole), payload(half), payload(None)) == {
        "key": ["k", None, None],
        "value": [7, 7, None],
    }
    with pytest.raises(UnreadablePayload, match="cut short"):
        decoded(pair("INLINE"), payload(b"\0\0\0\5k"))


def test_separated_pair_has_its_key_in_the_message():
    found = decoded(pair("SEPARATED"), payload(b"\0\0\0\7", key=b"k"), payload(None, key=b"k"))
    assert found == {"key": ["k", "k"], "value": [7, None]}


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


def avro_record(value: Any) -> bytes:
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
    encoded = [avro_record(value) if kind is SchemaType.AVRO else json.dumps(value).encode() for value in values]
    assert rows(kind, [*encoded], bulk=True) == rows(kind, [*encoded], bulk=False) == values


GOOD = {"device": "a", "count": 1, "celsius": 2.5, "tags": [], "place": {"floor": 1}}


@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        (SchemaType.AVRO, avro_record(GOOD)[:-1]),
        (SchemaType.AVRO, b""),
        (SchemaType.JSON, b"{"),
        (SchemaType.JSON, b'{"count": "many"}'),
        (SchemaType.JSON, b'{"a": 1}\n{"a": 2}'),
        (SchemaType.JSON, b""),
        (SchemaType.JSON, b"[1]"),
    ],
)
def test_odd_payload_is_found_among_good_ones(kind: SchemaType, odd: bytes) -> None:
    good = avro_record(GOOD) if kind is SchemaType.AVRO else json.dumps(GOOD).encode()
    with pytest.raises(UnreadablePayload, match=r"message at 7:1 of t does not fit its schema"):
        rows(kind, [good, odd, good], bulk=True)
    found = rows(kind, [good, odd, good], bulk=True, corrupt_column="bad")
    assert [row.pop("bad") for row in found] == [None, odd, None]
    assert (found[0], found[2]) == (GOOD, GOOD)


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (SchemaType.AVRO, avro_record(GOOD) + b"\x00", avro_record(GOOD)),
        (SchemaType.JSON, json.dumps(GOOD, indent=1).encode(), b'{"device": "b", "more": [1]}'),
        (SchemaType.JSON, b' {"device": "a"} ', b'{"device": "b"}'),
        (SchemaType.AVRO, avro_record(GOOD), None),
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


PLAIN_OLD = schema([{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}])
PLAIN_NEW = schema([{"name": "b", "type": "string", "default": "-"}, {"name": "a", "type": ["null", "long"]}])
LISTED_OLD = schema([{"name": "tags", "type": {"type": "array", "items": "int"}}, {"name": "gone", "type": "string"}])
LISTED_NEW = schema(
    [{"name": "b", "type": "int", "default": 4}, {"name": "tags", "type": {"type": "array", "items": "long"}}]
)
JSON_OLD, JSON_NEW = (SchemaInfo(SchemaType.JSON, each.definition) for each in (PLAIN_OLD, PLAIN_NEW))


def in_json(written, value):
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("old", "new", "encode", "values"),
    [
        (PLAIN_OLD, PLAIN_NEW, avro, ({"a": 5, "gone": "x"}, {"b": "c", "a": None})),
        (LISTED_OLD, LISTED_NEW, avro, ({"tags": [1, 2], "gone": "x"}, {"b": 5, "tags": []})),
        (JSON_OLD, JSON_NEW, in_json, ({"a": 5, "gone": "x"}, {"b": "c", "a": 7})),
    ],
    ids=["columns", "records", "json"],
)
@given(kinds=st.lists(st.lists(st.sampled_from(["old", "new", "current", "gone"]), min_size=1, max_size=4), max_size=5))
def test_versions_topics_and_tombstones_are_read_at_once_and_in_order(old, new, encode, values, kinds):
    older, newer = encode(old, values[0]), encode(new, values[1])
    cases = {"old": (b"0", older), "new": (b"1", newer), "current": (b"", newer), "gone": (b"1", None)}
    items: list[Payload | PayloadRun] = []
    for number, group in enumerate(kinds):
        version = cases[group[0]][0]
        contents = [cases[kind][1] for kind in group if kind == "gone" or cases[kind][0] == version]
        if number % 2:
            run = pa.array(contents, pa.binary())
            items.append(PayloadRun(f"t{number}", (7, number), version, range(len(contents)), run, None))
        else:
            items += [Payload("t", (7, number, index), version, value, None) for index, value in enumerate(contents)]
    fields = payload_fields(new)
    assert fields is not None

    def read() -> dict[str, Any]:
        decoder = PayloadDecoder(new, fields, lambda topic, version: {b"0": old, b"1": new}[version])
        return {name: column.to_pylist() for name, column in decoder.arrays(items).items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload_decoder, "bulk_decoder", lambda *_: None)
        one_by_one = read()
    with pytest.MonkeyPatch.context() as patch:
        if any(group[0] != "gone" or "new" in group for group in kinds):
            patch.setattr(PayloadDecoder, "_rows", lambda *_: pytest.fail("they were read one by one"))
        assert read() == one_by_one


def test_tombstone_of_an_unknown_version_is_told():
    good = avro(PLAIN_NEW, {"b": "c", "a": None})
    with pytest.raises(UnreadablePayload, match="does not know schema version 39"):
        decoded(PLAIN_NEW, payload(good), payload(None, b"9"))
