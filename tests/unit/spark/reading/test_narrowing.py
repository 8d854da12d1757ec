"""What filters leave of topics, positions and times."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from interpulse.model.ids import Position
from interpulse.spark.reading.narrowing import Interval, Narrowing, narrowed_by
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import java_string_hash, murmur3_hash

T = "persistent://t/ns/x"
PARTITIONS = [f"{T}-partition-{index}" for index in range(4)]
PLAIN = "persistent://t/ns/plain"


def serialized(ledger, entry):
    return pb.MessageIdData(ledgerId=ledger, entryId=entry).SerializeToString()


def left(*filters, style="pulsar", **more):
    return [PARTITIONS.index(name) if name in PARTITIONS else name
            for name in narrowed_by(filters, style).topics_of([*PARTITIONS, PLAIN], **more)]  # fmt: skip


def test_without_filters_everything_is_left():
    assert narrowed_by([]) == Narrowing()
    assert left() == [0, 1, 2, 3, PLAIN]
    assert (Narrowing().after, Narrowing().upto) == (None, None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([EqualTo(("__topic",), PARTITIONS[2])], [2]),
        ([EqualTo(("__topic",), T)], []),
        ([In(("__topic",), (PARTITIONS[0], PLAIN))], [0, PLAIN]),
        ([In(("__topic",), (PARTITIONS[0], PLAIN)), EqualTo(("__topic",), PLAIN)], [PLAIN]),
        ([StringStartsWith(("__topic",), "persistent://t/ns/x")], [0, 1, 2, 3]),
        ([EqualTo(("__partition",), 1)], [1]),
        ([GreaterThan(("__partition",), 2)], [2, 3]),
        ([In(("__partition",), (0, None, 1))], [0, 1]),
        ([LessThanOrEqual(("__partition",), 0), IsNotNull(("__partition",))], [0, PLAIN]),
    ],
)
def test_topics_that_may_have_rows(given, expected):
    assert left(*given) == expected


@pytest.mark.parametrize(
    "given", [Not(EqualTo(("__topic",), PLAIN)), StringContains(("__topic",), "x"), EqualTo(("value", "a"), 1)]
)
def test_other_filters_leave_everything(given):
    assert narrowed_by([given]) == Narrowing()


def test_topics_of_kafka_are_those_that_producers_name():
    assert left(EqualTo(("topic",), T), style="kafka") == [0, 1, 2, 3]
    assert left(EqualTo(("partition",), 2), StringStartsWith(("topic",), T), style="kafka") == [2]


@pytest.mark.parametrize(
    ("given", "after", "upto"),
    [
        ([EqualTo(("__ledgerId",), 5)], Position(5, -1), Position(6, -1)),
        ([GreaterThanOrEqual(("__ledgerId",), 5)], Position(5, -1), None),
        ([LessThan(("__ledgerId",), 9)], None, Position(10, -1)),
        (
            [EqualTo(("__ledgerId",), 5), GreaterThan(("__entryId",), 3), LessThanOrEqual(("__entryId",), 7)],
            Position(5, 2),
            Position(5, 7),
        ),
        ([GreaterThan(("__entryId",), 3)], None, None),
        ([EqualTo(("__messageId",), serialized(5, 3))], Position(5, 2), Position(5, 3)),
        ([In(("__messageId",), (serialized(7, 1), serialized(5, 3)))], Position(5, 2), Position(7, 1)),
        ([EqualTo(("__messageId",), b"none")], None, None),
    ],
)
def test_positions_that_may_have_rows(given, after, upto):
    narrowing = narrowed_by(given)
    assert (narrowing.after, narrowing.upto) == (after, upto)


@pytest.mark.parametrize(("style", "column"), [("pulsar", "__publishTime"), ("kafka", "timestamp")])
def test_times_that_may_have_rows(style, column):
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    given = [GreaterThanOrEqual((column,), noon), LessThan((column,), noon.replace(hour=13))]
    assert narrowed_by(given, style).times_ms == Interval(1769860800000, 1769864400000)


def test_keys_choose_partitions_where_producers_went_by_them():
    key = b"attic"
    texts = (key, base64.b64encode(key))
    expected = sorted({f(text) % 4 for text in texts for f in (murmur3_hash, lambda t: java_string_hash(t.decode()))})
    assert left(EqualTo(("__key",), key), routed_by_key=[T]) == [*expected, PLAIN]
    assert left(EqualTo(("__key",), key)) == [0, 1, 2, 3, PLAIN]
