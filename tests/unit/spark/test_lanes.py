"""Sequence ids, opening a lane, settling a retry, the lane file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import (
    BATCH_ROWS_MAX,
    NO_SEQUENCE,
    LaneReport,
    LaneState,
    Opening,
    PositionTooLarge,
    batch_sequence,
    decide_opening,
    dump_lanes,
    is_overrun,
    lane_key,
    lane_name,
    load_lanes,
    pack_sequence,
    replicator_lane_name,
    sink_lane_name,
    starting_lane,
    topic_of_key,
    unpack_sequence,
)

positions = st.builds(Position, st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))


@given(positions, positions)
def test_sequence_ids_rise_as_positions_do(one, other):
    assert (pack_sequence(*one) < pack_sequence(*other)) == (one < other)
    assert unpack_sequence(pack_sequence(*one)) == one
    assert pack_sequence(*one) < 2**63


@pytest.mark.parametrize("position", [Position(2**31, 0), Position(0, 2**32), Position(-1, -1), Position(3, -1)])
def test_sequence_id_of_a_position_that_does_not_fit_is_refused(position):
    with pytest.raises(PositionTooLarge, match=f"{position} does not fit"):
        pack_sequence(*position)


def test_sequence_id_of_the_last_position_that_fits():
    assert pack_sequence(2**31 - 1, 2**32 - 1) == 2**63 - 1


@pytest.mark.parametrize(
    ("committed", "claimed", "broker", "expected"),
    [
        (NO_SEQUENCE, NO_SEQUENCE, NO_SEQUENCE, Opening.SEND_ALL),
        (9, NO_SEQUENCE, 9, Opening.SEND_ALL),
        (9, NO_SEQUENCE, 5, Opening.READ_BACK),
        (9, NO_SEQUENCE, NO_SEQUENCE, Opening.READ_BACK),
        (9, NO_SEQUENCE, 10, Opening.READ_BACK),
        (9, NO_SEQUENCE, 20, Opening.READ_BACK),
        (NO_SEQUENCE, NO_SEQUENCE, 12, Opening.READ_BACK),
        (5, NO_SEQUENCE, 9, Opening.IN_USE),
        (NO_SEQUENCE, 500, 500, Opening.READ_BACK),
        (NO_SEQUENCE, 9, 9, Opening.SEND_ALL),
    ],
)
def test_opening_a_lane_for_ids_from_ten(committed, claimed, broker, expected):
    assert decide_opening(LaneState(committed, EARLIEST, claimed), broker, 10) is expected


@pytest.mark.parametrize(
    ("committed", "claimed", "broker", "expected"),
    [
        (NO_SEQUENCE, NO_SEQUENCE, NO_SEQUENCE, Opening.READ_BACK),
        (NO_SEQUENCE, 9, NO_SEQUENCE, Opening.READ_BACK),
        (NO_SEQUENCE, 9, 9, Opening.SEND_ALL),
        (9, NO_SEQUENCE, 9, Opening.SEND_ALL),
    ],
)
def test_opening_an_anchored_lane_when_neither_side_has_an_id_reads_back(committed, claimed, broker, expected):
    assert decide_opening(LaneState(committed, EARLIEST, claimed), broker, 10, is_anchored=True) is expected


@pytest.mark.parametrize(
    ("committed", "claimed", "broker", "expected"),
    [
        (9, NO_SEQUENCE, 20, False),
        (9, NO_SEQUENCE, 21, True),
        (9, 500, 500, False),
        (9, 500, 501, True),
        (30, NO_SEQUENCE, 30, False),
        (30, NO_SEQUENCE, 31, True),
    ],
)
def test_ids_beyond_the_range_ten_to_twenty_are_not_ours_unless_committed_or_claimed(
    committed, claimed, broker, expected
):
    assert is_overrun(LaneState(committed, EARLIEST, claimed), broker, 20) is expected


def test_starting_lane_of_a_fresh_lane_reads_back_from_the_end_of_the_target():
    assert starting_lane(NO_SEQUENCE, Position(8, 9)) == LaneState(NO_SEQUENCE, Position(8, 9))


def test_starting_lane_with_a_past_claims_what_was_written():
    assert starting_lane(77, Position(8, 9)) == LaneState(NO_SEQUENCE, EARLIEST, claimed=77)


def test_lane_names():
    assert lane_name("p", "east", "west") == "interpulse.p.east-->west.e0"
    assert lane_name("p", "east", "west", 2) == "interpulse.p.east-->west.e2"
    assert replicator_lane_name("east", "west") == "pulsar.repl.east-->west"
    assert replicator_lane_name("east", "west", 1) == "pulsar.repl.east-->west.e1"


lanes = st.dictionaries(
    st.builds(lane_key, st.text(st.characters(exclude_characters="\n")), st.text()),
    st.builds(LaneState, st.integers(-1, 2**63 - 1), positions, st.integers(-1, 2**63 - 1)),
)


@given(lanes)
def test_lane_file_survives_writing_and_reading(states):
    assert load_lanes(dump_lanes(states)) == states


@pytest.mark.parametrize("text", ["{", "[]", '{"topic": "a"}'])
def test_lane_file_that_is_none_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the texts differ
        load_lanes(text)


rows = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, BATCH_ROWS_MAX - 1))


@given(rows, rows)
def test_ids_of_rows_rise_with_the_batch_and_in_it_with_the_row(one, other):
    assert (batch_sequence(*one) < batch_sequence(*other)) == (one < other)
    assert 0 <= batch_sequence(*one) < 2**63


@pytest.mark.parametrize(("batch", "row"), [(2**32, 0), (0, BATCH_ROWS_MAX), (-1, 0), (0, -1)])
def test_row_that_does_not_fit_an_id_is_refused(batch, row):
    with pytest.raises(PositionTooLarge, match=f"row {row} of micro-batch {batch} does not fit"):
        batch_sequence(batch, row)


@pytest.mark.parametrize(
    ("given_name", "epoch", "expected"),
    [(None, 0, "interpulse.query"), (None, 2, "interpulse.query.e2"), ("mine", 0, "mine"), ("mine", 1, "mine.e1")],
)
def test_names_of_lanes_follow_from_the_query_unless_given(given_name, epoch, expected):
    assert sink_lane_name(given_name, "query", epoch) == expected


def test_lane_file_keeps_several_lanes_of_a_topic_apart():
    lanes = {lane_key("t"): LaneState(1, Position(1, 1)), lane_key("t", "name.3"): LaneState(7, Position(2, 2))}
    assert load_lanes(dump_lanes(lanes)) == lanes
    assert {topic_of_key(key) for key in lanes} == {"t"}


@pytest.mark.parametrize(
    ("state", "copied_upto"),
    [
        (LaneState(NO_SEQUENCE, EARLIEST), EARLIEST),
        (LaneState(pack_sequence(3, 7), EARLIEST), Position(3, 7)),
        (LaneState(pack_sequence(3, 7), EARLIEST, reached=Position(3, 6)), Position(3, 7)),
        (LaneState(pack_sequence(3, 7), EARLIEST, reached=Position(4, -1)), Position(4, -1)),
        (LaneState(NO_SEQUENCE, EARLIEST, reached=Position(3, 2)), Position(3, 2)),
    ],
)
def test_lane_has_copied_up_to_its_last_id_or_what_was_read_behind_it(state, copied_upto):
    assert state.copied_upto == copied_upto
    assert load_lanes(dump_lanes({"t": state})) == {"t": state}
    assert LaneReport("t", state).is_recorded is (copied_upto != EARLIEST)
