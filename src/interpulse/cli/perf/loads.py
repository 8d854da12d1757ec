"""Loads of perf: messages that are sent, messages that are received, and questions about topics."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import Pace
from interpulse.cli.perf.driver import Driver, Load
from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.clock import now_ms
from interpulse.model.errors import AlreadyClosed, PulsarError
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import Message
    from interpulse.client.producing.producer import Producer
    from interpulse.model.ids import MessageId

LATENCY_MAX_MS: Final = 10 * 86_400_000
_FUTURE_MS: Final = 5
"""Tolerated difference between the clocks of one machine."""

KINDS: Final = ("metadata", "lookup", "batch")
"""Kinds of questions: partition count of a topic, broker of a topic, brokers of many topics in one request."""


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
    """Open ``per_topic`` producers on every topic. A producer name gets a number if there are several."""
    producers = []
    for topic in topics:
        for index in range(per_topic):
            named = name if name is None or per_topic == 1 else f"{name}{index}"
            producers.append(await client.create_producer(topic, name=named, **settings))
    return producers


async def send_by_schedule(run: MeasuredRun, load: Load, producers: Sequence[Producer], messages: Messages) -> None:
    """Send the scheduled messages, going through the producers in turn. Latency counts from due time to receipt."""
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


@dataclass(frozen=True, slots=True)
class Receiver:
    """A consumer or a reader."""

    receive: Callable[[], Awaitable[Message]]
    done_with: Callable[[Message], None]


async def receive_all(
    run: MeasuredRun, receivers: Sequence[Receiver], *, rate: float, count_max: int, duration_s: float
) -> None:
    """Receive until ``count_max`` messages have arrived or the time is up; 0 means no limit.

    Latency counts from publishing.
    """
    pace = Pace(rate)
    enough = asyncio.Event()

    async def receive(receiver: Receiver) -> None:
        while True:
            message = await receiver.receive()
            await pace.wait()
            _measure(run, message)
            receiver.done_with(message)
            if count_max and run.messages >= count_max:
                enough.set()
                return

    tasks = [asyncio.create_task(receive(receiver)) for receiver in receivers]
    waiting = asyncio.create_task(enough.wait())
    everything: set[asyncio.Task[Any]] = {waiting, *tasks}
    try:
        await asyncio.wait(everything, timeout=duration_s or None, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and (error := task.exception()) is not None and not isinstance(error, AlreadyClosed):
                raise error
    finally:
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)


def _measure(run: MeasuredRun, message: Message) -> None:
    latency = now_ms() - message.publish_time_ms
    if latency < -_FUTURE_MS:
        run.warn(
            "messages come from the future: the clock of their producer goes before this one; latencies mean nothing"
        )
    run.done(len(message.content or b""), min(max(latency, 0), LATENCY_MAX_MS))


async def ask_by_schedule(
    run: MeasuredRun, load: Load, client: Client, kind: str, topics: Sequence[str], batch_size: int
) -> None:
    """Ask the scheduled questions, going through the topics in turn."""
    driver = Driver(run, load)
    ask = _question(client, kind, topics, batch_size)
    tasks: set[asyncio.Task[None]] = set()

    async def asked(index: int, intended: float) -> None:
        try:
            await ask(index)
        except PulsarError as error:
            driver.failed(error)
        else:
            driver.answered(0, intended)

    async def begin(index: int, intended: float) -> None:
        task = asyncio.create_task(asked(index, intended))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    try:
        await driver.drive(begin)
    finally:
        left = list(tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _question(client: Client, kind: str, topics: Sequence[str], batch_size: int) -> Callable[[int], Awaitable[None]]:
    lookup = client.session.lookup
    names = [TopicName.parse(topic) for topic in topics]

    async def metadata(index: int) -> None:
        await lookup.partitions(names[index % len(names)], create=False)

    async def broker(index: int) -> None:
        await lookup.broker(names[index % len(names)])

    async def brokers(index: int) -> None:
        first = index * batch_size % len(names)
        some = list(itertools.islice(itertools.cycle(names), first, first + min(batch_size, len(names))))
        for answer in (await lookup.brokers(some)).values():
            if isinstance(answer, PulsarError):
                raise answer

    return {"metadata": metadata, "lookup": broker, "batch": brokers}[kind]
