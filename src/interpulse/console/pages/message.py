"""One message with all that is known of it, and its content as a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from interpulse.client.messages import Message
from interpulse.console.messages.shown_content import VIEWS
from interpulse.console.messages.topic_messages import ShownMessage, TopicMessages, message_id
from interpulse.console.visit import Visit
from interpulse.console.web.response import Download, EventStream
from interpulse.model.errors import NotFound

_CHARACTERS: Final = 20_000
_BATCH_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class MessageModel:
    """The page of a message; ``siblings`` are the first messages of its batch."""

    topic: str
    id: str
    view: str
    views: tuple[str, ...]
    message: ShownMessage
    ordering_key: str = ""
    deliver_at_ms: int | None = None
    broker_time_ms: int | None = None
    index: int | None = None
    encrypted: bool = False
    siblings: tuple[str, ...] = ()


async def build(visit: Visit) -> MessageModel:
    """Build the page. Raise NotFound, and InvalidRequest for a malformed id."""
    topic, place = visit.topic(), message_id(visit.text("id"))
    view = visit.choice("view", VIEWS)
    reading = TopicMessages(visit, topic, view=view, most=_CHARACTERS)
    messages = await reading.at(place)
    if not messages:
        raise NotFound(f"{topic} has no message {visit.text('id')[:100]}: compaction may have removed it")
    first = messages[0]
    shown = await reading.shown(first)
    siblings = tuple(str(message.id) for message in messages[1:_BATCH_SHOWN])
    if not isinstance(first, Message):
        return MessageModel(str(topic), shown.id, view, VIEWS, shown)
    return MessageModel(
        str(topic),
        shown.id,
        view,
        VIEWS,
        shown,
        (first.ordering_key or b"").decode("utf-8", "backslashreplace"),
        first.deliver_at_ms,
        first.broker_publish_time_ms,
        first.index,
        first.is_encrypted,
        siblings,
    )


async def content(visit: Visit) -> Download:
    """Return the content of a message as a file."""
    topic, place = visit.topic(), message_id(visit.text("id"))
    messages = await TopicMessages(visit, topic, view="raw").at(place)
    found = next(
        (message.content for message in messages if isinstance(message, Message) and message.content is not None), None
    )
    if found is None:
        raise NotFound(f"The message {visit.text('id')[:100]} of {topic} has no content")
    return Download(f"{place.ledger}-{place.entry}.bin", "application/octet-stream", _once(found))


async def _once(found: bytes) -> EventStream:
    yield found
