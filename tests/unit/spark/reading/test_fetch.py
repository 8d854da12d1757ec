"""How the reading of ranges ends: whatever stops it is told, an end without error means that all was read."""

import asyncio
import queue

from interpulse.model.errors import AlreadyClosed
from interpulse.model.ids import Position
from interpulse.spark.offsets import TopicRange
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading import fetch
from interpulse.spark.reading.read_options import parse_read_options

OPTIONS = parse_read_options({"service.url": "pulsar://x:1", "topics": "t/ns/a"}, Purpose.STREAM_READ)
RANGE = TopicRange("persistent://t/ns/a", Position(1, -1), Position(1, 9))


async def end_of_reading(monkeypatch, *, session=None, reading=None):
    async def session_for(url, timeout_ms, access, patience):
        if session is not None:
            raise session

    async def read_range(*arguments):
        raise reading
        yield

    monkeypatch.setattr(fetch, "session_for", session_for)
    monkeypatch.setattr(fetch, "_read_range", read_range)
    arrived = queue.Queue()
    await asyncio.gather(fetch._read_all(OPTIONS, [RANGE], arrived, asyncio.Semaphore(1)), return_exceptions=True)
    return arrived.get_nowait().error


async def test_failure_before_the_first_range_is_told(monkeypatch):
    assert isinstance(await end_of_reading(monkeypatch, session=ValueError("no URL")), ValueError)


async def test_failure_of_a_range_is_told(monkeypatch):
    assert isinstance(await end_of_reading(monkeypatch, reading=OSError("disk")), OSError)


async def test_range_whose_reading_was_cancelled_is_no_success(monkeypatch):
    assert isinstance(await end_of_reading(monkeypatch, reading=asyncio.CancelledError()), AlreadyClosed)
