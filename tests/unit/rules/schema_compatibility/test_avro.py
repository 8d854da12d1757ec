"""Readers and writers by the rules of Avro's validators, with the reason where one cannot read the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.rules.schema_compatibility.avro import AliasConflict, find_unreadable, with_aliases_of
from interpulse.rules.schema_compatibility.avro_types import AvroType, parse_avro
from tests.schema_pairs import generated
from tests.schema_pairs.cases import array, enum, fixed, fld, mapping, record

GENERATED = [json.loads(case.new.text) for case in generated.cases()]
B = record(fld("int", "b"), name="B")


def unreadable(writer: Any, reader: Any) -> str | None:
    return find_unreadable(*(parse_avro(json.dumps(each).encode()) for each in (writer, reader)))


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("int", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
        ("int", ["null", "float"]),
        (["int", "long"], "double"),
        (array("int"), array(["null", "long"])),
        (mapping("float"), mapping("double")),
        (enum("P"), enum("Q")),
        (enum("P"), enum("P", name="n.E")),
        (fixed(4), fixed(4, name="n.X")),
        (record(fld("int")), record(fld("int"), name="other.Name")),
        (record(fld("int")), record()),
        (record(), record(fld("int", default=1))),
        (record(fld("int")), record(fld("long", "g", aliases=["f"]))),
        (record(fld(["null", "A"])), record(fld(["null", "A"]), fld("int", "g", default=1))),
        (record(fld(["null", "A"])), record(fld(["null", "A"]))),
        (
            record(fld(["null", enum("P")]), fld("int", "old")),
            record(fld(["null", enum("P", name="n.E")]), fld("int", "new", aliases=["old"])),
        ),
        ({**B, "name": "Z"}, [record(fld("string", "b"), name="Y"), {**B, "name": "X"}]),
        (["null", enum("P")], ["null", enum("P", name="n.E")]),
    ],
)
def test_reader_when_it_can_read_then_no_reason(writer: Any, reader: Any) -> None:
    assert unreadable(writer, reader) is None


@pytest.mark.parametrize(
    ("writer", "reader", "reason"),
    [
        ("long", "int", "found long, expecting int"),
        ("double", ["null", "float"], "found double, expecting a union of null, float"),
        (array("int"), array("boolean"), "[]: found int, expecting boolean"),
        (record(fld("double")), record(fld(["null", "float"])), "f: found double, expecting a union of null, float"),
        (record(fld(array("int"))), record(fld(["null", array("boolean")])), "f[]: found int, expecting boolean"),
        (["null", "int"], "int", "found null, expecting int"),
        (record(fld(array("int"))), record(fld(array("boolean"))), "f[]: found int, expecting boolean"),
        (record(fld(B)), record(fld({**B, "fields": [fld("string", "b")]})), "f.b: found int, expecting string"),
        (record(fld(["null", "int"])), record(fld("int")), "f: found null, expecting int"),
        (
            record(fld(record(fld(B, "a"), name="C"))),
            record(fld([record(fld({**B, "fields": [fld("string", "b")]}, "a"), name="Z")])),
            "f.a.b: found int, expecting string",
        ),
        (
            ["null", enum("P")],
            ["null", enum("P", name="F")],
            "found enum E, expecting a union of null, enum F",
        ),
        (record(), record(fld("int")), "the field f is not written and has no default"),
        (record(fld(record(name="B"))), record(fld(B)), "the field f.b is not written and has no default"),
        (enum("P"), enum("P", name="F"), "found enum E, expecting enum F"),
        (record(fld(enum("P"))), record(fld(enum("P", name="F"))), "f: found enum E, expecting enum F"),
        (fixed(4), fixed(8), "found fixed X of 4 bytes, expecting fixed X of 8 bytes"),
        (enum("P"), ["null", enum("P", name="n.E")], "found enum E, expecting a union of null, enum n.E"),
        (
            record(fld("int"), fld("int", "g")),
            record(fld("int", "g", aliases=["f"])),
            "the aliases of A give two of its fields the name g",
        ),
        (
            record(fld(["null", "A"])),
            record(fld(["null", "A"]), fld("int", "g")),
            "the field g is not written and has no default",
        ),
    ],
)
def test_reader_when_it_cannot_read_then_reason_names_place_and_types(writer: Any, reader: Any, reason: str) -> None:
    assert unreadable(writer, reader) == reason


def test_reason_when_the_type_is_no_part_of_another_then_names_no_place() -> None:
    assert unreadable("long", "int") == "found long, expecting int"
    assert unreadable("long", []) == "found long, expecting a union of nothing"


@given(st.sampled_from(GENERATED))
def test_reader_when_it_is_the_writer_then_reads(definition: Any) -> None:
    assert unreadable(definition, definition) is None


@given(st.sampled_from(GENERATED), st.sampled_from(["int", ["null", "string"], array("int")]))
def test_reader_when_it_has_one_field_less_then_reads_and_not_the_other_way(definition: Any, kind: Any) -> None:
    grown = definition | {"fields": [*definition["fields"], fld(kind, "fresh")]}
    assert unreadable(grown, definition) is None
    assert unreadable(definition, grown) == "the field fresh is not written and has no default"


@given(st.sampled_from(GENERATED))
def test_reader_when_a_field_has_a_default_then_both_ways(definition: Any) -> None:
    grown = definition | {"fields": [fld("int", "fresh", default=1), *definition["fields"]]}
    assert unreadable(grown, definition) is unreadable(definition, grown) is None


@given(st.sampled_from(GENERATED))
def test_reader_when_the_type_becomes_one_of_a_union_then_reads_and_not_the_other_way(definition: Any) -> None:
    assert unreadable(definition, ["null", definition]) is None
    assert unreadable(["null", definition], definition) is not None


@given(st.sampled_from(GENERATED), st.sampled_from(GENERATED))
def test_reader_when_inside_a_list_then_as_outside(writer: Any, reader: Any) -> None:
    assert (unreadable(array(writer), array(reader)) is None) == (unreadable(writer, reader) is None)


def test_reader_when_names_nest_types_without_end_then_the_two_are_not_compared() -> None:
    """Each type holds the one before by its name, so no definition is deep."""

    def chain(prefix: str) -> Any:
        first = fld(record(name="R0"), f"{prefix}0", default={})
        held = [
            fld(["null", record(fld(f"R{index - 1}"), name=f"R{index}")], f"{prefix}{index}", default=None)
            for index in range(1, 600)
        ]
        return record(first, *held, fld("R599", "last"), name="T")

    assert unreadable(chain("w"), chain("r")) == "the two are nested too deeply to be compared"


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
