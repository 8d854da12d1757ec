"""Which answers a producer gets, in which order, and what is stored once only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.broker.live.api import AccessMode, TopicSettings
from interpulse.broker.live.producing.producer import PublishLimits
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import MetadataError, NotAllowed, PersistenceError, ProducerFenced, TopicTerminated
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import PublishRate
from interpulse.wire import pulsar_api_pb2 as pb
from tests.unit.broker.live.conftest import LiveBench, running

EAST = "pulsar.repl.east-->c"
"""The replicator of east that sends to the bench's cluster."""

EXCLUSIVE, WAIT, FENCING = AccessMode.EXCLUSIVE, AccessMode.WAIT_FOR_EXCLUSIVE, AccessMode.EXCLUSIVE_WITH_FENCING


def publish_run(producer: Any, sequence_ids: list[int], entries: list[bytes]) -> bool:
    """Publish a run if the producer takes it; return True if it does."""
    taken = producer.takes_run(sequence_ids, entries)
    if taken:
        producer.publish(sequence_ids, entries)
    return bool(taken)


async def test_publish_then_receipts_come_in_order_with_ids_as_sent(bench: Any, publish: Any) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    await publish(producer, 5, 6, 7)
    assert sink.received == [(5, -1, 1, 0), (6, -1, 1, 1), (7, -1, 1, 2)]
    assert producer.pending_count == 0
    assert producer.last_sequence_id == -1


async def test_publish_of_a_run_then_answered_and_delivered_as_one_by_one(
    bench: Any, make_entry: Any, settle: Any, publish: Any
) -> None:
    topic = await bench.topic()
    consumer, entries = await bench.consumer(topic, "s")
    consumer.flow(100)
    producer, sink = await bench.producer(topic)
    await publish(producer, 4)
    assert publish_run(producer, [5, 6, 7], [make_entry(number) for number in (5, 6, 7)])
    assert (producer.pending_count, topic.publishing.pending_count) == (3, 3)
    await publish(producer, 8)
    await settle()
    assert sink.received == [(4 + number, -1, 1, number) for number in range(5)]
    assert (producer.pending_count, topic.publishing.pending_count) == (0, 0)
    assert [(each.position, each.message_count) for each in entries.deliveries] == [((1, n), 1) for n in range(5)]
    assert entries.numbers() == [4, 5, 6, 7, 8]
    assert (producer.published.messages, topic.entries_added) == (5, 5)


async def test_takes_run_when_each_entry_has_to_be_judged_then_false(bench: Any, make_entry: Any) -> None:
    entries = [make_entry(1), make_entry(2)]
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    producer, _ = await bench.producer(topic, "pulsar.repl.a-->b", remote=True)
    assert not producer.takes_run([3, 4], entries), "the numbers in the entries count"
    others = [make_entry(1), make_entry(2, producer="q")]
    assert not producer.takes_run([1, 2], others), "the names in the entries count"
    producer, _ = await bench.producer(topic, producer_id=2)
    await topic.apply(TopicSettings(max_message_size=10))
    assert not producer.takes_run([1, 2], entries)
    await topic.apply(TopicSettings())
    producer.leave()
    assert not producer.takes_run([1, 2], entries)
    assert (producer.pending_count, topic.entries_added) == (0, 0)


async def test_takes_run_of_a_replicator_then_judged_by_the_name_in_the_entries(
    bench: Any, make_entry: Any, settle: Any
) -> None:
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    producer, sink = await bench.producer(topic, "pulsar.repl.a-->b", remote=True)
    entries = [make_entry(1), make_entry(2)]
    assert publish_run(producer, [1, 2], entries)
    assert not producer.takes_run([1, 2], entries), "they are stored"
    await settle()
    assert sink.received == [(1, -1, 1, 0), (2, -1, 1, 1)]
    assert topic.publishing.deduplication.last_sequence_id("p") == 2
    assert topic.publishing.deduplication.last_sequence_id("pulsar.repl.a-->b") == -1


async def test_takes_run_with_deduplication_then_of_new_entries_alone(
    bench: Any, make_entry: Any, settle: Any, publish: Any
) -> None:
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    producer, sink = await bench.producer(topic, "p")
    assert publish_run(producer, [1, 2, 7], [make_entry(number) for number in (1, 2, 7)])
    again = [3, 8], [7, 8], [9, 9], [9, 8], [-1, 9], [2**64 - 1]
    for ids in again:
        assert not producer.takes_run(ids, [make_entry(number % 2**63) for number in ids]), ids
    assert producer.last_sequence_id == -1, "not durable yet"
    await settle()
    assert producer.last_sequence_id == 7
    await publish(producer, 7, 8)
    assert publish_run(producer, [9], [make_entry(9)])
    await settle()
    assert sink.received == [(1, -1, 1, 0), (2, -1, 1, 1), (7, -1, 1, 2), (7, -1, -1, -1), (8, -1, 1, 3), (9, -1, 1, 4)]
    assert (producer.last_sequence_id, topic.entries_added) == (9, 5)


async def test_publish_of_a_run_when_the_topic_is_terminated_then_each_refused(bench: Any, make_entry: Any) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    await topic.log.terminate()
    producer.publish([1, 2], [make_entry(1), make_entry(2)])
    assert [(number, type(error)) for number, error in sink.failures] == [(1, TopicTerminated), (2, TopicTerminated)]
    assert producer.pending_count == 0


async def test_publish_of_a_run_when_the_write_fails_then_each_gets_the_error(
    bench: Any, make_entry: Any, settle: Any
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    producer.publish([5, 6], [make_entry(5), make_entry(6)])
    topic.on_log_failed(PersistenceError("disk"))
    assert [(number, type(error)) for number, error in sink.failures] == [
        (5, PersistenceError),
        (6, PersistenceError),
    ]
    assert producer.pending_count == 0


async def test_publish_when_the_producer_is_gone_then_the_entry_is_kept_without_an_answer(
    bench: Any, make_entry: Any, settle: Any
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    producer.publish([1], [make_entry(1)])
    producer.close()
    await settle()
    assert sink.order == []
    assert topic.internal_stats()["numberOfEntries"] == 1


async def test_publish_while_waiting_then_it_is_refused(bench: Any, make_entry: Any) -> None:
    topic = await bench.topic()
    await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    waiting, sink = await bench.producer(topic, "w", access_mode=WAIT)
    waiting.publish([1], [make_entry(1)])
    assert [type(error) for _, error in sink.failures] == [ProducerFenced]


class TestDeduplication:
    @pytest.fixture(autouse=True)
    def enabled(self, bench: Any) -> None:
        bench.settings = TopicSettings(deduplication_enabled=True, deduplication_entries_interval=3)

    async def test_repeat_is_answered_as_stored_without_a_position(self, bench: Any, publish: Any) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        await publish(producer, 1, 2)
        await publish(producer, 1, 2, 3)
        assert sink.received[2:] == [(1, -1, -1, -1), (2, -1, -1, -1), (3, -1, 1, 2)]
        assert producer.last_sequence_id == 3

    async def test_repeat_of_an_entry_in_flight_is_refused_in_its_turn(
        self, bench: Any, make_entry: Any, settle: Any
    ) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        producer.publish([1], [make_entry(1)])
        producer.publish([1], [make_entry(1)])
        assert sink.order == []
        await settle()
        assert sink.received == [(1, -1, 1, 0)]
        assert [(number, type(error)) for number, error in sink.failures] == [(1, PersistenceError)]
        assert sink.order == [1, 1]

    async def test_repeat_when_others_are_in_flight_then_its_answer_waits_for_them(
        self, bench: Any, make_entry: Any, publish: Any, settle: Any
    ) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        await publish(producer, 1)
        producer.publish([2], [make_entry(2)])
        producer.publish([1], [make_entry(1)])
        await settle()
        assert sink.order == [1, 2, 1]

    async def test_batch_counts_by_its_last_message(
        self, bench: Any, make_entry: Any, publish: Any, settle: Any
    ) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        producer.publish(
            [0],
            [make_entry(0, highest_sequence_id=9, num_messages_in_batch=10)],
            highest_sequence_id=9,
            num_messages=10,
        )
        await settle()
        await publish(producer, 9, 10)
        assert [row[2:] for row in sink.received] == [(1, 0), (-1, -1), (1, 1)]

    @pytest.mark.parametrize(
        ("sent", "twice"),
        [
            pytest.param([(0, -1, 5, {}), (3, -1, 1, {})], (), id="key-based, first id: C++ since 4.1, Go"),
            pytest.param([(3, -1, 1, {}), (5, -1, 5, {"sequence_id": 0})], (5,), id="key-based, last id: C++ before"),
            pytest.param([(3, -1, 1, {}), (5, -1, 5, {})], (), id="key-based, last id: Java"),
            pytest.param([(0, 4, 5, {"highest_sequence_id": 4}), (5, -1, 1, {})], (), id="both ids: Java"),
            pytest.param([(0, -1, 3, {}), (1, -1, 9, {}), (2, -1, 1, {}), (3, -1, 4, {})], (), id="per batch"),
            pytest.param([(0, -1, 9, {}), (9, -1, 2, {}), (11, -1, 1, {}), (12, -1, 1, {})], (), id="shrinking"),
            pytest.param([(0, -1, 1, {}), (1, -1, 2, {}), (3, -1, 30, {}), (33, -1, 1, {})], (), id="growing"),
        ],
    )
    async def test_batches_of_every_numbering_are_stored_once_also_after_a_crash(
        self, bench: Any, make_entry: Any, settle: Any, sent: Any, twice: tuple[int, ...]
    ) -> None:
        """``sent``: sequence id, highest one and message count of SEND, and what differs in the metadata.

        A client that has the last id of a batch in SEND alone may have that batch stored ``twice``, never dropped.
        """

        async def send(producer: Any) -> None:
            for sequence_id, highest, count, different in sent:
                fields = {"num_messages_in_batch": count, **different}
                entry = make_entry(fields.pop("sequence_id", sequence_id), **fields)
                producer.publish([sequence_id], [entry], highest_sequence_id=highest, num_messages=count)
                await settle()

        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        await send(producer)
        assert [row[2:] for row in sink.received] == [(1, number) for number in range(len(sent))]
        await send(producer)
        assert [row[2:] for row in sink.received[len(sent) :]] == [(-1, -1)] * len(sent)
        await bench.crash()
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        await send(producer)
        assert [max(row[:2]) for row in sink.received if row[2] >= 0] == [*twice]

    async def test_batches_of_a_replicator_that_interleave_are_all_stored(
        self, bench: Any, make_entry: Any, settle: Any
    ) -> None:
        """A real broker before 4.0.4, or one that a lane copies from: the metadata has what the client named."""
        topic = await bench.topic()
        producer, sink = await bench.producer(topic, EAST, remote=True)
        for first, count in [(0, 5), (3, 1), (6, 4)]:
            producer.publish([first], [make_entry(first, num_messages_in_batch=count)], num_messages=count)
            await settle()
        assert [row[2:] for row in sink.received] == [(1, 0), (1, 1), (1, 2)]

    async def test_lane_of_batched_entries_counts_entries(self, bench: Any, make_entry: Any, settle: Any) -> None:
        """A replication job sends whole entries; both ids are the packed position, whatever is inside."""
        topic = await bench.topic()
        producer, sink = await bench.producer(topic, "pulsar.repl.a-->b", remote=True)
        for entry in range(3):
            packed = 7 << 32 | entry
            producer.publish(
                [packed],
                [
                    make_entry(
                        packed, highest_sequence_id=packed, num_messages_in_batch=100, producer="pulsar.repl.a-->b"
                    )
                ],
                highest_sequence_id=packed,
                num_messages=100,
            )
            await settle()
        assert [row[3] for row in sink.received] == [0, 1, 2]

    async def test_other_names_have_their_own_numbers(self, bench: Any, publish: Any) -> None:
        topic = await bench.topic()
        first, _ = await bench.producer(topic, "a")
        second, sink = await bench.producer(topic, "b")
        await publish(first, 7)
        await publish(second, 7)
        assert sink.received == [(7, -1, 1, 1)]

    async def test_only_the_last_chunk_counts(self, bench: Any, make_entry: Any, settle: Any) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)

        def send(chunk: int) -> None:
            entry = make_entry(4, uuid="p-4", num_chunks_from_msg=3, chunk_id=chunk)
            producer.publish([4], [entry], is_chunk=True)

        send(0)
        send(1)
        await settle()
        assert topic.publishing.deduplication.last_sequence_id("p") == -1
        for chunk in range(3):
            send(chunk)
        await settle()
        send(2)
        assert [row[2:] for row in sink.received] == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (-1, -1)]

    async def test_markers_do_not_count(self, bench: Any, make_entry: Any, settle: Any) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        for _ in range(2):
            producer.publish([2**64 - 1], [make_entry(1, marker_type=10)], marker=True)
        await settle()
        assert len(sink.received) == 2
        assert topic.publishing.deduplication.last_sequence_id("p") == -1

    @pytest.mark.parametrize("count", [2, 3, 8])
    async def test_after_a_crash_everything_that_was_receipted_is_known(
        self, bench: Any, publish: Any, count: int
    ) -> None:
        """The lane of a replication job: the sequence id is the packed position of the source."""
        name, ids = "pulsar.repl.east-->west", [(12 << 32) | entry for entry in range(count)]
        topic = await bench.topic()
        producer, sink = await bench.producer(topic, name)
        await publish(producer, *ids)
        await topic.flush()
        assert len(sink.received) == count
        await bench.crash()
        topic = await bench.topic()
        producer, sink = await bench.producer(topic, name)
        assert producer.last_sequence_id == ids[-1]
        await publish(producer, *ids, ids[-1] + 1)
        assert [row[2:] for row in sink.received[:-1]] == [(-1, -1)] * count
        assert sink.received[-1][3] == 0

    async def test_replicator_passes_on_numbers_of_many_producers(
        self, bench: Any, make_entry: Any, settle: Any
    ) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic, "pulsar.repl.a-->b", remote=True)
        for origin, number in [("x", 5), ("y", 5), ("x", 5)]:
            producer.publish([number], [make_entry(number, producer=origin)])
            await settle()
        assert [row[2:] for row in sink.received] == [(1, 0), (1, 1), (-1, -1)]

    async def test_switching_it_off_and_on_again_forgets(self, bench: Any, publish: Any) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        await publish(producer, 5)
        await topic.apply(TopicSettings())
        assert topic.stats()["deduplicationStatus"] == "Disabled"
        await publish(producer, 5)
        await topic.apply(TopicSettings(deduplication_enabled=True))
        await publish(producer, 5)
        await publish(producer, 5)
        assert [row[2:] for row in sink.received] == [(1, 0), (1, 1), (1, 2), (-1, -1)]
        assert topic.stats()["deduplicationStatus"] == "Enabled"

    async def test_names_that_were_silent_for_long_are_forgotten(self, bench: Any, publish: Any) -> None:
        topic = await bench.topic()
        silent, _ = await bench.producer(topic, "silent")
        await publish(silent, 1)
        silent.close()
        connected, _ = await bench.producer(topic, "connected")
        await publish(connected, 1)
        bench.clock.time_ms += 361 * 60_000
        await backlog_operations.maintain(topic)
        assert topic.publishing.deduplication.last_sequence_id("silent") == -1
        assert topic.publishing.deduplication.last_sequence_id("connected") == 1


class TestReplicator:
    """Of a real broker, which knows its entries by their source positions (feature flag 6)."""

    @pytest.fixture(params=[False, True], ids=["alone", "in-a-cluster"])
    async def bench(self, request: pytest.FixtureRequest) -> AsyncIterator[LiveBench]:
        """Where brokers share topics, snapshots are Pulsar's own records."""
        async with running(LiveBench(shared=request.param)) as bench:
            yield bench

    @pytest.fixture(autouse=True)
    def enabled(self, bench: Any) -> None:
        bench.settings = TopicSettings(deduplication_enabled=True, deduplication_entries_interval=3)

    @pytest.fixture
    async def replicator(self, bench: Any) -> tuple[Any, Any]:
        return await self.connect(bench)

    async def connect(self, bench: Any) -> tuple[Any, Any]:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic, EAST, remote=True, by_source_position=True)
        return producer, sink

    def copy(self, bench: Any, number: int, *positions: str, **metadata: Any) -> bytes:
        pairs = [pb.KeyValue(key="__MSG_PROP_REPL_SOURCE_POSITION", value=value) for value in positions]
        entry: bytes = bench.entry(number, **{"replicated_from": "east", "properties": pairs, **metadata})
        return entry

    async def send(self, bench: Any, producer: Any, *rows: tuple[str, int, str]) -> None:
        for origin, number, position in rows:
            producer.publish([number], [self.copy(bench, number, position, producer=origin)])
            await bench.settle()

    async def test_low_ids_of_several_producers_in_any_order_are_all_stored(
        self, bench: Any, replicator: tuple[Any, Any]
    ) -> None:
        producer, sink = replicator
        rows = [("a", 7, "5:0"), ("b", 0, "5:1"), ("a", 3, "5:2"), ("b", 0, "6:0"), ("a", 3, "8:0")]
        await self.send(bench, producer, *rows)
        assert sink.received == [(5, 0, 1, 0), (5, 1, 1, 1), (5, 2, 1, 2), (6, 0, 1, 3), (8, 0, 1, 4)]

    async def test_repeats_are_dropped_also_after_a_crash(self, bench: Any, replicator: tuple[Any, Any]) -> None:
        producer, sink = replicator
        rows = [("a", 0, "5:0"), ("b", 0, "5:1"), ("a", 0, "5:3"), ("b", 1, "5:4"), ("a", 1, "9:0")]
        await self.send(bench, producer, *rows[:3])
        await bench.registry.flush()
        await self.send(bench, producer, *rows[3:], *rows)
        repeated = [(5, 0, -1, -1), (5, 1, -1, -1), (5, 3, -1, -1), (5, 4, -1, -1), (9, 0, -1, -1)]
        assert sink.received[5:] == repeated
        await bench.crash()
        assert (await bench.topic()).sequences.needed_from == Position(1, 2), "two entries were read again"
        producer, sink = await self.connect(bench)
        assert producer.last_sequence_id == -1
        await self.send(bench, producer, *rows, ("b", 0, "9:1"))
        assert sink.received == [*repeated, (9, 1, 2, 0)]
        await bench.registry.flush()
        await bench.restart()
        producer, sink = await self.connect(bench)
        await self.send(bench, producer, ("b", 0, "9:1"))
        assert sink.received == [(9, 1, -1, -1)]

    async def test_names_of_the_source_are_free_for_producers_of_this_cluster(
        self, bench: Any, replicator: tuple[Any, Any], publish: Any
    ) -> None:
        producer, _ = replicator
        await self.send(bench, producer, ("a", 50, "5:0"))
        await bench.crash()
        local, sink = await bench.producer(await bench.topic(), "a")
        assert local.last_sequence_id == -1
        await publish(local, 1)
        assert sink.received == [(1, -1, 2, 0)]

    async def test_repeat_of_an_entry_in_flight_is_refused(self, bench: Any, replicator: tuple[Any, Any]) -> None:
        producer, sink = replicator
        for _ in range(2):
            producer.publish([4], [self.copy(bench, 4, "5:0")])
        await bench.settle()
        assert sink.received == [(5, 0, 1, 0)]
        assert [type(error) for _, error in sink.failures] == [PersistenceError]

    async def test_each_chunk_has_a_position_of_its_own(self, bench: Any, replicator: tuple[Any, Any]) -> None:
        producer, sink = replicator
        for again in (False, True):
            for chunk in range(3):
                fields = {"uuid": "a-4", "num_chunks_from_msg": 3, "chunk_id": chunk}
                producer.publish([4], [self.copy(bench, 4, f"5:{chunk}", **fields)], is_chunk=True)
                await bench.settle()
            assert [row[2] for row in sink.received[-3:]] == ([-1, -1, -1] if again else [1, 1, 1])

    async def test_replication_markers_are_all_stored_with_a_receipt_that_says_so(
        self, bench: Any, replicator: tuple[Any, Any]
    ) -> None:
        producer, sink = replicator
        for _ in range(2):
            producer.publish([3], [bench.entry(3, marker_type=10, replicated_from="east")], marker=True)
        producer.publish([3], [bench.entry(3, marker_type=20)], marker=True)
        await bench.settle()
        assert sink.received == [(3, 2**63, 1, 0), (3, 2**63, 1, 1), (3, -1, 1, 2)]

    async def test_receipts_have_source_positions_also_while_deduplication_is_off(self, bench: Any) -> None:
        bench.settings = TopicSettings()
        producer, sink = await self.connect(bench)
        await self.send(bench, producer, ("a", 7, "5:3"), ("a", 7, "5:3"))
        assert sink.received == [(5, 3, 1, 0), (5, 3, 1, 1)]

    @pytest.mark.parametrize("position", ["5", "5:", ":5", "-1:-1", "5:3:1", "", "x:y", f"{2**63}:1"])
    async def test_entry_without_a_position_then_its_producer_and_sequence_id_count(
        self, bench: Any, replicator: tuple[Any, Any], position: str
    ) -> None:
        producer, sink = replicator
        await self.send(bench, producer, ("a", 7, position), ("b", 7, position), ("a", 7, position))
        assert sink.received == [(7, -1, 1, 0), (7, -1, 1, 1), (7, -1, -1, -1)]

    async def test_position_that_an_application_passed_on_is_only_answered(
        self, bench: Any, replicator: tuple[Any, Any]
    ) -> None:
        """Dead letters have the properties of their originals; a replicator looks for the first in its receipts."""
        producer, sink = replicator
        for number, passed_on in enumerate(["40:7", "40:6", "3:0"]):
            producer.publish([number], [self.copy(bench, number, passed_on, f"9:{number}")])
            await bench.settle()
        assert sink.received == [(40, 7, 1, 0), (40, 6, 1, 1), (3, 0, 1, 2)]
        await bench.crash()
        producer, sink = await self.connect(bench)
        await self.send(bench, producer, ("a", 0, "9:2"), ("a", 0, "9:3"))
        assert [row[2] for row in sink.received] == [-1, 2]

    async def test_run_is_given_back_because_each_entry_has_a_receipt_of_its_own(
        self, bench: Any, replicator: tuple[Any, Any]
    ) -> None:
        producer, _ = replicator
        assert not producer.takes_run([1, 2], [self.copy(bench, number, f"5:{number}") for number in (1, 2)])

    async def test_lane_that_used_the_name_does_not_stand_in_the_way(self, bench: Any) -> None:
        """Its entries have source positions too, perhaps of a cluster in between or of one that was rebuilt."""
        lane, sink = await bench.producer(await bench.topic(), EAST, remote=True)
        original = pb.KeyValue(key="__interpulse_producer", value="a")
        position = pb.KeyValue(key="__MSG_PROP_REPL_SOURCE_POSITION", value="70:1")
        packed = 70 << 32 | 1
        entry = bench.entry(packed, producer=EAST, replicated_from="east", properties=[position, original])
        lane.publish([packed], [entry])
        await bench.settle()
        await bench.crash()
        producer, sink = await self.connect(bench)
        assert producer.last_sequence_id == packed
        await self.send(bench, producer, ("a", 0, "5:0"))
        assert sink.received == [(5, 0, 2, 0)]


NOW = 1_000


@pytest.mark.parametrize(
    ("settings", "limited"),
    [
        pytest.param(TopicSettings(), False, id="no policy"),
        pytest.param(TopicSettings(publish_rate=PublishRate(1, -1)), True, id="rate"),
        pytest.param(TopicSettings(max_message_size=1), True, id="size"),
        pytest.param(TopicSettings(encryption_required=True), True, id="encryption"),
    ],
)
def test_topic_that_nothing_is_demanded_of_has_no_limits(settings: TopicSettings, limited: bool) -> None:
    assert (PublishLimits.of(settings, None, NOW) is not None) == limited


@pytest.mark.parametrize(
    ("size", "is_chunk", "refused"), [(9, False, False), (10, False, False), (11, False, True), (11, True, False)]
)
def test_size(size: int, is_chunk: bool, refused: bool) -> None:
    limits = PublishLimits(TopicSettings(max_message_size=10), NOW)
    if not refused:
        limits.check(b"x" * size, is_chunk=is_chunk, is_marker=False)
        return
    with pytest.raises(NotAllowed, match=r"^Exceed maximum message size: 11 bytes \(maxMessageSize=10\)$"):
        limits.check(b"x" * size, is_chunk=is_chunk, is_marker=False)


def test_encryption(make_entry: Any) -> None:
    limits = PublishLimits(TopicSettings(encryption_required=True), NOW)
    limits.check(
        make_entry(1, encryption_keys=[pb.EncryptionKeys(key="k", value=b"v")]), is_chunk=False, is_marker=False
    )
    limits.check(make_entry(1), is_chunk=False, is_marker=True)
    with pytest.raises(MetadataError, match="Messages must be encrypted"):
        limits.check(make_entry(1), is_chunk=False, is_marker=False)


def test_rate_that_stays_goes_on_counting_when_other_settings_change() -> None:
    rate = PublishRate(2, -1)
    limits = PublishLimits(TopicSettings(publish_rate=rate), NOW)
    assert [limits.charge(1, 1, NOW), limits.charge(1, 1, NOW)] == [0, 500]
    after = PublishLimits.of(TopicSettings(publish_rate=rate, max_message_size=9), limits, NOW)
    assert after is not None
    assert (after.charge(1, 1, NOW), after.throttled_count) == (1000, 2)
    fresh = PublishLimits.of(TopicSettings(publish_rate=PublishRate(3, -1)), after, NOW)
    assert fresh is not None
    assert fresh.charge(1, 1, NOW) == 0


def test_very_short_waits_are_joined() -> None:
    limits = PublishLimits(TopicSettings(publish_rate=PublishRate(1_000, -1)), NOW)
    assert limits.charge(1_000, 1, NOW) == 10


# --- on a topic


async def limited(bench: Any, **settings: Any) -> Topic:
    bench.settings = TopicSettings(**settings)
    topic: Topic = await bench.topic()
    return topic


async def test_producers_of_a_topic_share_its_rate_and_nothing_is_refused(bench: Any, publish: Any) -> None:
    topic = await limited(bench, publish_rate=PublishRate(4, -1))
    one, of_one = await bench.producer(topic, "one")
    two, of_two = await bench.producer(topic, "two", producer_id=2)
    await publish(one, 0, 1)
    await publish(two, 0)
    assert of_one.throttled == of_two.throttled == []
    await publish(two, 1)
    await publish(one, 2)
    assert (of_one.throttled, of_two.throttled) == ([500], [250])
    assert (len(of_one.received), len(of_two.received)) == (3, 2)
    assert of_one.failures == of_two.failures == []
    assert topic.stats()["publishRateLimitedTimes"] == 2
    bench.clock.time_ms += 500
    await publish(one, 3)
    assert of_one.throttled == [500, 250]


async def test_rate_in_bytes_counts_what_is_stored(bench: Any, make_entry: Any) -> None:
    entry = make_entry(0)
    topic = await limited(bench, publish_rate=PublishRate(-1, 2 * len(entry)))
    producer, sink = await bench.producer(topic)
    producer.publish([0], [entry])
    assert sink.throttled == []
    producer.publish([1], [entry])
    assert len(sink.throttled) == 1


async def test_batch_counts_its_messages(bench: Any, make_entry: Any) -> None:
    topic = await limited(bench, publish_rate=PublishRate(10, -1))
    producer, sink = await bench.producer(topic)
    producer.publish([0], [make_entry(0, num_messages_in_batch=30)], num_messages=30)
    assert sink.throttled == [2100]


async def test_rate_that_is_taken_away_lets_all_producers_go_on(bench: Any, publish: Any) -> None:
    topic = await limited(bench, publish_rate=PublishRate(1, -1))
    producer, sink = await bench.producer(topic)
    await publish(producer, 0, 1, 2)
    await topic.apply(TopicSettings())
    assert sink.throttled == [1000, 2000, 3000, 0]
    await publish(producer, 3)
    assert len(sink.throttled) == 4


async def test_entry_that_is_too_large_is_refused_in_its_turn(bench: Any, make_entry: Any) -> None:
    small, large = make_entry(1), make_entry(1_000_000)
    topic = await limited(bench, max_message_size=len(small))
    producer, sink = await bench.producer(topic)
    producer.publish([1], [small])
    producer.publish([2], [large])
    producer.publish([3], [small])
    await bench.settle()
    assert sink.order == [1, 2, 3]
    [(number, error)] = sink.failures
    assert (number, type(error)) == (2, NotAllowed)
    await topic.apply(TopicSettings())
    producer.publish([4], [large])
    await bench.settle()
    assert sink.received[-1][0] == 4


async def test_producer_without_encryption_is_refused_and_an_open_one_sent_away(bench: Any) -> None:
    topic = await limited(bench)
    _, plain = await bench.producer(topic, "plain")
    _, encrypting = await bench.producer(topic, "encrypting", producer_id=2, encrypted=True)
    await topic.apply(TopicSettings(encryption_required=True))
    assert (plain.closed, encrypting.closed) == ([1], [])
    with pytest.raises(MetadataError, match=f"^Encryption is required in {topic.name}"):
        await bench.producer(topic, "plain")


async def test_topics_of_the_system_are_not_limited(bench: Any, publish: Any) -> None:
    bench.settings = TopicSettings(publish_rate=PublishRate(1, -1), max_producers=1, encryption_required=True)
    topic = await bench.topic(TopicName.parse("persistent://pulsar/system/t"))
    producer, sink = await bench.producer(topic, "a")
    await bench.producer(topic, "b", producer_id=2)
    await publish(producer, 0, 1)
    assert (sink.throttled, len(sink.received)) == ([], 2)


async def test_non_persistent_topic_is_limited_as_well(bench: Any, publish: Any) -> None:
    bench.settings = TopicSettings(publish_rate=PublishRate(1, -1), max_message_size=10_000, max_producers=1)
    topic = await bench.registry.open(TopicName.parse("non-persistent://public/default/t"))
    producer, sink = await bench.producer(topic)
    await publish(producer, 0)
    assert sink.throttled == [1000]
    assert topic.stats()["publishRateLimitedTimes"] == 1
