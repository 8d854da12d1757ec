"""Fields of bodies: each has its type, null means "not set", and unknown ones are passed over by name."""

from typing import Any

import pytest

from interpulse.broker.rest.http.fields import (
    ANY,
    FLAG,
    INTEGER,
    LONG,
    STRING,
    STRING_MAP,
    STRINGS,
    WORD,
    Body,
    Objects,
    SpelledNumber,
    Unoffered,
    checked_fields,
)
from interpulse.model.errors import InvalidRequest

INNER = Body("an inner thing", {"count": INTEGER})
THING = Body(
    "a thing",
    {
        "name": STRING,
        "word": WORD,
        "names": STRINGS,
        "active": FLAG,
        "count": INTEGER,
        "size": LONG,
        "pairs": STRING_MAP,
        "inner": Objects(INNER),
        "byName": Objects(INNER, by_name=True),
        "whatever": ANY,
    },
    {"bookies": Unoffered("there are none", (-1, False))},
)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"name": "", "names": ["a"], "active": False, "count": -1, "size": 2**62, "pairs": {"a": "b"}},
        {"inner": {"count": 4}, "byName": {"x": {"count": 1}}, "whatever": [{"a": None}]},
    ],
)
def test_body_when_every_field_fits_then_is_as_it_was(given: dict[str, Any]) -> None:
    assert checked_fields(THING, given) == given


def test_body_when_a_number_or_truth_comes_as_a_text_then_is_what_it_says() -> None:
    given = {"count": "-3", "size": " +10240 ", "active": " True ", "inner": {"count": 2.0}}
    assert checked_fields(THING, given) == {"count": -3, "size": 10240, "active": True, "inner": {"count": 2}}


def test_body_when_a_text_comes_as_a_number_or_truth_then_is_how_that_was_spelled() -> None:
    given = {"name": 5, "names": [True, "a", 7], "pairs": {"a": SpelledNumber("1.50"), "b": False, "c": None, "d": 1.5}}
    expected = {"name": "5", "names": ["true", "a", "7"], "pairs": {"a": "1.50", "b": "false", "d": "1.5"}}
    assert checked_fields(THING, given) == expected
    assert checked_fields(THING, {"active": 0}) == {"active": False}


def test_body_when_a_word_is_empty_then_is_not_set() -> None:
    assert checked_fields(THING, {"word": "", "name": ""}) == {"name": ""}
    assert checked_fields(THING, {"word": "x"}) == {"word": "x"}


def test_body_when_fields_are_null_then_are_left_out_also_inside_and_if_unknown() -> None:
    given = {"name": None, "inner": {"count": None, "other": None}, "byName": {"a": None}, "unknown": None}
    assert checked_fields(THING, given) == {"inner": {}, "byName": {}}


def test_body_when_fields_come_in_an_order_then_keeps_it() -> None:
    assert list(checked_fields(THING, {"size": 1, "count": 2})) == ["size", "count"]
    assert list(checked_fields(THING, {"count": 2, "size": 1})) == ["count", "size"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"names": "a"}, 'names must be an array of strings, not "a"'),
        ({"names": [[]]}, "names must be an array of strings"),
        ({"names": [None]}, "names must be an array of strings"),
        ({"name": [1]}, r"name must be a string, not \[1\]"),
        ({"active": "yes"}, "active must be true or false"),
        ({"active": 1.0}, "active must be true or false"),
        ({"count": True}, "count must be an integer"),
        ({"count": 2**31}, "count must be an integer"),
        ({"count": "2147483648"}, "count must be an integer"),
        ({"count": 1.5}, "count must be an integer"),
        ({"count": ""}, "count must be an integer"),
        ({"count": "\u0663"}, "count must be an integer"),
        ({"size": 2**63}, "size must be an integer"),
        ({"pairs": {"a": [1]}}, "pairs must be an object of strings"),
        ({"inner": 4}, "inner must be an object, not 4"),
        ({"inner": {"count": "x"}}, "count must be an integer"),
        ({"byName": {"x": 1}}, "byName must be an object of objects"),
    ],
)
def test_body_when_a_field_does_not_fit_then_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        checked_fields(THING, given)


@pytest.mark.parametrize(
    ("given", "known", "names"),
    [
        ({"cuont": 1, "count": 2, "zzz": None}, {"count": 2}, ["cuont"]),
        ({"inner": {"zzz": 1, "count": 2}}, {"inner": {"count": 2}}, ["inner.zzz"]),
        ({"byName": {"x": {"zzz": False}, "y": None}}, {"byName": {"x": {}}}, ["byName.x.zzz"]),
        ({"whatever": {"zzz": 1}, "pairs": {"zzz": "1"}}, {"whatever": {"zzz": 1}, "pairs": {"zzz": "1"}}, []),
        ({"bookies": -1}, {}, []),
    ],
)
def test_body_when_a_field_is_unknown_then_has_no_effect_and_is_named(
    given: dict[str, Any], known: dict[str, Any], names: list[str]
) -> None:
    unknown: list[str] = []
    assert checked_fields(THING, given, unknown) == known
    assert unknown == names


def test_body_when_a_field_asks_for_what_is_not_done_then_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="bookies of a thing has no effect in this broker: there are none; leave"):
        checked_fields(THING, {"bookies": 3})


@pytest.mark.parametrize("value", [None, -1, False, "", [], {}])
def test_body_when_a_field_without_effect_is_not_set_then_is_passed_over(value: Any) -> None:
    assert checked_fields(THING, {"bookies": value}) == {}
