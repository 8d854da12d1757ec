"""Received messages as lines, in the format of pulsar-client or as one JSON object each."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.client.contents import TypedValue, read_content
from interpulse.clock import iso_time
from interpulse.model.errors import NotSupported
from interpulse.terminal.formats import content_fields

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import Message
    from interpulse.model.schemas import SchemaInfo

_BOUNDARY: Final = "----- got message -----"
_COUNTED: Final = 1000
_UNREAD: Final = object()
"""Marker of a content that is printed as its bytes."""


class SchemaReader:
    """Reader of contents by the schema and version that each message names; plain bytes if it names none."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._schemas: dict[tuple[str, bytes], SchemaInfo | None] = {}

    async def value(self, message: Message) -> Any:
        """Return the value. Raise CommandFailed if the content does not match the schema."""
        schema = await self._schema(message.topic, message.schema_version)
        try:
            return read_content(schema, message.content, message.key_bytes)
        except NotSupported as error:
            raise CommandFailed(str(error), UNUSABLE) from error
        except ValueError as error:
            kind = schema.type.name if schema else "bytes"
            sentence = f"message {message.id} of {message.topic} is not of its schema {kind}: {error}"
            raise CommandFailed(sentence) from error

    async def _schema(self, topic: str, version: bytes | None) -> SchemaInfo | None:
        if not version:
            return None
        if (topic, version) not in self._schemas:
            stored = await self._client.get_schema(topic, version)
            self._schemas[topic, version] = stored.schema if stored else None
        return self._schemas[topic, version]


class MessagePrinter:
    """Printer and counter of messages."""

    def __init__(self, hexadecimal: bool, content_hidden: bool, metadata_shown: bool, as_json: bool) -> None:
        self.count = 0
        self._hexadecimal = hexadecimal
        self._content_hidden = content_hidden
        self._metadata_shown = metadata_shown
        self._as_json = as_json

    async def show(self, message: Message, schemas: SchemaReader | None = None) -> None:
        """Print a message. With ``schemas`` the value is printed in place of the bytes."""
        value = await schemas.value(message) if schemas is not None and not self._content_hidden else _UNREAD
        self.count += 1
        if self._as_json:
            fields = message_as_json(message, hidden=self._content_hidden, value=value)
            click.echo(json.dumps(fields, ensure_ascii=False, default=_as_text))
        elif not self._content_hidden:
            text = describe_message(message, hexadecimal=self._hexadecimal, metadata=self._metadata_shown, value=value)
            click.echo(f"{_BOUNDARY}\n{text}")
        elif self.count % _COUNTED == 0:
            click.echo(f"Received {self.count} messages")


def message_as_json(message: Message, *, hidden: bool = False, value: Any = _UNREAD) -> dict[str, Any]:
    """Return the fields by their names in Pulsar. Times are ISO 8601 in UTC; content that is not UTF-8 is base64.

    ``hidden`` omits the content, and ``value`` replaces it. Missing fields are null.
    """
    fields: dict[str, Any] = {
        "topic": message.topic,
        "messageId": str(message.id),
        "key": message.key,
        "publishTime": iso_time(message.publish_time_ms),
        "eventTime": iso_time(message.event_time_ms) if message.event_time_ms else None,
        "properties": dict(message.properties),
        "producerName": message.producer_name,
        "sequenceId": message.sequence_id,
        "redeliveryCount": message.redelivery_count,
        "replicatedFrom": message.replicated_from or None,
    }
    if hidden:
        return fields
    plain = _plain(value)
    if value is _UNREAD or isinstance(plain, bytes):
        return fields | content_fields(message.content)
    return fields | {"content": plain}


def _plain(value: Any) -> Any:
    if isinstance(value, TypedValue):
        return value.value
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _as_text(value: object) -> str:
    """Format values that JSON lacks, such as times and decimals; bytes as base64."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def describe_message(
    message: Message, *, hexadecimal: bool = False, metadata: bool = False, value: Any = _UNREAD
) -> str:
    """Format one message on one line. ``value`` replaces the content."""
    properties = ", ".join(f"{key}={value}" for key, value in message.properties.items())
    key = "null" if message.key is None else message.key
    content = _content(message.content, hexadecimal) if value is _UNREAD else _value_text(value, hexadecimal)
    text = (
        f"publishTime:[{message.publish_time_ms}], eventTime:[{message.event_time_ms}], key:[{key}], "
        f"properties:[{properties}], content:{content}"
    )
    return text + _metadata(message) if metadata else text


def _content(content: bytes | None, hexadecimal: bool) -> str:
    if content is None:
        return "null"
    return _hex_dump(content) if hexadecimal else content.decode(errors="replace")


def _value_text(value: Any, hexadecimal: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, TypedValue):
        return f"{{value={_inner_text(value.value, hexadecimal)}, type=class {value.java_class}}}"
    return _inner_text(value, hexadecimal)


def _inner_text(value: Any, hexadecimal: bool) -> str:
    match value:
        case None:
            return "NULL"
        case TypedValue():
            return _value_text(value, hexadecimal)
        case bool():
            return str(value).lower()
        case bytes():
            return _content(value, hexadecimal)
        case Mapping():
            return f"{{{', '.join(f'{name}={_inner_text(item, hexadecimal)}' for name, item in value.items())}}}"
        case list():
            return f"[{', '.join(_inner_text(item, hexadecimal) for item in value)}]"
    return str(value)


def _hex_dump(content: bytes) -> str:
    rows = []
    for start in range(0, len(content), 16):
        row = content[start : start + 16]
        digits = "".join(f"{byte:02X} " for byte in row).ljust(48)
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{start:08X} {digits}{letters}\n")
    return "".join(rows)


def _metadata(message: Message) -> str:
    fields = {
        "event-time": iso_time(message.event_time_ms),
        "message-id": message.id,
        "producer-name": message.producer_name,
        "sequence-id": message.sequence_id,
        "replicated-from": message.replicated_from or "null",
        "redelivery-count": message.redelivery_count,
        "ordering-key": (message.ordering_key or b"").decode(errors="replace"),
        "schema-version": (message.schema_version or b"").hex(),
    }
    if message.index is not None:
        fields["index"] = message.index
    return "".join(f", {name}:{value}" for name, value in fields.items())
