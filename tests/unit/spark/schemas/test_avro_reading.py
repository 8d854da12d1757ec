"""Payloads of Avro, written by one definition and read as another."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.schemas.avro_reading import avro_decoder
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder, UnreadablePayload

DATE = {"type": "int", "logicalType": "date"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
WORD = {"type": "enum", "name": "Word", "symbols": ["A", "B"]}


def record(name: str, **types: Any) -> dict[str, Any]:
    """A field with a default is ``(type, default)``."""
    fields = [
        {"name": field, "type": kind[0], "default": kind[1]}
        if isinstance(kind, tuple)
        else {"name": field, "type": kind}
        for field, kind in types.items()
    ]
    return {"type": "record", "name": name, "fields": fields}


def schema(definition: Any) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode())


def read(written: Any, wanted: Any, payload: bytes) -> dict[str, Any]:
    """The row, alone and beside a message without a value, which is read another way."""
    info = schema(wanted)
    fields = payload_fields(info)
    assert fields is not None
    decoder = PayloadDecoder(info, fields, lambda topic, version: schema(written))
    message = Payload("t", (1, 2, -1), b"0", payload, None)
    rows = [decoder.arrays(messages) for messages in ([message], [message, message._replace(value=None)])]
    found = [{name: column[0].as_py() for name, column in columns.items()} for columns in rows]
    assert found[0] == found[1]
    return found[0]


def read_field(kind: Any, payload: bytes) -> Any:
    definition = record("R", f=kind)
    return read(definition, definition, payload)["f"]


# ---- Unions: the branch is that of the payload


@pytest.mark.parametrize(
    ("union", "payload", "cell"),
    [
        (
            [record("Created", id="long"), record("Deleted", id="long")],
            b"\x02\x0e",
            {"member0": None, "member1": {"id": 7}},
        ),
        (
            [record("Small", id="long"), record("Large", id="long", size=("int", 1))],
            b"\x02\x0e\x04",
            {"member0": None, "member1": {"id": 7, "size": 2}},
        ),
        (["string", WORD], b"\x02\x02", {"member0": None, "member1": "B"}),
        ([WORD, "string"], b"\x02\x02A", {"member0": None, "member1": "A"}),
        (["bytes", {"type": "fixed", "name": "F", "size": 1}], b"\x02\xff", {"member0": None, "member1": b"\xff"}),
        (
            [{"type": "map", "values": "int"}, record("R1", a="int")],
            b"\x02\x04",
            {"member0": None, "member1": {"a": 2}},
        ),
        (["int", "long", "string"], b"\x02\x0a", {"member0": None, "member1": 5, "member2": None}),
        (
            ["float", "null", "double", "string"],
            b"\x04" + struct.pack("<d", 0.5),
            {"member0": None, "member1": 0.5, "member2": None},
        ),
        ([DATE, "long"], b"\x02\x0a", {"member0": None, "member1": 5}),
        (
            [PRICE, {"type": "fixed", "name": "F", "size": 1}],
            b"\x00\x02\x7d",
            {"member0": Decimal("1.25"), "member1": None},
        ),
        (["null", "string", "int"], b"\x00", None),
        (["long", "int"], b"\x02\x0a", 5),
        (["null", "float", "double"], b"\x04" + struct.pack("<d", 0.1), 0.1),
    ],
)
def test_branch_of_a_union_is_that_of_the_payload(union: Any, payload: bytes, cell: Any) -> None:
    assert read_field(union, payload) == cell


def test_branch_in_arrays_maps_and_optional_records() -> None:
    event = [record("Created", id="long"), record("Deleted", id="long")]
    deleted = {"member0": None, "member1": {"id": 7}}
    assert read_field({"type": "array", "items": event}, b"\x02\x02\x0e\x00") == [deleted]
    assert read_field({"type": "map", "values": event}, b"\x02\x02k\x02\x0e\x00") == [("k", deleted)]
    assert read_field(["null", record("Holder", what=event)], b"\x02\x02\x0e") == {"what": deleted}


@pytest.mark.parametrize(
    ("written", "wanted", "payload", "cell"),
    [
        (["string", "long"], ["long", "string"], b"\x00\x02x", {"member0": None, "member1": "x"}),
        ("int", ["string", "double"], b"\x04", {"member0": None, "member1": 2.0}),
        (["null", "int"], "int", b"\x02\x04", 2),
        (["int", "long"], ["string", "int", "long"], b"\x02\x04", {"member0": None, "member1": None, "member2": 2}),
        (["string", WORD], "string", b"\x00\x02x", "x"),
        (
            [record("a.Old", id="long"), record("a.Other", id="long")],
            [record("b.Other", id="long"), record("b.Old", id="long")],
            b"\x00\x0e",
            {"member0": None, "member1": {"id": 7}},
        ),
    ],
)
def test_union_is_resolved_as_in_java(written: Any, wanted: Any, payload: bytes, cell: Any) -> None:
    assert read(record("R", f=written), record("R", f=wanted), payload)["f"] == cell


@pytest.mark.parametrize(
    ("written", "wanted", "payload", "reason"),
    [
        (["null", "int"], "int", b"\x00", "column f: it was written as null, which cannot be read as int"),
        (["int", "string"], "int", b"\x02\x02x", "column f: it was written as string, which cannot be read as int"),
        (WORD, {**WORD, "symbols": ["A"]}, b"\x02", "column f: B is no symbol of Word, which has no default"),
        (WORD, WORD, b"\x01", "column f: Word has no symbol number -1"),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            b"\x00",
            "column f: it was written as fixed F, which cannot be read as fixed F",
        ),
        (
            record("A", x="int"),
            record("A", y="int"),
            b"\x00",
            "column f: the field y is not written and has no default",
        ),
        (
            {"type": "array", "items": MILLIS},
            {"type": "array", "items": MICROS},
            b"\x02\xff\xff\xff\xff\xff\xff\xff\x7f\x00",
            "column f: .* after the year 9999",
        ),
        (
            "bytes",
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1},
            b"\x04\x01\x00",
            r"column f: 25.6 does not fit DECIMAL\(2,1\)",
        ),
        (
            record("A", at=MICROS),
            record("A", at=MICROS),
            b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            r"column f\.at: .* after the year 9999",
        ),
    ],
)
def test_value_that_cannot_be_read_is_refused_with_its_column(
    written: Any, wanted: Any, payload: bytes, reason: str
) -> None:
    with pytest.raises(UnreadablePayload, match=reason):
        read(record("R", f=written), record("R", f=wanted), payload)


def test_aliases_that_give_two_fields_one_name_are_refused() -> None:
    wanted = {**record("R", a="int"), "fields": [{"name": "a", "type": "int", "aliases": ["b"]}]}
    with pytest.raises(UnreadablePayload, match="give two of its fields the name a"):
        read(record("R", a="int", b="int"), wanted, b"\x02\x04")


# ---- Defaults: as the field that has them spells them, wherever it stands

DEFAULTS = record(
    "Inner",
    a="int",
    at=(MILLIS, 1000),
    local=({"type": "long", "logicalType": "local-timestamp-micros"}, 7),
    raw=("bytes", "\u00ff"),
    tag=({"type": "fixed", "name": "Tag", "size": 2}, "\u00ff\u0001"),
    price=(PRICE, "\u0001\u0002"),
    any=(["null", "int"], None),
    word=([WORD, "null"], "B"),
    inner=(record("Deep", x=("int", 4), t=(MICROS, 5)), {}),
    more=({"type": "map", "values": {"type": "array", "items": PRICE}}, {"k": ["\u0007"]}),
)
CELLS = {
    "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    "local": datetime(1970, 1, 1, 0, 0, 0, 7),
    "raw": b"\xff",
    "tag": b"\xff\x01",
    "price": Decimal("2.58"),
    "any": None,
    "word": "B",
    "inner": {"x": 4, "t": datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=UTC)},
    "more": [("k", [Decimal("0.07")])],
}
OLD = record("Inner", a="int")


@pytest.mark.parametrize(
    ("holder", "payload", "held"),
    [
        (lambda inner: inner, b"\x02", lambda row: row),
        (lambda inner: record("R", i=inner), b"\x02", lambda row: row["i"]),
        (lambda inner: record("R", i={"type": "array", "items": inner}), b"\x02\x02\x00", lambda row: row["i"][0]),
        (
            lambda inner: record("R", i={"type": "map", "values": inner}),
            b"\x02\x02k\x02\x00",
            lambda row: row["i"][0][1],
        ),
        (lambda inner: record("R", i=["null", "int", inner]), b"\x04\x02", lambda row: row["i"]["member1"]),
    ],
)
def test_defaults_of_fields_that_were_not_written(holder: Any, payload: bytes, held: Any) -> None:
    assert held(read(holder(OLD), holder(DEFAULTS), payload)) == {"a": 1, **CELLS}


@pytest.mark.parametrize(
    ("kind", "default", "cell"),
    [
        (["string", "bytes"], "\u00ff", {"member0": "\u00ff", "member1": None}),
        (["int", "bytes"], "\u00ff", {"member0": None, "member1": b"\xff"}),
        ([record("A", x=("int", 1)), record("B", y=("int", 2))], {}, {"member0": {"x": 1}, "member1": None}),
        (
            [record("A", x=MILLIS), "string"],
            {"x": 1},
            {"member0": {"x": datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)}, "member1": None},
        ),
    ],
)
def test_default_of_a_union_is_of_the_first_branch_that_may_have_it(kind: Any, default: Any, cell: Any) -> None:
    assert read(record("R"), record("R", f=(kind, default)), b"")["f"] == cell


# ---- Promotion and logical types


@pytest.mark.parametrize(
    ("written", "wanted", "payload", "cell"),
    [
        ("int", "long", b"\x03", -2),
        ("int", "float", b"\x03", -2.0),
        ("long", "double", b"\x03", -2.0),
        ("string", "bytes", b"\x04\xc3\xa4", b"\xc3\xa4"),
        ("bytes", "string", b"\x04\xc3\xa4", "ä"),
        ("int", MILLIS, b"\x02", datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        ({"type": "enum", "name": "Word", "symbols": ["B", "C"]}, {**WORD, "default": "A"}, b"\x02", "A"),
    ],
)
def test_promotion(written: Any, wanted: Any, payload: bytes, cell: Any) -> None:
    assert read(record("R", f=written), record("R", f=wanted), payload)["f"] == cell


def test_long_becomes_the_nearest_float_and_not_that_of_the_nearest_double() -> None:
    decode = avro_decoder(*(json.dumps(record("R", f=kind)).encode() for kind in ("long", "float")))
    for number, nearest in ((2**60 + 2**36, 2.0**60), (2**60 + 2**36 + 1, 2.0**60 + 2.0**37)):
        for sign in (1, -1):
            assert decode(varint(sign * number))["f"] == sign * nearest


def varint(number: int) -> bytes:
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


@pytest.mark.parametrize(
    ("written", "wanted", "payload", "cell"),
    [
        (MILLIS, MICROS, varint(1500), datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        (PRICE, {**PRICE, "scale": 3}, b"\x02\x7d", Decimal("1.250")),
    ],
)
def test_times_and_decimals_keep_their_meaning_when_the_unit_changes(
    written: Any, wanted: Any, payload: bytes, cell: Any
) -> None:
    assert read(record("R", f=written), record("R", f=wanted), payload)["f"] == cell


def test_decimal_that_loses_digits_is_refused() -> None:
    with pytest.raises(UnreadablePayload, match=r"column f: 1\.25 does not fit DECIMAL\(5,1\)"):
        read(record("R", f=PRICE), record("R", f={**PRICE, "scale": 1}), b"\x02\x7d")


@pytest.mark.parametrize(
    ("kind", "payload", "cell"),
    [
        ({"type": "map", "values": "int"}, b"\x02\x02k\x04\x00", [("k", 2)]),
        (["null", "int", "string"], b"\x04\x02x", {"member0": None, "member1": "x"}),
        ({"type": "array", "items": "int"}, b"\x02\x04\x00", [2]),
        ("long", b"\x04", 2),
    ],
)
def test_what_is_no_record_on_top_is_the_column_value(kind: Any, payload: bytes, cell: Any) -> None:
    assert read(kind, kind, payload) == {"value": cell}
