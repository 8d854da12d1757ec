"""``produce``: send messages, with the arguments of ``pulsar-client produce``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.messaging import Pace, messaging_options, run_with_client
from interpulse.cli.params import PAIRS, STRINGS, TOPIC, joined_pairs
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import OutgoingMessage

__all__ = ["produce"]

_LOCAL_ONLY = ("__local__",)
"""The list of clusters that keeps a message from being replicated."""


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be sent: ``contents`` over and over, ``repetitions`` times."""

    contents: Sequence[bytes]
    repetitions: int
    rate: float
    key: str | None
    properties: dict[str, str]
    batching_enabled: bool
    replicated: bool

    def messages(self) -> Iterator[OutgoingMessage]:
        from interpulse.client.messages import OutgoingMessage

        clusters = () if self.replicated else _LOCAL_ONLY
        for _ in range(self.repetitions):
            for content in self.contents:
                yield OutgoingMessage(content, key=self.key, properties=self.properties, replication_clusters=clusters)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic", type=TOPIC)
@click.option("-m", "--messages", multiple=True, help="Text to send; several messages are separated by commas.")
@click.option("-f", "--files", type=STRINGS, multiple=True, help="Files to send, one message each: a,b,...")
@click.option(
    "-n", "--num-produce", "repetitions", type=click.IntRange(min=1), default=1, help="Send all of it so often."
)
@click.option("-r", "--rate", type=click.FloatRange(min=0), default=0, help="Messages per second; 0 = all at once.")
@click.option("-s", "--separator", default=",", show_default=True, help="What separates messages in a text.")
@click.option("-k", "--key", help="Key of every message.")
@click.option("-p", "--properties", type=PAIRS, multiple=True, help="Properties of every message: a=b,c=d.")
@click.option("-db", "--disable-batching", is_flag=True, help="Send every message by itself.")
@click.option("-dr", "--disable-replication", is_flag=True, help="Keep the messages in this cluster.")
@messaging_options
def produce(
    topic: TopicName,
    messages: tuple[str, ...],
    files: tuple[list[str], ...],
    repetitions: int,
    rate: float,
    separator: str,
    key: str | None,
    properties: tuple[dict[str, str], ...],
    disable_batching: bool,
    disable_replication: bool,
    **flags: Any,
) -> None:
    """Send messages to TOPIC and wait until all of them are stored."""
    contents = [part.encode() for text in messages for part in (text.split(separator) if separator else [text])]
    contents += [_read(name) for names in files for name in names]
    if not contents:
        raise click.UsageError("Please supply message content with either --messages or --files")
    order = _Order(
        contents, repetitions, rate, key, joined_pairs(properties), not disable_batching, not disable_replication
    )
    run_with_client(flags, lambda client: _send(client, topic, order))


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror}") from error


async def _send(client: Client, topic: TopicName, order: _Order) -> None:
    producer = await client.create_producer(str(topic), batching_enabled=order.batching_enabled)
    pace = Pace(order.rate)
    receipts = []
    for message in order.messages():
        await pace.wait()
        receipts.append(await producer.enqueue(message))
    await asyncio.gather(*receipts)
    click.echo(f"{len(receipts)} messages successfully produced", err=True)
