"""Which topic-partitions a batch follows, and when its run-ahead ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.model.ids import EARLIEST
from interpulse.spark.copying.run_ahead import FOLLOWED_MAX, FOLLOWED_WHOLE, RunAhead, RunAheadEnd, plan_run_ahead
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.state_disk import LOCAL_DISK
from interpulse.spark.state_files import HeldRange, LaneFiles

NOW, LENGTH = 1_000_000, 5_000
FEW = dict.fromkeys("abc", True)
MANY = {f"t{number}": True for number in range(FOLLOWED_WHOLE + 1)}


def refused(retry_after_ms: int) -> HeldRange:
    return HeldRange(EARLIEST, "refused", NOW, 1, NOW + retry_after_ms)


@pytest.mark.parametrize(
    ("topics", "held", "rates", "followed", "length"),
    [
        pytest.param(FEW | {"b": False}, {}, {}, FEW, LENGTH, id="of few topics all are followed"),
        pytest.param(MANY | {"t3": False}, {}, {}, MANY.keys() - {"t3"}, LENGTH, id="of more those that are active"),
        pytest.param(FEW, {"a": refused(2_000)}, {}, ["b", "c"], 2_000, id="until the next attempt at a held one"),
        pytest.param(FEW, {"z": refused(2_000)}, {}, FEW, LENGTH, id="a held one of another selection ends nothing"),
        pytest.param(FEW, {}, {"a": Rate(10, 0)}, ["b", "c"], 1_000, id="until the next permits"),
        pytest.param(FEW, {}, {"a": Rate(10, 0, period_s=60)}, ["b", "c"], LENGTH, id="which may come later"),
        pytest.param(FEW | {"a": False}, {}, {"a": Rate(10, 0)}, ["b", "c"], LENGTH, id="one that rests needs none"),
        pytest.param(FEW, {"a": refused(0)}, {}, None, 0, id="a held one is due"),
        pytest.param(dict.fromkeys(MANY, False), {}, {}, None, 0, id="nothing is active"),
        pytest.param({f"t{number}": True for number in range(FOLLOWED_MAX + 1)}, {}, {}, None, 0, id="too many are"),
        pytest.param({}, {}, {}, None, 0, id="nothing is selected"),
    ],
)
def test_run_ahead_is_planned_for_topics_that_no_rule_holds_back(topics, held, rates, followed, length):
    planned = plan_run_ahead(topics, held=held, rates=rates, now_ms=NOW, length_ms=LENGTH)
    assert planned == (None if followed is None else RunAhead(length, frozenset(followed)))


class Reader:
    """A reader, as far as its end goes."""

    def __init__(self) -> None:
        self.has_ended = False

    def end(self) -> None:
        self.has_ended = True


def run_ahead(directory: Path, length_ms: int = 600_000, attempt: int | None = 1) -> tuple[RunAheadEnd, LaneFiles]:
    files = LaneFiles(str(directory))
    files.end_run_ahead(1)
    ahead = RunAhead(length_ms, frozenset("a"), files.run_ahead_watch(), attempt)
    return RunAheadEnd(ahead, LOCAL_DISK), files


async def over(end: RunAheadEnd) -> None:
    async with asyncio.timeout(60):
        await end.watch(lambda: None)
    assert end.is_over


async def test_run_ahead_ends_at_its_time_and_readers_with_it(tmp_path):
    end, _ = run_ahead(tmp_path, 10)
    reader: EntryReader = Reader()  # type: ignore[assignment]
    with end.ending(reader):
        await over(end)
        assert reader.has_ended  # type: ignore[attr-defined]
    late: EntryReader = Reader()  # type: ignore[assignment]
    with end.ending(late):
        assert late.has_ended  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_first", [True, False])
async def test_run_ahead_when_its_end_is_requested_then_ends(tmp_path, is_first):
    (tmp_path / "topics.json").write_text("{}")
    files = LaneFiles(str(tmp_path))
    if not is_first:
        files.end_run_ahead(1)
    end = RunAheadEnd(RunAhead(600_000, frozenset("a"), files.run_ahead_watch()), LOCAL_DISK)
    watching = asyncio.create_task(over(end))
    await asyncio.sleep(0)
    files.end_run_ahead(2)
    await watching


async def test_run_ahead_when_the_list_of_topics_has_changed_since_it_was_planned_then_ends(tmp_path):
    (tmp_path / "topics.json").write_text("{}")
    end, _ = run_ahead(tmp_path)
    (tmp_path / "topics.json").unlink()
    (tmp_path / "topics.json").write_text('{"topics": []}')
    await over(end)


async def test_run_ahead_on_a_machine_without_the_files_ends_at_its_time_only(tmp_path):
    ahead = RunAhead(200, frozenset("a"), {tmp_path / "elsewhere": 7})
    end = RunAheadEnd(ahead, LOCAL_DISK)
    began = asyncio.get_running_loop().time()
    await over(end)
    assert asyncio.get_running_loop().time() - began >= 0.19


async def test_run_ahead_when_too_much_was_copied_then_ends(tmp_path):
    end, _ = run_ahead(tmp_path)
    end.note(199_999)
    assert not end.is_over
    end.note(1)
    await over(end)


async def test_progress_is_reported_every_second_where_the_files_are(tmp_path):
    end, _ = run_ahead(tmp_path)
    reported: list[int] = []

    def report() -> None:
        reported.append(1)
        if len(reported) == 2:
            end.end()

    async with asyncio.timeout(60):
        await end.watch(report)
    assert len(reported) == 2


async def test_tasks_that_spark_may_repeat_report_nothing(tmp_path):
    """A repeated task is not planned again, so that nothing would be recalled for it."""
    end, _ = run_ahead(tmp_path, length_ms=1_200, attempt=None)
    reported: list[int] = []
    async with asyncio.timeout(60):
        await end.watch(lambda: reported.append(1))
    assert reported == []
