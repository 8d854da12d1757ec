"""Offsets, admission and packing."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.spark.offsets import (
    CutPosition,
    StreamOffset,
    TopicRange,
    entries_between,
    pack_ranges,
    parse_offsets,
    parse_times,
    plan_end,
    ranges_between,
    share_limit,
)

topics = st.sampled_from(
    [f"persistent://public/{ns}/{name}" for ns in ("a", "b") for name in ("x", "x-partition-1", "y")]
)
positions = st.builds(Position, st.integers(0, 2**31), st.integers(-1, 2**31))


@given(st.dictionaries(topics, positions), st.integers(1, 64), st.booleans(), st.dictionaries(topics, positions))
def test_offset_survives_text_and_back(places, tasks, initial, begins):
    offset = StreamOffset(places, tasks, initial, begins)
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


@given(st.dictionaries(topics, positions, min_size=2))
def test_offset_text_does_not_depend_on_insertion_order(places):
    backwards = dict(reversed(places.items()))
    assert json.dumps(StreamOffset(places).to_json()) == json.dumps(StreamOffset(backwards).to_json())


def test_offset_groups_topics_by_namespace():
    offset = StreamOffset(
        {"persistent://t/ns/b": Position(9, -1), "persistent://t/ns/a-partition-0": Position(12, 845)}, 8
    )
    assert offset.to_json() == {
        "v": 1,
        "o": {"persistent://t/ns": {"a-partition-0": "12:845", "b": "9:-1"}},
        "n": 8,
    }


def test_offset_of_another_version_is_refused():
    with pytest.raises(ValueError, match=r"version 2.*reads version 1"):
        StreamOffset.from_json({"v": 2, "o": {}})


def test_anchor_keeps_positions_and_drops_the_mark():
    offset = StreamOffset({"persistent://t/ns/a": Position(1, 2)}, 4, initial=True)
    assert "init" in offset.to_json()
    assert offset.anchored().to_json() == {key: value for key, value in offset.to_json().items() if key != "init"}


@given(st.dictionaries(topics, st.integers(0, 10_000)), st.integers(1, 5_000), st.integers(0, 100))
def test_shares_stay_within_the_limit_and_within_what_is_there(available, limit, turn):
    shares = share_limit(available, limit, turn)
    assert sum(shares.values()) <= limit
    assert all(1 <= share <= available[topic] for topic, share in shares.items())
    assert bool(shares) == any(available.values())


def test_shares_are_proportional():
    assert share_limit({"a": 900, "b": 90, "c": 0}, 100, 0) == {"a": 90, "b": 9}


def test_shares_when_partitions_outnumber_the_limit_then_none_starves():
    available = {f"t{number}": 5 for number in range(10)}
    served = {topic for turn in range(5) for topic in share_limit(available, 3, turn)}
    assert served == set(available)


def test_entries_between_counts_within_a_ledger_and_the_known_part_across():
    assert entries_between(Position(1, 4), Position(1, 9)) == 5
    assert entries_between(Position(1, 4), Position(3, 9)) == 10
    assert entries_between(Position(3, 9), Position(1, 4)) == 0


def test_plan_end_never_passes_the_last_entry():
    assert plan_end(Position(1, 4), Position(1, 9), following=Position(1, 5), count=3) == Position(1, 7)
    assert plan_end(Position(1, 4), Position(1, 6), following=Position(1, 5), count=30) == Position(1, 6)
    assert plan_end(Position(1, 4), Position(3, 6), following=Position(2, 0), count=10) == Position(2, 9)


def test_ranges_of_a_batch_are_the_differences():
    start = StreamOffset({"a": Position(1, 4), "b": Position(1, 1)})
    end = StreamOffset({"a": Position(1, 9), "b": Position(1, 1), "c": Position(2, 0)})
    assert [(item.topic, item.after, item.upto) for item in ranges_between(start, end)] == [
        ("a", Position(1, 4), Position(1, 9)),
        ("c", EARLIEST, Position(2, 0)),
    ]


def test_ranges_of_a_topic_that_begins_later_start_there():
    end = StreamOffset({"a": Position(1, 9)}, begins={"a": Position(1, 4)})
    assert [(item.after, item.upto) for item in ranges_between(StreamOffset(), end)] == [
        (Position(1, 4), Position(1, 9))
    ]
    again = ranges_between(StreamOffset({"a": Position(1, 9)}), end)
    assert [(item.after, item.upto) for item in again] == [(Position(1, 4), Position(1, 9))]


def test_ranges_from_an_initial_offset_are_empty():
    start = StreamOffset({"a": Position(1, 4)}, initial=True)
    assert ranges_between(start, StreamOffset({"a": Position(1, 9)})) == []


def test_ranges_when_a_topic_went_backwards_then_it_is_named():
    with pytest.raises(ValueError, match=r"a \(5:4 -> 1:9\)"):
        ranges_between(StreamOffset({"a": Position(5, 4)}), StreamOffset({"a": Position(1, 9)}))


ranges = st.lists(
    st.builds(TopicRange, st.uuids().map(str), st.just(EARLIEST), positions, st.integers(0, 10**6)),
    unique_by=lambda item: item.topic,
)


@given(ranges, st.integers(1, 8), st.sampled_from(["balanced", "stable"]))
def test_packing_keeps_every_range_once(items, tasks, mode):
    packed = pack_ranges(items, tasks, mode)
    assert sorted(item for task in packed for item in task) == sorted(items)
    assert len(packed) <= tasks
    assert all(packed)


@given(ranges, st.integers(1, 8))
def test_stable_packing_does_not_depend_on_order(items, tasks):
    assert pack_ranges(items, tasks, "stable") == pack_ranges(items[::-1], tasks, "stable")


def test_balanced_packing_spreads_bytes():
    items = [TopicRange(f"t{size}", EARLIEST, Position(1, 1), size) for size in (10, 9, 8, 7)]
    loads = [sum(item.bytes_estimate for item in task) for task in pack_ranges(items, 2)]
    assert loads == [17, 17]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ('{"a": "3:7", "b": {"0": -2, "1": "latest"}}', None),
    ],
)
def test_user_offsets_are_read(text, expected):
    result = parse_offsets(text, inclusive_start=True)
    expected = expected or {
        "persistent://public/default/a": Position(3, 6),
        "persistent://public/default/b-partition-0": EARLIEST,
        "persistent://public/default/b-partition-1": LATEST,
    }
    assert result == expected


def test_user_end_is_inclusive():
    assert parse_offsets('{"a": "3:7"}', inclusive_start=False) == {"persistent://public/default/a": Position(3, 7)}


@pytest.mark.parametrize("text", ["first", '{"a": "x"}', '{"a": null}', "{", '{"a": "3"}'])
def test_user_offsets_that_make_no_sense_are_refused(text):
    with pytest.raises(ValueError, match="give earliest, latest"):
        parse_offsets(text, inclusive_start=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1500", 1500),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T02:00:01.5001+02:00", 1501),
        (
            '{"a": 7, "b": {"1": "8"}}',
            {"persistent://public/default/a": 7, "persistent://public/default/b-partition-1": 8},
        ),
    ],
)
def test_times_are_read(text, expected):
    assert parse_times(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "is not a time; give milliseconds"),
        ("-1", "is not a time"),
        ("2026-01-31T12:00:00", "has no zone: add Z"),
        ("{", "is not JSON"),
        ('{"a": true}', "is not a time"),
    ],
)
def test_times_that_make_no_sense_are_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse_times(text)


@pytest.mark.parametrize("text", ['"3:7:2"', '"CAMQByACMAI="', "[8, 3, 16, 7, 32, 2]"])
def test_position_with_a_batch_index(text):
    found = parse_offsets(f'{{"a": {text}}}', inclusive_start=True)
    point = pickle.loads(pickle.dumps(found))["persistent://public/default/a"]
    assert isinstance(point, CutPosition)
    assert (point, point.batch_index, str(point)) == (Position(3, 6), 2, "3:6")


def test_serialized_id_without_a_batch_index():
    assert parse_offsets('{"a": "CAMQBw=="}', inclusive_start=False) == {
        "persistent://public/default/a": Position(3, 7)
    }
