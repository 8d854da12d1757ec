"""Load of ``perf produce``: scheduled messages, per_topic measured from its due time to its receipt."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.perf.driver import Driver, Load
from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.clock import now_ms
from interpulse.model.errors import PulsarError

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.producing.producer import Producer
    from interpulse.model.ids import MessageId


@dataclass(frozen=True, slots=True)
class Messages:
    """Generator of the messages of a run."""

    contents: Sequence[bytes]
    key_mode: str | None = None
    delay_ms: tuple[int, int] | None = None
    """Range of delivery delays: from the first value up to, but excluding, the second."""

    event_time_set: bool = False

    def fields(self, index: int, intended_ms: int) -> dict[str, Any]:
        """Return the fields of a message other than its content."""
        fields: dict[str, Any] = {}
        if self.key_mode == "autoIncrement":
            fields["key"] = str(index)
        elif self.key_mode == "random":
            fields["key"] = str(random.randrange(-(2**31), 2**31))
        if self.delay_ms is not None:
            first, end = self.delay_ms
            fields["deliver_after_ms"] = first if end <= first + 1 else random.randrange(first, end)
        if self.event_time_set:
            fields["event_time_ms"] = intended_ms
        return fields

    def content(self) -> bytes:
        return self.contents[0] if len(self.contents) == 1 else random.choice(self.contents)


def contents_of(size: int, file: str | None, delimiter: str) -> list[bytes]:
    """Return ``size`` zero bytes, or the parts of a file. Raise click.UsageError if the file is empty."""
    if file is None:
        return [bytes(size)]
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from error
    parts = [part.encode() for part in text.split(delimiter.replace("\\n", "\n")) if part]
    if not parts:
        raise click.UsageError(f"{file} has no contents between its delimiters")
    return parts


async def open_producers(
    client: Client, topics: Sequence[str], per_topic: int, name: str | None, settings: dict[str, Any]
) -> list[Producer]:
    """Open ``count`` producers on every topic. A producer name gets a number if there are several."""
    producers = []
    for topic in topics:
        for index in range(per_topic):
            named = name if name is None or per_topic == 1 else f"{name}{index}"
            producers.append(await client.create_producer(topic, name=named, **settings))
    return producers


async def send_by_schedule(run: MeasuredRun, load: Load, producers: Sequence[Producer], messages: Messages) -> None:
    """Send the scheduled messages, going through the producers in turn."""
    loop = asyncio.get_running_loop()
    driver = Driver(run, load)

    def on_receipt(size: int, intended: float, receipt: asyncio.Future[MessageId]) -> None:
        if receipt.cancelled():
            return
        if (error := receipt.exception()) is not None:
            driver.failed(error)
        else:
            driver.answered(size, intended)

    async def begin(index: int, intended: float) -> None:
        content = messages.content()
        intended_ms = now_ms() - round((loop.time() - intended) * 1000)
        try:
            receipt = await producers[index % len(producers)].enqueue(content, **messages.fields(index, intended_ms))
        except PulsarError as error:
            driver.failed(error)
        else:
            receipt.add_done_callback(partial(on_receipt, len(content), intended))

    await driver.drive(begin)
