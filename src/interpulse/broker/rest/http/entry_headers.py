"""The headers of an HTTP answer for the metadata of an entry, named as Pulsar names them.

Admin clients rebuild the metadata of messages from them. A header holds one line of ASCII: other characters of keys and
names become question marks, as Pulsar's web server has it; properties travel as JSON and lose nothing, and a key that
would lose something has a header of ours besides.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from interpulse.clock import iso_time
from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import ParsedEntry
from interpulse.wire.ids import signed

Headers = dict[str, str | tuple[str, ...]]


def entry_headers(position: Position, entry: ParsedEntry, *, entry_bytes: int) -> Headers:
    """Return the headers of one entry; ``entry_bytes`` is its stored size. A tuple is a repeated header."""
    metadata = entry.metadata
    properties = {_text(pair.key): _text(pair.value) for pair in metadata.properties}
    headers: Headers = {
        "X-Pulsar-Message-ID": str(position),
        "X-Pulsar-PROPERTY": json.dumps(properties, separators=(",", ":")),
        "X-Pulsar-Is-Encrypted": _truth(len(metadata.encryption_keys) > 0),
        "X-Pulsar-txn-uncommitted": "false",
        "X-Pulsar-Base64-encryption-keys": tuple(_base64(key.SerializeToString()) for key in metadata.encryption_keys),
        "X-Pulsar-replicated-to": tuple(map(_one_line, metadata.replicate_to)),
    }
    if entry.is_batch:
        headers["X-Pulsar-batch-size"] = str(entry_bytes - len(entry.metadata_bytes))
    key: str | bytes = metadata.partition_key
    if isinstance(key, str) and not key.isascii():  # bytes: it is not UTF-8, which Pulsar forbids
        headers["X-Interpulse-Base64-partition-key"] = _base64(key.encode())
    if metadata.HasField("num_chunks_from_msg"):
        headers["X-Pulsar-PROPERTY-TOTAL-CHUNKS"] = str(metadata.num_chunks_from_msg)
        headers["X-Pulsar-PROPERTY-CHUNK-ID"] = str(metadata.chunk_id)
    headers |= _present(metadata, _OF_MESSAGES)
    if entry.broker_metadata is not None:
        headers |= _present(entry.broker_metadata, _OF_BROKERS)
    return headers


def _present(message: Any, fields: Mapping[str, tuple[str, Callable[[Any], str]]]) -> Headers:
    return {
        header: show(getattr(message, field)) for field, (header, show) in fields.items() if message.HasField(field)
    }


def _text(value: str | bytes) -> str:
    """Return a producer's value as text. Values that are not UTF-8 arrive as bytes."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _one_line(text: str | bytes) -> str:
    return "".join(letter if " " <= letter <= "~" else "?" for letter in _text(text))


def _event_time(time_ms: int) -> str:
    return iso_time(signed(time_ms))


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _signed(value: int) -> str:
    return str(signed(value))


_OF_MESSAGES: Final[dict[str, tuple[str, Callable[[Any], str]]]] = {
    "publish_time": ("X-Pulsar-publish-time", iso_time),
    "event_time": ("X-Pulsar-event-time", _event_time),
    "deliver_at_time": ("X-Pulsar-deliver-at-time", iso_time),
    "num_messages_in_batch": ("X-Pulsar-num-batch-message", str),
    "null_value": ("X-Pulsar-null-value", _truth),
    "producer_name": ("X-Pulsar-producer-name", _one_line),
    "sequence_id": ("X-Pulsar-sequence-id", _signed),
    "replicated_from": ("X-Pulsar-replicated-from", _one_line),
    "partition_key": ("X-Pulsar-partition-key", _one_line),
    "compression": ("X-Pulsar-compression", lambda number: pb.CompressionType.Name(number)),
    "uncompressed_size": ("X-Pulsar-uncompressed-size", str),
    "encryption_algo": ("X-Pulsar-encryption-algo", _one_line),
    "encryption_param": ("X-Pulsar-Base64-encryption-param", _base64),
    "schema_version": ("X-Pulsar-Base64-schema-version", _base64),
    "partition_key_b64_encoded": ("X-Pulsar-partition-key-b64-encoded", _truth),
    "ordering_key": ("X-Pulsar-Base64-ordering-key", _base64),
    "marker_type": ("X-Pulsar-marker-type", str),
    "txnid_least_bits": ("X-Pulsar-txnid-least-bits", _signed),
    "txnid_most_bits": ("X-Pulsar-txnid-most-bits", _signed),
    "highest_sequence_id": ("X-Pulsar-highest-sequence-id", _signed),
    "uuid": ("X-Pulsar-uuid", _one_line),
    "num_chunks_from_msg": ("X-Pulsar-num-chunks-from-msg", str),
    "total_chunk_msg_size": ("X-Pulsar-total-chunk-msg-size", str),
    "chunk_id": ("X-Pulsar-chunk-id", str),
    "null_partition_key": ("X-Pulsar-null-partition-key", _truth),
}
_OF_BROKERS: Final[dict[str, tuple[str, Callable[[Any], str]]]] = {
    "broker_timestamp": ("X-Pulsar-Broker-Entry-METADATA-timestamp", iso_time),
    "index": ("X-Pulsar-Broker-Entry-METADATA-index", str),
}
