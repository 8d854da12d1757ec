"""Lanes against a target that is a list: normal batches, retries, lost broker state, holes, strangers."""

import asyncio
import itertools
import operator
from typing import NamedTuple

import pytest

from interpulse.client.consuming.entry_reader import EntryRun
from interpulse.client.producing.unconfirmed import Receipt
from interpulse.model.errors import IncompatibleSchema, NotAllowed, NotConnected, PersistenceError, TopicTerminated
from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.position_runs import PositionRuns, Run
from interpulse.spark.lanes import NO_SEQUENCE, LaneState, PositionTooLarge, pack_sequence
from interpulse.spark.writing.broker_target import StoredEntry
from interpulse.spark.writing.lane import HolesFound, LaneInUse
from interpulse.spark.writing.lane_writer import EntryRows, LaneWriter
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry

TOPIC = "persistent://t/ns/a"
OTHER_TOPIC = "persistent://t/ns/b"


class Stored(NamedTuple):
    topic: str
    producer: str
    sequence_id: int
    entry: bytes = b""


class FakeTarget:
    """Stored entries in one list; remembers the last id per topic and producer name as a broker does."""

    def __init__(self):
        self.stored = []
        self.known = {}
        self.failing = set()
        self.failure_kind: type[Exception] = RuntimeError
        self.refused = {}
        self.opened = []
        self.closed = []
        self.close_failures = {}
        self.sent = []
        self.read_backs = 0
        self.versions = {}
        self.receipts = 0
        """How many receipts each sender has received."""

    async def open_lane(self, topic, producer_name, *, is_new):
        self.opened.append((topic, producer_name, is_new))
        if topic in self.refused:
            raise self.refused[topic]
        return FakeSender(self, topic, producer_name)

    async def read_back(self, topic, after, producer_name):
        self.read_backs += 1
        for index, each in enumerate(self.stored):
            if (each.topic, each.producer) == (topic, producer_name) and Position(1, index) > after:
                yield StoredEntry(each.sequence_id, Position(1, index))

    async def schema_version(self, topic, version):
        found = self.versions.get((topic, version))
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def ids(self):
        return [each.sequence_id for each in self.stored]


class FakeSender:
    unproven_after = None

    def __init__(self, target, topic, name):
        self.target, self.topic, self.name = target, topic, name
        self.last_sequence_id = target.known.get((topic, name), NO_SEQUENCE)
        self.last_position = None
        self.refused = []
        self.failure = None
        self.runs = None
        self.sent_count = self.received_count = 0

    async def send(self, sequence_ids, counts, entries, *, is_chunk=False, highest_id=None):
        for sequence_id, count, entry in zip(sequence_ids, counts, entries, strict=True):
            self._send(sequence_id, count, entry, is_chunk)
        self.sent_count += 1

    async def send_marker(self, sequence_id, entry):
        self.target.stored.append(Stored(self.topic, "", sequence_id, entry))
        self.sent_count += 1

    def take_receipts(self):
        self.received_count = min(self.sent_count, self.target.receipts)

    def _send(self, sequence_id, num_messages, entry, is_chunk):
        target = self.target
        target.sent.append((num_messages, is_chunk))
        if sequence_id in target.failing:
            self.failure = target.failure_kind("disk full")
        elif sequence_id <= target.known.get((self.topic, self.name), NO_SEQUENCE):
            self.refused.append(sequence_id)
        else:
            target.stored.append(Stored(self.topic, self.name, sequence_id, entry))
            target.known[self.topic, self.name] = sequence_id
            self.last_position = Position(1, len(target.stored) - 1)
            if self.runs is not None:
                self.runs.add_receipt(Receipt([sequence_id], [self.last_position]), ())

    async def drain(self):
        if self.failure is not None:
            raise self.failure

    async def close(self):
        if self.topic in self.target.close_failures:
            raise self.target.close_failures[self.topic]
        for _ in range(3):  # the broker's answer takes a while
            await asyncio.sleep(0)
        self.target.closed.append(self.topic)


class SendingTwice(FakeTarget):
    """The connection is lost between each entry and its receipt, so each is sent again."""

    async def open_lane(self, topic, producer_name, *, is_new):
        class Sender(FakeSender):
            def _send(self, *facts):
                super()._send(*facts)
                super()._send(*facts)

        return Sender(self, topic, producer_name)


def rows(*entries, ledger=5, topic=TOPIC, **values):
    metadata = pb.MessageMetadata(producer_name="app", sequence_id=1, publish_time=1, **values).SerializeToString()
    count = len(entries)
    return EntryRows([topic] * count, [ledger] * count, list(entries), [metadata] * count, [b"payload"] * count)


@pytest.fixture(params=["rows", "entries", "runs"], autouse=True)
def way(request, monkeypatch):
    """However entries come to the lanes, as rows, as they were read or in runs, the same happens."""
    monkeypatch.setattr(f"{__name__}.put", {"rows": put, "entries": put_entries, "runs": put_runs}[request.param])


async def put(writer, batch):
    await writer.write(batch)


async def put_entries(writer, batch):
    for topic, ledger, number, metadata, payload in zip(*batch, strict=True):
        if metadata:
            raw = build_entry(metadata, payload)
            await writer.copy(topic, [EntryRun([Position(ledger, number)], [raw], [parse_entry(raw)])])
        else:
            writer.refuse(topic, Position(ledger, number - 1), Position(ledger, number), payload.decode())


async def put_runs(writer, batch):
    for topic, rows_of_topic in itertools.groupby(zip(*batch, strict=True), key=operator.itemgetter(0)):
        for is_refused, group in itertools.groupby(rows_of_topic, key=lambda row: not row[3]):
            rows_of_run = list(group)
            if is_refused:
                await put_entries(writer, EntryRows(*zip(*rows_of_run, strict=True)))
                continue
            positions = [Position(ledger, number) for _, ledger, number, _, _ in rows_of_run]
            raws = [build_entry(metadata, payload) for *_, metadata, payload in rows_of_run]
            await writer.copy(topic, [EntryRun(positions, raws)])


def lanes(target, states, **more):
    options = WriteOptions(
        service_url="pulsar://x:1",
        mode="entry",
        producer_name="lane",
        source_cluster="east",
        target_cluster="west",
        **more,
    )
    return LaneWriter(target, options, states, "query")


async def write(target, batch, state=None):
    writer = lanes(target, {} if state is None else {TOPIC: state})
    try:
        await put(writer, batch)
        return (await writer.finish())[0]
    finally:
        await writer.close()


def ids(*entries, ledger=5):
    return [pack_sequence(ledger, entry) for entry in entries]


async def test_batch_is_written_in_order_with_marks():
    target = FakeTarget()
    report = await write(target, rows(0, 1, 2))
    assert target.ids == ids(0, 1, 2)
    stored = parse_entry(target.stored[0].entry).metadata
    assert (stored.producer_name, stored.replicated_from) == ("lane", "east")
    assert report.state == LaneState(ids(2)[0], Position(1, 2))
    assert (report.entries, report.messages, report.replays) == (3, 3, 0)
    assert report.bytes == sum(len(each.entry) for each in target.stored)


async def test_batched_message_counts_with_its_messages():
    target = FakeTarget()
    report = await write(target, rows(0, 1, num_messages_in_batch=5))
    assert (report.entries, report.messages) == (2, 10)
    assert [messages for messages, _ in target.sent] == [5, 5]


async def test_columns_that_differ_in_length_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        await write(FakeTarget(), rows(0, 1)._replace(payloads=[b"payload"]))


@pytest.mark.parametrize(("state", "is_new"), [(None, True), (LaneState(NO_SEQUENCE, EARLIEST), False)])
async def test_lane_is_new_until_a_state_is_recorded(state, is_new):
    target = FakeTarget()
    await write(target, rows(0), state)
    assert target.opened == [(TOPIC, "lane", is_new)]


async def test_next_batch_goes_on_without_reading_back():
    target = FakeTarget()
    state = (await write(target, rows(0, 1))).state
    await write(target, rows(2, 3), state)
    assert target.ids == ids(0, 1, 2, 3)
    assert target.read_backs == 0


async def test_retry_of_a_batch_that_was_stored_in_part_sends_the_rest():
    target = FakeTarget()
    state = (await write(target, rows(0, 1))).state
    await write(target, rows(2, 3), state)
    report = await write(target, rows(2, 3, 4, 5), state)
    assert target.ids == ids(0, 1, 2, 3, 4, 5)
    assert (report.replays, report.entries) == (2, 2)
    assert report.state == LaneState(ids(5)[0], Position(1, 5))


async def test_retry_of_a_batch_that_was_stored_completely_sends_nothing():
    target = FakeTarget()
    await write(target, rows(0, 1))
    report = await write(target, rows(0, 1))
    assert target.ids == ids(0, 1)
    assert (report.replays, report.entries) == (2, 0)
    assert report.state == LaneState(ids(1)[0], Position(1, 1))


async def test_broker_that_forgot_the_name_does_not_get_entries_twice():
    target = FakeTarget()
    state = (await write(target, rows(0, 1))).state
    await write(target, rows(2, 3), state)
    target.known.clear()
    report = await write(target, rows(2, 3, 4), state)
    assert target.ids == ids(0, 1, 2, 3, 4)
    assert report.replays == 2


async def test_broker_that_forgot_the_name_before_the_first_commit_does_not_get_entries_twice():
    target = FakeTarget()
    anchor = LaneState(NO_SEQUENCE, EARLIEST)
    await write(target, rows(0, 1), anchor)
    target.known.clear()
    report = await write(target, rows(0, 1, 2), anchor)
    assert target.ids == ids(0, 1, 2)
    assert (report.replays, report.entries) == (2, 1)


async def test_hole_made_by_a_failed_send_is_reported_and_never_passed_over():
    target = FakeTarget()
    state = (await write(target, rows(0))).state
    target.failing = set(ids(2))
    with pytest.raises(RuntimeError, match="disk full"):
        await write(target, rows(1, 2, 3), state)
    target.failing = set()
    with pytest.raises(HolesFound, match="5:2"):
        await write(target, rows(1, 2, 3, 4), state)


async def test_holes_beyond_ten_are_counted_and_not_named():
    target = FakeTarget()
    target.known[TOPIC, "lane"] = ids(11)[0]
    named = ", ".join(f"5:{entry}" for entry in range(1, 11))
    with pytest.raises(HolesFound, match=rf"entries {named} \(11 in all\)"):
        await write(target, rows(*range(1, 12)))


async def test_numbers_of_another_producer_stop_the_lane():
    target = FakeTarget()
    target.known[TOPIC, "lane"] = ids(3)[0]
    with pytest.raises(LaneInUse, match="another one uses the name"):
        await write(target, rows(7), LaneState(ids(1)[0], EARLIEST))


async def test_numbers_beyond_the_range_are_of_another_producer():
    target = FakeTarget()
    await write(target, rows(0, 1, 2, 3))
    with pytest.raises(LaneInUse):
        await write(target, rows(0, 1))


async def test_lane_whose_checkpoint_was_lost_writes_only_what_is_missing():
    target = FakeTarget()
    await write(target, rows(0, 1, 2, 3))
    claimed = LaneState(NO_SEQUENCE, EARLIEST, claimed=ids(3)[0])
    first = await write(target, rows(0, 1), claimed)
    assert first.state == LaneState(ids(1)[0], Position(1, 1), claimed=ids(3)[0])
    await write(target, rows(2, 3, 4, 5), first.state)
    assert target.ids == ids(0, 1, 2, 3, 4, 5)


async def test_repeats_after_a_lost_connection_are_checked_against_the_target():
    target = SendingTwice()
    report = await write(target, rows(0, 1))
    assert target.ids == ids(0, 1)
    assert report.replays == 2


async def test_replays_of_a_retry_and_of_a_lost_connection_add_up():
    target = SendingTwice()
    await write(target, rows(0, 1))
    report = await write(target, rows(0, 1, 2))
    assert target.ids == ids(0, 1, 2)
    assert (report.replays, report.entries) == (3, 1)


async def test_repeats_that_the_target_does_not_hold_are_holes_and_end_the_lane():
    class Dropping(FakeSender):
        def _send(self, sequence_id, *facts):
            if sequence_id == ids(1)[0]:
                self.refused.append(sequence_id)  # the broker knows the number, the topic does not have the entry
            else:
                super()._send(sequence_id, *facts)

    class Target(FakeTarget):
        async def open_lane(self, topic, producer_name, *, is_new):
            return Dropping(self, topic, producer_name)

    target = Target()
    with pytest.raises(HolesFound, match=r"entries 5:1 \(1 in all\)"):
        await write(target, rows(0, 1, 2))


async def test_entries_of_other_clusters_are_skipped_and_counted():
    target = FakeTarget()
    report = await write(target, rows(0, 1, replicated_from="north"))
    assert target.stored == []
    assert report.skipped == {"replicated": 2}
    assert report.state.sequence_id == NO_SEQUENCE


async def test_entries_are_copied_to_the_clusters_they_name():
    target = FakeTarget()
    report = await write(target, rows(0, replicate_to=["north"]))
    assert (target.ids, report.skipped) == ([], {"not-addressed": 1})
    report = await write(target, rows(1, replicate_to=["north", "west"]))
    assert (target.ids, report.skipped) == (ids(1), {})


async def test_lane_of_which_everything_is_skipped_keeps_its_state():
    state = LaneState(ids(1)[0], Position(1, 1), claimed=ids(2)[0])
    report = await write(FakeTarget(), rows(3, replicated_from="north"), state)
    assert report.state == state


async def test_schema_version_is_translated():
    target = FakeTarget()
    target.versions[TOPIC, b"\0" * 8] = b"\0" * 7 + b"\x02"
    await write(target, rows(0, schema_version=b"\0" * 8))
    assert parse_entry(target.stored[0].entry).metadata.schema_version == b"\0" * 7 + b"\x02"


async def test_committed_entries_that_come_again_are_replays_and_no_holes():
    target = FakeTarget()
    state = (await write(target, rows(0, 1, 2))).state
    report = await write(target, rows(1, 2, 3), state)
    assert target.ids == ids(0, 1, 2, 3)
    assert (report.replays, report.entries) == (2, 1)


async def test_chunk_that_an_earlier_attempt_stored_is_not_stored_twice():
    target = FakeTarget()
    target.stored.append(
        Stored(TOPIC, "lane", ids(0)[0])
    )  # the first of two chunks: the broker's number does not tell of it
    report = await write(target, rows(0, 1, num_chunks_from_msg=2))
    assert target.ids == ids(0, 1)
    assert (report.replays, report.entries) == (1, 1)
    assert target.read_backs == 1


@pytest.mark.parametrize(("chunks", "is_chunk"), [(1, False), (2, True), (3, True)])
async def test_entry_is_a_chunk_where_its_message_has_several(chunks, is_chunk):
    target = FakeTarget()
    await write(target, rows(0, num_chunks_from_msg=chunks))
    assert target.sent == [(1, is_chunk)]
    assert target.read_backs == is_chunk


def isolating(target, states=None):
    return lanes(target, states or {}, isolate=True)


async def write_isolated(target, batches, states=None):
    writer = isolating(target, states)
    try:
        for batch in batches:
            await put(writer, batch)
        return {report.topic: report for report in await writer.finish()}
    finally:
        await writer.close()


async def test_isolated_topic_that_the_target_refuses_is_held_and_the_others_go_on():
    target = FakeTarget()
    target.refused = {TOPIC: TopicTerminated("it is terminated")}
    reports = await write_isolated(target, [rows(7, 8), rows(3, 4, topic=OTHER_TOPIC), rows(9)])
    assert (reports[TOPIC].held, reports[TOPIC].after) == ("it is terminated", Position(5, 6))
    assert reports[OTHER_TOPIC].held is None
    assert target.ids == ids(3, 4)


async def test_held_topic_holds_no_other_of_the_same_batch():
    target = FakeTarget()
    target.refused = {TOPIC: TopicTerminated("it is terminated")}
    batch = EntryRows(*(one + other for one, other in zip(rows(7, 8), rows(3, 4, topic=OTHER_TOPIC), strict=True)))
    reports = await write_isolated(target, [batch])
    assert reports[TOPIC].held == "it is terminated"
    assert [(each.topic, each.sequence_id) for each in target.stored] == [(OTHER_TOPIC, number) for number in ids(3, 4)]


async def test_lane_that_cannot_be_closed_leaves_no_other_open():
    target = FakeTarget()
    target.close_failures = {TOPIC: NotConnected("no route")}
    await write_isolated(target, [rows(0), rows(0, topic=OTHER_TOPIC)])
    assert target.closed == [OTHER_TOPIC]


async def test_isolated_topic_whose_source_cannot_be_read_on_is_held_whole():
    target = FakeTarget()
    gone = rows(9)._replace(metadata=[b""], payloads=[b"it is gone"])
    report = (await write_isolated(target, [rows(7, 8), gone]))[TOPIC]
    assert (report.held, report.after, report.state.sequence_id) == ("it is gone", Position(5, 6), NO_SEQUENCE)


@pytest.mark.parametrize("sent_before", [(), (0,), (0, 1, 2), (0, 1, 2, 3)], ids=len)
@pytest.mark.parametrize("in_one_batch", [True, False])
async def test_lane_goes_on_behind_what_it_passed_over_whatever_an_earlier_attempt_had_sent(sent_before, in_one_batch):
    """The broker knows ids that no commit tells of: they are not those of another writer."""
    target = FakeTarget()
    if sent_before:
        await write(target, rows(*sent_before))
    writer = isolating(target)
    writer.pass_over(TOPIC, Position(5, -1), Position(5, 2))
    if in_one_batch:
        await put(writer, rows(3))
    [report] = await writer.finish()
    await writer.close()
    assert (report.held, report.skipped["passed"]) == (None, 3)
    if not in_one_batch:
        assert report.state == LaneState(NO_SEQUENCE, EARLIEST, claimed=ids(2)[0])
        assert report.is_recorded  # it is recorded
        report = (await write_isolated(target, [rows(3)], {TOPIC: report.state}))[TOPIC]
    assert report.held is None
    assert target.ids == [*ids(*sent_before), *([] if 3 in sent_before else ids(3))]


async def test_range_that_cannot_be_read_claims_what_an_earlier_attempt_may_have_sent():
    target = FakeTarget()
    await write(target, rows(0, 1))
    writer = isolating(target)
    writer.refuse(TOPIC, Position(5, -1), Position(5, 4), "it is gone")
    [report] = await writer.finish()
    assert (report.held, report.state.claimed) == ("it is gone", ids(4)[0])
    report = (await write_isolated(target, [rows(5)], {TOPIC: report.state}))[TOPIC]
    assert (report.held, target.ids) == (None, ids(0, 1, 5))


async def test_target_that_cannot_be_reached_holds_no_single_topic():
    target = FakeTarget()
    target.refused = {TOPIC: NotConnected("no route")}
    with pytest.raises(NotConnected):
        await write_isolated(target, [rows(7, 8)])


async def test_held_range_when_it_comes_again_is_completed():
    target = FakeTarget()
    target.failing = set(ids(2))
    target.failure_kind = PersistenceError
    report = (await write_isolated(target, [rows(0, 1, 2)]))[TOPIC]
    assert report.held is not None
    target.failing.clear()
    report = (await write_isolated(target, [rows(0, 1, 2)], {TOPIC: report.state}))[TOPIC]
    assert (report.held, report.replays, target.ids) == (None, 2, ids(0, 1, 2))


async def test_lane_that_was_held_goes_on_although_an_operator_skipped_the_rest():
    target = FakeTarget()
    target.failing = set(ids(2))
    target.failure_kind = PersistenceError
    held = (await write_isolated(target, [rows(0, 1, 2)]))[TOPIC]
    target.failing.clear()
    report = (await write_isolated(target, [rows(7, 8)], {TOPIC: held.state}))[TOPIC]
    assert (report.held, target.ids) == (None, ids(0, 1, 7, 8))


async def test_schema_that_the_target_refuses_holds_its_lane_in_order_until_it_is_taken():
    target, first, second = FakeTarget(), b"\0" * 8, b"\0" * 7 + b"\x01"
    target.versions = {(TOPIC, first): first, (TOPIC, second): IncompatibleSchema("schema auto updating is disabled")}
    batches = [rows(0, schema_version=first), rows(1, schema_version=second), rows(2, schema_version=first)]
    held = (await write_isolated(target, batches))[TOPIC]
    assert held.held == "schema auto updating is disabled"
    assert target.ids == ids(0)  # what needs no new schema does not overtake
    target.versions[TOPIC, second] = second
    report = (await write_isolated(target, batches, {TOPIC: held.state}))[TOPIC]
    assert (report.held, target.ids) == (None, ids(0, 1, 2))


async def test_last_position_that_fits_is_written_and_the_next_ledger_refused():
    target = FakeTarget()
    await write(target, rows(2**32 - 1, ledger=2**31 - 1))
    assert target.ids == [2**63 - 1]
    with pytest.raises(PositionTooLarge, match=f"{2**31}:0 does not fit"):
        await write(target, rows(0, ledger=2**31), LaneState(2**63 - 1, Position(1, 0)))
    assert target.ids == [2**63 - 1]


async def test_position_that_does_not_fit_holds_its_topic_where_topics_are_isolated():
    target = FakeTarget()
    report = (await write_isolated(target, [rows(0, ledger=2**31)]))[TOPIC]
    assert "does not fit a sequence id" in str(report.held)
    assert target.stored == []


def expecting(target, state, **more):
    return lanes(target, {} if state is None else {TOPIC: state}, **more)


WRITTEN = LaneState(ids(1)[0], Position(1, 1))


async def test_lane_that_was_written_to_is_opened_while_its_entries_are_on_their_way():
    target = FakeTarget()
    target.known[TOPIC, "lane"] = ids(1)[0]
    writer = expecting(target, WRITTEN)
    writer.expect(TOPIC)
    await asyncio.sleep(0)
    assert target.opened == [(TOPIC, "lane", False)]
    await put(writer, rows(2, 3))
    (report,) = await writer.finish()
    await writer.close()
    assert (len(target.opened), len(target.closed)) == (1, 1)
    assert (target.ids, report.state.sequence_id) == (ids(2, 3), ids(3)[0])


async def test_lane_that_was_expected_and_gets_nothing_is_closed_again():
    target = FakeTarget()
    writer = expecting(target, WRITTEN)
    writer.expect(TOPIC)
    await put(writer, rows(2, replicated_from="north"))
    await writer.finish()
    await writer.close()
    assert len(target.opened) == len(target.closed) <= 1


class OpeningSlowly(FakeTarget):
    def __init__(self):
        super().__init__()
        self.answers = asyncio.Event()
        self.cancelled = 0

    async def open_lane(self, topic, producer_name, *, is_new):
        self.opened.append((topic, producer_name, is_new))
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return FakeSender(self, topic, producer_name)


async def test_lane_that_was_expected_and_is_still_opening_is_given_up():
    """The client closes it once the broker has answered."""
    target = OpeningSlowly()
    writer = expecting(target, WRITTEN)
    writer.expect(TOPIC)
    await asyncio.sleep(0)
    await writer.close()
    assert (target.cancelled, len(target.opened), len(target.closed)) == (1, 1, 0)


async def test_writer_whose_closing_is_cancelled_ends_cancelled():
    target = OpeningSlowly()
    writer = expecting(target, WRITTEN)
    writer.expect(TOPIC)
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(writer.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


async def test_lane_that_was_never_written_to_is_not_opened_ahead():
    target = FakeTarget()
    writer = expecting(target, None)
    writer.expect(TOPIC)
    await asyncio.sleep(0)
    await writer.close()
    assert target.opened == []


async def test_lane_that_cannot_be_opened_ahead_matters_only_where_an_entry_is_to_be_written():
    target = FakeTarget()
    target.refused[TOPIC] = NotAllowed("read-only")
    writer = expecting(target, WRITTEN, isolate=True)
    writer.expect(TOPIC)
    await put(writer, rows(2, replicated_from="north"))
    (report,) = await writer.finish()
    assert report.held is None
    writer.expect(TOPIC)
    await put(writer, rows(3))
    (report,) = await writer.finish()
    assert report.held == "read-only"
    await writer.close()


def crashed_ahead(*, stored):
    """Return a target on which an attempt that ended before its commit stored these entries, and the state before."""
    target = FakeTarget()
    target.stored = [Stored(TOPIC, "lane", number) for number in ids(*stored)]
    target.known[TOPIC, "lane"] = ids(max(stored))[0]
    return target, LaneState(NO_SEQUENCE, EARLIEST)


async def test_entries_that_an_earlier_attempt_copied_ahead_are_owed_until_they_are_settled():
    target, state = crashed_ahead(stored=(0, 1, 2, 3))
    writer = lanes(target, {TOPIC: state})
    assert writer.owed(TOPIC) == EARLIEST, "nothing is known of a lane that is not open"
    await put(writer, rows(0, 1))
    assert writer.owed(TOPIC) == Position(5, 3)
    await put(writer, rows(2, 3))
    assert writer.owed(TOPIC) == EARLIEST
    writer.reach(TOPIC, Position(5, 4))
    (report,) = await writer.finish()
    assert report.state == LaneState(ids(3)[0], Position(1, 3), reached=Position(5, 4))
    assert (report.entries, report.replays, target.ids) == (0, 4, ids(0, 1, 2, 3))


async def test_task_that_ends_before_what_it_owes_takes_that_for_another_writers():
    target, state = crashed_ahead(stored=(0, 1, 2, 3))
    with pytest.raises(LaneInUse):
        await write(target, rows(0, 1), state)


@pytest.mark.parametrize("is_passed", [True, False], ids=["passed by the cursor", "gone from the source"])
async def test_owed_entries_that_the_source_has_lost_since_are_accounted_for(is_passed):
    target, state = crashed_ahead(stored=(0, 1, 2, 3))
    writer = lanes(target, {TOPIC: state})
    await put(writer, rows(0, 1))
    if is_passed:
        writer.pass_over(TOPIC, Position(5, 1), Position(5, 3))
    else:
        writer.account(TOPIC, Position(5, 3))
    assert writer.owed(TOPIC) == EARLIEST
    (report,) = await writer.finish()
    assert (report.state.sequence_id, report.state.claimed) == (*ids(1), *ids(3))


async def test_position_that_was_reached_is_recorded_also_where_nothing_was_written():
    writer = lanes(FakeTarget(), {})
    await put(writer, rows(0, replicated_from="west"))
    writer.reach(TOPIC, Position(5, 0))
    (report,) = await writer.finish()
    assert (report.state, report.is_recorded) == (LaneState(NO_SEQUENCE, EARLIEST, reached=Position(5, 0)), True)


async def test_held_lane_has_reached_nothing():
    target = FakeTarget()
    target.failing, target.failure_kind = set(ids(1)), TopicTerminated
    writer = lanes(target, {}, isolate=True)
    await put(writer, rows(0, 1))
    writer.reach(TOPIC, Position(5, 1))
    (report,) = await writer.finish()
    assert writer.is_held(TOPIC)
    assert report.state.copied_upto == EARLIEST


def copied_upto(writer):
    return {topic: position for topic, (position, *_) in writer.copied().items()}


async def test_what_is_copied_for_certain_follows_the_receipts():
    target = FakeTarget()
    writer = lanes(target, {})
    await put_entries(writer, rows(0, replicated_from="west"))
    assert copied_upto(writer) == {TOPIC: Position(5, 0)}, "nothing is to come for it"
    await put_entries(writer, rows(1, 2, 3))
    assert copied_upto(writer) == {TOPIC: Position(5, 0)}
    target.receipts = 2
    assert copied_upto(writer) == {TOPIC: Position(5, 2)}
    await put_entries(writer, rows(4, replicated_from="west"))
    assert copied_upto(writer) == {TOPIC: Position(5, 2)}
    target.receipts = 3
    sent = sum(len(each.entry) for each in target.stored)
    assert writer.copied() == {TOPIC: (Position(5, 4), 3, 3, sent)}


@pytest.mark.parametrize(("known", "following"), [(2, 1), (3, 3)], ids=["hole", "taken for a repeat"])
async def test_nothing_behind_an_unproven_repeat_is_copied_for_certain(known, following):
    target, state = crashed_ahead(stored=(0, 2))
    target.receipts = 9
    writer = lanes(target, {TOPIC: state})
    await put_entries(writer, rows(0))
    assert copied_upto(writer) == {TOPIC: Position(5, 0)}
    target.known[TOPIC, "lane"] = ids(known)[0]
    await put_entries(writer, rows(following, 4))
    assert copied_upto(writer) == {TOPIC: Position(5, 0)}


async def test_hold_begins_behind_what_was_copied_for_certain():
    target = FakeTarget()
    target.failing, target.failure_kind = set(ids(2)), TopicTerminated
    target.receipts = 2
    writer = lanes(target, {}, isolate=True)
    await put_entries(writer, rows(0, 1))
    assert copied_upto(writer) == {TOPIC: Position(5, 1)}
    await put_entries(writer, rows(2, 3))
    (report,) = await writer.finish()
    assert (report.held, report.after) == ("disk full", Position(5, 1))
    assert copied_upto(writer) == {TOPIC: Position(5, 1)}


@pytest.mark.parametrize("sent", [(0, 1), (0, 1, 2, 3)], ids=["no further", "further"])
async def test_repeated_batch_begins_behind_what_was_copied_for_certain(sent):
    """The source need not have the entries before."""
    target, state = crashed_ahead(stored=sent)
    writer = lanes(target, {TOPIC: state})
    writer.recall(TOPIC, Position(5, 1))
    assert copied_upto(writer) == {TOPIC: Position(5, 1)}, "a third attempt begins there as well"
    await put_entries(writer, rows(2, 3, 4))
    (report,) = await writer.finish()
    assert target.ids == ids(0, 1, 2, 3, 4)
    assert (report.replays, report.state.copied_upto) == (len(sent) - 2, Position(5, 4))


async def test_repeated_batch_that_has_nothing_left_to_copy_records_what_was_copied():
    writer = lanes(FakeTarget(), {})
    writer.recall(TOPIC, Position(5, 1))
    (report,) = await writer.finish()
    assert (report.after, report.state.copied_upto, report.is_recorded) == (Position(5, 1), Position(5, 1), True)


def joined(*batches):
    return EntryRows(*(list(itertools.chain(*columns)) for columns in zip(*batches, strict=True)))


async def test_marker_for_the_target_is_sent_in_its_place_and_has_no_part_in_the_numbers():
    target = FakeTarget()
    batch = joined(rows(0), rows(1, marker_type=11, replicate_to=["west"]), rows(2), rows(3, marker_type=13))
    report = await write(target, batch)
    assert target.ids == ids(0, 1, 2, 3)
    marker = parse_entry(target.stored[1].entry)
    assert (marker.metadata.producer_name, marker.metadata.replicated_from) == ("app", "east")
    assert (marker.metadata.sequence_id, bytes(marker.payload)) == (1, b"payload")
    assert (report.state.sequence_id, report.entries, report.skipped) == (ids(2)[0], 2, {})
    assert target.known == {(TOPIC, "lane"): ids(2)[0]}
    again = await write(target, batch, LaneState(ids(0)[0], Position(1, 0)))
    assert (again.replays, again.state.sequence_id) == (2, ids(2)[0])


async def test_markers_of_other_kinds_are_skipped():
    target = FakeTarget()
    report = await write(target, joined(rows(0, marker_type=10), rows(1, marker_type=13, replicated_from="west")))
    assert (target.stored, report.skipped) == ([], {"marker": 2})


async def test_marker_when_it_has_its_receipt_then_counts_as_copied():
    target = FakeTarget()
    writer = lanes(target, {})
    await put_runs(writer, rows(4, marker_type=13))
    assert writer.copied() == {}
    target.receipts = 1
    assert writer.copied() == {TOPIC: (Position(5, 4), 0, 0, 0)}
    await writer.finish()
    await writer.close()


async def test_marker_when_the_target_cannot_take_it_then_its_lane_is_held():
    class Refusing(FakeSender):
        async def send_marker(self, sequence_id, entry):
            raise TopicTerminated("no more")

    class Target(FakeTarget):
        async def open_lane(self, topic, producer_name, *, is_new):
            return Refusing(self, topic, producer_name)

    writer = lanes(Target(), {}, isolate=True)
    await put(writer, rows(4, marker_type=13))
    (report,) = await writer.finish()
    assert report.held == "no more"
    await writer.close()


async def test_what_an_earlier_attempt_writes_while_the_connection_is_away_is_accounted_for_at_the_end():
    """It lives on though it was given up, and gets the producer name in between."""
    target, state = crashed_ahead(stored=(0, 1))
    writer = lanes(target, {TOPIC: state})
    await put(writer, rows(0, 1))
    (lane,) = writer._lanes.values()
    accounted = []

    async def account(topic):
        accounted.append(topic)
        await put(writer, rows(2))

    target.stored.append(Stored(TOPIC, "lane", *ids(2)))
    target.known[TOPIC, "lane"] = lane.sender.last_sequence_id = ids(2)[0]
    (report,) = await writer.finish(account)
    assert (accounted, target.ids, report.replays) == ([TOPIC], ids(0, 1, 2), 3)
    assert report.state == LaneState(ids(2)[0], Position(1, 2))


async def test_what_another_writer_has_written_is_not_accounted_for_without_end():
    target, state = crashed_ahead(stored=(0, 1))
    writer = lanes(target, {TOPIC: state})
    await put(writer, rows(0, 1))
    (lane,) = writer._lanes.values()
    lane.sender.last_sequence_id = ids(9)[0]
    accounted = []

    async def account(topic):
        accounted.append(topic)

    with pytest.raises(LaneInUse):
        await writer.finish(account)
    assert accounted == [TOPIC]


def collecting(target, states):
    writer = lanes(target, states, isolate=True)
    writer.collect_runs()
    return writer


def from_source(first, target, length, ledger=5):
    return Run(Position(ledger, first), Position(1, target), length)


async def test_positions_of_copies_are_reported_for_each_topic():
    target = FakeTarget()
    writer = collecting(target, {})
    await put(writer, rows(0, 1, 2))
    await put(writer, rows(7, topic=OTHER_TOPIC))
    await put(writer, joined(rows(3), rows(4, marker_type=10), rows(5), rows(0, ledger=6)))
    assert writer.take_runs() == {
        TOPIC: [from_source(0, 0, 3), from_source(3, 4, 1), from_source(5, 5, 1), from_source(0, 6, 1, ledger=6)],
        OTHER_TOPIC: [from_source(7, 3, 1)],
    }
    assert writer.take_runs() == {}
    await put(writer, rows(1, ledger=6))
    reports = {report.topic: report.runs for report in await writer.finish()}
    assert reports == {TOPIC: [from_source(1, 7, 1, ledger=6)], OTHER_TOPIC: ()}, "each is reported once"


async def test_positions_of_copies_are_collected_on_request_only():
    writer = lanes(FakeTarget(), {})
    await put(writer, rows(0, 1, 2))
    assert writer.take_runs() == {}
    assert [report.runs for report in await writer.finish()] == [()]


async def test_positions_of_copies_that_an_earlier_attempt_stored_are_read_back():
    target = FakeTarget()
    state = (await write(target, rows(0, 1))).state
    await write(target, rows(2, 3), state)
    writer = collecting(target, {TOPIC: state})
    await put(writer, rows(2, 3, 4, 5))
    (report,) = await writer.finish()
    assert (report.replays, report.runs) == (2, [from_source(2, 2, 4)])


async def test_positions_of_copies_whose_receipts_were_lost_are_read_back():
    target = SendingTwice()
    writer = collecting(target, {})
    await put(writer, rows(0, 1))
    (report,) = await writer.finish()
    assert report.replays == 2
    assert [*PositionRuns(report.runs)] == [from_source(0, 0, 2)]


async def test_positions_of_chunks_are_those_of_entries():
    writer = collecting(FakeTarget(), {})
    await put(writer, rows(0, 1, 2, num_chunks_from_msg=3))
    (report,) = await writer.finish()
    assert report.runs == [from_source(0, 0, 3)]


async def test_positions_of_copies_are_reported_by_a_lane_that_is_held():
    target = FakeTarget()
    target.failing, target.failure_kind = set(ids(2)), PersistenceError
    writer = collecting(target, {})
    await put(writer, rows(0, 1, 2, 3))
    (report,) = await writer.finish()
    assert (report.held, report.runs[0]) == ("disk full", from_source(0, 0, 2))
