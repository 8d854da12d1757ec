"""Fields of bodies: each has its type, null means "not set", and none is unknown."""

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
    Body,
    Unoffered,
    checked_fields,
    each,
    one,
)
from interpulse.model.errors import InvalidRequest

INNER = Body("an inner thing", {"count": INTEGER})
THING = Body(
    "a thing",
    {
        "name": STRING,
        "names": STRINGS,
        "active": FLAG,
        "count": INTEGER,
        "size": LONG,
        "pairs": STRING_MAP,
        "inner": one(INNER),
        "byName": each(INNER),
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
    given = {"count": "-3", "size": "10240", "active": "True", "inner": {"count": 2.0}}
    assert checked_fields(THING, given) == {"count": -3, "size": 10240, "active": True, "inner": {"count": 2}}


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
        ({"names": [1]}, "names must be an array of strings"),
        ({"name": 1}, "name must be a string, not 1"),
        ({"active": "yes"}, "active must be true or false"),
        ({"active": 1}, "active must be true or false"),
        ({"count": True}, "count must be an integer"),
        ({"count": 2**31}, "count must be an integer"),
        ({"count": "2147483648"}, "count must be an integer"),
        ({"count": 1.5}, "count must be an integer"),
        ({"count": ""}, "count must be an integer"),
        ({"count": "\u0663"}, "count must be an integer"),
        ({"size": 2**63}, "size must be an integer"),
        ({"pairs": {"a": 1}}, "pairs must be an object of strings"),
        ({"inner": 4}, "inner must be an object, not 4"),
        ({"inner": {"count": "x"}}, "count must be an integer"),
        ({"byName": {"x": 1}}, "byName must be an object of objects"),
    ],
)
def test_body_when_a_field_does_not_fit_then_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        checked_fields(THING, given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cuont": 1}, r"cuont is no field of a thing; did you mean count\?"),
        ({"zzz": 1}, "zzz is no field of a thing; there are name, names, active"),
        ({"inner": {"zzz": 1}}, "zzz is no field of an inner thing; there are count"),
        ({"byName": {"x": {"zzz": False}}}, "zzz is no field of an inner thing"),
        ({"bookies": 3}, "bookies of a thing has no effect in this broker: there are none; leave it out, it came as 3"),
    ],
)
def test_body_when_a_field_would_be_dropped_then_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        checked_fields(THING, given)


@pytest.mark.parametrize("value", [None, -1, False, "", [], {}])
def test_body_when_a_field_without_effect_is_not_set_then_is_passed_over(value: Any) -> None:
    assert checked_fields(THING, {"bookies": value}) == {}
