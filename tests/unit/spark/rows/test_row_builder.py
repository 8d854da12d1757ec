"""Entries as rows: both modes, column by column."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from interpulse.client import DefaultCryptoKeyReader
from interpulse.client.consuming.entry_reader import Entry
from interpulse.client.encryption.entries import Encryptor
from interpulse.model.errors import CryptoError, InvalidRequest, NotSupported
from interpulse.model.ids import Position
from interpulse.spark.rows.columns import ENTRY_WRITE_COLUMNS, Layout, read_schema
from interpulse.spark.rows.row_builder import Decryption, RowBuilder
from interpulse.spark.writing.sink_rows import OutgoingMessage, build_messages
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.compression import compress
from interpulse.wire.entries import build_entry, parse_entry, with_broker_metadata
from tests.support.encryption_keys import KeyFiles, new_keys

TOPIC = "persistent://public/default/t-partition-3"


def entry(payload=b"payload", number=7, **values):
    metadata = pb.MessageMetadata(**{"producer_name": "p", "sequence_id": 5, "publish_time": 1000, **values})
    raw = build_entry(metadata.SerializeToString(), payload)
    return Entry(Position(12, number), raw, parse_entry(raw))


def rows(*entries, mode="message", include=("all",)):
    builder = RowBuilder(read_schema(Layout(mode), include), Layout(mode))
    builder.add(TOPIC, entries)
    return builder.take().to_pylist()


def test_single_message():
    row = rows(entry(partition_key="k", event_time=2000, properties=[pb.KeyValue(key="a", value="b")]))[0]
    assert (row["value"], row["__key"], row["__topic"]) == (b"payload", b"k", TOPIC)
    assert (row["__partition"], row["__ledgerId"], row["__entryId"], row["__batchIndex"]) == (3, 12, 7, None)
    assert dict(row["__messageProperties"]) == {"a": "b"}
    assert row["__publishTime"].timestamp() == 1.0
    assert row["__eventTime"].timestamp() == 2.0
    assert (row["__sequenceId"], row["__producerName"], row["__encrypted"]) == (5, "p", False)
    assert pb.MessageIdData.FromString(row["__messageId"]).entryId == 7


def test_absent_things_are_null():
    row = rows(entry())[0]
    for name in (
        "__key",
        "__eventTime",
        "__orderingKey",
        "__schemaVersion",
        "__deliverAt",
        "__index",
        "__replicatedFrom",
    ):
        assert row[name] is None


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        (pb.BrokerEntryMetadata(broker_timestamp=1_500), (None, 1.5)),
        (pb.BrokerEntryMetadata(index=12), (12, None)),
    ],
)
def test_what_the_broker_noted_is_shown_and_the_rest_is_null(noted, expected):
    plain = build_entry(pb.MessageMetadata(producer_name="p", sequence_id=5, publish_time=1).SerializeToString(), b"x")
    raw = with_broker_metadata(noted, plain)
    row = rows(Entry(Position(12, 7), raw, parse_entry(raw)))[0]
    noted_at = row["__brokerPublishTime"]
    assert (row["__index"], noted_at and noted_at.timestamp()) == expected


def test_tombstone_has_no_value():
    assert rows(entry(payload=b"", null_value=True))[0]["value"] is None


def test_binary_key_is_decoded():
    key = base64.b64encode(b"\xff\x00").decode()
    assert rows(entry(partition_key=key, partition_key_b64_encoded=True))[0]["__key"] == b"\xff\x00"


def batch(count=3, codec=pb.NONE, **values):
    singles = [
        (pb.SingleMessageMetadata(payload_size=0, partition_key=f"k{index}", compacted_out=index == 1), b"v%d" % index)
        for index in range(count)
    ]
    payload = pack_batch(singles)
    values |= {"num_messages_in_batch": count, "compression": codec, "uncompressed_size": len(payload)}
    return entry(compress(codec, payload), **values)


@pytest.mark.parametrize("codec", [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY])
def test_batch_is_taken_apart_without_what_was_compacted(codec):
    found = rows(batch(codec=codec))
    assert [(row["value"], row["__key"], row["__batchIndex"], row["__sequenceId"]) for row in found] == [
        (b"v0", b"k0", 0, 5),
        (b"v2", b"k2", 2, 7),
    ]


def test_encrypted_message_is_given_as_it_is():
    row = rows(batch(encryption_keys=[pb.EncryptionKeys(key="k", value=b"v")]))[0]
    assert row["__encrypted"]


def test_marker_is_no_message_but_an_entry():
    assert rows(entry(marker_type=10)) == []
    assert rows(entry(marker_type=10), mode="entry")[0]["__markerType"] == 10


def test_piece_of_a_chunked_message_is_refused_in_message_mode():
    piece = entry(num_chunks_from_msg=2, chunk_id=0, uuid="u")
    with pytest.raises(NotSupported, match="mode=entry"):
        rows(piece)
    assert len(rows(piece, mode="entry")) == 1


def test_entry_mode_keeps_batches_whole():
    row = rows(batch(), mode="entry")[0]
    assert row["__numMessages"] == 3
    metadata = pb.MessageMetadata.FromString(row["__metadata"])
    assert metadata.num_messages_in_batch == 3
    assert row["__payload"].endswith(b"v2")


def test_columns_for_copies_are_the_same_with_and_without_the_short_way():
    entries = [entry(number=number) for number in range(3)]
    fast = rows(*entries, mode="entry", include=ENTRY_WRITE_COLUMNS)
    slow = rows(*entries, mode="entry", include=(*ENTRY_WRITE_COLUMNS, "__size"))
    assert fast == [{name: row[name] for name in ENTRY_WRITE_COLUMNS} for row in slow]


def test_rows_in_the_style_of_kafka():
    layout = Layout(style="kafka")
    builder = RowBuilder(read_schema(layout, ["all"]), layout)
    builder.add(TOPIC, [entry(partition_key="k", properties=[pb.KeyValue(key="a", value="b")])])
    row = builder.take().to_pylist()[0]
    assert (row["key"], row["value"], row["topic"], row["partition"]) == (b"k", b"payload", TOPIC[:-12], 3)
    assert (row["offset"], row["timestamp"].timestamp(), row["timestampType"]) == (12 << 32 | 7, 1.0, 0)
    assert row["headers"] == [{"key": "a", "value": b"b"}]


class Decoder:
    """Columns of payloads as a decoder makes them."""

    def arrays(self, payloads):
        self.places = [payload.place for payload in payloads]
        return {"text": pa.array([payload.value.decode() for payload in payloads])}


def test_columns_of_payloads_stand_where_they_are_wanted():
    layout = Layout(payload=StructType([StructField("text", StringType())]))
    decoder = Decoder()
    builder = RowBuilder(read_schema(layout, ["__entryId", "text"]), layout, decoder)  # type: ignore[arg-type]
    builder.add(TOPIC, [batch(), entry(number=8)])
    found = builder.take()
    assert found.schema.names == ["__entryId", "text"]
    assert found.column("text").to_pylist() == ["v0", "v2", "payload"]
    assert decoder.places == ["12:7:0", "12:7:2", "12:8"]


def test_event_time_before_1970_is_negative_on_the_wire():
    assert rows(entry(event_time=2**64 - 1501))[0]["__eventTime"].timestamp() == -1.501


def test_time_that_no_column_holds_is_named():
    with pytest.raises(InvalidRequest, match=r"has the time 1706933106789000000 ms in its metadata.*includeColumns"):
        rows(entry(event_time=1_706_933_106_789_000_000))


SEALED_TOPIC = "persistent://public/default/t"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return new_keys(tmp_path_factory.mktemp("keys"), "orders")


def written(keys: KeyFiles, *values: bytes, batched: bool, codec: int = pb.NONE) -> Entry:
    encryptor = Encryptor(SEALED_TOPIC, ["orders"], DefaultCryptoKeyReader(keys.public), "fail")
    fields: dict[str, Any] = dict.fromkeys(OutgoingMessage._fields)
    messages = [
        OutgoingMessage(**{**fields, "topic": SEALED_TOPIC, "value": value, "properties": {}, "replicate_to": ()})
        for value in values
    ]
    ids = range(len(messages))
    options: dict[str, Any] = {"producer_name": "p", "publish_time_ms": 1, "batched": batched, "codec": codec}
    raw = build_messages(messages, ids=ids, encryptor=encryptor, **options)
    return Entry(Position(1, 2), raw, parse_entry(raw))


def decrypted_rows(entry: Entry, decryption: Decryption | None) -> list[dict]:
    layout = Layout("message")
    builder = RowBuilder(read_schema(layout, ["value", "__encrypted"]), layout, None, None, decryption)
    builder.add(SEALED_TOPIC, [entry])
    return builder.take().to_pylist()


@pytest.mark.parametrize("codec", [pb.NONE, pb.ZSTD])
@pytest.mark.parametrize("values", [(b"a",), (b"a", b"b"), tuple(b"%d" % number for number in range(100))])
def test_entry_when_there_is_its_key_then_has_plain_rows(keys: KeyFiles, values: tuple[bytes, ...], codec: int) -> None:
    decryption = Decryption(DefaultCryptoKeyReader(private_keys=keys.private), None)
    found = decrypted_rows(written(keys, *values, batched=len(values) > 1, codec=codec), decryption)
    assert [(row["value"], row["__encrypted"]) for row in found] == [(value, False) for value in values]


def test_entry_when_there_is_no_key_then_its_rows_are_what_the_option_says(keys: KeyFiles, tmp_path: Path) -> None:
    wrong = DefaultCryptoKeyReader(private_keys=new_keys(tmp_path, "other").private)
    for decryption in (None, Decryption(None, None), Decryption(None, "consume"), Decryption(wrong, "consume")):
        (row,) = decrypted_rows(written(keys, b"a", b"b", batched=True), decryption)
        assert row["__encrypted"]
        assert row["value"] != b"a"
    assert decrypted_rows(written(keys, b"a", batched=False), Decryption(None, "discard")) == []
    for decryption in (Decryption(None, "fail"), Decryption(wrong, None)):
        with pytest.raises(CryptoError, match=r"entry 1:2: a message of .*'orders'.* give encryptionPrivateKey"):
            decrypted_rows(written(keys, b"a", batched=False), decryption)
