"""The headers that stand for the metadata of an entry; tests/interop shows that Pulsar's admin client reads them."""

from typing import Any

import pytest

from interpulse.broker.rest.messages import entry_headers
from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import ParsedEntry

ALWAYS = {
    "X-Pulsar-Message-ID": "3:4",
    "X-Pulsar-PROPERTY": "{}",
    "X-Pulsar-Is-Encrypted": "false",
    "X-Pulsar-txn-uncommitted": "false",
    "X-Pulsar-producer-name": "p",
    "X-Pulsar-sequence-id": "7",
    "X-Pulsar-publish-time": "2009-02-13T23:31:30.123Z",
    "X-Pulsar-Base64-encryption-keys": (),
    "X-Pulsar-replicated-to": (),
}


def headers(broker: pb.BrokerEntryMetadata | None = None, **fields: Any) -> dict[str, Any]:
    """What one entry of 100 bytes has beside the headers that all have."""
    metadata = pb.MessageMetadata(
        **{"producer_name": "p", "sequence_id": 7, "publish_time": 1_234_567_890_123, **fields}
    )
    entry = ParsedEntry(metadata, metadata.SerializeToString(), memoryview(b""), broker)
    found = entry_headers(Position(3, 4), entry, entry_bytes=100)
    return {name: value for name, value in found.items() if ALWAYS.get(name) != value}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"sequence_id": 2**64 - 1}, {"X-Pulsar-sequence-id": "-1"}),
        ({"event_time": 0}, {"X-Pulsar-event-time": "1970-01-01T00:00:00.000Z"}),
        ({"event_time": 2**64 - 1}, {"X-Pulsar-event-time": "1969-12-31T23:59:59.999Z"}),
        ({"event_time": 2**63 - 1}, {"X-Pulsar-event-time": "9999-12-31T23:59:59.999Z"}),
        ({"deliver_at_time": 1000}, {"X-Pulsar-deliver-at-time": "1970-01-01T00:00:01.000Z"}),
        ({"partition_key": "k:1"}, {"X-Pulsar-partition-key": "k:1"}),
        (
            {"partition_key": "ü\r\nX: y"},
            {"X-Pulsar-partition-key": "???X: y", "X-Interpulse-Base64-partition-key": "w7wNClg6IHk="},
        ),
        ({"partition_key_b64_encoded": True}, {"X-Pulsar-partition-key-b64-encoded": "true"}),
        ({"null_value": True}, {"X-Pulsar-null-value": "true"}),
        (
            {"compression": pb.LZ4, "uncompressed_size": 9},
            {"X-Pulsar-compression": "LZ4", "X-Pulsar-uncompressed-size": "9"},
        ),
        ({"ordering_key": b"ok"}, {"X-Pulsar-Base64-ordering-key": "b2s="}),
        ({"schema_version": b"\0" * 8}, {"X-Pulsar-Base64-schema-version": "AAAAAAAAAAA="}),
        ({"replicated_from": "east"}, {"X-Pulsar-replicated-from": "east"}),
        ({"replicate_to": ["a", "b"]}, {"X-Pulsar-replicated-to": ("a", "b")}),
        (
            {"uuid": "u", "num_chunks_from_msg": 3, "total_chunk_msg_size": 30, "chunk_id": 1},
            {
                "X-Pulsar-uuid": "u",
                "X-Pulsar-num-chunks-from-msg": "3",
                "X-Pulsar-total-chunk-msg-size": "30",
                "X-Pulsar-chunk-id": "1",
                "X-Pulsar-PROPERTY-TOTAL-CHUNKS": "3",
                "X-Pulsar-PROPERTY-CHUNK-ID": "1",
            },
        ),
        (
            {
                "encryption_keys": [pb.EncryptionKeys(key="a", value=b"x"), pb.EncryptionKeys(key="b", value=b"y")],
                "encryption_param": b"\1",
                "encryption_algo": "AES",
            },
            {
                "X-Pulsar-Is-Encrypted": "true",
                "X-Pulsar-Base64-encryption-keys": ("CgFhEgF4", "CgFiEgF5"),
                "X-Pulsar-Base64-encryption-param": "AQ==",
                "X-Pulsar-encryption-algo": "AES",
            },
        ),
    ],
)
def test_metadata_when_shown_then_has_pulsars_headers(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert headers(**fields) == expected


def test_properties_when_shown_then_are_one_line_of_ascii() -> None:
    properties = [pb.KeyValue(key="ü", value="a\r\nb"), pb.KeyValue(key="k", value='"')]
    assert headers(properties=properties) == {"X-Pulsar-PROPERTY": '{"\\u00fc":"a\\r\\nb","k":"\\""}'}


def test_texts_when_they_are_no_utf8_then_are_shown_as_far_as_they_can_be() -> None:
    properties = [pb.KeyValue(key="AA", value="AA")]
    raw = pb.MessageMetadata(
        producer_name="p",
        sequence_id=7,
        publish_time=1_234_567_890_123,
        partition_key="AA",
        properties=properties,
    ).SerializeToString()
    metadata = pb.MessageMetadata.FromString(raw.replace(b"AA", b"\xff\xfe"))
    found = entry_headers(Position(3, 4), ParsedEntry(metadata, b"", memoryview(b"")), entry_bytes=1)
    assert found["X-Pulsar-partition-key"] == "??"
    assert found["X-Pulsar-PROPERTY"] == '{"\\ufffd\\ufffd":"\\ufffd\\ufffd"}'


def test_batch_when_shown_then_has_its_count_and_the_bytes_besides_metadata() -> None:
    found = headers(num_messages_in_batch=1)
    assert found["X-Pulsar-num-batch-message"] == "1"
    assert 0 < int(found["X-Pulsar-batch-size"]) < 100


def test_broker_metadata_when_present_then_is_shown() -> None:
    assert headers(pb.BrokerEntryMetadata(broker_timestamp=1, index=5)) == {
        "X-Pulsar-Broker-Entry-METADATA-timestamp": "1970-01-01T00:00:00.001Z",
        "X-Pulsar-Broker-Entry-METADATA-index": "5",
    }
