"""Lanes of rows against a target that is a list: batches repeated in part, in another order, with other rows."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import NO_SEQUENCE, StreamTask, batch_sequence
from interpulse.spark.writing.broker_target import StoredEntry
from interpulse.spark.writing.lane import HolesFound, LaneInUse
from interpulse.spark.writing.message_writer import MessageWriter
from interpulse.spark.writing.row_lanes import RowLanes, RowsDiffer
from interpulse.spark.writing.sink_rows import stored_messages
from interpulse.spark.writing.write_options import parse_write_options
from interpulse.wire.entries import parse_entry

TOPIC = "persistent://t/ns/a"


class Broker:
    """Entries in one list per topic-partition, de-duplicated as Pulsar does; ``fails_at``: row ids it cannot store."""

    def __init__(self):
        self.log = []
        self.known = {}
        self.fails_at = set()
        self.partition_count = 1
        self.read_from = []

    async def partitions(self, topic):
        return self.partition_count

    async def open_lane(self, topic, producer_name, *, is_new, schema=None):
        return Sender(self, topic, producer_name)

    async def read_back(self, topic, after, producer_name):
        self.read_from.append(after)
        for index, (place, name, entry) in enumerate(self.log):
            if (place, name) == (topic, producer_name) and Position(1, index) > after:
                parsed = parse_entry(entry)
                metadata = parsed.metadata
                highest = max(metadata.sequence_id, metadata.highest_sequence_id)
                yield StoredEntry(metadata.sequence_id, Position(1, index), highest, parsed)

    def values(self, topic=f"{TOPIC}-partition-0"):
        entries = [parse_entry(entry) for place, _, entry in self.log if place == topic]
        stored = [StoredEntry(0, EARLIEST, 0, entry) for entry in entries]
        return [(message.value or b"").decode() for entry in stored for message in stored_messages(entry)]


class Sender:
    schema = None
    runs = None
    schema_version = b""
    unproven_after = None

    def __init__(self, broker, topic, name):
        self.broker, self.topic, self.name = broker, topic, name
        self.last_sequence_id = broker.known.get((topic, name), NO_SEQUENCE)
        self.last_position = None
        self.refused = []
        self.failure = None

    async def send(self, sequence_ids, counts, entries, *, is_chunk=False, highest_id=None):
        broker, key = self.broker, (self.topic, self.name)
        (sequence_id,), (entry,) = sequence_ids, entries
        if sequence_id in broker.fails_at:
            self.failure = RuntimeError("disk full")
        elif sequence_id <= broker.known.get(key, NO_SEQUENCE):
            self.refused.append(sequence_id)
        else:
            broker.known[key] = highest_id
            broker.log.append((*key, entry))
            self.last_position = Position(1, len(broker.log) - 1)

    async def drain(self):
        if self.failure is not None:
            raise self.failure

    async def close(self):
        """Nothing to give back."""


class Query:
    """Writes micro-batches and keeps the states of their lanes."""

    def __init__(self, broker, **options):
        given = {"service.url": "pulsar://x:1", "topic": TOPIC, "deliveryGuarantee": "exactly-once", **options}
        self.options = parse_write_options(given)
        self.broker = broker
        self.states = {}

    def write(self, batch, columns, *, partition=0, committed=True):
        reports = asyncio.run(self._write(StreamTask("query", batch, partition), columns))
        if committed:
            self.states = {**self.states, **{each.key: each.state for each in reports}}
        return reports

    async def _write(self, task, columns):
        lanes = RowLanes(self.options, self.broker, self.states, task)
        writer = MessageWriter(self.options, self.broker, lanes, None)
        try:
            await writer.write(pa.record_batch(columns))
            return await writer.finish()
        finally:
            await writer.close()


def values(*given, key="k"):
    return {"value": list(given), "__key": [key] * len(given)}


@pytest.fixture
def broker():
    return Broker()


def test_batches_are_written_one_after_the_other_without_reading_back(broker):
    query = Query(broker)
    query.write(0, values("a", "b"))
    query.write(1, values("c"))
    assert broker.values() == ["a", "b", "c"]
    assert broker.read_from == []
    assert broker.known == {(f"{TOPIC}-partition-0", "interpulse.query.0"): batch_sequence(1, 0)}


@pytest.mark.parametrize(
    "packing", [{}, {"batchingMaxMessages": "1"}, {"batchingMaxMessages": "2", "compressionType": "zlib"}]
)
def test_repeated_batch_stores_the_rest(broker, packing):
    query = Query(broker, **packing)
    query.write(0, values("a"))
    query.write(1, values("b", "c", "d"), committed=False)
    (report,) = query.write(1, values("b", "c", "d", "e"))
    assert broker.values() == ["a", "b", "c", "d", "e"]
    assert (report.replays, report.messages) == (3, 1)
    assert broker.read_from == [Position(1, 0)], "what lies before the last commit is not read again"
    query.write(2, values("f"))
    assert len(broker.read_from) == 1


def test_repeated_batch_may_come_in_another_order_with_rows_that_are_alike(broker):
    query = Query(broker)
    query.write(0, values("a", "b", "a"), committed=False)
    query.write(0, values("b", "a", "c", "a", "a"))
    assert sorted(broker.values()) == ["a", "a", "a", "b", "c"]


def test_batch_that_was_stored_completely_is_repeated_without_sending(broker):
    query = Query(broker)
    query.write(0, values("a", "b"), committed=False)
    (report,) = query.write(0, values("a", "b"))
    assert (broker.values(), report.messages) == (["a", "b"], 0)
    query.write(1, values("c"))
    assert broker.values() == ["a", "b", "c"]


def test_broker_that_forgot_the_name_does_not_get_rows_twice(broker):
    query = Query(broker)
    query.write(0, values("a"))
    query.write(1, values("b"), committed=False)
    broker.known.clear()
    query.write(1, values("b", "c"))
    assert broker.values() == ["a", "b", "c"]


def test_rows_that_do_not_come_again_end_the_query_with_the_remedy(broker):
    query = Query(broker)
    query.write(0, values("a", "b"), committed=False)
    with pytest.raises(RowsDiffer, match=r"micro-batch 0 .* 1 rows .*\.option\(\"dedup\", \"column\"\)"):
        query.write(0, values("a", "x"))


def test_rows_differ_where_key_or_properties_do(broker):
    query = Query(broker)
    query.write(0, values("a"), committed=False)
    with pytest.raises(RowsDiffer):
        query.write(0, {**values("a"), "__eventTime": [7]})


def test_hole_that_a_failed_send_made_is_reported(broker):
    query = Query(broker, batchingMaxMessages="1")
    broker.fails_at = {batch_sequence(0, 1)}
    with pytest.raises(RuntimeError, match="disk full"):
        query.write(0, values("a", "b", "c"))
    broker.fails_at = set()
    with pytest.raises(HolesFound, match=f"sequence id {batch_sequence(0, 1)} .1 in all"):
        query.write(0, values("a", "b", "c"))


def test_numbers_of_a_later_batch_are_of_another_query(broker):
    query = Query(broker)
    query.write(4, values("a"))
    query.states = {}
    for batch in (3, 5):
        with pytest.raises(LaneInUse, match="laneEpoch"):
            query.write(batch, values("a"))


def test_next_epoch_is_another_producer(broker):
    Query(broker).write(4, values("a"))
    Query(broker, laneEpoch="1").write(0, values("b"))
    assert broker.values() == ["a", "b"]


def test_tasks_have_lanes_of_their_own_and_rows_without_key_one_partition_in_every_attempt(broker):
    broker.partition_count = 3
    query = Query(broker)
    for _ in range(2):
        query.write(0, {"value": ["a", "b"]}, partition=1, committed=False)
        query.write(0, {"value": ["c"]}, partition=2, committed=False)
    assert [broker.values(f"{TOPIC}-partition-{index}") for index in range(3)] == [[], ["a", "b"], ["c"]]


def test_new_lane_of_a_known_topic_is_read_back_from_the_last_commit(broker):
    query = Query(broker)
    query.write(0, values("a"))
    query.write(1, values("b"), partition=5, committed=False)
    query.write(1, values("b"), partition=5)
    assert broker.values() == ["a", "b"]
    assert broker.read_from == [Position(1, 0)]


def numbered(*ids, name="app"):
    return {"value": [str(each) for each in ids], "__sequenceId": list(ids), "__producerName": [name] * len(ids)}


def test_ids_of_the_user_tell_repeats_across_batches_and_queries(broker):
    query = Query(broker, dedup="column")
    query.write(0, numbered(10, 11))
    query.write(1, numbered(11, 12), committed=False)
    (report,) = query.write(1, numbered(11, 12, 13))
    assert (broker.values(), report.replays) == (["10", "11", "12", "13"], 2)
    Query(broker, dedup="column").write(0, numbered(13, 14))
    assert broker.values() == ["10", "11", "12", "13", "14"]
    assert {name for _, name in broker.known} == {"app"}


def test_ids_of_the_user_count_by_producer(broker):
    query = Query(broker, dedup="column")
    both = {
        key: one + other
        for (key, one), other in zip(numbered(1, 2).items(), numbered(1, name="b").values(), strict=True)
    }
    query.write(0, both)
    assert sorted(broker.values()) == ["1", "1", "2"]


def test_ids_of_a_broker_that_forgot_them_are_looked_up_on_the_target(broker):
    query = Query(broker, dedup="column")
    query.write(0, numbered(1, 2))
    query.write(1, numbered(3), committed=False)
    broker.known.clear()
    query.write(1, numbered(2, 3, 4))
    assert broker.values() == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (numbered(2, 1), "__sequenceId 1 of producer app comes after 2.*sortWithinPartitions"),
        ({"value": ["a"], "__sequenceId": pa.array([None], pa.int64())}, "__sequenceId of a row for .* is None"),
    ],
)
def test_ids_that_do_not_rise_are_refused(broker, rows, said):
    with pytest.raises(InvalidRequest, match=said):
        Query(broker, dedup="column").write(0, rows)
