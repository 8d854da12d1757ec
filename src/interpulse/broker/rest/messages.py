"""REST calls that return single messages of a topic: by position in a backlog or in the topic, by id, by time.

The body of an answer is the payload of one entry, decompressed unless it is encrypted; a batch stays a batch. The other
fields of the entry are headers, named as Pulsar names them. A header holds one line of ASCII: other characters of keys
and names become question marks, as Pulsar's web server has it; properties travel as JSON and lose nothing, and a key
that would lose something has a header of ours besides.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from interpulse.broker.live.log_search import nth_position
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.rest.http.at_owner import at_owner, open_single
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json, not_negative
from interpulse.clock import iso_time
from interpulse.model.errors import (
    InvalidRequest,
    NotFound,
    PersistenceError,
    PreconditionFailed,
)
from interpulse.model.ids import Position
from interpulse.model.operations import Messages
from interpulse.storage.api import LogEntry
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.compression import decompress
from interpulse.wire.entries import ParsedEntry, parse_entry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.ids import signed


async def peek(call: Call) -> Answer:
    """Return the n-th entry of a subscription's backlog, counted from 1."""
    number = _counted("position", call.param("position"))
    topic = await open_single(call, "Peek messages")
    return _answer(await backlog_operations.peek(topic, call.subscription, number))


async def examine(call: Call) -> Answer:
    """Return the n-th entry of the topic, counted back from its last or, on request, from its first."""
    start = call.query.get("initialPosition", "latest")
    number = _counted("messagePosition", call.query.get("messagePosition", "1"))
    if start not in ("earliest", "latest"):
        raise PreconditionFailed(f"initialPosition should be either earliest or latest, not {start[:100]!r}")
    topic = await open_single(call, "Examine messages")
    if not any(ledger.entries for ledger in topic.log.ledgers):
        raise PreconditionFailed("Could not examine messages due to the total message is zero")
    position = nth_position(topic.log.ledgers, number, from_end=start == "latest")
    if position is None:
        raise NotFound(f"Message not found: {topic.name} has fewer than {number} entries")
    return _answer(await topic.positions.read_entry(position))


async def get_message(call: Call) -> Answer:
    """Return the entry at a position."""
    position = Position(call.number("ledger"), call.number("entry"))
    topic = await open_single(call, "GetMessageById")
    return _answer(await topic.positions.read_entry(position))


async def get_message_id_at(call: Call) -> Answer:
    """Return the position of the first entry published at or after a time, else the next position."""
    time_ms = call.number("time")
    topic = await open_single(call, "Get message ID by timestamp")
    before = await topic.positions.before_time(time_ms)
    position = topic.log.next_position(before) or Position(before.ledger, before.entry + 1)
    place = {"ledgerId": position.ledger, "entryId": position.entry, "partitionIndex": topic.name.partition_index}
    return answer_json(place | {"batchIndex": -1, "batchSize": 0})


def _counted(name: str, text: str) -> int:
    number = not_negative(name, text)
    if number == 0:
        raise InvalidRequest(f"{name} is counted from 1, not from 0")
    return number


def _answer(found: LogEntry) -> Answer:
    try:
        entry = parse_entry(found.entry)
        encrypted = len(entry.metadata.encryption_keys) > 0
        codec = pb.NONE if encrypted else entry.metadata.compression
        body = decompress(codec, entry.payload, entry.metadata.uncompressed_size)
    except RemoteProtocolError as error:
        raise PersistenceError(f"The entry {found.position} cannot be shown: {error}") from error
    headers = entry_headers(found.position, entry, entry_bytes=len(found.entry))
    return Answer(200, body, "application/octet-stream", headers)


ROUTES: Final = (
    at_owner(Route(Messages.PEEK, peek)),
    at_owner(Route(Messages.EXAMINE, examine)),
    at_owner(Route(Messages.GET, get_message)),
    at_owner(Route(Messages.GET_ID_AT, get_message_id_at)),
)


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
