"""Publishing while one of several brokers is killed, and the time without receipts until another takes over."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pulsar

from broker_process import BrokerProcess, ClusterFailed
from dataset import Row
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from screen import DatedConsole
from shared_cluster import SharedCluster
from traffic import Message, Progress, publish
from verdict import Ledger

NAMESPACE = "demo/flights"
TOPIC = f"persistent://{NAMESPACE}/departures"
PARTITIONS = 4
STALLED_AFTER_S = 120.0
LOOK_EVERY_S = 0.02
LINE_EVERY_S = 2.0
SILENCE_S = 1.0
"""Length of a silence. Receipts in flight at the kill arrive sooner, those of the next broker seconds later."""


class Stalled(Exception):
    """A long time without a receipt."""


@dataclass(slots=True)
class Run:
    """The state of one demonstration, shared by its threads."""

    rows: Sequence[Row]
    ledger: Ledger = field(default_factory=Ledger)
    progress: Progress = field(default_factory=lambda: Progress(PARTITIONS))
    killed: threading.Event = field(default_factory=threading.Event)
    abandoned: threading.Event = field(default_factory=threading.Event)

    def messages(self) -> Iterator[Message]:
        """Yield all messages. The last third waits until the broker is dead."""
        for number, row in enumerate(self.rows):
            if number == len(self.rows) * 2 // 3:
                self.killed.wait()
            yield row, self.ledger.published(row)

    def abandon(self) -> None:
        """Let the threads end."""
        self.abandoned.set()
        self.killed.set()


class Outage:
    """Measures the time without receipts after a kill. Pure: counts and times in, seconds out."""

    def __init__(self, receipts: int, killed_at: float) -> None:
        self.receipts = receipts
        self._killed_at = killed_at
        self._last_change = killed_at

    def seconds(self, receipts: int, now: float) -> float | None:
        """Return the seconds from the kill to the first receipt after a silence, None before.

        ``receipts`` is their count so far.
        """
        if receipts == self.receipts:
            return None
        if now - self._last_change >= SILENCE_S:
            return now - self._killed_at
        self.receipts, self._last_change = receipts, now
        return None


async def owners(admin: AdminClient, brokers: Sequence[BrokerProcess]) -> list[BrokerProcess | None]:
    """Return the broker of each partition, by one request; None where no broker can answer now."""
    partitions = [TopicName.parse(f"{TOPIC}-partition-{index}") for index in range(PARTITIONS)]
    answers = await admin.lookup.topics(partitions)
    by_url = {broker.web_url: broker for broker in brokers}
    found = (answers[partition] for partition in partitions)
    return [None if isinstance(answer, PulsarError) else by_url.get(answer["httpUrl"]) for answer in found]


class Failover:
    """Publishing while one broker dies."""

    def __init__(self, cluster: SharedCluster, run: Run, client_log: pulsar.FileLogger, console: DatedConsole) -> None:
        self._cluster = cluster
        self._run = run
        self._client_log = client_log
        self._console = console
        self.victim: BrokerProcess | None = None
        self.seconds: float | None = None
        """Seconds from the kill to the next receipt of the killed broker's partitions. None if they got no message."""

    @property
    def survivors(self) -> list[BrokerProcess]:
        """Return the brokers that were not killed."""
        return [broker for broker in self._cluster.brokers if broker is not self.victim]

    async def publish(self) -> None:
        """Publish everything, and kill a broker after a third of the receipts. Return with the last receipt."""
        run = self._run
        url = service_url(self._cluster.brokers)
        publishing = asyncio.create_task(
            asyncio.to_thread(publish, url, TOPIC, run.messages(), run.progress, run.abandoned, self._client_log)
        )
        try:
            await self._until(publishing, lambda: run.progress.published_total >= len(run.rows) // 3)
            served = await self._kill()
            await self._until_taken_over(publishing, served)
            await self._until(publishing, lambda: run.progress.publishing_done)
        except BaseException:
            run.abandon()
            raise
        finally:
            await asyncio.gather(publishing, return_exceptions=True)

    async def _kill(self) -> list[int]:
        """Kill the broker of the busiest partition, and return all partitions that it serves."""
        published = self._run.progress.published
        busiest = published.index(max(published))
        async with AdminClient(self._cluster.brokers[0].web_url) as admin:
            found = await owners(admin, self._cluster.brokers)
        self.victim = found[busiest]
        if self.victim is None:
            raise ClusterFailed(
                f"partition {busiest} of {TOPIC} has no broker, see {self._cluster.brokers[0].log_path}"
            )
        served = [index for index, owner in enumerate(found) if owner is self.victim]
        await self.victim.kill()
        self._say(
            f"{self.victim.name}, which serves {named(served)}, is killed (SIGKILL) "
            f"after {self._run.progress.published_total:,} of {len(self._run.rows):,} receipts"
        )
        return served

    async def _until_taken_over(self, publishing: asyncio.Task[None], served: Sequence[int]) -> None:
        progress = self._run.progress

        def receipts() -> int:
            return sum(progress.published[index] for index in served)

        outage = Outage(receipts(), time.monotonic())
        self._run.killed.set()

        def taken_over() -> bool:
            done = progress.publishing_done  # read before its receipts are counted
            self.seconds = outage.seconds(receipts(), time.monotonic())
            return done or self.seconds is not None

        await self._until(publishing, taken_over)
        if self.seconds is not None:
            async with AdminClient(self.survivors[0].web_url) as admin:
                found = await owners(admin, self.survivors)
            names = sorted({owner.name for index, owner in enumerate(found) if owner is not None and index in served})
            self._say(f"the next receipt came {self.seconds:.1f} s after the kill; served by {', '.join(names)} now")

    async def _until(self, publishing: asyncio.Task[None], reached: Callable[[], bool]) -> None:
        """Await a condition, with a progress line now and then. Raises errors of publishing, and Stalled."""
        progress = self._run.progress
        next_line = time.monotonic() + LINE_EVERY_S
        count, changed_at = -1, time.monotonic()
        while not reached():
            if publishing.done():
                publishing.result()
            now = time.monotonic()
            if progress.published_total != count:
                count, changed_at = progress.published_total, now
            elif now - changed_at > STALLED_AFTER_S:
                raise Stalled(f"no receipt came for {STALLED_AFTER_S:.0f} s, see {self.survivors[0].log_path}")
            if now >= next_line:
                next_line = now + LINE_EVERY_S
                waiting = f", none for {now - changed_at:.0f} s" if now - changed_at >= SILENCE_S else ""
                self._say(f"{count:,} of {len(self._run.rows):,} messages have receipts{waiting}")
            await asyncio.sleep(LOOK_EVERY_S)

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


def named(partitions: Sequence[int]) -> str:
    """Return the partitions as words of a sentence."""
    return f"partition{'s' if len(partitions) > 1 else ''} {', '.join(map(str, partitions))}"


def service_url(brokers: Sequence[BrokerProcess]) -> str:
    """Return one URL with the addresses of all brokers. A client tries the next one if one does not answer."""
    return "pulsar://" + ",".join(broker.service_url.removeprefix("pulsar://") for broker in brokers)
