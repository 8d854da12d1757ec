"""Command ``produce``: send messages, with the arguments of ``pulsar-client produce``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.messaging import Pace, key_reader, messaging_options, run_with_client
from interpulse.cli.schema_contents import OutgoingContents
from interpulse.cli.support.params import AMOUNT, PAIRS, POSITIVE, STRINGS, TOPIC, joined_pairs
from interpulse.cli.support.retention_warning import warn_if_not_retained, web_service_option
from interpulse.cli.support.standard_input import lines_of_standard_input
from interpulse.model.names import TopicName
from interpulse.terminal.option_groups import flag, option, option_group
from interpulse.terminal.progress import Progress

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import OutgoingMessage
    from interpulse.model.ids import MessageId

_LOCAL_ONLY = ("__local__",)
"""Replication clusters of a message that is not replicated."""


@dataclass(frozen=True, slots=True)
class _Order:
    """Messages to send: ``contents``, ``repetitions`` times, or lines of standard input for None."""

    contents: Sequence[bytes] | None
    repetitions: int
    rate: float
    key: str | bytes | None
    properties: dict[str, str]
    outgoing: OutgoingContents
    batching_enabled: bool
    chunking_enabled: bool
    replicated: bool
    encryption: dict[str, Any]
    """Encryption settings of the producer."""

    @property
    def total(self) -> int | None:
        return None if self.contents is None else len(self.contents) * self.repetitions

    async def messages(self) -> AsyncIterator[OutgoingMessage]:
        from interpulse.client.messages import OutgoingMessage

        clusters = () if self.replicated else _LOCAL_ONLY
        async for value in self._contents():
            key, content = self.outgoing.joined(self.key, value)
            yield OutgoingMessage(content, key=key, properties=self.properties, replication_clusters=clusters)

    async def _contents(self) -> AsyncIterator[bytes]:
        if self.contents is None:
            async for line in lines_of_standard_input():
                yield self.outgoing.value_of_text(line)
            return
        for _ in range(self.repetitions):
            for content in self.contents:
                yield content


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

    def tell(self) -> None:
        """Print the number of acknowledged messages, complete or not."""
        self._progress.wipe()
        if self.acknowledged == self.sent == (self.sent if self.total is None else self.total):
            click.echo(f"{self.acknowledged} messages successfully produced", err=True)
            return
        rest = self.sent - self.acknowledged
        of_all = "" if self.total is None else f" of {self.total}"
        under_way = f"; {rest} more may be stored although no acknowledgement came" if rest else ""
        click.echo(f"{self.acknowledged}{of_all} messages acknowledged{under_way}", err=True)


_content_options = option_group(
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
)
_schema_options = option_group(
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
)
_encryption_options = option_group(
    option("-ekn --encryption-key-name encryption_key_name", "Encrypt: the key's name.", metavar="NAME"),
    option(
        "-ekv --encryption-key-value encryption_key_value",
        "The public key with that name: a PEM file, also as file:///path, or data:application/x-pem-file;base64,KEY.",
        metavar="FILE",
    ),
)
_sending_options = option_group(
    option("-p --properties", "Properties of every message: a=b,c=d.", PAIRS, multiple=True),
    flag("-db --disable-batching", "Send every message by itself."),
    flag("-c --chunking", "Send a message that is too large in chunks."),
    flag("-dr --disable-replication", "Do not replicate the messages."),
    web_service_option,
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic", type=TOPIC)
@_content_options
@_schema_options
@_encryption_options
@_sending_options
@messaging_options
def produce(
    topic: TopicName,
    messages: tuple[str, ...],
    files: tuple[list[str], ...],
    repetitions: int,
    rate: float,
    separator: str,
    key: str | None,
    value_schema: str,
    key_schema: str,
    encoding: str | None,
    typed_key: str | None,
    key_file: str | None,
    encryption_key_name: str | None,
    encryption_key_value: str | None,
    properties: tuple[dict[str, str], ...],
    disable_batching: bool,
    chunking: bool,
    disable_replication: bool,
    **flags: Any,
) -> None:
    """Send messages to TOPIC and wait until all of them are stored.

    Warns if the topic has neither a subscription nor retention, provided its web service is known.
    """
    if (encryption_key_name is None) != (encryption_key_value is None):
        raise click.UsageError("-ekn and -ekv need each other: the name of the public key, and the key")
    encryption = _encryption(encryption_key_name, encryption_key_value)
    outgoing = OutgoingContents(value_schema, key_schema, encoding)
    message_key = key if encoding is None else _key(outgoing, typed_key, key_file)
    if encoding is None and not typed_key is key_file is None:
        raise click.UsageError("-kvk and -kvkf need -kvet separated or -kvet inline")
    if encoding is not None and key is not None:
        raise click.UsageError("-k is for messages without -kvet: give the key as -kvk or -kvkf")
    if any("-" in names for names in files):
        if messages or sum(map(len, files)) > 1 or repetitions > 1:
            raise click.UsageError("-f - sends standard input once, and nothing else beside it")
        contents = None
    else:
        contents = _contents(outgoing, messages, files, separator)
    batching, replication = not disable_batching, not disable_replication
    order = _Order(
        contents,
        repetitions,
        rate,
        message_key,
        joined_pairs(properties),
        outgoing,
        batching,
        chunking,
        replication,
        encryption,
    )
    settings = run_with_client(flags, lambda client: _send(client, topic, order))
    asyncio.run(warn_if_not_retained(settings, topic))


def _encryption(name: str | None, value: str | None) -> dict[str, Any]:
    if name is None or value is None:
        return {}
    return {"encryption_keys": (name,), "crypto_key_reader": key_reader(public=value)}


def _key(outgoing: OutgoingContents, typed: str | None, file: str | None) -> bytes | None:
    if typed is not None and file is not None:
        raise click.UsageError("-kvk and -kvkf are both given: a message has one key")
    if file is not None:
        return outgoing.check_key(_read(file), file)
    return None if typed is None else outgoing.key_of_text(typed)


def _contents(
    outgoing: OutgoingContents, messages: tuple[str, ...], files: tuple[list[str], ...], separator: str
) -> list[bytes]:
    texts = [part for text in messages for part in (text.split(separator) if separator else [text])]
    contents = [outgoing.value_of_text(text) for text in texts]
    contents += [outgoing.check_value(_read(name), name) for names in files for name in names]
    if not contents:
        raise click.UsageError("Please supply message content with either --messages or --files")
    return contents


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror}") from error


async def _send(client: Client, topic: TopicName, order: _Order) -> None:
    receipts = _Receipts(order.total)
    batched = order.batching_enabled and not order.chunking_enabled
    producer = await client.create_producer(
        str(topic),
        schema=order.outgoing.schema,
        batching_enabled=batched,
        chunking_enabled=order.chunking_enabled,
        send_timeout_ms=client.config.operation_timeout_ms,
        **order.encryption,
    )
    pace = Pace(order.rate)
    try:
        async for message in order.messages():
            await pace.wait()
            if receipts.has_failed:
                break
            receipts.add(await producer.enqueue(message))
        await receipts.all()
    finally:
        receipts.tell()
