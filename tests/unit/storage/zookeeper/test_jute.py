from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.zookeeper.jute import BOOL, BUFFER, INT, LONG, STRING, Field, Malformed, vector
from interpulse.storage.zookeeper.records import OPERATIONS

INTS = st.integers(-(2**31), 2**31 - 1)


@given(
    st.one_of(
        st.tuples(st.just(INT), INTS),
        st.tuples(st.just(LONG), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(st.just(BOOL), st.booleans()),
        st.tuples(st.just(BUFFER), st.binary()),
        st.tuples(st.just(STRING), st.text(st.characters(exclude_categories=["Cs"]))),
        st.tuples(st.just(vector(INT)), st.lists(INTS)),
    )
)
def test_value_when_written_then_read_back(case: tuple[Field[Any], Any]) -> None:
    field, value = case
    assert field.decode(field.encode(value)) == value


@given(st.sampled_from(sorted(OPERATIONS)), st.binary(max_size=200))
def test_bytes_when_they_are_anything_then_read_or_malformed(code: int, raw: bytes) -> None:
    for field in (OPERATIONS[code].request, OPERATIONS[code].answer):
        try:
            field.decode(raw)
        except Malformed:
            continue


def test_buffer_when_null_then_empty() -> None:
    assert BUFFER.decode(b"\xff\xff\xff\xff") == b""
    assert vector(INT).decode(b"\xff\xff\xff\xff") == []


@pytest.mark.parametrize(
    ("field", "raw"),
    [
        (INT, "000000"),
        (BUFFER, "00000005 0102"),
        (BUFFER, "fffffffe"),
        (STRING, "00000001 ff"),
        (vector(INT), "7fffffff 00"),
    ],
    ids=["short number", "short buffer", "negative length", "no UTF-8", "more items than bytes"],
)
def test_bytes_when_they_are_no_such_value_then_malformed(field: Field[Any], raw: str) -> None:
    with pytest.raises(Malformed):
        field.decode(bytes.fromhex(raw))
