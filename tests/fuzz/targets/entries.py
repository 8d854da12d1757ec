"""Stored entries: their parts, checksum and metadata, the same for both codecs."""

from __future__ import annotations

from collections.abc import Iterator

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import native_codec, python_codec
from interpulse.wire.entries import (
    accept_entry,
    build_entry,
    metadata_in,
    parse_entry,
    verify_checksum,
    with_broker_metadata,
    without_broker_metadata,
)
from interpulse.wire.errors import RemoteProtocolError
from tests.support.codecs import NATIVE_INSTALLED


def one(data: bytes) -> None:
    """As an entry, and as the metadata of one whose checksum is right."""
    for entry in (data, build_entry(data, b"payload"), with_broker_metadata(pb.BrokerEntryMetadata(index=1), data)):
        verify_checksum(entry)
        accept_entry(entry)
        try:
            without_broker_metadata(entry)
            metadata_in(entry)
            assert parse_entry(entry).message_count >= 0
        except RemoteProtocolError:
            pass
        if NATIVE_INSTALLED:
            [key] = native_codec().sticky_keys([entry])
            assert key in (None, *python_codec().sticky_keys([entry]))
            [count] = native_codec().message_counts([entry])
            assert count in (0, *python_codec().message_counts([entry]))


def seeds() -> Iterator[bytes]:
    metadata = pb.MessageMetadata(
        producer_name="p",
        sequence_id=7,
        publish_time=1,
        properties=[pb.KeyValue(key="k", value="v")],
        partition_key="key",
        event_time=2**50,
        num_messages_in_batch=2,
    )
    yield metadata.SerializeToString()
    yield build_entry(metadata.SerializeToString(), b"payload")
    yield with_broker_metadata(pb.BrokerEntryMetadata(broker_timestamp=1, index=2), build_entry(b"", b""))
