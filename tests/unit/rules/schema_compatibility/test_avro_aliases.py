"""What a reader calls by another name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interpulse.rules.schema_compatibility.avro_aliases import AliasConflict, with_aliases_of
from interpulse.rules.schema_compatibility.avro_types import AvroType, parse_avro
from tests.schema_pairs.cases import enum, fld, record


def parse(definition: Any) -> AvroType:
    return parse_avro(json.dumps(definition).encode())


def test_writer_when_reader_has_no_aliases_then_is_left_alone() -> None:
    writer = parse(record(fld("int")))
    assert with_aliases_of(parse(record()), writer) is writer


def test_writer_when_reader_has_aliases_then_types_and_fields_are_renamed() -> None:
    writer = parse(record(fld(enum("P"), "old"), fld(["null", "A"], "next")))
    reader = parse(record(fld(enum("P", name="F", aliases=["E"]), "new", aliases=["old"]), name="B", aliases=["A"]))
    renamed = with_aliases_of(reader, writer)
    assert (renamed.name, [each.name for each in renamed.fields]) == ("B", ["new", "next"])
    assert renamed.fields[0].type.name == "F"
    assert renamed.fields[1].type.parts[1] is renamed


def test_writer_when_a_record_lies_inside_another_then_its_fields_are_renamed_too() -> None:
    inner = record(fld("int", "new", aliases=["old"]), name="B")
    renamed = with_aliases_of(parse(record(fld(inner))), parse(record(fld(record(fld("int", "old"), name="B")))))
    assert [each.name for each in renamed.fields[0].type.fields] == ["new"]


def test_writer_when_record_has_another_name_then_its_fields_keep_theirs() -> None:
    renamed = with_aliases_of(
        parse(record(fld("int", "new", aliases=["old"]), name="B")), parse(record(fld("int", "old")))
    )
    assert [each.name for each in renamed.fields] == ["old"]


def test_writer_when_two_fields_would_get_one_name_then_conflict() -> None:
    with pytest.raises(AliasConflict, match="aliases of A give two of its fields the name g"):
        with_aliases_of(parse(record(fld("int", "g", aliases=["f"]))), parse(record(fld("int"), fld("int", "g"))))


def test_writer_when_renamed_then_keeps_symbols_sizes_and_logical_types() -> None:
    date = {"type": "int", "logicalType": "date"}
    writer = parse(
        record(fld(date), fld({**enum("P"), "default": "P"}, "e"), fld({"type": "fixed", "name": "S", "size": 3}, "s"))
    )
    renamed = with_aliases_of(parse(record(name="B", aliases=["A"])), writer)
    assert renamed.name == "B"
    kinds = [each.type for each in renamed.fields]
    assert kinds[0].logical == {"logicalType": "date"}
    assert (kinds[1].symbols, kinds[1].symbol_default, kinds[2].size) == (("P",), "P", 3)
