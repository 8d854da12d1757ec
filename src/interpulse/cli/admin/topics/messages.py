"""Commands of ``topics`` that show single messages without consuming them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.support.call_commands import call_command, topic_argument, topic_command
from interpulse.cli.support.params import MESSAGE_ID
from interpulse.model.names import TopicName
from interpulse.terminal.formats import content_fields
from interpulse.terminal.output import print_json, print_value

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.client.admin.topics import ExaminePosition
    from interpulse.client.messages import Message

MESSAGE_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_BETWEEN: Final = "-" * 73 + "\n"
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_topic_command = partial(topic_command, MESSAGE_COMMANDS)


class _Moment(click.ParamType[int]):
    """A date and a time with an offset, converted to milliseconds since 1970."""

    name = "date and time"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            if _TIMESTAMP.fullmatch(value):
                return int(datetime.fromisoformat(value).timestamp() * 1000)
        except ValueError:
            pass
        self.fail(f"{value!r} is not a time such as 2021-06-28T16:53:08Z or 2021-06-28T16:53:08.123+08:00", param, ctx)


_call = partial(call_command, MESSAGE_COMMANDS.append, "topics", topic_argument)
_time = click.option(
    "-d", "--datetime", "time_ms", type=_Moment(), required=True, help="For example 2021-06-28T16:53:08+08:00."
)
_position = click.option(
    "-m", "--messageId", "position", type=MESSAGE_ID, default="-1:-1", help="ledgerId:entryId; -1:-1 = all messages."
)

_call(
    "get-message-id",
    "message_id_at",
    "Print the position of the first message published at or after a time.",
    _time,
    show=print_json,
)
_call("last-message-id", "last_message_id_json", "Print the position of the last message.", show=print_json)
_call(
    "get-backlog-size",
    "backlog_size",
    "Print the approximate size of the messages behind a position, in bytes.",
    _position,
    show=print_json,
)


@_topic_command("peek-messages")
@click.option("-s", "--subscription", required=True, help="Name of the subscription.")
@click.option("-n", "--count", type=click.IntRange(min=1), default=1, help="How many messages; 1 by default.")
@click.option("-ssm", "--show-server-marker", "markers_shown", is_flag=True, help="Print the markers of brokers too.")
@click.option(
    "-til",
    "--transaction-isolation-level",
    "isolation",
    type=click.Choice(["READ_COMMITTED", "READ_UNCOMMITTED"]),
    default="READ_COMMITTED",
    help="READ_UNCOMMITTED prints messages of open and aborted transactions too.",
)
async def peek_messages(
    admin: AdminClient, topic: TopicName, subscription: str, count: int, markers_shown: bool, isolation: str
) -> None:
    """Print the next messages of a subscription without acknowledging them."""
    uncommitted_shown = isolation == "READ_UNCOMMITTED"
    messages = await admin.topics.peek(
        topic, subscription, count, markers_shown=markers_shown, uncommitted_shown=uncommitted_shown
    )
    _print_messages(messages)


@_topic_command("examine-messages")
@click.option(
    "-i",
    "--initialPosition",
    "initial_position",
    type=click.Choice(["earliest", "latest"]),
    default="latest",
    help="Start of the count; latest by default.",
)
@click.option(
    "-m",
    "--messagePosition",
    "number",
    type=click.IntRange(min=1),
    default=1,
    help="Number of the message from there; 1 = the first.",
)
async def examine_messages(
    admin: AdminClient, topic: TopicName, initial_position: ExaminePosition, number: int
) -> None:
    """Print one message of a topic, counted from its first or its last one."""
    _print_messages((await admin.topics.examine(topic, initial_position, number))[:1])


@_topic_command("get-message-by-id")
@click.option("-l", "--ledgerId", "ledger", type=int, required=True, help="Ledger.")
@click.option("-e", "--entryId", "entry", type=int, required=True, help="Entry in the ledger.")
async def get_message_by_id(admin: AdminClient, topic: TopicName, ledger: int, entry: int) -> None:
    """Print the message at a position."""
    found = (await admin.topics.message_by_id(topic, ledger, entry))[:1]
    _print_messages(found, redeliveries_shown=True)


def _print_messages(messages: Sequence[Message], *, redeliveries_shown: bool = False) -> None:
    described = [describe_message(message, redeliveries_shown=redeliveries_shown) for message in messages]
    print_value(list(map(_message_json, messages)), f"\n{_BETWEEN}\n".join(described))


def describe_message(message: Message, *, redeliveries_shown: bool = False) -> str:
    """Format a message as pulsar-admin shows it: its position, times and properties, and a dump of its content."""
    lines = [
        _place(message),
        f"Publish time: {message.publish_time_ms}",
        f"Event time: {message.event_time_ms}",
    ]
    if redeliveries_shown:
        lines.append(f"Redelivery count: {message.redelivery_count}")
    if message.deliver_at_ms:
        lines.append(f"Deliver at time: {message.deliver_at_ms}")
    if message.broker_publish_time_ms:
        lines.append(f"Broker entry metadata timestamp: {message.broker_publish_time_ms}")
    if message.index is not None:
        lines.append(f"Broker entry metadata index: {message.index}")
    if message.properties:
        lines += ["Properties:", *(f"{key}    {value}" for key, value in message.properties.items())]
    return "\n".join([*lines, hex_dump(message.content or b"")])


def _place(message: Message) -> str:
    place = f"{message.id.ledger}:{message.id.entry}"
    return (
        f"Message ID: {place}" if message.id.batch_index < 0 else f"Batch Message ID: {place}:{message.id.batch_index}"
    )


def _message_json(message: Message) -> dict[str, Any]:
    return {
        "messageId": str(message.id),
        "publishTime": message.publish_time_ms,
        "eventTime": message.event_time_ms,
        "key": message.key,
        "properties": dict(message.properties),
        **content_fields(message.content),
    }


def hex_dump(content: bytes) -> str:
    """Format sixteen bytes per row between rulers, as Netty prints a buffer; empty for no bytes."""
    if not content:
        return ""
    ruler = f"+{'-' * 8}+{'-' * 49}+{'-' * 16}+"
    columns = "".join(f"  {number:x}" for number in range(16))
    rows = [_dump_row(start, content[start : start + 16]) for start in range(0, len(content), 16)]
    return "\n".join([f"{' ' * 9}+{'-' * 49}+", f"{' ' * 9}|{columns} |", ruler, *rows, ruler])


def _dump_row(start: int, row: bytes) -> str:
    digits = "".join(f" {byte:02x}" for byte in row).ljust(49)
    letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row).ljust(16)
    return f"|{start:08x}|{digits}|{letters}|"
