"""De-duplication against a model that remembers every entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.broker.live.producing.deduplication import Deduplication, DeduplicationSnapshot, SequenceState, Verdict
from interpulse.model.ids import Position
from interpulse.storage.cursors.cursor_records import DEDUPLICATION_CURSOR, JSON_CURSORS

HERE = Position(1, 1)


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


def test_snapshot_holds_what_is_persisted_and_nothing_that_is_only_pushed() -> None:
    deduplication = Deduplication(DeduplicationSnapshot())
    deduplication.state("a").judge(4)
    deduplication.state("a").confirm(4)
    deduplication.state("a").judge(5)
    deduplication.state("b").judge(1)
    snapshot = DeduplicationSnapshot.of(deduplication.snapshot(HERE).record(), now_ms=0)
    assert snapshot.position == HERE
    assert snapshot.sequences == {"a": (4, 0)}
    restored = Deduplication(snapshot)
    assert restored.last_sequence_id("a") == 4
    assert restored.state("a").judge(5) is Verdict.NEW
    assert restored.last_sequence_id("b") == -1


def test_replay_when_an_entry_follows_the_snapshot_then_it_counts_as_persisted() -> None:
    deduplication = Deduplication(DeduplicationSnapshot(HERE, {"a": (4, 0)}))
    deduplication.replay("a", 9, now_ms=50)
    assert deduplication.state("a").judge(9) is Verdict.DUPLICATE
    assert deduplication.state("a").judge(10) is Verdict.NEW


def test_forget_inactive_when_a_name_is_connected_then_it_stays() -> None:
    deduplication = Deduplication(DeduplicationSnapshot(HERE, {"a": (1, 10), "b": (1, 10), "c": (1, 99)}))
    assert deduplication.forget_inactive(50, {"b"}) == 1
    assert [deduplication.last_sequence_id(name) for name in "abc"] == [-1, 1, 1]
    deduplication.touch("b", 100)
    deduplication.touch("unknown", 100)
    assert deduplication.forget_inactive(100, ()) == 1
    assert len(deduplication) == 1


def test_snapshot_of_partition_that_was_never_opened_knows_nothing() -> None:
    snapshot = DeduplicationSnapshot.of(
        JSON_CURSORS.decode(DEDUPLICATION_CURSOR, b'{"markDeletePosition":"-1:-1"}'), now_ms=0
    )
    assert snapshot.sequences == {}
