"""Readers of JSON: the bodies they accept, and the errors for all others."""

from collections.abc import Callable
from typing import Any

import pytest

from interpulse.client import json_readers
from interpulse.client.json_readers import UnexpectedJson


def _sum(body: Any) -> int:
    return int(body["a"]) + int(body["b"])


@pytest.mark.parametrize(
    ("read", "body", "value"),
    [
        (json_readers.ignored, {"any": "thing"}, None),
        (json_readers.string, "ok", "ok"),
        (json_readers.boolean, False, False),
        (json_readers.integer, 0, 0),
        (json_readers.names, [], []),
        (json_readers.names, ["a"], ["a"]),
        (json_readers.record, {}, {}),
        (json_readers.records, [{}], [{}]),
        (json_readers.optional(json_readers.integer), None, None),
        (json_readers.optional(json_readers.integer), 3, 3),
        (json_readers.each(json_readers.names), None, {}),
        (json_readers.each(json_readers.names), {"a": ["b"]}, {"a": ["b"]}),
        (json_readers.made_by(_sum), {"a": "1", "b": 2}, 3),
    ],
)
def test_body_when_it_has_the_form_then_is_read(read: Callable[[Any], Any], body: Any, value: Any) -> None:
    assert read(body) == value


@pytest.mark.parametrize(
    ("read", "body", "words"),
    [
        (json_readers.string, None, "a string: nothing"),
        (json_readers.string, '{"cut', "a string: '{\"cut'"),
        (json_readers.string, 3, "a string: 3"),
        (json_readers.boolean, 1, "a boolean: 1"),
        (json_readers.boolean, None, "a boolean: nothing"),
        (json_readers.integer, True, "an integer: True"),
        (json_readers.integer, "3", "an integer: '3'"),
        (json_readers.names, "abc", "a list of strings: 'abc'"),
        (json_readers.names, {"a": 1}, "a list of strings: {'a': 1}"),
        (json_readers.names, [1], "a list of strings: [1]"),
        (json_readers.record, [], "an object: []"),
        (json_readers.record, "x" * 100, "an object: '" + "x" * 79 + "..."),
        (json_readers.records, ["a"], "a list of objects: ['a']"),
        (json_readers.each(json_readers.names), {"a": 3}, "a list of strings: 3"),
        (json_readers.made_by(_sum), None, "an object: nothing"),
        (json_readers.made_by(_sum), {"a": 1}, "an object with the field 'b': {'a': 1}"),
        (json_readers.made_by(_sum), {"a": 1, "b": []}, "an object that can be read (int() argument"),
    ],
)
def test_body_when_it_has_another_form_then_the_error_names_both(
    read: Callable[[Any], Any], body: Any, words: str
) -> None:
    with pytest.raises(UnexpectedJson) as refused:
        read(body)
    assert str(refused.value).startswith(words)
