"""Command ``produce``: send messages, with the arguments of ``pulsar-client produce``."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import (
    Pace,
    key_reader,
    messaging_options,
    run_with_client,
    warn_if_not_retained,
    web_service_option,
)
from interpulse.cli.support.params import AMOUNT, PAIRS, POSITIVE, STRINGS, TOPIC, joined_pairs
from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.client.contents import BYTES, NULL_LENGTH, load_fastavro, parsed_definition, read_value, reason_of
from interpulse.model.errors import NotSupported
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.terminal.option_groups import flag, option, option_group
from interpulse.terminal.progress import Progress

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import OutgoingMessage
    from interpulse.model.ids import MessageId

_LOCAL_ONLY: Final = ("__local__",)
"""Replication clusters of a message that is not replicated."""
_LINE_MAX: Final = 64 * 1024 * 1024


class _Receipts:
    """Counter of acknowledged messages, with the pending receipts."""

    def __init__(self, total: int | None) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.has_failed = False
        self.total = total
        of_all = "" if total is None else " of {total}"
        self._progress = Progress(f"{{done}}{of_all} messages acknowledged", logged=True)
        self._waiting: set[asyncio.Future[MessageId]] = set()

    def add(self, receipt: asyncio.Future[MessageId]) -> None:
        self.sent += 1
        self._waiting.add(receipt)
        receipt.add_done_callback(self._done)

    def _done(self, receipt: asyncio.Future[MessageId]) -> None:
        if receipt.cancelled():
            return
        if receipt.exception() is not None:
            self.has_failed = True
        else:
            self._waiting.discard(receipt)
            self.acknowledged += 1
            self._progress(self.acknowledged, self.total)

    async def all(self) -> None:
        """Wait for all receipts. Raise the error of the first message that failed."""
        await asyncio.gather(*self._waiting)

    def report(self) -> None:
        """Print the number of acknowledged messages, complete or not."""
        self._progress.wipe()
        if self.acknowledged == self.sent == (self.sent if self.total is None else self.total):
            click.echo(f"{self.acknowledged} messages successfully produced", err=True)
            return
        rest = self.sent - self.acknowledged
        of_all = "" if self.total is None else f" of {self.total}"
        under_way = f"; {rest} more may be stored although no acknowledgement came" if rest else ""
        click.echo(f"{self.acknowledged}{of_all} messages acknowledged{under_way}", err=True)


_options = option_group(
    option("-m --messages", "Content of a message; commas separate several messages.", multiple=True),
    option(
        "-f --files",
        "Files to send, one message each: a,b,...; - sends the lines of standard input.",
        STRINGS,
        multiple=True,
    ),
    option("-n --num-produce repetitions", "Number of times everything is sent.", POSITIVE, 1, shown=False),
    option("-r --rate", "Messages per second; 0 = all at once.", AMOUNT, 0),
    option("-s --separator", "Separator of messages in -m; an empty one keeps each whole.", default=","),
    option("-k --key", "Key of every message."),
    option(
        "-vs --value-schema",
        "Schema of the contents: bytes, string, avro:DEFINITION or json:DEFINITION.",
        default="bytes",
    ),
    option("-ks --key-schema", "Schema of the keys of -kvk and -kvkf, likewise.", default="string"),
    option(
        "-kvet --key-value-encoding-type encoding",
        "Send keys and values in one schema: the key beside the content, or inside it.",
        click.Choice(["separated", "inline"]),
    ),
    option("-kvk --key-value-key typed_key", "The key of every message with -kvet."),
    option("-kvkf --key-value-key-file key_file", "A file with that key; of an Avro schema in Avro's binary form."),
    option("-ekn --encryption-key-name encryption_key_name", "Encrypt: the key's name.", metavar="NAME"),
    option(
        "-ekv --encryption-key-value encryption_key_value",
        "The public key with that name: a PEM file, also as file:///path, or data:application/x-pem-file;base64,KEY.",
        metavar="FILE",
    ),
    option("-p --properties", "Properties of every message: a=b,c=d.", PAIRS, multiple=True),
    flag("-db --disable-batching", "Send every message by itself."),
    flag("-c --chunking", "Send a message that is too large in chunks."),
    flag("-dr --disable-replication", "Do not replicate the messages."),
    web_service_option,
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic", type=TOPIC)
@_options
@messaging_options
def produce(topic: TopicName, **flags: Any) -> None:
    """Send messages to TOPIC and wait until all of them are stored.

    Warns if the topic has neither a subscription nor retention, provided its web service is known.
    """
    encryption = _encryption(flags["encryption_key_name"], flags["encryption_key_value"])
    outgoing = OutgoingContents(flags["value_schema"], flags["key_schema"], flags["encoding"])
    key = _key(outgoing, flags)
    contents = _contents(outgoing, flags)
    producer = {
        "schema": outgoing.schema,
        "batching_enabled": not flags["disable_batching"] and not flags["chunking"],
        "chunking_enabled": flags["chunking"],
        **encryption,
    }
    fields: dict[str, Any] = {
        "properties": joined_pairs(flags["properties"]),
        "replication_clusters": _LOCAL_ONLY if flags["disable_replication"] else (),
    }
    repetitions = flags["repetitions"]

    async def messages() -> AsyncIterator[OutgoingMessage]:
        from interpulse.client.messages import OutgoingMessage

        async for value in (
            _lines_of_standard_input(outgoing.value) if contents is None else _repeated(contents, repetitions)
        ):
            joined_key, content = outgoing.joined(key, value)
            yield OutgoingMessage(content, key=joined_key, **fields)

    async def send(client: Client) -> None:
        timeout_ms = client.config.operation_timeout_ms
        opened = await client.create_producer(str(topic), send_timeout_ms=timeout_ms, **producer)
        receipts = _Receipts(None if contents is None else len(contents) * repetitions)
        pace = Pace(flags["rate"])
        try:
            async for message in messages():
                await pace.wait()
                if receipts.has_failed:
                    break
                receipts.add(await opened.enqueue(message))
            await receipts.all()
        finally:
            receipts.report()

    settings = run_with_client(flags, send)
    asyncio.run(warn_if_not_retained(settings, topic))


def _encryption(name: str | None, value: str | None) -> dict[str, Any]:
    if (name is None) != (value is None):
        raise click.UsageError("-ekn and -ekv need each other: the name of the public key, and the key")
    return {} if name is None else {"encryption_keys": (name,), "crypto_key_reader": key_reader(public=value)}


def _key(outgoing: OutgoingContents, flags: dict[str, Any]) -> str | bytes | None:
    typed, file = flags["typed_key"], flags["key_file"]
    if flags["encoding"] is None:
        if not typed is file is None:
            raise click.UsageError("-kvk and -kvkf need -kvet separated or -kvet inline")
        key: str | None = flags["key"]
        return key
    if typed is not None and file is not None:
        raise click.UsageError("-kvk and -kvkf are both given: a message has one key")
    if flags["key"] is not None:
        raise click.UsageError("-k is for messages without -kvet: give the key as -kvk or -kvkf")
    if file is not None:
        return checked(outgoing.key, _read(file), file)
    return None if typed is None else encoded(outgoing.key, typed)


def _contents(outgoing: OutgoingContents, flags: dict[str, Any]) -> list[bytes] | None:
    """Return the contents of messages, or None for the lines of standard input."""
    messages, separator = flags["messages"], flags["separator"]
    files = [name for names in flags["files"] for name in names]
    if "-" in files:
        if messages or len(files) > 1 or flags["repetitions"] > 1:
            raise click.UsageError("-f - sends standard input once, and nothing else beside it")
        return None
    texts = [part for text in messages for part in (text.split(separator) if separator else [text])]
    contents = [encoded(outgoing.value, text) for text in texts]
    contents += [checked(outgoing.value, _read(name), name) for name in files]
    if not contents:
        raise click.UsageError("Please supply message content with either --messages or --files")
    return contents


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror}") from error


async def _repeated(contents: Sequence[bytes], repetitions: int) -> AsyncIterator[bytes]:
    for _ in range(repetitions):
        for content in contents:
            yield content


async def _lines_of_standard_input(schema: SchemaInfo) -> AsyncIterator[bytes]:
    """Yield lines as contents of this schema as they arrive. Raise CommandFailed for a line above 64 MiB."""
    source = sys.stdin.buffer
    reader = asyncio.StreamReader(limit=_LINE_MAX)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    except (ValueError, io.UnsupportedOperation):  # a file, whose reads never wait
        for line in source:
            yield encoded(schema, _without_end(line))
        return
    try:
        while line := await reader.readline():
            yield encoded(schema, _without_end(line))
    except ValueError as error:
        raise CommandFailed(f"a line of standard input is longer than {_LINE_MAX} bytes") from error
    finally:
        transport.close()


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


class OutgoingContents:
    """Schema of a producer, and messages in it, in the notation of pulsar-client.

    A description is ``bytes``, ``string``, ``avro:DEFINITION`` or ``json:DEFINITION``. ``encoding`` is ``separated`` or
    ``inline`` for keys and values in one schema, None for values alone. Raises UsageError.
    """

    def __init__(self, value: str, key: str = "string", encoding: str | None = None) -> None:
        self.value = _described(value, "--value-schema")
        self.key = _described(key, "--key-schema")
        self._encoding = encoding

    @property
    def schema(self) -> SchemaInfo | None:
        """Schema of the producer; None for plain bytes."""
        if self._encoding is not None:
            return _key_value_schema(self.key, self.value, self._encoding)
        return None if self.value.type is SchemaType.NONE else self.value

    def joined(self, key: str | bytes | None, value: bytes) -> tuple[str | bytes | None, bytes]:
        """Return the key and the content of a message. With ``inline`` encoding the content contains both."""
        if self._encoding != "inline":
            return key, value
        return None, _with_length(key.encode() if isinstance(key, str) else key) + _with_length(value)


def _described(text: str, option: str) -> SchemaInfo:
    kind, _, definition = text.partition(":")
    match kind:
        case "bytes" if not definition:
            return BYTES
        case "string" if not definition:
            return SchemaInfo(SchemaType.STRING, name="String")
        case "avro" | "json" if definition:
            schema = SchemaInfo(SchemaType[kind.upper()], definition.encode(), name="client")
            _parsed(schema, option)
            return schema
    raise click.UsageError(
        f"Invalid schema type: {text} ({option}; valid are bytes, string, avro:DEFINITION and json:DEFINITION)"
    )


def _key_value_schema(key: SchemaInfo, value: SchemaInfo, encoding: str) -> SchemaInfo:
    properties = {"kv.encoding.type": encoding.upper()}
    for side, part in (("key", key), ("value", value)):
        kind = "BYTES" if part.type is SchemaType.NONE else part.type.name
        properties |= {f"{side}.schema.name": part.name, f"{side}.schema.type": kind, f"{side}.schema.properties": "{}"}
    definition = _with_length(key.definition) + _with_length(value.definition)
    return SchemaInfo(SchemaType.KEY_VALUE, definition, properties, "KeyValue")


def _with_length(raw: bytes | None) -> bytes:
    return NULL_LENGTH.to_bytes(4, "big") if raw is None else len(raw).to_bytes(4, "big") + raw


def encoded(schema: SchemaInfo, text: str | bytes) -> bytes:
    """Encode a text, for Avro in Avro's JSON notation. Raise UsageError if it does not match the schema."""
    raw = text.encode() if isinstance(text, str) else text
    if schema.type is SchemaType.AVRO:
        return _avro_of_text(schema, raw.decode(errors="replace"))
    return checked(schema, raw, raw.decode(errors="replace"))


def _avro_of_text(schema: SchemaInfo, text: str) -> bytes:
    parsed = _parsed(schema, "the schema")
    avro = load_fastavro()
    raw = io.BytesIO()
    try:
        (value,) = avro.json_reader(io.StringIO(text), parsed)
        avro.schemaless_writer(raw, parsed, value)
    except Exception as error:  # fastavro has no class of its own for what it cannot read
        raise click.UsageError(f"Cannot convert {text} to AVRO: {reason_of(error)}") from error
    return raw.getvalue()


def checked(schema: SchemaInfo, raw: bytes, name: str) -> bytes:
    """Return the content of the file of this name. Raise UsageError if it does not match the schema."""
    try:
        read_value(schema, raw)
    except ValueError as error:
        raise click.UsageError(f"{name} is not of the schema {schema.type.name}: {error}") from error
    return raw


def _parsed(schema: SchemaInfo, where: str) -> Any:
    try:
        return parsed_definition(schema)
    except NotSupported as error:
        raise CommandFailed(str(error), UNUSABLE) from error
    except ValueError as error:
        raise click.UsageError(f"{where}: {error}") from error
