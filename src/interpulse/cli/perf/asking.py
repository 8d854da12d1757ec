"""Load of ``perf lookup``: scheduled questions about topics, each measured from its due time to its answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from interpulse.cli.perf.driver import Driver, Load
from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.client import Client

KINDS: Final = ("metadata", "lookup", "batch")
"""Kinds of questions: partition count of a topic, broker of a topic, brokers of many topics in one request."""

_Ask = Callable[[int], Awaitable[None]]


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


def _question(client: Client, kind: str, topics: Sequence[str], batch_size: int) -> _Ask:
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
