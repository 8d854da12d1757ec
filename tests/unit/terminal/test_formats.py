"""JSON, YAML and tables of the same values."""

import json
from typing import Any

import pytest
import yaml

from interpulse.model.adjustments import Outcome
from interpulse.terminal.formats import FORMATS, to_json, to_names, to_table, to_yaml

STATS = {
    "msgRateIn": 0.5,
    "publishers": [],
    "subscriptions": {"s": {"msgBacklog": 3, "consumers": [{"consumerName": "c", "type": None}]}},
    "properties": {},
}
EMPTY_OBJECT: dict[str, Any] = {}


def test_json_when_read_again_then_is_the_value() -> None:
    assert json.loads(to_json(STATS)) == STATS
    assert to_json(["ü"]) == '[\n  "ü"\n]'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (-1, "-1"),
        ([], "[]"),
        ({}, "{}"),
        ("plain-1.2_x", "plain-1.2_x"),
        ("persistent://public/default/t", "persistent://public/default/t"),
        ("", '""'),
        ("true", '"true"'),
        ("No", '"No"'),
        ("1e3", '"1e3"'),
        (1e20, "1.0e+20"),
        (Outcome.READY, "READY"),
        ([*2 * [EMPTY_OBJECT]], "- {}\n- {}"),
        ("1", '"1"'),
        ("0x00", '"0x00"'),
        ("- a", '"- a"'),
        ("a: b", '"a: b"'),
        ("ü\n", '"ü\\n"'),
        (["a", ["b", "c"], {"d": 1, "e": []}], "- a\n- - b\n  - c\n- d: 1\n  e: []"),
        ({"a": {"b": [1, {"c": 2}]}, "d": {}}, "a:\n  b:\n    - 1\n    - c: 2\nd: {}"),
    ],
)
def test_yaml_when_written_then_means_the_value(value: Any, text: str) -> None:
    assert to_yaml(value) == text


@pytest.mark.parametrize("value", [STATS, {"t" * 300: 1}, ["words " * 50, "two\nlines", "\U0001f600", "\x85"]])
def test_yaml_when_read_again_then_is_the_value(value: Any) -> None:
    assert yaml.safe_load(to_yaml(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("pulsar://b:1", "pulsar://b:1"),
        (None, ""),
        (["a", "bb"], "VALUE\na\nbb"),
        ([], "VALUE"),
        ({"a": 1, "bcd": "x"}, "FIELD  VALUE\na      1\nbcd    x"),
        ([{"a": 1, "b": {"c": "x"}}, {"a": 22}], "A   B.C\n1   x\n22"),
        ({"a": ["b", "c"], "d": [1, "e"], "f": []}, 'FIELD  VALUE\na      b, c\nd      [1, "e"]\nf      []'),
        ({"a": [{"b": 1}, {"c": 2}]}, "a:\nB  C\n1\n   2"),
        ([{"a": "東", "b": 1}, {"a": "e\u0301x", "b": 2}], "A   B\n東  1\ne\u0301x  2"),
        ({"a": "two\nlines"}, 'FIELD  VALUE\na      "two\\nlines"'),
    ],
)
def test_table_when_written_then_nothing_is_cut_off(value: Any, text: str) -> None:
    assert to_table(value) == text


def test_table_of_nested_objects_has_paths_and_separate_lists() -> None:
    fields, consumers = to_table(STATS).split("\n\n")
    rows = dict(row.split(None, 1) for row in fields.splitlines()[1:])
    assert rows["subscriptions.s.msgBacklog"] == "3"
    assert consumers == "subscriptions.s.consumers:\nCONSUMERNAME  TYPE\nc"


def test_formats_when_listed_then_are_the_four() -> None:
    assert list(FORMATS) == ["json", "yaml", "table", "name"]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (["a", "b"], "a\nb"),
        ([{"x": 1, "topic": "t"}, {"first": "f"}], "t\nf"),
        ({"a": 1, "b": 2}, "a\nb"),
        (5, "5"),
        ([], ""),
    ],
)
def test_names_of_a_value(value: object, names: str) -> None:
    assert to_names(value) == names
