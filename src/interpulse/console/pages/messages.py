"""The messages of a topic, filtered: as pages, as a file, and live; and one message with its content."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

from interpulse.console.messages.shown_content import VIEWS
from interpulse.console.messages.topic_messages import (
    EntryRange,
    Matches,
    MessageFilter,
    ShownMessage,
    TopicMessages,
    message_id,
)
from interpulse.console.sampling import PollingRate
from interpulse.console.visit import Model, Visit
from interpulse.console.web.addresses import page_url
from interpulse.console.web.response import EventStream, Response, download, event
from interpulse.model.errors import InvalidRequest, NotFound
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.numbers import LONG_MAX

COUNT: Final = 25
_EXPORTED_MAX: Final = 1_000_000
_FORMATS: Final = ("ndjson", "csv")
_CHARACTERS_MAX: Final = 20_000
_BATCH_SHOWN: Final = 100
_TAIL_MAX: Final = 20
"""Messages per event of a tail, and entries that it reads; further ones are counted."""
_FIELDS: Final = (
    "id", "publish_time_ms", "event_time_ms", "key", "producer", "sequence_id", "replicated_from", "schema_version",
    "properties",
)  # fmt: skip
_COLUMNS: Final = (*_FIELDS, "form", "content", "problem")


async def build(visit: Visit) -> Model:
    """Build the page. Raise refusals of the admin API, and InvalidRequest for a malformed position or filter."""
    topic = visit.topic()
    model: Model = {
        "topic": str(topic),
        "partitions": await _partitions(visit, topic),  # each has its own messages; the page then shows nothing else
        "view": VIEWS[0],
        "entries": 0,
        "messages": [],
        "looked_at": 0,
        "first": 0,
        "earlier": "",
        "later": "",
        "live": "",
        "exports": [],
    }
    if model["partitions"]:
        return model
    view = visit.choice("view", VIEWS)
    reading = TopicMessages(visit, topic, view=view)
    wanted = MessageFilter.of(visit)
    entries = await reading.entries()
    newest = not visit.text("from") and not visit.text("time")
    if newest:
        matches = await reading.newest(entries, wanted, COUNT)
        first = max(0, len(entries) - matches.looked_at)
    else:
        first, begin = await _begin(visit, reading, entries)
        matches = await reading.forward(entries, begin, first, wanted, COUNT)
    return model | {
        "view": view,
        "entries": len(entries),
        "messages": matches.messages,
        "looked_at": matches.looked_at,
        "first": first,  # the number of the entry that reading began with
        # Addresses of the pages before and after; empty at an end of the topic.
        "earlier": _address(visit, _earlier(entries, matches, first, newest=newest)),
        "later": _address(visit, matches.next_id),
        # The stream of new messages; empty on pages that do not end with the topic.
        "live": "" if matches.next_id else _same_place("messages/tail", visit),
        "exports": [(kind, _same_place("messages/export", visit, format=kind)) for kind in _FORMATS],
    }


async def build_message(visit: Visit) -> Model:
    """Build the page of one message. Raise NotFound, and InvalidRequest for a malformed id."""
    topic, place = visit.topic(), message_id(visit.text("id"))
    view = visit.choice("view", VIEWS)
    reading = TopicMessages(visit, topic, view=view, most=_CHARACTERS_MAX)
    messages = await reading.at(place)
    if not messages:
        raise NotFound(f"{topic} has no message {visit.text('id')[:100]}: compaction may have removed it")
    first = messages[0]
    shown = await reading.shown(first)
    return {
        "topic": str(topic),
        "id": shown.id,
        "view": view,
        "views": VIEWS,
        "message": shown,
        "ordering_key": (first.ordering_key or b"").decode("utf-8", "backslashreplace"),
        "deliver_at_ms": first.deliver_at_ms,
        "broker_time_ms": first.broker_publish_time_ms,
        "index": first.index,
        "encrypted": first.is_encrypted,
        "siblings": [str(message.id) for message in messages[1:_BATCH_SHOWN]],  # of its batch
    }


async def content(visit: Visit) -> Response:
    """Return the content of a message as a file."""
    topic, place = visit.topic(), message_id(visit.text("id"))
    messages = await TopicMessages(visit, topic, view="raw").at(place)
    raw = next((message.content for message in messages if message.content is not None), None)
    if raw is None:
        raise NotFound(f"The message {visit.text('id')[:100]} of {topic} has no content")
    return download(f"{place.ledger}-{place.entry}.bin", "application/octet-stream", _once(raw))


async def _once(raw: bytes) -> EventStream:
    yield raw


async def export(visit: Visit) -> Response:
    """Return all matching messages from the page's position on, as JSON objects or rows."""
    topic = visit.topic()
    reading = TopicMessages(visit, topic, view=visit.choice("view", VIEWS), most=1 << 24)
    wanted = MessageFilter.of(visit)
    entries = await reading.entries()
    first = 0
    if visit.text("from") or visit.text("time"):
        first, _ = await _begin(visit, reading, entries)
    rows = _rows(reading, entries, first, wanted)
    if visit.choice("format", _FORMATS) == "csv":
        return download(f"{topic.local_name}.csv", "text/csv; charset=utf-8", _as_csv(rows))
    return download(f"{topic.local_name}.ndjson", "application/x-ndjson", _as_json_lines(rows))


async def tail(visit: Visit) -> EventStream:
    """Stream new messages, twice a second while few visitors follow. Each event counts the messages left out."""
    visit.tails.check_room()
    reading = TopicMessages(visit, visit.topic(), view=visit.choice("view", VIEWS), most=300)
    wanted = MessageFilter.of(visit)
    entries = await reading.entries()
    last = entries[len(entries) - 1] if len(entries) else None
    return _tail(reading, wanted, last, visit.tails)


async def _tail(reading: TopicMessages, wanted: MessageFilter, last: Position | None, rate: PollingRate) -> EventStream:
    with rate.watching():
        while True:
            last, news = await _news(reading, wanted, last)
            yield news
            await asyncio.sleep(rate.seconds)


async def _news(reading: TopicMessages, wanted: MessageFilter, last: Position | None) -> tuple[Position | None, bytes]:
    """Return the last entry of the topic, and the event for the entries after ``last``."""
    entries = await reading.entries()
    come = len(entries) - (0 if last is None else entries.number(last) + 1)
    if come <= 0:
        return last, b": nothing new\n\n"  # a write is the only way to notice a disconnect
    matches = await reading.newest(entries, wanted, _TAIL_MAX, first=len(entries) - min(come, _TAIL_MAX))
    messages = [_event_of(message, reading.topic) for message in matches.messages]
    counts = {"messages": messages, "left_out": matches.left_out, "entries_left_out": come - matches.looked_at}
    return entries[len(entries) - 1], event(counts)


def _event_of(message: ShownMessage, topic: TopicName) -> Model:
    return {
        "id": message.id,
        "url": page_url("message", name=topic, id=message.id),
        "time_ms": message.publish_time_ms,
        "key": message.key,
        "content": message.content.text,
        "problem": message.problem or message.content.problem,
    }


async def _partitions(visit: Visit, topic: TopicName) -> list[str]:
    if topic.is_partition:
        return []
    metadata = await visit.admin.topics.partitioned_metadata(topic)
    return [str(topic.partition(index)) for index in range(metadata.partitions)]


async def _begin(visit: Visit, reading: TopicMessages, entries: EntryRange) -> tuple[int, MessageId | None]:
    if time := visit.text("time"):
        return await reading.number_at(entries, read_time(time)), None
    if visit.text("from") == "earliest":
        return 0, None
    begin = message_id(visit.text("from"))
    return entries.number(begin.position), begin


def _earlier(entries: EntryRange, matches: Matches, first: int, *, newest: bool) -> str:
    """Return the estimated start of the previous page: an entry may hold many messages."""
    if first <= 0 or not len(entries):
        return ""
    back = max(COUNT, matches.looked_at) if newest else COUNT
    return str(entries[max(0, min(first, len(entries)) - back)])


def _address(visit: Visit, begin: str) -> str:
    if not begin:
        return ""
    return page_url("messages", **{**visit.query, "from": begin, "time": None})


def _same_place(page: str, visit: Visit, **query: str) -> str:
    return page_url(page, **{**visit.query, **query})


async def _rows(
    reading: TopicMessages, entries: EntryRange, first: int, wanted: MessageFilter
) -> AsyncIterator[dict[str, Any]]:
    count = 0
    async for message in reading.all_from(entries, first, wanted):
        if count == _EXPORTED_MAX:
            yield {"problem": f"the export ends after {_EXPORTED_MAX} messages"}
            return
        count += 1
        shown = await reading.shown(message)
        yield {
            **{name: getattr(shown, name) for name in _FIELDS},
            "replicated_from": shown.replicated_from or None,
            "form": shown.content.form,
            "content": None if shown.content.form == "null" else shown.content.text,
            "problem": shown.problem or shown.content.problem or None,
        }


async def _as_json_lines(rows: AsyncIterator[dict[str, Any]]) -> EventStream:
    async for row in rows:
        yield json.dumps(row).encode() + b"\n"


async def _as_csv(rows: AsyncIterator[dict[str, Any]]) -> EventStream:
    yield _csv_line(_COLUMNS)
    async for row in rows:
        fields = {**row, "properties": json.dumps(row["properties"])} if "properties" in row else row
        yield _csv_line([fields.get(name) for name in _COLUMNS])


def _csv_line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode("utf-8", "backslashreplace")


_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


def read_time(text: str) -> int:
    """Parse milliseconds since the epoch, or ISO 8601, in UTC unless it names a zone. Raise InvalidRequest."""
    if _DIGITS.fullmatch(text) and int(text) <= LONG_MAX:
        return int(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidRequest(
            f"A time is milliseconds since 1970 or like 2026-01-31T12:00:00Z, not {text[:100]!r}"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
