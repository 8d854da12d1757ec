"""The messages of one topic, read entry by entry with the visitor's permissions. No cursor is created or moved."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from interpulse.client.messages import Message
from interpulse.console.messages.shown_content import NO_CONTENT, ShownContent, show_content
from interpulse.console.visit import Visit
from interpulse.console.web.addresses import topic_path
from interpulse.model.errors import Forbidden, InvalidRequest, PulsarError
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.numbers import LONG_MAX
from interpulse.model.schemas import SchemaInfo

_ENTRIES_MAX: Final = 1_000
"""The number of entries that one page reads in a search."""
_BYTES_MAX: Final = 16 * 1024 * 1024
_OFF: Final = "Messages are not shown in the console (consoleMessagesEnabled=false)"


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message; for an unreadable one, its known fields and the reason."""

    id: str
    publish_time_ms: int | None = None
    event_time_ms: int | None = None
    key: str | None = None
    size: int | None = None
    producer: str = ""
    sequence_id: int | None = None
    batch_size: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    replicated_from: str = ""
    schema_version: int | None = None
    content: ShownContent = NO_CONTENT
    problem: str = ""
    """The reason why the entry cannot be read."""


@dataclass(slots=True)
class Matches:
    """The result of a search."""

    messages: list[ShownMessage] = field(default_factory=list)
    looked_at: int = 0
    """Entries."""

    left_out: int = 0
    """Messages of these entries that match and are too many."""

    next_id: str = ""
    """The position to continue at; empty at the end of the topic."""


class EntryRange:
    """The stored entries of a topic, counted from the first: ledgers in their order, with the number of their entries.

    Links name positions, because the number of an entry changes when earlier ledgers are deleted.
    """

    def __init__(self, ledgers: list[tuple[int, int]]) -> None:
        self._ledgers = [(ledger, count) for ledger, count in ledgers if count > 0]
        self._begins = [0, *accumulate(count for _, count in self._ledgers)]

    @classmethod
    def of(cls, internal_stats: Mapping[str, Any]) -> EntryRange:
        """Return the range from the topic's statistics, which list the count of the current ledger separately."""
        ledgers = [(int(ledger["ledgerId"]), int(ledger.get("entries", 0))) for ledger in internal_stats["ledgers"]]
        if ledgers:
            ledger, count = ledgers[-1]
            ledgers[-1] = ledger, max(count, int(internal_stats.get("currentLedgerEntries", 0)))
        return cls(ledgers)

    def __len__(self) -> int:
        return self._begins[-1]

    def __getitem__(self, number: int) -> Position:
        """Return the position of an entry. Raise IndexError."""
        if not 0 <= number < len(self):
            raise IndexError(f"entry {number} of {len(self)}")
        ledger = bisect_right(self._begins, number) - 1
        return Position(self._ledgers[ledger][0], number - self._begins[ledger])

    def number(self, position: Position) -> int:
        """Return the number of the entry at a position, or of the next one; the length if there is none."""
        for (ledger, count), begin in zip(self._ledgers, self._begins, strict=False):
            if ledger == position.ledger:
                return begin + min(max(position.entry, 0), count)
            if ledger > position.ledger:
                return begin
        return len(self)


class TopicMessages:
    """A reader of one topic. Raises refusals of the admin API, and Forbidden if messages are not shown."""

    def __init__(self, visit: Visit, topic: TopicName, *, view: str, most: int = 500) -> None:
        """Create a reader that shows at most ``most`` characters of each content."""
        if not visit.host.messages_shown():
            raise Forbidden(_OFF)
        if not topic.is_persistent:
            raise InvalidRequest("A non-persistent topic stores no messages")
        self.topic = topic
        self._visit = visit
        self._admin = visit.admin
        self._view = view
        self._most = most
        self._schemas: dict[bytes, SchemaInfo | None] = {}

    async def entries(self) -> EntryRange:
        """Return the stored entries. An empty topic refuses visitors without permission as any other does."""
        await self._visit.check("GET", topic_path(self.topic, "/ledger/0/entry/0"))
        return EntryRange.of(await self._admin.topics.internal_stats(self.topic))

    async def number_at(self, entries: EntryRange, time_ms: int) -> int:
        """Return the number of the first entry that was published at or after a time."""
        place = await self._admin.topics.message_id_at(self.topic, time_ms)
        return entries.number(Position(int(place["ledgerId"]), int(place["entryId"])))

    async def newest(self, entries: EntryRange, wanted: MessageFilter, count: int, *, first: int = 0) -> Matches:
        """Return the last messages that match, in order. Entries before ``first`` are not read."""
        matches = Matches()
        read = matched = 0
        for number in range(len(entries) - 1, first - 1, -1):
            messages, size = await self._read(entries[number])
            matches.looked_at += 1
            read += size
            matching = [message for message in messages if isinstance(message, ShownMessage) or wanted.matches(message)]
            matched += len(matching)
            matches.messages[:0] = [await self.shown(message) for message in matching[-count:]]
            if matched >= count or matches.looked_at >= _ENTRIES_MAX or read >= _BYTES_MAX:
                break
            await asyncio.sleep(0)
        matches.messages = matches.messages[-count:]
        matches.left_out = matched - len(matches.messages)
        return matches

    async def forward(
        self, entries: EntryRange, begin: MessageId | None, number: int, wanted: MessageFilter, count: int
    ) -> Matches:
        """Return matching messages from an entry on, starting at ``begin`` in it, or with all of it for None."""
        matches = Matches()
        read = 0
        for place in range(number, len(entries)):
            position = entries[place]
            if matches.looked_at >= _ENTRIES_MAX or read >= _BYTES_MAX:
                matches.next_id = str(position)
                break
            messages, size = await self._read(position)
            matches.looked_at += 1
            read += size
            for message in messages:
                if begin is not None and message_id(message.id) < begin:
                    continue
                if isinstance(message, Message) and not wanted.matches(message):
                    continue
                if len(matches.messages) == count:
                    matches.next_id = str(message.id)
                    return matches
                matches.messages.append(await self.shown(message))
            await asyncio.sleep(0)
        return matches

    async def all_from(
        self, entries: EntryRange, number: int, wanted: MessageFilter
    ) -> AsyncIterator[Message | ShownMessage]:
        """Yield every matching message up to the present end."""
        for place in range(number, len(entries)):
            for message in (await self._read(entries[place]))[0]:
                if isinstance(message, ShownMessage) or wanted.matches(message):
                    yield message
            await asyncio.sleep(0)

    async def at(self, place: MessageId) -> list[Message]:
        """Return the messages of an entry, or the one that the id names. Raise NotFound."""
        messages = await self._admin.topics.message_by_id(self.topic, place.ledger, place.entry)
        if place.batch_index < 0:
            return messages
        return [message for message in messages if message.id.batch_index in (-1, place.batch_index)]

    async def shown(self, message: Message | ShownMessage) -> ShownMessage:
        """Return the message with its content for the page."""
        if isinstance(message, ShownMessage):
            return message
        schema = await self._schema(message.schema_version) if self._view == "decoded" else None
        content = show_content(
            message.content,
            message.key_bytes,
            schema=schema,
            view=self._view,
            encrypted=message.is_encrypted,
            most=self._most,
        )
        version = message.schema_version
        return ShownMessage(
            str(message.id),
            message.publish_time_ms,
            message.event_time_ms or None,
            message.key,
            None if message.content is None else len(message.content),
            message.producer_name,
            message.sequence_id,
            message.batch_size,
            dict(message.properties),
            message.replicated_from or "",
            int.from_bytes(version, "big") if version else None,
            content,
        )

    async def _read(self, position: Position) -> tuple[list[Message] | list[ShownMessage], int]:
        """Return the messages of an entry and their bytes. An unreadable entry becomes one message with a problem."""
        try:
            messages = await self._admin.topics.message_by_id(self.topic, position.ledger, position.entry)
        except PulsarError as error:
            return [ShownMessage(str(position), problem=str(error))], 0
        return messages, sum(len(message.content or b"") for message in messages)

    async def _schema(self, version: bytes | None) -> SchemaInfo | None:
        """Return the schema of a version; None if the message names none or the schema was deleted."""
        if not version:
            return None
        if version not in self._schemas:
            try:
                stored = await self._admin.schemas.get(self.topic, int.from_bytes(version, "big"))
                self._schemas[version] = stored.schema
            except PulsarError:  # the raw content is shown with the version
                self._schemas[version] = None
        return self._schemas[version]


def message_id(text: str | MessageId) -> MessageId:
    """Parse ``ledger:entry[:partition[:batch index]]``, and drop the partition. Raise InvalidRequest."""
    if isinstance(text, MessageId):
        return MessageId(text.ledger, text.entry, -1, text.batch_index)
    try:
        ledger, entry, *rest = (int(part) for part in text.split(":"))
    except ValueError:
        ledger, entry, rest = -1, -1, []
    if not (0 <= ledger <= LONG_MAX and 0 <= entry <= LONG_MAX and len(rest) <= 2):
        raise InvalidRequest(f"A message id is ledger:entry or ledger:entry:partition:index, not {text[:100]!r}")
    return MessageId(ledger, entry, -1, rest[1] if len(rest) == 2 else -1)


_PATTERN_MAX: Final = 1_000
_MEMORY_BYTES_MAX: Final = 8 * 1024 * 1024


class MessageFilter:
    """A key, a property, a producer, and a text or RE2 pattern in the content; empty criteria match everything.

    Raises InvalidRequest for an invalid pattern.
    """

    def __init__(
        self, *, key: str = "", property_name: str = "", property_value: str = "", producer: str = "", content: str = ""
    ) -> None:
        """Create a filter; ``content`` is a text, or a pattern between two slashes."""
        self._key = key
        self._property = property_name, property_value
        self._producer = producer
        self._content = content
        self._in_content = _search(content)

    @classmethod
    def of(cls, visit: Visit) -> MessageFilter:
        """Return the filter of the page's address. A property is ``name=value`` or only a name."""
        name, _, value = visit.text("property").partition("=")
        return cls(
            key=visit.text("key"),
            property_name=name,
            property_value=value,
            producer=visit.text("producer"),
            content=visit.text("content"),
        )

    @property
    def empty(self) -> bool:
        return not (self._key or self._property[0] or self._producer or self._content)

    def matches(self, message: Message) -> bool:
        name, value = self._property
        return (
            (not self._key or message.key == self._key)
            and (not self._producer or message.producer_name == self._producer)
            and (not name or (name in message.properties and value in ("", message.properties[name])))
            and (not self._content or self._in_content(message.content or b""))
        )


def _search(text: str) -> Callable[[bytes], bool]:
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return _matched(text[1:-1])
    raw = text.encode()
    return lambda content: raw in content


def _matched(pattern: str) -> Callable[[bytes], bool]:
    """Return a match function. RE2 takes time linear in the content for every pattern."""
    import re2

    if len(pattern) > _PATTERN_MAX:
        raise InvalidRequest(f"A pattern may have {_PATTERN_MAX} characters, not {len(pattern)}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES_MAX
    options.encoding = re2.Options.Encoding.LATIN1  # contents are bytes
    try:
        search = re2.compile(pattern.encode(), options).search
    except re2.error as error:
        raise InvalidRequest(f"The pattern /{pattern}/ is not valid in RE2: {error}") from None
    return lambda content: search(content) is not None
