"""How values of fields are read."""

from __future__ import annotations

import pytest

from interpulse.console.actions.action import Action, Field, count_of
from interpulse.model.errors import InvalidRequest
from interpulse.model.operations import Tenants

ACTION = Action(
    "drop",
    "Drop",
    "It is dropped.",
    (Field("name", "Name"), Field("mode", "Mode", choices=("soft", "hard"), optional=True)),
    call=lambda values: Tenants.DELETE.request(values["name"]),
    command=lambda values: ("tenants", "delete", values["name"]),
    back=lambda values: "/console",
)


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("0004", 4), ("2147483647", 2**31 - 1)])
def test_count_is_read(text: str, count: int) -> None:
    assert count_of({"partitions": text}, "partitions") == count


@pytest.mark.parametrize("text", ["", "0", "-1", "+1", "1.0", "\u0663", "2147483648", "1" * 5000])
def test_text_that_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="partitions must be an integer from 1 to 2147483647"):
        count_of({"partitions": text}, "partitions")


def test_missing_fields_are_those_that_are_not_optional() -> None:
    values = ACTION.values({"other": "x"})
    assert values == {"name": "", "mode": ""}
    assert [field.name for field in ACTION.missing(values)] == ["name"]


def test_value_that_is_no_choice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="mode must be one of soft, hard"):
        ACTION.values({"name": "a", "mode": "mild"})


def test_command_line_is_quoted_for_a_shell() -> None:
    assert ACTION.command_line({"name": "a b"}) == "interpulse-admin tenants delete 'a b'"
