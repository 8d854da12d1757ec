"""Ours against what a real Pulsar answered: every case, every strategy; where we differ on purpose is listed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from interpulse.model.errors import IncompatibleSchema, InvalidSchemaDefinition
from interpulse.rules.schema_compatibility import check_definition
from interpulse.rules.schemas import SchemaVersion, check_compatibility
from tests.schema_pairs import by_hand, definitions, generated
from tests.schema_pairs.cases import STRATEGIES, Case, Schema, avro, enum, fld, read_answers, read_definitions, record

CASES: Final = [*by_hand.cases(), *generated.cases()]
REAL: Final = read_answers()

# A default that is no value of its field is refused at once. The real one takes it in a topic's first schema, and fails
# with an unknown error where it has to use it.
WRONG_DEFAULTS: Final = {
    f"{name}{kind}"
    for name in ("field-added-wrong-default", "field-added-wrong-null", "field-added-wrong-items")
    for kind in ("", "-json")
} | {"field-wrong-default-known", "field-wrong-default-known-json"}

OTHERWISE: Final[Mapping[str, Mapping[str, str]]] = {
    **{name: dict.fromkeys(STRATEGIES, "invalid") for name in WRONG_DEFAULTS},
    # Two fields would get one name: the real one fails with an unknown error.
    "field-alias-conflict": {"BACKWARD": "no"},
    "field-alias-conflict-json": {"BACKWARD": "no"},
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

# Ours refuses, the real one takes them: wrong defaults, and what fastavro does not read.
REFUSED: Final = [
    *(avro(record(fld("int", default=value))) for value in ("x", None, True, 1.0, 2**31)),
    avro(record(fld(["null", "int"], default="x"))),
    avro(record(fld(record()))),  # a name is defined once
    avro(record(fld("E"), fld(enum("P"), "g"))),  # a name is defined before it is used
    avro(enum("A$")),
    Schema("AVRO", '// why\n{"type":"int"}'),
    Schema("AVRO", '{"type":"array","items":' * 400 + '"int"' + "}" * 400),  # the limit is 100 levels
]


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
    wanted = {name: OTHERWISE.get(name, {}).get(strategy, answers[strategy]) for name, answers in REAL.items()}
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
