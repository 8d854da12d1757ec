"""How the reading of ranges ends: whatever stops it is told, an end without error means that all was read."""

import asyncio
import queue
from typing import Any

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.consuming.entry_reader import EntryRun, entries_of
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, DataLoss
from interpulse.model.ids import Position
from interpulse.spark.offsets import TopicRange
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading import fetch
from interpulse.spark.reading.read_columns import columns_of_query, schema_of_query
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.entries import build_entry
from tests.unit.client.consuming.test_entry_reader import LogBroker, log_of

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
    arrived: queue.Queue[Any] = queue.Queue()
    reads = fetch._read_all(OPTIONS, [RANGE], arrived, asyncio.Semaphore(1))
    (failure,) = await asyncio.gather(reads, return_exceptions=True)
    assert arrived.get_nowait() is None
    return failure


async def test_failure_before_the_first_range_is_told(monkeypatch):
    assert isinstance(await end_of_reading(monkeypatch, session=ValueError("no URL")), ValueError)


async def test_failure_of_a_range_is_told(monkeypatch):
    assert isinstance(await end_of_reading(monkeypatch, reading=OSError("disk")), OSError)


async def test_range_whose_reading_was_cancelled_is_no_success(monkeypatch):
    assert isinstance(await end_of_reading(monkeypatch, reading=asyncio.CancelledError()), AlreadyClosed)


@pytest.mark.parametrize(
    ("after", "upto"),
    [(Position(1, 3), Position(1, 4)), (Position(1, 8), Position(1, 9)), (Position(1, 8), Position(2, 0))],
    ids=["markers-alone", "behind-the-end-of-the-ledger", "from-there-on"],
)
async def test_range_without_entries_in_its_ledger_is_no_loss_while_the_ledger_is_there(after, upto):
    log = log_of(7) | log_of(2, ledger=2)
    del log[Position(1, 4)]
    item = TopicRange(RANGE.topic, after, upto, first=Position(after.ledger, after.entry + 1))
    assert await positions_of(log, item) == [position for position in sorted(log) if after < position <= upto]


@pytest.mark.parametrize("upto", [Position(1, 4), Position(2, 0)], ids=["all", "the-start"])
async def test_range_whose_ledger_is_gone_is_a_loss(upto):
    item = TopicRange(RANGE.topic, Position(1, 3), upto, first=Position(1, 4))
    with pytest.raises(DataLoss, match=r"behind 1:3 up to .* are gone.*failOnDataLoss=false"):
        await positions_of(log_of(2, ledger=2), item)


async def positions_of(log, item):
    async with LogBroker(log) as broker:
        session = Session(ClientConfig(broker.url, operation_timeout_ms=60_000))
        try:
            chunks = [chunk async for chunk in fetch._read_range(session, OPTIONS, item, 1 << 20)]
        finally:
            await session.close()
        return [entry.position for chunk in chunks for entry in entries_of(chunk)]


def entry_of(number, count):
    metadata = pb.MessageMetadata(
        producer_name="p", sequence_id=number, publish_time=1, num_messages_in_batch=count
    ).SerializeToString()
    raw = build_entry(
        metadata, pack_batch((pb.SingleMessageMetadata(payload_size=0), bytes(1000)) for _ in range(count))
    )
    return EntryRun([Position(1, number)], [raw])


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
