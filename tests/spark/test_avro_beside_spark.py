"""Avro as Spark's own reader of Avro files takes it, which is that of ``from_avro``: the same types and cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from interpulse.spark.schemas.payload_columns import payload_fields
from tests.interop.conformance.avro_types import (
    evolved,
    kind_of,
    records,
    rendered,
    values,
    with_one_unit,
    without_defaults,
)
from tests.interop.conformance.cases import drawn, payload_of, row_of, schema_info
from tests.interop.conformance.cells import cell_of, same

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

AVRO_FILES: Final = "org.apache.spark.sql.avro.AvroFileFormat"
"""In Spark itself; its short name and ``from_avro`` are in a jar of their own."""


@st.composite
def examples(draw: Any) -> tuple[Any, Any, Any]:
    kind = with_one_unit(without_defaults(draw(records())))
    later = with_one_unit(draw(evolved(kind)))
    # Spark's reader fails over defaults of unions.
    return kind, later if later == without_defaults(later) else kind, draw(values(kind))


def test_cells_are_those_of_spark(spark: Any, tmp_path: Path) -> None:
    compared = 0
    for number, (kind, later, value) in enumerate(drawn(examples(), 30)):
        written, wanted = ({"type": "AVRO", "definition": json.dumps(rendered(each))} for each in (kind, later))
        payload = payload_of(written, cell_of(kind, value))
        row = row_of(written, wanted, payload)
        if isinstance(row, str) or differs_in_spark(later):
            continue  # what cannot be read, the comparison with Java looks at
        assert payload.value is not None
        file = tmp_path / f"{number}.avro"
        file.write_bytes(container(written["definition"], payload.value))
        read = spark.read.format(AVRO_FILES).option("avroSchema", wanted["definition"]).load(str(file))
        fields = payload_fields(schema_info(wanted))
        assert fields is not None
        assert read.schema.simpleString() == fields.simpleString(), (written, wanted)
        found = read.toArrow().to_pylist()[0]
        assert same(found, row), f"{written}\n{wanted}\n{value}\nSpark {found}\nours  {row}"
        compared += 1
    assert compared >= 20


def differs_in_spark(kind: Any) -> bool:
    """Spark refuses decimals of more than 38 digits, and reads two widths of a number without their logical types."""
    if isinstance(kind, list):
        kinds = {kind_of(branch) for branch in kind} - {"null"}
        is_wide = kinds in ({"int", "long"}, {"float", "double"})
        return (is_wide and any("logicalType" in branch for branch in kind)) or any(map(differs_in_spark, kind))
    if not isinstance(kind, dict):
        return False
    inner = [kind[key] for key in ("items", "values") if key in kind] + [
        item["type"] for item in kind.get("fields", ())
    ]
    return kind.get("precision", 0) > 38 or any(map(differs_in_spark, inner))


def container(definition: str, payload: bytes) -> bytes:
    """An Avro file of one record."""
    sync = b"interpulse-files"
    entries = {"avro.schema": definition.encode(), "avro.codec": b"null"}
    header = number_of(len(entries)) + b"".join(text(key.encode()) + text(entry) for key, entry in entries.items())
    return b"Obj\x01" + header + b"\0" + sync + number_of(1) + text(payload) + sync


def text(raw: bytes) -> bytes:
    return number_of(len(raw)) + raw


def number_of(number: int) -> bytes:
    left, out = number << 1, bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])
