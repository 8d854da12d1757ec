"""De-duplication against a model that remembers every entry."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.broker.live.entry_metadata import last_sequence_id_of
from interpulse.broker.live.producing.deduplication import (
    Deduplication,
    SequenceState,
    Verdict,
    source_number,
)
from interpulse.model.ids import Position
from interpulse.storage.cursors import DEDUPLICATION_CURSOR, JSON_CURSORS, CursorRecord
from interpulse.wire import pulsar_api_pb2 as pb

HERE = Position(1, 1)
PREFIX = "pulsar.repl"
EAST = "pulsar.repl.east-->west"


def restored(record: CursorRecord) -> Deduplication:
    return Deduplication.restored(record, now_ms=0, replicator_prefix=PREFIX)


def snapshot_of(numbers: dict[str, int], active_ms: dict[str, int] | None = None) -> Deduplication:
    return restored(CursorRecord(HERE, numbers=numbers, active_ms=active_ms or {}))


@pytest.mark.parametrize(
    ("persisted", "pushed", "last", "verdict"),
    [
        (-1, -1, 0, Verdict.NEW),
        (5, 5, 5, Verdict.DUPLICATE),
        (5, 5, 0, Verdict.DUPLICATE),
        (5, 8, 6, Verdict.IN_FLIGHT),
        (5, 8, 8, Verdict.IN_FLIGHT),
        (5, 8, 9, Verdict.NEW),
        (5, 5, 10, Verdict.NEW),
    ],
)
def test_judge(persisted: int, pushed: int, last: int, verdict: Verdict) -> None:
    state = SequenceState(persisted)
    state.pushed = pushed
    assert state.judge(last) is verdict
    assert state.pushed == (last if verdict is Verdict.NEW else pushed)


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=60))
def test_state_when_a_producer_repeats_its_batches_then_each_is_stored_once(attempts: list[tuple[int, bool]]) -> None:
    """Batches of three ids; a producer goes on, or back to any earlier one. The log becomes durable now and then."""
    state = SequenceState()
    in_flight: list[int] = []
    stored: list[int] = []
    following = 0
    for wanted, becomes_durable in attempts:
        batch = min(wanted, following)
        last = batch * 3 + 2
        verdict = state.judge(last)
        if verdict is Verdict.NEW:
            assert batch == following
            following += 1
            in_flight.append(last)
        else:
            assert last in (in_flight if verdict is Verdict.IN_FLIGHT else stored)
        if becomes_durable:
            for each in in_flight:
                state.confirm(each)
            stored += in_flight
            in_flight.clear()
    assert stored == sorted(set(stored))


class Batch(NamedTuple):
    """A batch as it is sent: what SEND names of it, and what its metadata names."""

    messages: tuple[int, ...]
    sent: int
    metadata: pb.MessageMetadata


class Numbering(Enum):
    """How clients name batches: highest id that SEND names, first id and highest id of the metadata."""

    FIRST = "C++ since 4.1, Go"
    LAST_IN_SEND = "C++ before 4.1"
    LAST = "Java, key-based"
    BOTH = "Java"
    PER_BATCH = "one number for each batch"

    def batches(self, flushed: list[list[int]], sent_before: int) -> list[Batch]:
        """The batches of one flush, in the order in which the client sends them."""
        found = []
        for count, messages in enumerate(sorted(flushed, key=self._order)):
            first, last = messages[0], messages[-1]
            metadata = pb.MessageMetadata(
                producer_name="p", sequence_id=first, publish_time=1, num_messages_in_batch=len(messages)
            )
            sent = first if self is Numbering.FIRST else last
            if self is Numbering.LAST:
                metadata.sequence_id = last
            elif self is Numbering.BOTH:
                metadata.highest_sequence_id = last
            elif self is Numbering.PER_BATCH:
                metadata.sequence_id = sent = sent_before + count
            found.append(Batch(tuple(messages), sent, metadata))
        return found

    def _order(self, messages: list[int]) -> int:
        return messages[0] if self is Numbering.FIRST else messages[-1]


@given(
    st.sampled_from(Numbering),
    st.lists(st.tuples(st.lists(st.sampled_from("aab"), min_size=1, max_size=6), st.integers(0, 3)), max_size=12),
)
def test_batches_when_topics_and_connections_break_then_nothing_acknowledged_is_missing(
    numbering: Numbering, flushes: list[tuple[list[str], int]]
) -> None:
    """Each flush makes a batch per key, whose ids interleave; the broker stores some of its batches and crashes.

    A broker that comes back knows what it stored from the metadata alone. The client sends the rest again.
    """
    by_keys = numbering is not Numbering.BOTH  # Java's key-based batches name their last id
    stored: list[Batch] = []
    state, following, batches_sent = SequenceState(), 0, 0
    for keys, stored_count in flushes:
        ids = range(following, following := following + len(keys))
        by_key: dict[str, list[int]] = {}
        for number, key in zip(ids, keys, strict=True):
            by_key.setdefault(key if by_keys else "", []).append(number)
        waiting = numbering.batches([*by_key.values()], batches_sent)
        batches_sent += len(waiting)
        for batch in waiting[:stored_count]:
            assert state.judge(batch.sent) is Verdict.NEW
            stored.append(batch)
        state = SequenceState()
        for batch in stored:
            state.restore(last_sequence_id_of(batch.metadata))
        for batch in waiting:
            verdict = state.judge(batch.sent)
            assert verdict is Verdict.NEW or batch in stored, "an acknowledged batch is missing"
            if verdict is Verdict.NEW:
                assert batch not in stored or numbering is Numbering.LAST_IN_SEND
                stored.append(batch)
                state.confirm(batch.sent)
    assert {number for batch in stored for number in batch.messages} == set(range(following))


def test_snapshot_holds_what_is_persisted_and_nothing_that_is_only_pushed() -> None:
    deduplication = Deduplication()
    deduplication.states["a"].judge(4)
    deduplication.states["a"].confirm(4)
    deduplication.states["a"].judge(5)
    deduplication.states["b"].judge(1)
    record = deduplication.record(HERE)
    assert (record.mark_delete, record.numbers, record.active_ms) == (HERE, {"a": 4}, {"a": 0})
    again = restored(record)
    assert again.snapshot_position == HERE
    assert again.last_sequence_id("a") == 4
    assert again.states["a"].judge(5) is Verdict.NEW
    assert again.last_sequence_id("b") == -1


def test_source_number_rises_with_the_position() -> None:
    rising = [(0, 0), (0, 2**63 - 1), (1, 0), (2**63 - 1, 2**63 - 1)]
    numbers = [source_number(Position(*each)) for each in rising]
    assert numbers == sorted(set(numbers))


def test_snapshot_holds_the_source_position_of_replicators_in_two_numbers_as_pulsar_does() -> None:
    deduplication = Deduplication()
    deduplication.sources[EAST].judge(source_number(Position(12, 2**40)))
    deduplication.sources[EAST].confirm(source_number(Position(12, 2**40)))
    deduplication.sources[EAST].judge(source_number(Position(13, 0)))
    deduplication.sources["pulsar.repl.north-->west"].judge(1)
    deduplication.replay("x_LID", 3, now_ms=0)
    record = deduplication.record(HERE)
    assert record.numbers == {"x_LID": 3, f"{EAST}_LID": 12, f"{EAST}_EID": 2**40}
    encoded = JSON_CURSORS.encode(DEDUPLICATION_CURSOR, record)
    stored = restored(JSON_CURSORS.decode(DEDUPLICATION_CURSOR, encoded))
    assert (len(stored), stored.last_sequence_id("x_LID"), stored.record(HERE)) == (1, 3, record)
    again = stored.sources[EAST]
    assert again.judge(source_number(Position(12, 2**40))) is Verdict.DUPLICATE
    assert again.judge(source_number(Position(13, 0))) is Verdict.NEW


@pytest.mark.parametrize("key", [f"{EAST}_LID", f"{EAST}_EID"])
def test_snapshot_with_half_a_source_position_knows_none(key: str) -> None:
    assert snapshot_of({key: 7}).record(HERE).numbers == {}


def test_replay_of_a_replicator_then_the_highest_position_counts() -> None:
    deduplication = snapshot_of({f"{EAST}_LID": 3, f"{EAST}_EID": 9})
    deduplication.replay_source(EAST, Position(3, 12))
    deduplication.replay_source(EAST, Position(3, 10))
    assert deduplication.sources[EAST].judge(source_number(Position(3, 12))) is Verdict.DUPLICATE
    assert deduplication.sources[EAST].judge(source_number(Position(3, 13))) is Verdict.NEW


def test_forget_inactive_then_replicators_stay() -> None:
    deduplication = snapshot_of({"a": 1, f"{EAST}_LID": 3, f"{EAST}_EID": 9}, {"a": 10})
    assert deduplication.forget_inactive(1000, ()) == 1
    assert deduplication.record(HERE).numbers == {f"{EAST}_LID": 3, f"{EAST}_EID": 9}


def test_replay_when_an_entry_follows_the_snapshot_then_it_counts_as_persisted() -> None:
    deduplication = snapshot_of({"a": 4})
    deduplication.replay("a", 9, now_ms=50)
    assert deduplication.states["a"].judge(9) is Verdict.DUPLICATE
    assert deduplication.states["a"].judge(10) is Verdict.NEW


def test_forget_inactive_when_a_name_is_connected_then_it_stays() -> None:
    deduplication = snapshot_of({"a": 1, "b": 1, "c": 1}, {"a": 10, "b": 10, "c": 99})
    assert deduplication.forget_inactive(50, {"b"}) == 1
    assert [deduplication.last_sequence_id(name) for name in "abc"] == [-1, 1, 1]
    deduplication.touch("b", 100)
    deduplication.touch("unknown", 100)
    assert deduplication.forget_inactive(100, ()) == 1
    assert len(deduplication) == 1


def test_snapshot_of_partition_that_was_never_opened_knows_nothing() -> None:
    record = JSON_CURSORS.decode(DEDUPLICATION_CURSOR, b'{"markDeletePosition":"-1:-1"}')
    assert restored(record).record(HERE).numbers == {}
