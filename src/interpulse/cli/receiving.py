"""Commands ``consume`` and ``read``, with the arguments and the output of pulsar-client."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import (
    SUBSCRIPTION_TYPES,
    Pace,
    chunk_options,
    key_reader,
    messaging_options,
    replicated_option,
    run_with_client,
    start_option,
    type_option,
)
from interpulse.cli.support.params import AMOUNT, COUNT, MESSAGE_ID, TOPIC
from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.client.contents import TypedValue, read_content
from interpulse.clock import iso_time
from interpulse.model.errors import InvalidTopicName, NotSupported
from interpulse.model.names import TopicName
from interpulse.terminal.formats import content_fields
from interpulse.terminal.option_groups import flag, option, option_group

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import Message
    from interpulse.model.schemas import SchemaInfo

_QUEUE_SIZE: Final = 1000
_CHUNKED_MAX: Final = 10

_receiving_options = option_group(
    option("-n --num-messages count", "Number of messages; 0 = unlimited.", COUNT, 1),
    option("-r --rate", "Messages per second; 0 = without pause.", AMOUNT, 0),
    option("-q --queue-size", "Messages fetched ahead; 0 = the default, 1000.", COUNT, 0),
    option(
        "-st --schema-type",
        "Whether contents are printed as they are, or as values of the topic's schema.",
        click.Choice(["bytes", "auto_consume"]),
        "bytes",
    ),
    flag("--hex hexadecimal", "Print contents in hexadecimal."),
    flag("--hide-content", "Print the number of messages only."),
    option("-o --output form", "Print one JSON object per message and line instead.", click.Choice(["json"])),
    flag("-mp --print-metadata", "Print ids, times and origin too."),
    chunk_options,
    option(
        "-ca --crypto-failure-action crypto_failure_action",
        "What becomes of messages that cannot be decrypted: stop, leave out, or print them as they are.",
        click.Choice(["FAIL", "DISCARD", "CONSUME"], case_sensitive=False),
        "FAIL",
    ),
    option(
        "-ekv --encryption-key-value key_value",
        "The private key of encrypted messages: a PEM file, also as file:///path, or data:application/x-pem-file;"
        "base64,KEY, which others may see.",
        metavar="FILE",
    ),
    option("-pm --pool-messages pooled", None, click.BOOL, hidden=True),
)
"""Options that pulsar-client has for both."""

_subscription_options = option_group(
    option("-s --subscription-name subscription", "Name of the subscription.", default="interpulse-consume"),
    type_option("-t"),
    option(
        "-m --subscription-mode mode",
        "Whether the subscription outlives its consumers.",
        click.Choice(["Durable", "NonDurable"], case_sensitive=False),
        "Durable",
    ),
    start_option("-p"),
    option(
        "-stp --start-timestamp",
        "Begin with messages published then, in ms since 1970; 0 = where the subscription is.",
        COUNT,
        0,
    ),
    option("-etp --end-timestamp", "End before a message published later than then.", COUNT),
    replicated_option,
    flag("--regex", "TOPIC is a pattern: tenant/namespace/regex; it includes topics that are created later."),
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic")
@_subscription_options
@_receiving_options
@messaging_options
def consume(topic: str, **flags: Any) -> None:
    """Receive messages from TOPIC, print and acknowledge them."""
    start_ms, end_ms = flags["start_timestamp"], flags["end_timestamp"]
    if end_ms is not None and end_ms < start_ms:
        raise click.UsageError("end timestamp should larger than start timestamp.")
    receiving = _Receiving(flags)
    wanted = _pattern(topic) if flags["regex"] else _checked(topic)
    settings = receiving.settings | {
        "subscription_type": SUBSCRIPTION_TYPES[flags["subscription_type"]],
        "durable": flags["mode"] == "Durable",
        "initial_position": flags["position"].lower(),
        "replicate_subscription_state": flags["replicated"],
        "oldest_chunks_acknowledged": flags["oldest_chunks_acknowledged"],
    }

    async def receive(client: Client) -> None:
        consumer = await client.subscribe(wanted, flags["subscription"], **settings)
        if not consumer.topics:
            click.echo(f"no topic matches {topic} so far", err=True)
        if start_ms:
            await consumer.seek(start_ms)
        schemas = receiving.schemas(client)
        async for message in receiving.messages(consumer.receive):
            if end_ms is not None and message.publish_time_ms > end_ms:
                break
            await receiving.printer.show(message, schemas)
            consumer.acknowledge(message)

    receiving.run(receive, "consumed")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic", type=TOPIC)
@option(
    "-m --start-message-id start",
    "Where reading begins: latest, earliest, or ledgerId:entryId.",
    MESSAGE_ID,
    "latest",
)
@flag("-i --start-message-id-inclusive included", "Read the message of -m too.")
@_receiving_options
@messaging_options
def read(topic: TopicName, **flags: Any) -> None:
    """Print messages of TOPIC without leaving a subscription behind."""
    receiving = _Receiving(flags)

    async def print_all(client: Client) -> None:
        start, included = flags["start"], flags["included"]
        reader = await client.create_reader(str(topic), start, start_included=included, **receiving.settings)
        schemas = receiving.schemas(client)
        async for message in receiving.messages(reader.read_next):
            await receiving.printer.show(message, schemas)

    receiving.run(print_all, "read")


class _Receiving:
    def __init__(self, flags: dict[str, Any]) -> None:
        """Raise CommandFailed for keys without their dependencies."""
        if flags["pooled"] is not None:
            click.echo("-pm has no effect here: there is no pool of messages", err=True)
        self._flags = flags
        self._pace = Pace(flags["rate"])
        self.printer = MessagePrinter(
            flags["hexadecimal"], flags["hide_content"], flags["print_metadata"], flags["form"] == "json"
        )
        key = flags["key_value"]
        self.settings: dict[str, Any] = {
            "receiver_queue_size": flags["queue_size"] or _QUEUE_SIZE,
            "chunked_messages_max": flags["chunked_max"] or _CHUNKED_MAX,
            "crypto_failure_action": flags["crypto_failure_action"].lower(),
            "crypto_key_reader": None if key is None else key_reader(private=key),
        }
        """Settings of the consumer or reader."""

    async def messages(self, receive: Callable[[], Awaitable[Message]]) -> AsyncIterator[Message]:
        """Yield the requested number of messages at the requested rate. Print each before taking the next."""
        count = self._flags["count"]
        while not count or self.printer.count < count:
            await self._pace.wait()
            yield await receive()

    def schemas(self, client: Client) -> SchemaReader | None:
        """Return the schemas for the printer, or None to print contents as they are."""
        return SchemaReader(client) if self._flags["schema_type"] == "auto_consume" else None

    def run(self, call: Callable[[Client], Coroutine[Any, Any, None]], done: str) -> None:
        """Run ``call`` with an open client, and print how many messages were ``done``."""

        async def counted(client: Client) -> None:
            try:
                await call(client)
            finally:
                click.echo(f"{self.printer.count} messages successfully {done}", err=True)

        try:
            run_with_client(self._flags, counted)
        except KeyboardInterrupt:
            if self._flags["count"]:  # without a count, this is how it ends
                raise


def _checked(topic: str) -> str:
    try:
        return str(TopicName.parse(topic))
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error


def _pattern(text: str) -> re.Pattern[str]:
    from interpulse.client.consuming.topic_discovery import TopicsPattern

    try:
        pattern = re.compile(text)
        TopicsPattern.of(pattern)
    except re.error as error:
        raise click.UsageError(f"{text!r} is not a regular expression: {error}") from error
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error
    return pattern


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
