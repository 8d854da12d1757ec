"""The table of names against Pulsar's own `TopicName`."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest

from interpulse.model.names import TopicName
from tests.interop.conftest import JavaCheck
from tests.scenarios.topic_names import DIFFERENT_IN_PULSAR, ROWS, Row

pytestmark = [pytest.mark.interop, pytest.mark.slow]

Facts = tuple[str, int, str, str, str, str, bool, bool] | None


def test_names_when_pulsar_reads_them_then_are_what_the_table_says(java_check: JavaCheck) -> None:
    printed = java_check("TopicNames.java", *(b64encode(row.text.encode()).decode() for row in ROWS))
    pulsars = dict(zip((row.text for row in ROWS), map(facts, printed.splitlines()), strict=True))
    different = {row.text for row in ROWS if pulsars[row.text] != ours(row)}
    assert different == DIFFERENT_IN_PULSAR.keys()


def facts(line: str) -> Facts:
    """One line of the Java program."""
    if line == "invalid":
        return None
    complete, index, base, first, encoded, schema, system, internal = line.split(" ")
    return (
        text(complete),
        int(index),
        text(base),
        text(first),
        text(encoded),
        text(schema),
        system == "true",
        internal == "true",
    )


def text(encoded: str) -> str:
    return b64decode(encoded).decode()


def ours(row: Row) -> Facts:
    """The same from the table, and from our parser what the table does not say."""
    if row.complete is None:
        return None
    name = TopicName.parse(row.text)
    base, first = str(name.base), str(name.partition(0))
    return row.complete, row.index, base, first, name.encoded, name.schema_id, row.system, row.internal
