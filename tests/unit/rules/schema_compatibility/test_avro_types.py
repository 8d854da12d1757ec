"""Definitions become trees, or are refused with what is wrong."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.rules.schema_compatibility import avro_types
from interpulse.rules.schema_compatibility.avro_types import (
    AvroType,
    avro_identity,
    has_usable_default,
    parse_avro,
)
from tests.schema_pairs import generated
from tests.schema_pairs.cases import array, enum, fixed, fld, mapping, record

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "fields", "items", "symbols", "size", "default", "aliases"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
GENERATED = [json.loads(case.new.text) for case in generated.cases()]


def parse(definition: Any) -> AvroType:
    return parse_avro(json.dumps(definition).encode())


def same(one: Any, other: Any) -> bool:
    return avro_identity(json.dumps(one).encode()) == avro_identity(json.dumps(other, indent=3).encode())


def test_tree_when_record_holds_itself_then_node_is_the_same() -> None:
    tree = parse(record(fld(["null", "A"]), namespace="n"))
    assert (tree.name, tree.short_name) == ("n.A", "A")
    assert tree.fields[0].type.parts[1] is tree


def test_tree_when_names_are_used_again_then_resolved_in_their_namespace() -> None:
    tree = parse(record(fld(enum("P", default="P")), fld("E", "g"), fld(fixed(4), "h"), name="n.A"))
    assert tree.fields[0].type is tree.fields[1].type
    assert (tree.fields[0].type.name, tree.fields[2].type.size) == ("n.E", 4)


def test_tree_when_there_are_aliases_then_those_of_types_are_full_names() -> None:
    tree = parse(record(fld("int", aliases=["was"]), name="n.A", aliases=["B", "m.C"]))
    assert (tree.aliases, tree.fields[0].aliases) == (("n.B", "m.C"), ("was",))


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        ("C", "the type C is not defined"),
        ({"type": "object", "properties": {}}, "the type object is not defined"),
        (5, "a type is a name, an object or a list, not 5"),
        ({"type": {"type": "int"}}, "the word for a type is a string"),
        (array(["null", ["int"]]), "a union holds a union"),
        (array(["int", "int"]), "a union holds int twice"),
        (record(fld("int"), fld("int")), "the record A has two fields f"),
        (record(fld("int", "f-b")), "'f-b' cannot be the name of a field"),
        (record(fld("float", default="x")), 'the default "x" of the field f is no float'),
        (record(fld({"type": "double"}, default="")), 'the default "" of the field f is no double'),
        (enum("1"), "'1' cannot be a symbol of E"),
        (enum("P", "P"), "a symbol of E stands there twice"),
        (enum("P", default="Q"), 'the default "Q" of E is none of its symbols'),
        ({"type": "enum", "name": "E", "symbols": "P"}, 'the symbols of E are a list of names, not "P"'),
        (record(name="a.1b"), "'a.1b' cannot be a name"),
        ({"type": "record", "name": "A"}, "the record A has no list of fields"),
        ({"type": "error", "name": "A"}, "the record A has no list of fields"),
        (record({"name": "f"}), 'a field is an object with a name and a type, not {"name": "f"}'),
        (record(5), "a field is an object with a name and a type, not 5"),  # type: ignore[arg-type]
        (fixed(-1), "the size of X is an integer from 0 to 2147483647, not -1"),
        (record(fld("int", order="up")), "known are ascending, descending, ignore"),
        ({"type": "array"}, "a type lacks 'items'"),
    ],
)
def test_definition_when_wrong_then_refused_with_what_is_wrong(definition: Any, sentence: str) -> None:
    with pytest.raises(InvalidSchemaDefinition, match=f"Invalid Avro definition: .*{sentence}"):
        parse(definition)


def nested_arrays(levels: int) -> bytes:
    return b'{"type":"array","items":' * levels + b'"int"' + b"}" * levels


def nested_unions(levels: int) -> bytes:
    """Each union is a level, and so is the map in it."""
    pairs = levels // 2
    return b'[{"type":"map","values":' * pairs + b'"int"' + b"}]" * pairs


def nested_records(levels: int) -> bytes:
    heads = (f'{{"type":"record","name":"R{level}","fields":[{{"name":"f","type":' for level in range(levels))
    return "".join(heads).encode() + b'"int"' + b"}]}" * levels


@pytest.mark.parametrize("nested", [nested_arrays, nested_unions, nested_records])
def test_definition_when_nested_to_the_limit_then_taken_and_deeper_refused(
    monkeypatch: pytest.MonkeyPatch, nested: Callable[[int], bytes]
) -> None:
    monkeypatch.setattr(avro_types, "_DEPTH_MAX", 10)
    assert parse_avro(nested(10)).kind != "int"
    with pytest.raises(InvalidSchemaDefinition, match="it is nested deeper than 10 levels"):
        parse_avro(nested(12))


def test_definition_when_nested_a_hundred_times_then_taken() -> None:
    assert parse_avro(nested_arrays(100)).kind == "array"


@pytest.mark.parametrize("levels", [101, 1200, 100_000])
def test_definition_when_nested_without_end_then_refused(levels: int) -> None:
    with pytest.raises(InvalidSchemaDefinition, match="nested"):
        parse_avro(nested_arrays(levels))


INNER = record(fld("int", "a"), fld("int", "b", default=1), name="R")


def usable(kind: Any, default: Any) -> bool:
    """Whether a field can be filled that has this default."""
    return has_usable_default(parse(record(fld(kind, default=default))).fields[0])


@pytest.mark.parametrize(
    ("kind", "values", "others"),
    [
        ("null", [None], [0, "null", False]),
        ("boolean", [True, False], [0, "true", None]),
        ("int", [0, -(2**31) - 1, 1.5], [True, "1", None]),
        ("float", [0, 1.5, "1.5", " -Infinity ", "1e3f"], [True, None]),
        ("bytes", ["x"], [1, ["x"], None]),
        (enum("P"), ["P"], ["Q", 1, None]),
        (fixed(1), ["x", "xx"], [1]),
        (array("int"), [[], [1, 2], {}, {"k": 1}, "x", None], [[1, "x"], ["x", 1], {"k": "x"}]),
        (mapping("int"), [{}, {"k": 1}, [], "x", None], [[1], {"k": 1, "l": "x"}, {"k": "x", "l": 1}]),
        (["null", "int"], [None, 1, 1.5], ["x"]),
        ([enum("P"), "string"], ["P"], ["x"]),
        (
            INNER,
            [{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": "x"}],
            [{}, {"b": 1}, {"a": "x"}, {"a": 1, "b": "x"}, [], "a"],
        ),
    ],
    ids=str,
)
def test_default_when_the_definition_is_read_then_any_is_taken_and_those_java_can_write_are_usable(
    kind: Any, values: list[Any], others: list[Any]
) -> None:
    assert [value for value in values if not usable(kind, value)] == []
    assert [value for value in others if usable(kind, value)] == []


def test_default_when_there_is_none_then_not_usable() -> None:
    assert not has_usable_default(parse(record(fld(["null", "int"]))).fields[0])


def test_default_when_it_holds_itself_then_not_usable() -> None:
    tree = parse(record(fld("A", default={})))
    assert not has_usable_default(tree.fields[0])


def test_default_when_unions_are_nested_then_each_branch_is_tried_once() -> None:
    both = ["A", "B"]
    value: Any = {"f": 5}
    for _ in range(60):
        value = {"f": value}
    tree = record(fld(["null", record(fld(["null", "A"]), name="B"), "A"]))
    grown = record(fld(tree, "first"), fld(both, "second", default=value), name="Root")
    assert not has_usable_default(parse(grown).fields[1])


@given(JSON_VALUES)
def test_definition_when_any_json_then_a_tree_or_a_refusal(definition: Any) -> None:
    refused_or_parsed(json.dumps(definition).encode())


@given(st.binary(max_size=30))
def test_definition_when_any_bytes_then_a_tree_or_a_refusal(definition: bytes) -> None:
    refused_or_parsed(definition)


def refused_or_parsed(definition: bytes) -> None:
    with contextlib.suppress(InvalidSchemaDefinition):
        assert parse_avro(definition).kind


@pytest.mark.parametrize(
    "other",
    [
        record(fld("int"), doc="why"),
        record(fld("int", doc="why")),
        record(fld("int"), aliases=["q"]),
        record(fld("int", aliases=["q"])),
        record(fld({"type": "int"})),
        record(fld("int", order="ascending")),
        record(fld("int"), type="record", namespace=""),
    ],
)
def test_identity_when_only_words_for_people_differ_then_same(other: Any) -> None:
    assert same(record(fld("int")), other)


@pytest.mark.parametrize(
    "other",
    [
        record(fld("int", default=1)),
        record(fld("int", order="descending")),
        record(fld("int", owner="us")),
        record(fld({"type": "int", "logicalType": "date"})),
        record(fld({"type": "int", "default": 1})),
        record(fld("int"), name="n.A"),
        record(fld("int"), fld("int", "g")),
    ],
)
def test_identity_when_something_counts_then_other(other: Any) -> None:
    assert not same(record(fld("int")), other)


def test_identity_when_namespace_is_written_apart_then_same() -> None:
    assert same(record(fld("int"), name="n.A"), record(fld("int"), namespace="n"))
    assert same(enum("P", "Q"), enum("P", "Q", default="P"))


def test_identity_when_keys_stand_in_another_order_then_same() -> None:
    kind = record(fld({"type": "int", "logicalType": "date", "owner": "us"}))
    assert same(kind, json.loads(json.dumps(kind, sort_keys=True)))
    turned = fld({"owner": "us", "logicalType": "date", "type": "int"})
    assert same(kind, dict(reversed(record(dict(reversed(turned.items()))).items())))


@pytest.mark.parametrize("around", [array, mapping])
def test_identity_when_a_part_has_words_for_people_then_same(around: Callable[[Any], Any]) -> None:
    assert same(around(record(fld("int"))), around(record(fld("int"), doc="why")))
    assert not same(around(record(fld("int"))), around(record(fld("long"))))


@pytest.mark.parametrize("around", [array, mapping])
def test_default_when_its_record_is_part_of_another_type_then_looked_at_as_outside(
    around: Callable[[Any], Any],
) -> None:
    assert parse(around(record(fld({"type": "float"}, default=0)))).parts[0].fields[0].has_default


@given(st.sampled_from(GENERATED))
def test_identity_when_a_doc_is_added_then_same(definition: Any) -> None:
    assert same(definition, definition | {"doc": "why"})
