"""Which directions a strategy asks, of which types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.strategies import STRATEGIES, find_conflict
from tests.schema_pairs import generated
from tests.schema_pairs.cases import avro, fld, pair, record

SMALL = avro(record(fld("int", "a"))).info
LARGE = avro(record(fld("int", "a"), fld("int", "b"))).info
CASES = list(generated.cases())


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_strategy_when_a_field_comes_then_refused_by_those_that_read_what_is_there(strategy: str) -> None:
    refuses = strategy not in ("ALWAYS_COMPATIBLE", "FORWARD", "FORWARD_TRANSITIVE")
    assert (find_conflict([SMALL], LARGE, strategy) is not None) == refuses


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_strategy_when_a_field_goes_then_refused_by_those_whose_old_readers_read_on(strategy: str) -> None:
    refuses = strategy not in ("ALWAYS_COMPATIBLE", "BACKWARD", "BACKWARD_TRANSITIVE")
    assert (find_conflict([LARGE], SMALL, strategy) is not None) == refuses


def test_conflict_when_told_then_says_who_cannot_read_what() -> None:
    field = "the field b is not written and has no default"
    assert find_conflict([SMALL], LARGE, "FULL") == (
        f"Unable to read schema: the new schema cannot read what is written with an existing one: {field}"
    )
    assert find_conflict([LARGE], SMALL, "FULL") == (
        f"Unable to read schema: an existing schema cannot read what is written with the new one: {field}"
    )


def test_conflict_when_an_existing_definition_is_none_then_says_so() -> None:
    broken = SchemaInfo(SchemaType.AVRO, b"{")
    assert "an existing schema cannot be compared" in str(find_conflict([broken], SMALL, "FULL"))


@pytest.mark.parametrize("side", ["key", "value"])
def test_conflict_when_in_a_pair_then_says_in_which_part(side: str) -> None:
    small, large = (avro(record(*(fld("int", name) for name in names))) for names in ("a", "ab"))
    old, new = ((pair(each, small) if side == "key" else pair(small, each)).info for each in (small, large))
    assert str(find_conflict([old], new, "BACKWARD")).startswith(f"{side} schema: Unable to read")
    assert find_conflict([old], new, "FORWARD") is None


@given(st.sampled_from(CASES))
def test_full_when_asked_then_is_backward_and_forward(case: generated.Case) -> None:
    old, new = case.history[-1].info, case.new.info
    both = all(find_conflict([old], new, strategy) is None for strategy in ("BACKWARD", "FORWARD"))
    assert (find_conflict([old], new, "FULL") is None) == both


@given(st.sampled_from(CASES), st.sampled_from(["BACKWARD", "FORWARD", "FULL"]))
def test_transitive_when_asked_then_is_the_same_for_every_version(case: generated.Case, strategy: str) -> None:
    versions = [old.info for old in case.history]
    each = all(find_conflict([old], case.new.info, strategy) is None for old in versions)
    assert (find_conflict(versions, case.new.info, f"{strategy}_TRANSITIVE") is None) == each


@given(st.sampled_from(CASES))
def test_backward_when_sides_are_swapped_then_is_forward(case: generated.Case) -> None:
    old, new = case.history[-1].info, case.new.info
    assert (find_conflict([old], new, "BACKWARD") is None) == (find_conflict([new], old, "FORWARD") is None)
