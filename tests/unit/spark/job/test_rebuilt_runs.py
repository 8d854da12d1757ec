"""Runs of copies that are read from the target."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.client.consuming.copied_entries import CopiedEntry
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.position_runs import PositionRuns, Run
from interpulse.spark.job import rebuilt_runs
from interpulse.spark.job.rebuilt_runs import rebuild_runs

TOPIC = TopicName.parse("t")


def copy(source: int, there: int, origin: str = "east") -> CopiedEntry:
    return CopiedEntry(Position(9, there), Position(5, source), origin, f"lane of {origin}")


def reading(monkeypatch: pytest.MonkeyPatch, *copies: CopiedEntry, entry_bytes: int = 100) -> None:
    """Let the target have these copies, which arrive one by one."""

    async def copied_entries(session: Any, topic: Any, after: Any, upto: Any, *, on_arrival: Any) -> Any:
        assert (topic, after, upto) == (TOPIC, EARLIEST, LATEST)
        for entry in copies:
            await on_arrival(1, entry_bytes)
            yield entry

    monkeypatch.setattr(rebuilt_runs, "copied_entries", copied_entries)


async def rebuilt(bytes_per_second: int = 0) -> PositionRuns:
    return await rebuild_runs(
        None,  # type: ignore[arg-type]
        TOPIC,
        lambda entry: entry.origin == "east",
        EARLIEST,
        LATEST,
        bytes_per_second=bytes_per_second,
    )


async def test_copies_of_another_cluster_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    reading(monkeypatch, copy(0, 0), copy(1, 1), copy(7, 2, "north"), copy(2, 3))
    assert [*await rebuilt()] == [Run(Position(5, 0), Position(9, 0), 2), Run(Position(5, 2), Position(9, 3), 1)]


async def test_last_copy_of_an_entry_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipts of the first chunks were lost, and all chunks were sent again."""
    reading(monkeypatch, copy(0, 0), copy(1, 1), copy(2, 2), copy(1, 3), copy(2, 4), copy(3, 5))
    assert [*await rebuilt()] == [Run(Position(5, 0), Position(9, 0), 1), Run(Position(5, 1), Position(9, 3), 3)]


@pytest.mark.parametrize(("bytes_per_second", "seconds"), [(2_000, 0.1), (0, 0)])
async def test_target_is_read_no_faster_than_allowed(
    monkeypatch: pytest.MonkeyPatch, bytes_per_second: int, seconds: float
) -> None:
    """The permits of a second are there at first; what is beyond has to wait."""
    reading(monkeypatch, *(copy(number, number) for number in range(22)))
    begin = asyncio.get_running_loop().time()
    assert len(await rebuilt(bytes_per_second)) == 1
    assert asyncio.get_running_loop().time() - begin >= seconds
