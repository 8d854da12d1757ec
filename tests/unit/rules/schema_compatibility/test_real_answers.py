"""Ours against what a real Pulsar answered: every case, every strategy; where we differ on purpose is listed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from interpulse.model.errors import IncompatibleSchema, InvalidSchemaDefinition
from interpulse.rules.schema_compatibility.definitions import check_definition
from interpulse.rules.schemas import SchemaVersion, check_compatibility
from tests.schema_pairs import by_hand, definitions, generated
from tests.schema_pairs.cases import (
    STRATEGIES,
    Case,
    Schema,
    avro,
    enum,
    fixed,
    fld,
    read_answers,
    read_definitions,
    record,
)

CASES: Final = [*by_hand.cases(), *generated.cases()]
REAL: Final = read_answers()

OTHERWISE: Final[Mapping[str, Mapping[str, str]]] = {
    # Registering takes these for the topic's own schema; the real one says so there and not here.
    "doc-only": {"ALWAYS_INCOMPATIBLE": "yes"},
    "doc-only-json": {"ALWAYS_INCOMPATIBLE": "yes"},
    "fixed-same": {"ALWAYS_INCOMPATIBLE": "yes"},
    "fixed-same-back": {"ALWAYS_INCOMPATIBLE": "yes"},
    # The properties of a pair count: the same bytes with other types of the parts, or packed otherwise, are another
    # schema. The real one looks at the bytes alone.
    "key-value-type-of-value": dict.fromkeys(("ALWAYS_INCOMPATIBLE", "BACKWARD", "FORWARD", "FULL"), "no"),
    "key-value-encoding-alone": {"ALWAYS_INCOMPATIBLE": "no"},
    "key-value-texts": {"ALWAYS_INCOMPATIBLE": "no"},
}

# Ours refuses, the real one takes them: what fastavro does not read, and what would cost more than it is worth.
REFUSED: Final = [
    # a name is defined once, and before it is used
    avro(record(fld(record()))),
    avro(record(fld("E"), fld(enum("P"), "g"))),
    avro(record(fld(enum("P")), fld(enum("P"), "g"))),
    avro(record(fld(fixed(1)), fld(fixed(1), "g"))),
    avro(record(fld({"type": "A"}))),
    avro(record(name=".A")),
    avro(record(namespace=5)),
    Schema("AVRO", '// why\n{"type":"int"}'),
    Schema("AVRO", '{"type":"array","items":' * 400 + '"int"' + "}" * 400),  # the limit is 100 levels
]
OURS_FOR: Final = {"error": "no"}
"""Where the real one fails with an unknown error, over a default or two aliases, ours says what does not fit."""


def our_answer(case: Case, strategy: str) -> str:
    history = [SchemaVersion(version, old.info) for version, old in enumerate(case.history)]
    try:
        check_compatibility(history, case.new.info, strategy=strategy)
    except InvalidSchemaDefinition:
        return "invalid"
    except IncompatibleSchema:
        return "no"
    return "yes"


def test_cases_when_counted_then_each_was_asked() -> None:
    assert sorted(REAL) == sorted(case.name for case in CASES)
    assert len(REAL) >= 200
    assert not [name for name, answers in REAL.items() if sorted(answers) != sorted(STRATEGIES)]
    assert OTHERWISE.keys() <= REAL.keys()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_case_when_asked_then_answer_is_that_of_a_real_pulsar(strategy: str) -> None:
    ours = {case.name: our_answer(case, strategy) for case in CASES}
    real = {name: OURS_FOR.get(answers[strategy], answers[strategy]) for name, answers in REAL.items()}
    wanted = {name: OTHERWISE.get(name, {}).get(strategy, answer) for name, answer in real.items()}
    assert ours == wanted


def test_exceptions_when_listed_then_each_still_is_one() -> None:
    assert not [
        (name, strategy)
        for name, answers in OTHERWISE.items()
        for strategy, answer in answers.items()
        if answer == REAL[name][strategy]
    ]


def test_definition_when_checked_then_answer_is_that_of_a_real_pulsar() -> None:
    kept = read_definitions()
    assert [schema for schema, _ in kept] == list(definitions.schemas())
    wrong = [schema for schema, taken in kept if is_taken(schema) != (taken and schema not in REFUSED)]
    assert not wrong


def test_definition_when_listed_as_exception_then_still_is_one() -> None:
    taken = [schema for schema, taken in read_definitions() if taken]
    assert not [schema for schema in REFUSED if schema not in taken]


def is_taken(schema: Schema) -> bool:
    try:
        check_definition(schema.info)
    except InvalidSchemaDefinition:
        return False
    return True
