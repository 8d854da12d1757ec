"""Messages in REST answers: the payload of an entry in the body, its metadata in headers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from interpulse.client.messages import Message, messages_of
from interpulse.model.errors import UnknownError
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import ParsedEntry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.ids import unsigned

_EXACT_KEY: Final = "X-Interpulse-Base64-partition-key"
"""Header with the exact key. Interpulse adds it for keys beyond ASCII, where Pulsar's header has question marks."""


def is_marker(headers: Mapping[str, str]) -> bool:
    """Return True if a broker wrote the entry for brokers, such as a snapshot of a replicated subscription."""
    return "X-Pulsar-marker-type" in headers


def is_committed(headers: Mapping[str, str]) -> bool:
    """Return True if the entry belongs to no transaction, or to a committed one."""
    return not (_truth(headers.get("X-Pulsar-txn-aborted", "")) or _truth(headers.get("X-Pulsar-txn-uncommitted", "")))


def messages_in_answer(headers: Mapping[str, str], payload: bytes, topic: TopicName) -> list[Message]:
    """Return the messages of the entry in an answer. An encrypted batch stays one message.

    Header names ignore case. Raise UnknownError if the answer contains no entry.
    """
    try:
        position = Position.parse(headers["X-Pulsar-Message-ID"])
        entry = ParsedEntry(_metadata(headers, payload), b"", memoryview(payload), _broker_metadata(headers))
        messages = messages_of(
            entry,
            topic=str(topic),
            ledger=position.ledger,
            entry_id=position.entry,
            partition=topic.partition_index,
            redelivery_count=0,
        )
        return list(messages)
    except (KeyError, ValueError, TypeError, RemoteProtocolError) as error:
        raise UnknownError(f"The broker answered something that is no message of {topic}: {error!r}") from error


def _metadata(headers: Mapping[str, str], payload: bytes) -> pb.MessageMetadata:
    """Read the metadata from headers, without compression: the payload arrives decompressed."""
    metadata = pb.MessageMetadata(uncompressed_size=len(payload))
    for header, (field, read) in _FIELDS.items():
        if header in headers:
            setattr(metadata, field, read(headers[header]))
    if _EXACT_KEY in headers:
        metadata.partition_key = base64.b64decode(headers[_EXACT_KEY]).decode()
    properties = json.loads(headers.get("X-Pulsar-PROPERTY") or "{}")
    metadata.properties.extend(pb.KeyValue(key=key, value=value) for key, value in properties.items())
    if _truth(headers.get("X-Pulsar-Is-Encrypted", "false")):
        metadata.encryption_keys.add(key="", value=b"")
    return metadata


def _broker_metadata(headers: Mapping[str, str]) -> pb.BrokerEntryMetadata | None:
    timestamp = headers.get("X-Pulsar-Broker-Entry-METADATA-timestamp")
    index = headers.get("X-Pulsar-Broker-Entry-METADATA-index")
    if timestamp is None and index is None:
        return None
    metadata = pb.BrokerEntryMetadata()
    if timestamp is not None:
        metadata.broker_timestamp = _moment(timestamp)
    if index is not None:
        metadata.index = int(index)
    return metadata


def _moment(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _truth(text: str) -> bool:
    return text.lower() == "true"


def _unsigned(text: str) -> int:
    return unsigned(int(text))


_FIELDS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "X-Pulsar-publish-time": ("publish_time", _moment),
    "X-Pulsar-event-time": ("event_time", _moment),
    "X-Pulsar-deliver-at-time": ("deliver_at_time", _moment),
    "X-Pulsar-num-batch-message": ("num_messages_in_batch", int),
    "X-Pulsar-null-value": ("null_value", _truth),
    "X-Pulsar-producer-name": ("producer_name", str),
    "X-Pulsar-sequence-id": ("sequence_id", _unsigned),
    "X-Pulsar-replicated-from": ("replicated_from", str),
    "X-Pulsar-partition-key": ("partition_key", str),
    "X-Pulsar-partition-key-b64-encoded": ("partition_key_b64_encoded", _truth),
    "X-Pulsar-Base64-ordering-key": ("ordering_key", base64.b64decode),
    "X-Pulsar-Base64-schema-version": ("schema_version", base64.b64decode),
    "X-Pulsar-marker-type": ("marker_type", int),
}
