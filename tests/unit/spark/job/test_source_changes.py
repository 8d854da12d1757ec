"""Changes on the source, as it reports them, and where it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.model.errors import NotConnected, NotFound
from interpulse.spark.job import source_changes
from interpulse.spark.job.source_changes import SourceChanges

REPORTING = {"supportsMetadataChanges": "1"}


class Source:
    """An admin API whose answers the test gives."""

    def __init__(self, runtime: dict[str, str] | Exception) -> None:
        self.brokers = self
        self.runtime = runtime
        self.asked: list[tuple[str, float]] = []
        self.answers: asyncio.Queue[str | Exception] = asyncio.Queue()

    async def runtime_configuration(self) -> dict[str, str]:
        if isinstance(self.runtime, Exception):
            raise self.runtime
        return self.runtime

    async def metadata_changes(self, *, since: str = "", wait_s: float = 0) -> str:
        self.asked.append((since, wait_s))
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer


def changes_of(source: Any) -> SourceChanges:
    return SourceChanges(source)


async def numbers(changes: SourceChanges, count: int) -> list[int]:
    found = []
    for _ in range(count):
        found.append(await changes.number())
        await asyncio.sleep(0)
    return found


async def test_source_that_reports_then_a_new_number_for_each_change_and_one_request_waits() -> None:
    source = Source(REPORTING)
    changes = changes_of(source)
    source.answers.put_nowait("a.1")
    assert await numbers(changes, 3) == [1, 1, 1]
    assert source.asked == [("", 0), ("a.1", 5.0)]
    source.answers.put_nowait("a.1")  # nothing has changed within the wait
    await asyncio.sleep(0)
    assert await numbers(changes, 2) == [1, 1]
    source.answers.put_nowait("a.2")
    await asyncio.sleep(0)
    assert await numbers(changes, 3) == [2, 2, 2]
    assert source.asked[2:] == [("a.1", 5.0), ("a.2", 5.0)]
    await changes.close()


async def test_source_that_reports_when_long_nothing_came_then_a_change_counts_as_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_changes, "_UNREPORTED_S", 0)
    source = Source(REPORTING)
    changes = changes_of(source)
    source.answers.put_nowait("a.1")
    assert await numbers(changes, 3) == [1, 2, 3]
    await changes.close()


async def test_source_that_does_not_answer_then_its_error_is_raised_and_it_is_asked_again() -> None:
    source = Source(REPORTING)
    changes = changes_of(source)
    for answer in ("a.1", NotConnected("east is away"), "b.7"):
        source.answers.put_nowait(answer)
    assert await numbers(changes, 1) == [1]
    await asyncio.sleep(0)
    with pytest.raises(NotConnected, match="east is away"):
        await changes.number()
    assert await numbers(changes, 2) == [2, 2]
    await changes.close()


@pytest.mark.parametrize("runtime", [{}, NotFound("no such call")])
async def test_source_that_does_not_report_then_each_number_is_new(runtime: dict[str, str] | Exception) -> None:
    source = Source(runtime)
    changes = changes_of(source)
    assert await numbers(changes, 3) == [1, 2, 3]
    assert source.asked == []
    await changes.close()
