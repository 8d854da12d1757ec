from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from interpulse.storage.segments.records import SEGMENT_HEAD, Row, encode_chunk, parse_index
from interpulse.storage.segments.worker import ThreadWorker
from interpulse.storage.segments.writer import GroupWrite, LogWriter
from tests.simulation.disk import SimulatedDisk

DIRECTORY = Path("/log")
SEGMENT, INDEX = DIRECTORY / "0000000001.seg", DIRECTORY / "0000000001.idx"


class WriterBench:
    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.writer = LogWriter(
            DIRECTORY, self.disk, asyncio.get_running_loop().call_soon_threadsafe, ThreadWorker("log-writer")
        )

    async def write(self, content: bytes, begin: int | None = None) -> Exception | None:
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        chunk = encode_chunk([Row(1, 0, 1, SEGMENT_HEAD, len(content))], SEGMENT_HEAD + len(content))
        group = GroupWrite(begin, content, chunk, SEGMENT_HEAD + len(content))
        self.writer.write(group, lambda error, _: done.set_result(error))
        error = await done
        await self.unlink()  # nothing; it ends after the index of this group was written
        return error

    async def seal(self) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.writer.seal(lambda: done.set_result(None))
        await done

    async def unlink(self, *numbers: int) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.writer.unlink(numbers, lambda: done.set_result(None))
        await done


async def test_write_when_segment_begins_then_names_are_durable_before_the_answer() -> None:
    bench = WriterBench()
    assert await bench.write(b"one", begin=1) is None
    assert set(bench.disk.names_synced) == {SEGMENT, INDEX}
    content = bench.disk.names_now[SEGMENT]
    assert content.synced == len(content.written) == SEGMENT_HEAD + 3
    assert bench.disk.steps.count("sync") == 2, "the head and the group"
    assert await bench.write(b"two") is None
    assert bench.disk.steps.count("sync") == 3
    bench.writer.stop()


async def test_writer_when_it_runs_then_its_thread_has_a_name_and_keeps_no_process_alive() -> None:
    others = set(threading.enumerate())
    bench = WriterBench()
    (thread,) = set(threading.enumerate()) - others
    assert (thread.name, thread.daemon) == ("log-writer", True)
    bench.writer.stop()
    assert not thread.is_alive()


async def test_seal_when_done_then_index_is_durable_and_says_so() -> None:
    bench = WriterBench()
    await bench.write(b"one", begin=1)
    await bench.seal()
    found = bench.disk.names_now[INDEX]
    assert found.synced == len(found.written)
    index = parse_index(bytes(found.written), 1)
    assert (index.sealed, index.covered, len(index.rows)) == (True, SEGMENT_HEAD + 3, 1)
    await bench.seal()
    bench.writer.stop()


async def test_write_when_it_fails_then_answered_with_the_error_and_segment_left_alone() -> None:
    bench = WriterBench()
    await bench.write(b"one", begin=1)
    bench.disk.fail_at = len(bench.disk.steps)
    assert isinstance(await bench.write(b"lost"), OSError)
    refusal = await bench.write(b"refused")
    assert isinstance(refusal, AssertionError)
    assert str(refusal).startswith("the first group begins a segment")
    assert await bench.write(b"two", begin=2) is None
    assert not parse_index(bytes(bench.disk.names_now[INDEX].written), 1).sealed
    bench.writer.stop()


async def test_write_when_only_the_index_fails_then_entries_count_and_index_ends() -> None:
    bench = WriterBench()
    await bench.write(b"one", begin=1)
    bench.disk.fail_at = len(bench.disk.steps) + 2  # write, sync, then the index
    assert await bench.write(b"two") is None
    assert await bench.write(b"three") is None
    await bench.seal()
    index = parse_index(bytes(bench.disk.names_now[INDEX].written), 1)
    assert len(index.rows) == 1
    assert not index.sealed
    bench.writer.stop()


async def test_unlink_when_done_then_both_files_are_gone_for_good() -> None:
    bench = WriterBench()
    await bench.write(b"one", begin=1)
    await bench.seal()
    await bench.unlink(1)
    assert bench.disk.names_now == bench.disk.names_synced == {}
    bench.writer.stop()


async def test_unlink_when_it_fails_then_the_writer_goes_on() -> None:
    bench = WriterBench()
    await bench.write(b"one", begin=1)
    await bench.seal()
    bench.disk.fail_at = len(bench.disk.steps)
    await bench.unlink(1)
    assert await bench.write(b"two", begin=2) is None
    bench.writer.stop()
