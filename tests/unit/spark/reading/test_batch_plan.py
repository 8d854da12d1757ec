"""Ranges cut into pieces: nothing is lost, nothing is read twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.offsets import TopicRange
from interpulse.spark.reading.batch_plan import split_ranges
from interpulse.spark.reading.planner import Ledger
from interpulse.spark.reading.read_options import ReadOptions

A, B = "persistent://t/ns/a", "persistent://t/ns/b"


def options_with(**hints):
    return ReadOptions(service_url="pulsar://x:1", **hints)


def cut(item, ledgers=(), **hints):
    return split_ranges([item], options_with(**hints), {item.topic: ledgers} if ledgers else {})


def test_range_without_hints_stays_whole_and_gets_its_size():
    assert cut(TopicRange(A, EARLIEST, Position(3, 9)), [Ledger(3, 10, 500)]) == [
        TopicRange(A, EARLIEST, Position(3, 9), 500)
    ]


def test_range_is_cut_across_ledgers():
    ledgers = [Ledger(3, 10, 1000), Ledger(5, 10, 1000)]
    pieces = cut(TopicRange(A, EARLIEST, Position(5, 9)), ledgers, min_partitions=4)
    assert [piece.upto for piece in pieces] == [Position(3, 4), Position(3, 9), Position(5, 4), Position(5, 9)]
    assert [piece.after for piece in pieces[1:]] == [piece.upto for piece in pieces[:-1]]
    assert {piece.bytes_estimate for piece in pieces} == {500}


def test_range_of_unknown_ledgers_is_cut_in_its_last_one():
    pieces = cut(TopicRange(A, Position(1, 4), Position(5, 9)), min_partitions=2)
    assert [(piece.after, piece.upto) for piece in pieces] == [
        (Position(1, 4), Position(5, 4)),
        (Position(5, 4), Position(5, 9)),
    ]


@pytest.mark.parametrize(
    ("hints", "count"),
    [
        ({"max_bytes_per_partition": 300}, 4),
        ({"max_entries_per_partition": 4}, 3),
        ({"max_entries_per_partition": 100}, 1),
        ({"min_partitions": 50}, 10),
    ],
)
def test_hints_say_how_many_pieces_there_are(hints, count):
    assert len(cut(TopicRange(A, Position(3, -1), Position(3, 9)), [Ledger(3, 10, 1000)], **hints)) == count


def test_pieces_are_shared_by_size():
    ranges = [TopicRange(A, Position(1, -1), Position(1, 89)), TopicRange(B, Position(1, -1), Position(1, 9))]
    pieces = split_ranges(
        ranges,
        ReadOptions(service_url="pulsar://x:1", min_partitions=10),
        {A: [Ledger(1, 90, 9000)], B: [Ledger(1, 10, 1000)]},
    )
    assert [piece.topic for piece in pieces] == [A] * 9 + [B]


@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=5),
    first=st.integers(0, 100),
    last=st.integers(0, 100),
    pieces=st.integers(1, 40),
)
def test_pieces_are_the_range(counts, first, last, pieces):
    ledgers = [Ledger(2 * number, count, count * 7) for number, count in enumerate(counts)]
    entries = [Position(ledger.id, entry) for ledger in ledgers for entry in range(ledger.entries)]
    if not entries:
        return
    after = entries[first % len(entries)]
    upto = entries[last % len(entries)]
    if after >= upto:
        return
    found = cut(TopicRange(A, after, upto), ledgers, min_partitions=pieces)
    read = [entry for piece in found for entry in entries if piece.after < entry <= piece.upto]
    assert read == [entry for entry in entries if after < entry <= upto]
    assert len(found) <= pieces
    sizes = [len([entry for entry in entries if piece.after < entry <= piece.upto]) for piece in found]
    assert max(sizes) - min(sizes) <= 1
