"""The operation that goes on, by the journal of this machine and the records at both sites."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from interpulse.failover.journal import Journal, Operation
from interpulse.failover.pair import SUPERSEDED, Pair, newest_record, unfinished_here
from tests.unit.failover.steps.test_drain import config

EARLY, LATE = "1999-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"
"""Times of other machines, whose clocks are wrong."""


def record(operation: Operation, at: str, **event: str) -> dict[str, Any]:
    return {**asdict(operation), "at": at, **(event or {"step": "fence"})}


@pytest.mark.parametrize("at", [EARLY, LATE])
def test_journal_when_its_record_has_not_ended_then_goes_on(tmp_path: Path, operation: Operation, at: str) -> None:
    Journal.create(tmp_path, operation).begin("drain", "2026-11-30T21:00:01.000Z")
    found = unfinished_here(Pair(config(tmp_path), {}), record(operation, at))
    assert found is not None
    assert found.operation == operation


@pytest.mark.parametrize("at", [EARLY, LATE])
@pytest.mark.parametrize(
    ("later", "event", "outcome"),
    [
        (0, {"outcome": "DONE"}, "DONE"),
        (0, {"outcome": "TAKEN_BACK"}, "TAKEN_BACK"),
        (1, {"step": "fence"}, SUPERSEDED),
        (1, {"outcome": "DONE"}, SUPERSEDED),
    ],
)
def test_journal_when_it_was_ended_elsewhere_then_says_so(
    tmp_path: Path, operation: Operation, at: str, later: int, event: dict[str, str], outcome: str
) -> None:
    journal = Journal.create(tmp_path, operation)
    shown = replace(operation, id="another", epoch=operation.epoch + later) if later else operation
    assert unfinished_here(Pair(config(tmp_path), {}), record(shown, at, **event)) is None
    (path,) = (tmp_path / "operations").glob("*.jsonl")
    assert Journal(path).outcome == outcome
    assert journal.outcome is None


@pytest.mark.parametrize("at", [EARLY, LATE])
def test_journal_when_the_record_is_of_an_operation_before_then_goes_on(
    tmp_path: Path, operation: Operation, at: str
) -> None:
    """A kill came before its first record."""
    Journal.create(tmp_path, operation)
    before = record(replace(operation, id="before", epoch=operation.epoch - 1), at, outcome="DONE")
    assert unfinished_here(Pair(config(tmp_path), {}), before) is not None
    same = record(replace(operation, id="another"), at, step="fence")
    assert unfinished_here(Pair(config(tmp_path), {}), same) is None


def test_newest_record_then_is_of_the_highest_epoch_and_of_its_end(operation: Operation) -> None:
    later = replace(operation, id="later", epoch=operation.epoch + 1)
    older, step = record(operation, LATE, outcome="DONE"), record(later, LATE, step="drain")
    end = record(later, EARLY, outcome="DONE")
    assert newest_record([older, step, end]) == end
    assert newest_record([step, older]) == step
    assert newest_record([]) is None
