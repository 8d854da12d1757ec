"""Which answers a producer gets, in which order, and what is stored once only."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.registry import upkeep
from interpulse.broker.live.requests import AccessMode
from interpulse.broker.live.settings import TopicSettings
from interpulse.model.errors import PersistenceError, ProducerFenced

EXCLUSIVE, WAIT, FENCING = AccessMode.EXCLUSIVE, AccessMode.WAIT_FOR_EXCLUSIVE, AccessMode.EXCLUSIVE_WITH_FENCING


async def test_publish_then_receipts_come_in_order_with_ids_as_sent(bench: Any, publish: Any) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    await publish(producer, 5, 6, 7)
    assert sink.received == [(5, -1, 1, 0), (6, -1, 1, 1), (7, -1, 1, 2)]
    assert producer.pending_count == 0
    assert producer.last_sequence_id == -1


async def test_publish_all_then_answered_and_delivered_as_one_by_one(
    bench: Any, make_entry: Any, settle: Any, publish: Any
) -> None:
    topic = await bench.topic()
    consumer, entries = await bench.consumer(topic, "s")
    consumer.flow(100)
    producer, sink = await bench.producer(topic)
    await publish(producer, 4)
    assert producer.publish_all([5, 6, 7], [make_entry(number) for number in (5, 6, 7)])
    assert (producer.pending_count, topic.pending_count) == (3, 3)
    await publish(producer, 8)
    await settle()
    assert sink.received == [(4 + number, -1, 1, number) for number in range(5)]
    assert (producer.pending_count, topic.pending_count) == (0, 0)
    assert [(each.position, each.message_count) for each in entries.deliveries] == [((1, n), 1) for n in range(5)]
    assert entries.numbers() == [4, 5, 6, 7, 8]
    assert (producer.published.messages, topic.entries_added) == (5, 5)


async def test_publish_all_when_each_entry_has_to_be_judged_then_refused_and_nothing_stored(
    bench: Any, make_entry: Any
) -> None:
    entries = [make_entry(1), make_entry(2)]
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    producer, _ = await bench.producer(topic, "pulsar.repl.a-->b", remote=True)
    assert not producer.publish_all([3, 4], entries), "the numbers in the entries count"
    others = [make_entry(1), make_entry(2, producer="q")]
    assert not producer.publish_all([1, 2], others), "the names in the entries count"
    producer, _ = await bench.producer(topic, producer_id=2)
    await topic.apply(TopicSettings(max_message_size=10))
    assert not producer.publish_all([1, 2], entries)
    await topic.apply(TopicSettings())
    producer.leave()
    assert not producer.publish_all([1, 2], entries)
    assert (producer.pending_count, topic.entries_added) == (0, 0)


async def test_publish_all_of_a_replicator_then_judged_by_the_name_in_the_entries(
    bench: Any, make_entry: Any, settle: Any
) -> None:
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    producer, sink = await bench.producer(topic, "pulsar.repl.a-->b", remote=True)
    entries = [make_entry(1), make_entry(2)]
    assert producer.publish_all([1, 2], entries)
    assert not producer.publish_all([1, 2], entries), "they are stored"
    await settle()
    assert sink.received == [(1, -1, 1, 0), (2, -1, 1, 1)]
    assert topic.deduplication.last_sequence_id("p") == 2
    assert topic.deduplication.last_sequence_id("pulsar.repl.a-->b") == -1


async def test_publish_all_with_deduplication_then_new_runs_are_stored_and_no_other(
    bench: Any, make_entry: Any, settle: Any, publish: Any
) -> None:
    bench.settings = TopicSettings(deduplication_enabled=True)
    topic = await bench.topic()
    producer, sink = await bench.producer(topic, "p")
    assert producer.publish_all([1, 2, 7], [make_entry(number) for number in (1, 2, 7)])
    again = [3, 8], [7, 8], [9, 9], [9, 8], [-1, 9], [2**64 - 1]
    for ids in again:
        assert not producer.publish_all(ids, [make_entry(number % 2**63) for number in ids]), ids
    assert producer.last_sequence_id == -1, "not durable yet"
    await settle()
    assert producer.last_sequence_id == 7
    await publish(producer, 7, 8)
    assert producer.publish_all([9], [make_entry(9)])
    await settle()
    assert sink.received == [(1, -1, 1, 0), (2, -1, 1, 1), (7, -1, 1, 2), (7, -1, -1, -1), (8, -1, 1, 3), (9, -1, 1, 4)]
    assert (producer.last_sequence_id, topic.entries_added) == (9, 5)


async def test_publish_all_when_the_topic_is_terminated_then_refused(bench: Any, make_entry: Any) -> None:
    topic = await bench.topic()
    producer, _ = await bench.producer(topic)
    await topic.log.terminate()
    assert not producer.publish_all([1, 2], [make_entry(1), make_entry(2)])


async def test_publish_all_when_the_write_fails_then_each_gets_the_error(
    bench: Any, make_entry: Any, settle: Any
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    producer.publish_all([5, 6], [make_entry(5), make_entry(6)])
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
    producer.publish(1, -1, 1, make_entry(1))
    producer.close()
    await settle()
    assert sink.order == []
    assert topic.internal_stats()["numberOfEntries"] == 1


async def test_publish_while_waiting_then_it_is_refused(bench: Any, make_entry: Any) -> None:
    topic = await bench.topic()
    await bench.producer(topic, "e", access_mode=EXCLUSIVE)
    waiting, sink = await bench.producer(topic, "w", access_mode=WAIT)
    waiting.publish(1, -1, 1, make_entry(1))
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
        producer.publish(1, -1, 1, make_entry(1))
        producer.publish(1, -1, 1, make_entry(1))
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
        producer.publish(2, -1, 1, make_entry(2))
        producer.publish(1, -1, 1, make_entry(1))
        await settle()
        assert sink.order == [1, 2, 1]

    async def test_batch_counts_by_its_last_message(
        self, bench: Any, make_entry: Any, publish: Any, settle: Any
    ) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        producer.publish(0, 9, 10, make_entry(0, highest_sequence_id=9, num_messages_in_batch=10))
        await settle()
        await publish(producer, 9, 10)
        assert [row[2:] for row in sink.received] == [(1, 0), (-1, -1), (1, 1)]

    @pytest.mark.parametrize("id_in_command", [5, 7])
    async def test_batch_of_a_client_that_sends_its_first_or_its_last_id_is_known_after_a_crash(
        self, bench: Any, make_entry: Any, settle: Any, id_in_command: int
    ) -> None:
        """C++ clients before 4.1 put the last id of a batch into SEND, later ones the first."""
        topic = await bench.topic()
        for crashed in (False, True):
            producer, sink = await bench.producer(topic)
            producer.publish(id_in_command, -1, 3, make_entry(5, num_messages_in_batch=3))
            await settle()
            producer.publish(id_in_command + 3, -1, 3, make_entry(8, num_messages_in_batch=3))
            await settle()
            assert [row[2] for row in sink.received] == ([-1, -1] if crashed else [1, 1])
            if not crashed:
                await bench.crash()
                topic = await bench.topic()
                assert topic.deduplication.last_sequence_id("p") == 10

    async def test_lane_of_batched_entries_counts_entries(self, bench: Any, make_entry: Any, settle: Any) -> None:
        """A replication job sends whole entries; both ids are the packed position, whatever is inside."""
        topic = await bench.topic()
        producer, sink = await bench.producer(topic, "pulsar.repl.a-->b", remote=True)
        for entry in range(3):
            packed = 7 << 32 | entry
            producer.publish(
                packed,
                packed,
                100,
                make_entry(packed, highest_sequence_id=packed, num_messages_in_batch=100, producer="pulsar.repl.a-->b"),
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
            producer.publish(4, -1, 1, entry, True)

        send(0)
        send(1)
        await settle()
        assert topic.deduplication.last_sequence_id("p") == -1
        for chunk in range(3):
            send(chunk)
        await settle()
        send(2)
        assert [row[2:] for row in sink.received] == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (-1, -1)]

    async def test_markers_do_not_count(self, bench: Any, make_entry: Any, settle: Any) -> None:
        topic = await bench.topic()
        producer, sink = await bench.producer(topic)
        for _ in range(2):
            producer.publish(2**64 - 1, -1, 1, make_entry(1, marker_type=10), False, True)
        await settle()
        assert len(sink.received) == 2
        assert topic.deduplication.last_sequence_id("p") == -1

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
            producer.publish(number, -1, 1, make_entry(number, producer=origin))
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
        await upkeep.maintain(topic)
        assert topic.deduplication.last_sequence_id("silent") == -1
        assert topic.deduplication.last_sequence_id("connected") == 1
