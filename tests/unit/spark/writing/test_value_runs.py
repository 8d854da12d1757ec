"""Rows that are packed at once are what they are one by one."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.spark.writing.sink_rows import build_messages, build_packed, outgoing_messages
from interpulse.spark.writing.value_runs import PackedRun, is_plain, plain_values
from interpulse.wire import pulsar_api_pb2 as pb

ENTRY: dict[str, Any] = {"producer_name": "p", "publish_time_ms": 99, "schema_version": b"\x01"}


def one_by_one(batch: pa.RecordBatch, ids: range, messages_max: int, bytes_max: int, codec: int) -> list[bytes]:
    """As the writer of rows packs and builds them."""
    entries, packed, size = list[Any](), list[Any](), 0
    for message in outgoing_messages(batch, "t"):
        if packed and (len(packed) >= messages_max or size + len(message.value or b"") > bytes_max):
            entries.append(packed)
            packed, size = [], 0
        packed.append(message)
        size += len(message.value or b"")
    entries.append(packed)
    built, first = [], ids.start
    for each in entries:
        numbers = range(first, first + len(each))
        built.append(build_messages(each, ids=numbers, batched=True, codec=codec, **ENTRY))  # type: ignore[arg-type]
        first += len(each)
    return built


@pytest.mark.parametrize("codec", [pb.NONE, pb.ZSTD])
@given(
    values=st.lists(st.binary(max_size=300), min_size=1, max_size=40),
    first=st.sampled_from([0, 100, 16_380, 2**28 - 5, 2**56, 2**63 - 50]),
    messages_max=st.integers(2, 20),
    bytes_max=st.integers(1, 1000),
    skipped=st.integers(0, 3),
)
def test_packed_rows_have_the_same_bytes(codec, values, first, messages_max, bytes_max, skipped):
    batch = pa.record_batch({"value": pa.array([b"-"] * skipped + values, pa.binary())}).slice(skipped)
    ids = range(first, first + len(values))
    found, is_text = plain_values(batch)
    assert not is_text
    packed = [
        build_packed(payload, ids=of_these, codec=codec, **ENTRY)
        for payload, of_these in PackedRun(found, ids).cut(messages_max, bytes_max)
    ]
    assert packed == one_by_one(batch, ids, messages_max, bytes_max, codec)


def test_text_is_told():
    values, is_text = plain_values(pa.record_batch({"value": ["ü"]}))
    assert (values.to_pylist(), is_text) == (["ü".encode()], True)


NO_ITEMS = pa.array([[], []], pa.map_(pa.string(), pa.string()))


@pytest.mark.parametrize(
    ("columns", "plain"),
    [
        ({}, True),
        ({"__topic": ["a", "b"], "__messageId": [b"1", b"2"]}, True),
        ({"__key": pa.nulls(2, pa.string()), "__eventTime": pa.nulls(2, pa.int64())}, True),
        ({"__messageProperties": NO_ITEMS}, True),
        ({"__messageProperties": pa.nulls(2, NO_ITEMS.type)}, True),
        ({"__messageProperties": pa.array([[], [("a", "b")]], NO_ITEMS.type)}, False),
        ({"__key": [None, "k"]}, False),
        ({"__eventTime": [None, 5]}, False),
        ({"__partition": pa.array([0, 1], pa.int32())}, False),
        ({"__deliverAt": [7, None]}, False),
        ({"value": [None, b"a"]}, False),
    ],
)
def test_rows_that_say_something_of_themselves_are_not_plain(columns, plain):
    assert is_plain(pa.record_batch({"value": [b"a", b"b"], **columns}), None) is plain
