"""Entries that wait, out of internal stats of both kinds of broker; where a checkpoint stands; what is told of it."""

import pytest

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.job.answers import lag_as_lines
from interpulse.spark.job.inspection import committed_positions
from interpulse.spark.job.source_backlog import cursor_position, entries_after


def stats(last, *ledgers):
    listed = [{"ledgerId": number, "entries": entries} for number, entries in ledgers]
    return {"lastConfirmedEntry": last, "ledgers": listed, "cursors": {"c": {"markDeletePosition": "3:1"}}}


@pytest.mark.parametrize(
    ("last", "ledgers", "after", "expected"),
    [
        pytest.param("3:4", [(3, 0)], EARLIEST, 5, id="open-ledger"),
        pytest.param("3:4", [(3, 0)], Position(3, 1), 3, id="inside-the-open-ledger"),
        pytest.param("3:4", [(3, 0)], Position(3, 4), 0, id="all-done"),
        pytest.param("7:1", [(3, 10), (5, 20), (7, 0)], Position(3, 6), 25, id="several-ledgers"),
        pytest.param("5:19", [(3, 10), (5, 20), (7, 0)], Position(5, 18), 1, id="new-ledger-is-empty"),
        pytest.param("7:1", [(5, 20), (7, 0)], Position(3, 6), 22, id="its-ledger-is-gone"),
        pytest.param("-1:-1", [], EARLIEST, 0, id="nothing-ever"),
        pytest.param("3:4", [(3, 0)], Position(9, -1), 0, id="ahead-of-all"),
    ],
)
def test_entries_behind_a_position(last, ledgers, after, expected):
    assert entries_after(stats(last, *ledgers), after) == expected


def test_cursor_that_is_absent_has_no_position():
    assert cursor_position(stats("3:4"), "c") == Position(3, 1)
    assert cursor_position(stats("3:4"), "d") is None


def test_checkpoint_without_a_finished_batch_has_no_positions(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n{}")
    assert committed_positions(tmp_path) == {}


def test_checkpoint_of_another_stream_is_named(tmp_path):
    for kind, text in (("offsets", 'v1\n{}\n{"kafka": 1}'), ("commits", "v1")):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "12").write_text(text)
    with pytest.raises(ValueError, match=f"{tmp_path}/offsets/12 is not an offset of a stream of ours"):
        committed_positions(tmp_path)


def record(topic, entries, seconds, **fields):
    lag = {"lagEntries": entries, "lagMessages": entries, "lagSeconds": seconds}
    return {"topic": topic, "cluster": "west", **lag, "problem": None} | fields


def test_those_most_behind_are_told_first_and_no_more_than_can_be_read():
    records = [record(f"t{number:02}", 2, float(number)) for number in range(60)] + [record("done", 0, 0.0)]
    lines = list(lag_as_lines(records))
    assert lines[0] == "t59 -> west: 2 entries with about 2 messages, 59.0 s"
    assert lines[50:] == [
        "... and 10 more",
        "to west: 60 of 61 topic-partitions are behind, 120 entries with about 120 messages, 59.0 s",
    ]


def test_what_is_not_known_is_not_told_as_nothing():
    (line, total) = lag_as_lines([record("x", None, None, problem="west wants basic")])
    assert line == "x -> west: not known; west wants basic"
    assert total.startswith("to west: 1 of 1 topic-partitions are behind, not known")
