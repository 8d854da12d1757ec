"""Generated schemas and values: each cell that the data source reads is the Java client's, and so is what it writes.

Values are written by the one and read by the other, by their own schema and by a later one. Java runs once for all.
The examples are the same in every run.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from tests.interop.conformance.avro_types import (
    INTS,
    LONGS,
    bits,
    evolved,
    number_of,
    records,
    rendered,
    values,
    with_one_unit,
)
from tests.interop.conformance.cases import Answer, Case, Stored, drawn, java_answers, payload_of, row_of
from tests.interop.conformance.cells import NoCell, cell_of, has_wide_union, same

pytestmark = [pytest.mark.interop, pytest.mark.slow]


class Drawn(NamedTuple):
    """One example: a pair, or a record under ``value``. Types are ``{"key": .., "value": ..}`` as values are."""

    written: dict[str, Any]
    wanted: dict[str, Any]
    value: dict[str, Any]
    encoding: str = ""


class Checked(NamedTuple):
    example: Drawn
    case: Case
    answer: Answer


PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "STRING": st.text(max_size=5),
    "BYTES": st.binary(max_size=5).map(lambda raw: raw.decode("latin-1")),
    "BOOLEAN": st.booleans(),
    "INT8": st.integers(-128, 127),
    "INT16": st.integers(-(2**15), 2**15 - 1),
    "INT32": INTS,
    "INT64": LONGS,
    "FLOAT": st.floats(width=32, allow_nan=False).map(lambda number: bits(number, "f")),
    "DOUBLE": st.floats(allow_nan=False).map(lambda number: bits(number, "d")),
}


OF_DEFAULTS = ("Invalid default for field", "is not in the enum symbol set", "default value for")
"""Java looks at the defaults before it reads a message; the data source needs no default that no value needs."""


REFUSED = ("codec can't decode", "is no int", "is no long")
"""Java puts U+FFFD in place of bytes that are no text, and cuts defaults to the bits that their type has."""


@st.composite
def plain(draw: Any) -> Drawn:
    kind = draw(records())
    return Drawn({"value": kind}, {"value": kind}, {"value": draw(values(kind))})


@st.composite
def later(draw: Any) -> Drawn:
    kind = with_one_unit(draw(records()))
    return Drawn({"value": kind}, {"value": with_one_unit(draw(evolved(kind)))}, {"value": draw(values(kind))})


@st.composite
def pairs(draw: Any) -> Drawn:
    written, wanted, value = {}, {}, {}
    for name in ("key", "value"):
        if draw(st.booleans()):
            kind = draw(st.sampled_from([*PRIMITIVES]))
            written[name] = wanted[name] = kind
            value[name] = draw(st.none() | PRIMITIVES[kind])
        else:
            written[name] = with_one_unit(draw(records()))
            wanted[name] = with_one_unit(draw(evolved(written[name]))) if draw(st.booleans()) else written[name]
            value[name] = draw(st.none() | values(written[name]))
    return Drawn(written, wanted, value, draw(st.sampled_from(["INLINE", "SEPARATED"])))


def schema_of(types: dict[str, Any], encoding: str) -> dict[str, Any]:
    parts = {name: _part(kind) for name, kind in types.items()}
    return {"type": "KEY_VALUE", "encoding": encoding, **parts} if encoding else parts["value"]


def _part(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"type": kind}
    return {"type": "AVRO", "definition": json.dumps(rendered(kind))}


def cells(types: dict[str, Any], value: dict[str, Any], encoding: str) -> dict[str, Any]:
    """The row; raises NoCell."""
    found: dict[str, Any] = {name: None if value[name] is None else _cell(types[name], value[name]) for name in types}
    row: dict[str, Any] = found if encoding else found["value"]
    return row


def _cell(kind: Any, value: Any) -> Any:
    if not isinstance(kind, str):
        return cell_of(kind, value)
    if kind in ("FLOAT", "DOUBLE"):
        return number_of(value, kind[0].lower())
    return value.encode("latin-1") if kind == "BYTES" else value


@pytest.fixture(scope="module")
def checked() -> list[Checked]:
    examples = [*drawn(plain(), 120), *drawn(later(), 300), *drawn(pairs(), 80)]
    cases = []
    for example in examples:
        written, wanted = (schema_of(types, example.encoding) for types in (example.written, example.wanted))
        value = example.value if example.encoding else example.value["value"]
        row = cells(example.written, example.value, example.encoding)
        cases.append(Case(written, wanted, value, [payload_of(written, row)]))
    return [Checked(*each) for each in zip(examples, cases, java_answers(cases), strict=True)]


def test_payloads_have_the_bytes_of_the_java_client(checked: list[Checked]) -> None:
    def check(one: Checked) -> str | None:
        if any(has_wide_union(kind) for kind in one.example.written.values()):
            return None
        own = one.answer.payload
        return None if own == one.case.payloads[0] else f"{shown(one)}\n  Java {own}\n  ours {one.case.payloads[0]}"

    assert_none(checked, check)


def test_java_client_reads_what_is_written_as_what_it_wrote(checked: list[Checked]) -> None:
    def check(one: Checked) -> str | None:
        own, ours = one.answer.read
        if expected(one, own) == expected(one, ours) or same(expected(one, own), expected(one, ours)):
            return None
        return f"{shown(one)}\n  own  {own}\n  ours {ours}"

    assert_none(checked, check)


@pytest.mark.parametrize("bulk", [True, False])
def test_cells_are_those_of_the_java_client(checked: list[Checked], bulk: bool) -> None:
    def check(one: Checked) -> str | None:
        assert isinstance(one.answer.payload, Stored), one
        wanted = expected(one, one.answer.read[0])
        found = row_of(one.case.written, one.case.wanted, one.answer.payload, bulk=bulk)
        if isinstance(wanted, str) and (isinstance(found, str) or any(text in wanted for text in OF_DEFAULTS)):
            return None
        if isinstance(found, str) and any(text in found for text in REFUSED):
            return None
        return None if same(wanted, found) else f"{shown(one)}\n  Java {wanted}\n  ours {found}"

    assert_none(checked, check)


def expected(one: Checked, read: Any) -> dict[str, Any] | str:
    """The row of what Java read; why there is none as a str."""
    if isinstance(read, str):
        return read
    try:
        return cells(one.example.wanted, read if one.example.encoding else {"value": read}, one.example.encoding)
    except NoCell as error:
        return f"no cell: {error}"


def shown(one: Checked) -> str:
    return f"written {one.case.written}\n  wanted {one.case.wanted}\n  value {one.case.value}"


def assert_none(checked: list[Checked], check: Any) -> None:
    problems = sorted((found for one in checked if (found := check(one)) is not None), key=len)
    assert not problems, f"{len(problems)} of {len(checked)}:\n" + "\n".join(problems[:5])
