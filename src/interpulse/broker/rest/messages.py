"""REST calls that return single messages of a topic: by position in a backlog or in the topic, by id, by time.

The body of an answer is the payload of one entry, decompressed unless it is encrypted; a batch stays a batch. The other
fields of the entry are headers, see `interpulse.broker.rest.http.entry_headers`.
"""

from __future__ import annotations

from typing import Final

from interpulse.broker.live.log_search import nth_position
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.rest.http.at_owner import at_owner
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json, not_negative
from interpulse.broker.rest.http.entry_headers import entry_headers
from interpulse.broker.rest.http.opening import open_single
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
from interpulse.wire.entries import parse_entry
from interpulse.wire.errors import RemoteProtocolError


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
