"""``consume``: receive messages and print them, with the arguments and the output of ``pulsar-client consume``."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.messaging import Pace, messaging_options, run_with_client
from interpulse.cli.support.formats import content_fields
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.consuming.consumer import Consumer
    from interpulse.client.messages import Message

__all__ = ["consume", "describe_message", "message_as_json"]

_TYPES = {"Exclusive": "exclusive", "Shared": "shared", "Failover": "failover", "Key_Shared": "key-shared"}
_POSITIONS = {"Latest": "latest", "Earliest": "earliest"}
_BOUNDARY = "----- got message -----"
_COUNTED = 1000
_SUBSCRIPTION = "interpulse-consume"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic")
@click.option(
    "-s",
    "--subscription-name",
    "subscription",
    default=_SUBSCRIPTION,
    show_default=True,
    help="Name of the subscription.",
)
@click.option(
    "-n", "--num-messages", "count", type=click.IntRange(min=0), default=1, help="Number of messages; 0 = unlimited."
)
@click.option(
    "-t",
    "--subscription-type",
    type=click.Choice(list(_TYPES), case_sensitive=False),
    default="Exclusive",
    show_default=True,
    help="Type of the subscription.",
)
@click.option(
    "-p",
    "--subscription-position",
    "position",
    type=click.Choice(list(_POSITIONS), case_sensitive=False),
    default="Latest",
    show_default=True,
    help="Start of a new subscription.",
)
@click.option("-r", "--rate", type=click.FloatRange(min=0), default=0, help="Messages per second; 0 = without pause.")
@click.option(
    "--regex",
    is_flag=True,
    help="TOPIC is a pattern: tenant/namespace/regex; it includes topics that are created later.",
)
@click.option("-q", "--queue-size", type=click.IntRange(min=1), default=1000, help="Messages fetched ahead.")
@click.option("--hex", "hexadecimal", is_flag=True, help="Print contents in hexadecimal.")
@click.option("--hide-content", is_flag=True, help="Print the number of messages only.")
@click.option(
    "-o", "--output", "form", type=click.Choice(["json"]), help="Print one JSON object per message and line instead."
)
@click.option("-mp", "--print-metadata", is_flag=True, help="Print ids, times and origin too.")
@messaging_options
def consume(
    topic: str,
    subscription: str,
    count: int,
    subscription_type: str,
    position: str,
    rate: float,
    regex: bool,
    queue_size: int,
    hexadecimal: bool,
    hide_content: bool,
    form: str | None,
    print_metadata: bool,
    **flags: Any,
) -> None:
    """Receive messages from TOPIC, print and acknowledge them."""
    options = {
        "subscription_type": _TYPES[subscription_type],
        "initial_position": _POSITIONS[position],
        "receiver_queue_size": queue_size,
    }
    printer = _Printer(hexadecimal, hide_content, print_metadata, form == "json")

    wanted = _pattern(topic) if regex else _checked(topic)

    async def receive(client: Client) -> None:
        consumer = await client.subscribe(wanted, subscription, **options)
        if not consumer.topics:
            click.echo(f"no topic matches {topic} so far", err=True)
        try:
            await _receive(consumer, count, Pace(rate), printer)
        finally:
            click.echo(f"{printer.count} messages successfully consumed", err=True)

    try:
        run_with_client(flags, receive)
    except KeyboardInterrupt:
        if count:  # without a count, this is how it ends
            raise


async def _receive(consumer: Consumer, count: int, pace: Pace, printer: _Printer) -> None:
    while not count or printer.count < count:
        await pace.wait()
        message = await consumer.receive()
        printer.show(message)
        consumer.acknowledge(message)


def _checked(topic: str) -> str:
    try:
        return str(TopicName.parse(topic))
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error


def _pattern(text: str) -> re.Pattern[str]:
    from interpulse.client.consuming.topics_pattern import TopicsPattern

    try:
        pattern = re.compile(text)
        TopicsPattern.of(pattern)
    except re.error as error:
        raise click.UsageError(f"{text!r} is not a regular expression: {error}") from error
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error
    return pattern


class _Printer:
    """Prints messages and counts them."""

    def __init__(self, hexadecimal: bool, content_hidden: bool, metadata_shown: bool, as_json: bool) -> None:
        self.count = 0
        self._hexadecimal = hexadecimal
        self._content_hidden = content_hidden
        self._metadata_shown = metadata_shown
        self._as_json = as_json

    def show(self, message: Message) -> None:
        self.count += 1
        if self._as_json:
            click.echo(json.dumps(message_as_json(message, hidden=self._content_hidden), ensure_ascii=False))
        elif not self._content_hidden:
            text = describe_message(message, hexadecimal=self._hexadecimal, metadata=self._metadata_shown)
            click.echo(f"{_BOUNDARY}\n{text}")
        elif self.count % _COUNTED == 0:
            click.echo(f"Received {self.count} messages")


def message_as_json(message: Message, *, hidden: bool = False) -> dict[str, Any]:
    """Its fields by their names in Pulsar; times are ISO 8601 in UTC, content that is not UTF-8 is in base64.

    ``hidden`` leaves the content out. Missing fields are null.
    """
    fields: dict[str, Any] = {
        "topic": message.topic,
        "messageId": str(message.id),
        "key": message.key,
        "publishTime": _moment(message.publish_time_ms),
        "eventTime": _moment(message.event_time_ms) if message.event_time_ms else None,
        "properties": dict(message.properties),
        "producerName": message.producer_name,
        "sequenceId": message.sequence_id,
        "redeliveryCount": message.redelivery_count,
        "replicatedFrom": message.replicated_from or None,
    }
    return fields if hidden else fields | content_fields(message.content)


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def describe_message(message: Message, *, hexadecimal: bool = False, metadata: bool = False) -> str:
    """One message as one line."""
    properties = ", ".join(f"{key}={value}" for key, value in message.properties.items())
    key = "null" if message.key is None else message.key
    text = (
        f"publishTime:[{message.publish_time_ms}], eventTime:[{message.event_time_ms}], key:[{key}], "
        f"properties:[{properties}], content:{_content(message.content, hexadecimal)}"
    )
    return text + _metadata(message) if metadata else text


def _content(content: bytes | None, hexadecimal: bool) -> str:
    if content is None:
        return "null"
    return _hex_dump(content) if hexadecimal else content.decode(errors="replace")


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
        "event-time": _moment(message.event_time_ms),
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
