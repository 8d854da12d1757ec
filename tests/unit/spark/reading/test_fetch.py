"""How the reading of ranges ends: whatever stops it is told, an end without error means that all was read."""

import asyncio
import queue

from interpulse.client.consuming.entry_reader import Entry
from interpulse.model.errors import AlreadyClosed
from interpulse.model.ids import Position
from interpulse.spark.offsets import TopicRange
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading import fetch
from interpulse.spark.reading.read_columns import columns_of_query, schema_of_query
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.entries import build_entry, parse_entry

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


def entry_of(number, count):
    metadata = pb.MessageMetadata(
        producer_name="p", sequence_id=number, publish_time=1, num_messages_in_batch=count
    ).SerializeToString()
    raw = build_entry(
        metadata, pack_batch((pb.SingleMessageMetadata(payload_size=0), bytes(1000)) for _ in range(count))
    )
    return Entry(Position(1, number), raw, parse_entry(raw))


def test_what_arrives_at_once_makes_arrow_batches_of_the_size_that_is_asked_for(monkeypatch):
    async def session_for(*arguments):
        return None

    async def read_range(*arguments):
        yield [entry_of(number, count=10) for number in range(100)]

    monkeypatch.setattr(fetch, "session_for", session_for)
    monkeypatch.setattr(fetch, "_read_range", read_range)
    options = parse_read_options({"service.url": "pulsar://x:1", "topics": "t/ns/a", "arrowBatchBytes": "100k"})
    columns = columns_of_query(options, schema_of_query(options, {}), {})
    batches = list(fetch.fetch_batches(options, columns, [RANGE]))
    assert sum(batch.num_rows for batch in batches) == 1000
    assert max(batch.num_rows for batch in batches) == 120  # 100 kB, and what is behind them in a piece of 25 kB
