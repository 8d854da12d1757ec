"""JSON schemas of Java's classes, drawn by hypothesis: each side reads what the other writes, cell by cell."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.schemas.json_payloads.reader import json_reader
from interpulse.spark.schemas.json_payloads.values import JsonMisfit
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder
from interpulse.spark.schemas.payload_encoder import RowEncoder
from tests.interop.conftest import CHECKS
from tests.interop.json_classes import MILLIS, SINGLE_TYPES, JavaClass, JavaType, classes
from tests.interop.real_pulsar import run_java

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CLASSES, VALUES_OF_EACH, SPELLINGS = 100, 4, 600
OF_JAVA = {"__jsr310ConversionEnabled": "false", "__alwaysAllowNull": "true"}


class Case(NamedTuple):
    """A class with one of its values, and what Java said of both."""

    java_class: JavaClass
    value: Any
    payload: str
    """Ours."""

    answer: Any = None


class Spelling(NamedTuple):
    """The JSON of a field ``v`` of a class with one field, and what Java read."""

    kind: JavaType
    text: str
    answer: Any = None


_COMMON: Any = {
    "database": None,
    "deadline": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}
SPELLED_TYPES = [each for each in SINGLE_TYPES if each.avro != "string" or each.name == "String"]
"""Without the classes that are text to Spark, and more than text to Java; primitive ones read null as 0."""


def schema_of(definition: Any) -> SchemaInfo:
    return SchemaInfo(SchemaType.JSON, json.dumps(definition).encode(), OF_JAVA)


def drawn_cases() -> list[Case]:
    found: list[Case] = []

    @seed(25)
    @settings(max_examples=CLASSES, **_COMMON)
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        java_class = data.draw(classes(f"C{len(found)}"))
        schema = schema_of(java_class.definition)
        fields = payload_fields(schema)
        assert fields is not None
        encoder = RowEncoder("t", schema, fields)
        for _ in range(VALUES_OF_EACH):
            value = data.draw(java_class.type.values)
            row = encoder.encode(java_class.type.cell(value)).value
            assert row is not None
            found.append(Case(java_class, value, row.decode()))

    draw()
    return found


_NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?", fullmatch=True).filter(
    lambda text: text != "-0"  # Java keeps the sign where text belongs
)
_WORDS = st.sampled_from(
    ["true", "false", "TRUE", "True", "null", "NaN", "Infinity", "-Infinity", "INF", "RED", "", " "]
)
_GREGORIAN = datetime(1583, 1, 1)
"""Java's ``Date`` has another calendar before."""
_ISO = st.datetimes(_GREGORIAN).map(lambda moment: moment.isoformat()) | st.dates().map(str) | st.times().map(str)
_ZONED = st.builds(lambda text, zone: text + zone, _ISO, st.sampled_from(["Z", "+02:00", "-11:30"]))
_ARRAYS = st.lists(st.integers(0, 60), max_size=8) | st.lists(st.integers(-5, 10_001), min_size=3, max_size=3)
_TEXTS = _NUMBERS | _NUMBERS.map(lambda text: f" {text} ") | _WORDS | _ISO | _ZONED | st.text(max_size=4)
SPELLED = (
    _NUMBERS
    | st.sampled_from(["true", "false", "null", "{}", "[]", '{"x": 1}', '"AP8="', '"AP8"', "1e400", "[0, -1, 255]"])
    | _TEXTS.map(json.dumps)
    | _ARRAYS.map(json.dumps)
    | st.datetimes().map(lambda at: json.dumps([*at.timetuple()[:6], at.microsecond * 1000]))
)
"""JSON of one value."""


def drawn_spellings() -> list[Spelling]:
    found: list[Spelling] = []

    @seed(25)
    @settings(max_examples=SPELLINGS, **_COMMON)
    @given(SPELLED)
    def draw(text: str) -> None:
        found.extend(Spelling(kind, text) for kind in SPELLED_TYPES if not kind.is_primitive)

    draw()
    return found


def class_of(kind: JavaType) -> str:
    return f"S{SINGLE_TYPES.index(kind)}"


@pytest.fixture(scope="module")
def conformance() -> tuple[list[Case], list[Spelling]]:
    """All cases and spellings with what Java says of them, in one run."""
    cases, spellings = drawn_cases(), drawn_spellings()
    sources = {each.java_class.name: each.java_class.source for each in cases}
    sources |= {class_of(kind): f"public class {class_of(kind)} {{ public {kind.name} v; }}" for kind in SINGLE_TYPES}
    lines = [json.dumps(sources)]
    lines += [
        json.dumps({"class": one.java_class.name, "value": one.value, "payloads": [one.payload]}) for one in cases
    ]
    for kind in SINGLE_TYPES:
        payloads = [f'{{"v": {one.text}}}' for one in spellings if one.kind is kind]
        lines.append(json.dumps({"class": class_of(kind), "value": None, "payloads": payloads}))
    said = run_java(CHECKS / "JsonConformance.java", stdin="\n".join(lines).encode()).decode().strip("\n").split("\n")
    answers = [json.loads(line) for line in said]
    read = {kind.name: iter(answer["read"]) for kind, answer in zip(SINGLE_TYPES, answers[len(cases) :], strict=True)}
    return (
        [one._replace(answer=answer) for one, answer in zip(cases, answers, strict=False)],
        [one._replace(answer=next(read[one.kind.name])) for one in spellings],
    )


def test_schemas_of_java_have_the_columns_that_were_expected(conformance: tuple[list[Case], list[Spelling]]) -> None:
    for one in conformance[0]:
        of_java = SchemaInfo(SchemaType.JSON, one.answer["definition"].encode(), one.answer["properties"])
        assert of_java.properties == OF_JAVA
        assert payload_fields(of_java) == payload_fields(schema_of(one.java_class.definition)), one.java_class.source


def test_what_java_writes_is_read_cell_by_cell(conformance: tuple[list[Case], list[Spelling]]) -> None:
    for one in conformance[0]:
        schema = SchemaInfo(SchemaType.JSON, one.answer["definition"].encode(), OF_JAVA)
        fields = payload_fields(schema)
        assert fields is not None
        decoder = PayloadDecoder(schema, fields, lambda topic, version: None)
        columns = decoder.arrays([Payload("t", (1, 1, -1), b"", one.answer["payload"].encode(), None)])
        found = {name: column.to_pylist()[0] for name, column in columns.items()}
        assert same(found, one.java_class.type.cell(one.value)), one


def test_what_is_written_is_read_by_java_cell_by_cell(conformance: tuple[list[Case], list[Spelling]]) -> None:
    for one in conformance[0]:
        (read,) = one.answer["read"]
        assert "error" not in read, one
        assert same(one.java_class.type.cell(read), one.java_class.type.cell(one.value)), one


def test_spelling_is_read_as_java_reads_it_or_refused(conformance: tuple[list[Case], list[Spelling]]) -> None:
    taken = 0
    for one in conformance[1]:
        definition = {"type": "record", "name": "R", "fields": [{"name": "v", "type": one.kind.in_field}]}
        read = json_reader(json.dumps(definition).encode())
        try:
            found = read(f'{{"v": {one.text}}}'.encode())["v"]
        except JsonMisfit:
            continue
        if is_ticks(one):
            continue
        if one.kind.avro == "float":
            found = pa.array([found], pa.float32())[0].as_py()
        if one.kind.values is MILLIS and found is not None:
            found = found.replace(microsecond=found.microsecond // 1000 * 1000)  # Java's class has no more
        assert "error" not in one.answer, one
        assert same(found, one.kind.cell_of(one.answer["v"])), (one, found)
        taken += found is not None
    assert taken > len(conformance[1]) // 20


def is_ticks(one: Spelling) -> bool:
    """Return True for a time that is a whole number: to a ``long`` ticks of the schema, to Java's classes seconds."""
    return one.kind.name.startswith("java.") and one.text.strip('" ').lstrip("-").isdigit()


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    return repr(found) == repr(expected) if isinstance(expected, float) else bool(found == expected)
