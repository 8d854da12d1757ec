from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path

import pytest

from interpulse.storage.logs.journal import Run
from interpulse.storage.segments import reader as reader_module
from interpulse.storage.segments.reader import SegmentReader, UnreadableRecord
from interpulse.storage.segments.records import SEGMENT_HEAD, Row, encode_record, location, pack_segment_head
from interpulse.storage.segments.segment_set import Extent, Segment
from interpulse.storage.segments.worker import ThreadWorker
from tests.simulation.disk import SimulatedDisk


def disk_with(*numbers: int) -> tuple[SimulatedDisk, dict[int, Segment], Row]:
    disk = SimulatedDisk()
    record = b""
    for number in numbers:
        record = b"".join(encode_record(Run(5, 0, [b"a", b"bc"]), 0, location(number, SEGMENT_HEAD)))
        disk.create(Path(f"{number}.seg")).write(pack_segment_head(number) + record)
    segments = {number: Segment(number, Path(f"{number}.seg")) for number in numbers}
    return disk, segments, Row(5, 0, 2, SEGMENT_HEAD, len(record))


async def test_read_when_record_is_intact_then_wanted_entries() -> None:
    disk, segments, row = disk_with(1)
    reader = SegmentReader(disk, ThreadWorker("log-reader"))
    assert await reader.read([Extent(segments[1], row, 0, 2), Extent(segments[1], row, 1, 1)]) == [b"a", b"bc", b"bc"]
    await reader.check([(segments[1], row)])
    await reader.close()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"ledger_id": 6}, "another record"),
        ({"first": 1}, "another record"),
        ({"length": 50}, "cut off|another record"),
        ({"offset": SEGMENT_HEAD + 1}, "no record"),
        ({"offset": 4000}, "cut off"),
    ],
)
async def test_read_when_the_index_differs_then_unreadable_record(wrong: dict[str, int], reason: str) -> None:
    disk, segments, row = disk_with(1)
    reader = SegmentReader(disk, ThreadWorker("log-reader"))
    other = row._replace(**wrong)
    with pytest.raises(UnreadableRecord, match=reason) as found:
        await reader.read([Extent(segments[1], other, 0, 2)])
    assert (found.value.path, found.value.offset) == (Path("1.seg"), other.offset)
    assert found.value.args == (Path("1.seg"), other.offset, found.value.reason)
    assert re.search(reason, found.value.reason)
    with pytest.raises(UnreadableRecord):
        await reader.check([(segments[1], row), (segments[1], other)])
    await reader.close()


async def test_files_when_many_are_read_then_few_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "_OPEN_FILES_MAX", 2)
    disk, segments, row = disk_with(1, 2, 3)
    reader = SegmentReader(disk, ThreadWorker("log-reader"))
    for number in (1, 2, 1, 3):
        await reader.read([Extent(segments[number], row, 0, 1)])
    assert [path.stem for path in reader._open] == ["1", "3"]
    reader.forget([Path("3.seg"), Path("9.seg")])
    await reader.run(lambda: None)
    assert [path.stem for path in reader._open] == ["1"]
    await reader.close()
    assert [path.stem for path in reader._open] == []


async def test_reader_when_busy_then_one_thread_works_in_turn() -> None:
    reader, gate = SegmentReader(SimulatedDisk(), ThreadWorker("log-reader")), threading.Event()
    names = [
        asyncio.ensure_future(reader.run(lambda: gate.wait(60) and threading.current_thread().name)) for _ in range(3)
    ]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*names) == ["log-reader"] * 3
    await reader.close()
