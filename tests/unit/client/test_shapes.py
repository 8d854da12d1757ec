"""Readers of answers: what they take, and what they say about the rest."""

from collections.abc import Callable
from typing import Any

import pytest

from interpulse.client import shapes
from interpulse.client.shapes import UnexpectedShape


def _sum(body: Any) -> int:
    return int(body["a"]) + int(body["b"])


@pytest.mark.parametrize(
    ("read", "body", "value"),
    [
        (shapes.ignored, {"any": "thing"}, None),
        (shapes.word, "ok", "ok"),
        (shapes.truth, False, False),
        (shapes.number, 0, 0),
        (shapes.names, [], []),
        (shapes.names, ["a"], ["a"]),
        (shapes.record, {}, {}),
        (shapes.records, [{}], [{}]),
        (shapes.optional(shapes.number), None, None),
        (shapes.optional(shapes.number), 3, 3),
        (shapes.each(shapes.names), None, {}),
        (shapes.each(shapes.names), {"a": ["b"]}, {"a": ["b"]}),
        (shapes.made_by(_sum), {"a": "1", "b": 2}, 3),
    ],
)
def test_body_when_it_has_the_shape_then_is_read(read: Callable[[Any], Any], body: Any, value: Any) -> None:
    assert read(body) == value


@pytest.mark.parametrize(
    ("read", "body", "words"),
    [
        (shapes.word, None, "a word: nothing"),
        (shapes.word, '{"cut', "a word: '{\"cut'"),
        (shapes.word, 3, "a word: 3"),
        (shapes.truth, 1, "true or false: 1"),
        (shapes.truth, None, "true or false: nothing"),
        (shapes.number, True, "a whole number: True"),
        (shapes.number, "3", "a whole number: '3'"),
        (shapes.names, "abc", "a list of names: 'abc'"),
        (shapes.names, {"a": 1}, "a list of names: {'a': 1}"),
        (shapes.names, [1], "a list of names: [1]"),
        (shapes.record, [], "an object: []"),
        (shapes.record, "x" * 100, "an object: '" + "x" * 79 + "..."),
        (shapes.records, ["a"], "a list of objects: ['a']"),
        (shapes.each(shapes.names), {"a": 3}, "a list of names: 3"),
        (shapes.made_by(_sum), None, "an object: nothing"),
        (shapes.made_by(_sum), {"a": 1}, "an object with the field 'b': {'a': 1}"),
        (shapes.made_by(_sum), {"a": 1, "b": []}, "an object that can be read (int() argument"),
    ],
)
def test_body_when_it_has_another_shape_then_both_are_told(read: Callable[[Any], Any], body: Any, words: str) -> None:
    with pytest.raises(UnexpectedShape) as refused:
        read(body)
    assert str(refused.value).startswith(words)
