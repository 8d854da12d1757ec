"""Batches column by column: the same as message by message."""

import base64
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import Position
from interpulse.spark.rows.columns import Layout, Message, read_schema
from interpulse.spark.rows.message_block import BlockRows, MessageBlock
from interpulse.spark.rows.row_builder import RowBuilder
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch, unpack_batch
from interpulse.wire.errors import RemoteProtocolError

SINGLES: st.SearchStrategy[Any] = st.builds(
    dict,
    payload=st.binary(max_size=40) | st.sampled_from([b"x" * 127, b"x" * 128, b"x" * 16_383, b"x" * 16_384]),
    sequence_id=st.none() | st.integers(0, 2**63),
    key=st.none() | st.text(max_size=4),
    key_in_base64=st.none() | st.binary(max_size=4),
    ordering_key=st.none() | st.binary(max_size=3),
    null_partition_key=st.sampled_from([False, False, True]),
    event_time=st.sampled_from([0, 0, 1_769_860_800_000, 2**64 - 1501]),
    properties=st.just({}) | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    null_value=st.sampled_from([False, False, True]),
    compacted_out=st.sampled_from([False, False, False, True]),
)
PLAIN: st.SearchStrategy[Any] = st.builds(
    dict, payload=st.binary(max_size=300), sequence_id=st.none() | st.integers(0, 2**63)
)


def single_of(given):
    single = pb.SingleMessageMetadata(payload_size=0)
    if given.get("sequence_id") is not None:
        single.sequence_id = given["sequence_id"]
    if given.get("key") is not None:
        single.partition_key = given["key"]
    if given.get("key_in_base64") is not None:
        single.partition_key, single.partition_key_b64_encoded = base64.b64encode(given["key_in_base64"]).decode(), True
    if given.get("ordering_key") is not None:
        single.ordering_key = given["ordering_key"]
    for name in ("event_time", "null_value", "compacted_out", "null_partition_key"):
        if given.get(name):
            setattr(single, name, given[name])
    for name, value in given.get("properties", {}).items():
        single.properties.add(key=name, value=value)
    return single, given["payload"]


def entry_of(batch, partition=3, broker=None):
    outer = pb.MessageMetadata(
        producer_name="p", sequence_id=1, publish_time=1_769_860_800_000, num_messages_in_batch=len(batch)
    )
    payload = pack_batch(map(single_of, batch))
    return Message("persistent://t/n/x", partition, 7, 9, -1, outer, None, payload, broker, 0)


BATCHES = st.lists(SINGLES, min_size=1, max_size=20) | st.lists(PLAIN, min_size=1, max_size=20)
BROKERS = st.sampled_from([None, pb.BrokerEntryMetadata(broker_timestamp=1_500), pb.BrokerEntryMetadata(index=99)])


@given(st.lists(BATCHES, min_size=1, max_size=3), st.sampled_from([-1, 3]), BROKERS, st.binary(max_size=9))
def test_columns_are_those_of_the_messages(batches, partition, broker, head):
    blocks, expected = [], []
    for batch in batches:
        whole = entry_of(batch, partition, broker)
        blocks.append(MessageBlock(whole, head + whole.payload, len(head)))
        expected += [
            whole._replace(batch_index=index, single=item.metadata, payload=item.payload, size=len(item.payload))
            for index, item in enumerate(unpack_batch(whole.payload, len(batch)))
            if not item.metadata.compacted_out
        ]
    assert [message for block in blocks for message in block.messages()] == expected
    rows = BlockRows(blocks)
    for style in ("pulsar", "kafka"):
        layout = Layout("message", style)
        for field in to_arrow_schema(read_schema(layout, ["all"]), timezone="UTC"):
            column = layout.metadata[field.name]
            found = rows.column(field.name, column, field.type)
            assert found.type == field.type
            found.validate(full=True)
            if pa.types.is_timestamp(field.type):
                found = found.cast("int64")
            assert found.to_pylist() == [column.value(message) for message in expected], field.name


@given(st.lists(SINGLES | PLAIN, min_size=8, max_size=12), st.data())
def test_damaged_batch_is_told(batch, data):
    whole = entry_of(batch)
    cut = data.draw(st.integers(0, len(whole.payload) - 1))
    with pytest.raises(RemoteProtocolError):
        BlockRows([MessageBlock(whole, whole.payload[:cut], 0)])


def column_of(whole, name):
    layout = Layout("message")
    kind = to_arrow_schema(read_schema(layout, ["all"]), timezone="UTC").field(name).type
    return BlockRows([MessageBlock(whole, whole.payload, 0)]).column(name, layout.metadata[name], kind)


def test_time_that_no_column_holds_is_named():
    times = [{"payload": b"", "event_time": time} for time in (1, 1_706_933_106_789_000_000)]
    with pytest.raises(InvalidRequest, match=r"has the time 1706933106789000000 ms in its metadata.*includeColumns"):
        column_of(entry_of(times), "__eventTime")


def test_property_that_is_not_utf8_is_refused_and_such_a_key_is_bytes():
    whole = entry_of([{"payload": b"x", "key": "k", "properties": {"name": "v"}}])
    odd = whole._replace(payload=whole.payload.replace(b"\x01k", b"\x01\xff").replace(b"\x01v", b"\x01\xfe"))
    assert column_of(odd, "__key").to_pylist() == [b"\xff"]
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        column_of(odd, "__messageProperties")


class Source:
    def __init__(self, whole, *, is_batch):
        self.position = Position(whole.ledger, whole.entry)
        self.parsed = self
        self.metadata, self.payload, self.broker_metadata = whole.outer, memoryview(whole.payload), None
        self.metadata_bytes, self.is_batch = whole.outer.SerializeToString(), is_batch
        self.raw, self.was_encrypted = b"head" + whole.payload, False


@pytest.mark.parametrize("style", ["pulsar", "kafka"])
@pytest.mark.parametrize("alone", [(), (0,), (2, 5), range(6)])
def test_large_and_small_batches_and_single_messages_stay_in_order(style, alone):
    layout = Layout("message", style)
    builder = RowBuilder(read_schema(layout, ["all"]), layout)
    sizes = (1, 40, 3, 8, 30, 2)
    expected = []
    for group, size in enumerate(sizes):
        payloads = [f"{group}-{index}".encode() for index in range(size)]
        batched: Any = Source(entry_of([{"payload": each, "key": "k"} for each in payloads]), is_batch=True)
        entries = [batched]
        if group in alone:
            whole = entry_of([])._replace(payload=b"alone")
            whole.outer.partition_key = "k"
            entries.append(Source(whole, is_batch=False))
            payloads.append(b"alone")
        builder.add("persistent://t/n/x-partition-3", entries)
        expected += payloads
    assert builder.rows == len(expected)
    table = builder.take()
    assert table.column("value").to_pylist() == expected
    assert table.column("key" if style == "kafka" else "__key").to_pylist() == [b"k"] * len(expected)
    assert builder.take().num_rows == 0


@pytest.mark.parametrize("count", [0, -1, -(2**31)])
def test_batch_when_it_says_that_it_has_no_messages_then_has_none(count):
    whole = entry_of([{"payload": b"x"}])
    whole.outer.num_messages_in_batch = count
    block = MessageBlock(whole, whole.payload, 0)
    assert block.messages() == []
    assert BlockRows([block]).payloads.to_pylist() == []
