"""Values of Arrow as payloads of Avro."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from interpulse.spark.schemas.avro_writing import avro_encoder

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
WORD = {"type": "enum", "name": "Word", "symbols": ["A", "B"]}
EVENT = [
    {"type": "record", "name": "Created", "fields": [{"name": "id", "type": "long"}]},
    {"type": "record", "name": "Deleted", "fields": [{"name": "id", "type": "long"}]},
]


def definition(*fields: dict[str, Any]) -> bytes:
    return json.dumps({"type": "record", "name": "R", "fields": fields}).encode()


def written(kind: Any, cell: Any) -> bytes:
    return avro_encoder(definition({"name": "f", "type": kind}))({"f": cell})


@pytest.mark.parametrize(
    ("kind", "cell", "payload"),
    [
        (EVENT, {"member0": None, "member1": {"id": 7}}, b"\x02\x0e"),
        (EVENT, {"member0": {"id": 7}, "member1": None}, b"\x00\x0e"),
        (["string", WORD], {"member0": None, "member1": "B"}, b"\x02\x02"),
        (["null", WORD, "string"], {"member0": None, "member1": "A"}, b"\x04\x02A"),
        (["bytes", {"type": "fixed", "name": "F", "size": 1}], {"member0": None, "member1": b"x"}, b"\x02x"),
        (
            [
                {"type": "map", "values": "int"},
                {"type": "record", "name": "M", "fields": [{"name": "a", "type": "int"}]},
            ],
            {"member0": None, "member1": {"a": 1}},
            b"\x02\x02",
        ),
        (["int", "string", "long"], {"member0": None, "member1": None, "member2": 5}, b"\x04\x0a"),
        (["null", "string", "int"], None, b"\x00"),
        (["string", "null", "int"], {"member0": None, "member1": None}, b"\x02"),
        ({"type": "array", "items": EVENT}, [{"member1": {"id": 7}}], b"\x02\x02\x0e\x00"),
        ({"type": "map", "values": ["null", "int"]}, [("k", None), ("l", 1)], b"\x04\x02k\x00\x02l\x02\x02\x00"),
        (["null", EVENT[0]], {"id": 7}, b"\x02\x0e"),
        (["long", "int"], 5, b"\x00\x0a"),
        (["float", "double"], 0.1, b"\x02" + struct.pack("<d", 0.1)),
        (PRICE, Decimal("-1.28"), b"\x02\x80"),
        (PRICE, Decimal("1.28"), b"\x04\x00\x80"),
        (PRICE, Decimal("1.3"), b"\x04\x00\x82"),
        ({**PRICE, "type": "fixed", "name": "F", "size": 3}, Decimal("-0.02"), b"\xff\xff\xfe"),
        (MILLIS, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), b"\x01"),
        ({"type": "int", "logicalType": "date"}, date(1969, 12, 31), b"\x01"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, datetime(1970, 1, 1, 0, 0, 0, 3), b"\x06"),
    ],
)
def test_bytes_of_a_value(kind: Any, cell: Any, payload: bytes) -> None:
    assert written(kind, cell) == payload


@pytest.mark.parametrize(
    ("kind", "cell", "reason"),
    [
        ("int", None, "column f: it is null, and its field takes no null"),
        ({"type": "array", "items": "int"}, [1, None], "column f: it is null"),
        (["string", "int"], None, "column f: it is null"),
        (["string", "int"], {"member0": None, "member1": None}, "column f: it is null"),
        (
            ["string", "int"],
            {"member0": "a", "member1": 1},
            "column f: member0 and member1 are set: a union has one value",
        ),
        (WORD, "C", "column f: 'C' is no symbol of Word: A, B"),
        (EVENT, {"member1": {"id": None}}, r"column f\.id: it is null"),
        (EVENT, {"member1": {}}, r"column f\.id: the rows do not have it, and its field has no default"),
        ("null", 1, "column f: 1 is not null"),
        ({"type": "fixed", "name": "F", "size": 2}, b"x", "column f: it has 1 bytes, and F has 2"),
    ],
)
def test_value_that_does_not_fit_is_refused_with_its_column(kind: Any, cell: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        written(kind, cell)


def test_field_that_the_rows_lack_has_its_default() -> None:
    inner = {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "raw", "type": "bytes", "default": "\u00ff"}, {"name": "at", "type": MILLIS, "default": 1}],
    }
    encode = avro_encoder(
        definition(
            {"name": "price", "type": PRICE, "default": "\u0001"},
            {"name": "inner", "type": inner, "default": {}},
            {"name": "what", "type": [*EVENT, "null"], "default": {"id": 7}},
            {"name": "none", "type": ["null", "int"], "default": None},
        )
    )
    assert encode({}) == b"\x02\x01" + b"\x02\xff\x02" + b"\x00\x0e" + b"\x00"
    assert encode({"inner": {"at": datetime(1970, 1, 1, tzinfo=UTC)}})[2:5] == b"\x02\xff\x00"


def test_what_is_no_record_on_top() -> None:
    encode = avro_encoder(json.dumps({"type": "map", "values": "int"}).encode())
    assert encode([("k", 2)]) == b"\x02\x02k\x04\x00"
