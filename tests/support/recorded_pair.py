"""Two clusters that copy, recorded clients, and the steps of a switch by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from interpulse.client import Client
from interpulse.failover.history.events import Cause
from interpulse.failover.history.reading import SiteClients, read_cursors, read_history, read_log
from interpulse.failover.history.record import History
from interpulse.failover.history.recorded_clients import RecordedConsumer, RecordedProducer
from interpulse.failover.history.recorder import HistoryRecorder
from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.model.ids import EARLIEST, Position
from interpulse.testing import ClusterPair
from tests.support.waiting import SECONDS_MAX

NAMESPACE = "public/default"
TOPIC = f"persistent://{NAMESPACE}/orders"
SITES = ("east", "west")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not await condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.02)


class Play:
    """Two clusters, two producers and a consumer, and the recorder of what they see."""

    def __init__(self, pair: ClusterPair, clients: dict[str, SiteClients]) -> None:
        self.pair = pair
        self.clients = clients
        self.recorder = HistoryRecorder({site: [pair.brokers[site].service_url] for site in SITES})
        self.active = "east"
        self.sent = 0
        self.received = 0
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, client: Client | None = None) -> None:
        """Start the producers and the consumer, of a client that is at east now."""
        client = self.clients["east"].client if client is None else client
        self.consumer = await RecordedConsumer.subscribe(
            self.recorder,
            client,
            TOPIC,
            "billing",
            name="c",
            subscription_type="shared",
            replicate_subscription_state=True,
            batch_index_ack_enabled=True,
        )
        for number in range(2):
            options = {"name": f"p{number}", "batching_enabled": number == 1, "batch_delay_ms": 5}
            producer = await RecordedProducer.create(self.recorder, client, TOPIC, **options)
            self._tasks.append(asyncio.create_task(self._publish(producer)))
        self._consuming = asyncio.create_task(self._consume())

    async def _publish(self, producer: RecordedProducer) -> None:
        async with producer:
            while not self._stopping.is_set():
                sending = [asyncio.create_task(producer.send("x", key=f"k{each}")) for each in range(3)]
                await asyncio.gather(*sending)
                self.sent += len(sending)

    async def _consume(self) -> None:
        """Acknowledge all messages but every seventh one."""
        while True:
            message = await self.consumer.receive()
            self.received += 1
            if self.received % 7:
                self.consumer.acknowledge(message)

    async def until_sent(self, more: int) -> None:
        wanted = self.sent + more
        await until(lambda: self._holds(lambda: self.sent >= wanted and self.received > 0))

    async def _holds(self, condition: Callable[[], bool]) -> bool:
        for task in (*self._tasks, self._consuming):
            if task.done():
                task.result()
        return condition()

    async def end(self) -> None:
        """Stop the producers, and let the consumer take what is left."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)
        self._tasks.clear()
        await until(self.is_settled)
        await until(lambda: self._holds(lambda: self.received >= self.sent))
        await self.confirm(self.active)
        self._consuming.cancel()
        await asyncio.gather(self._consuming, return_exceptions=True)
        await self.consumer.close()
        await until(self.is_settled)

    async def copied_upto(self, position: Position) -> None:
        """Wait until west has the copy of an entry of east, and the subscription."""

        async def is_copied() -> bool:
            client, admin = self.clients["west"]
            sources = [logged.source for logged in (await read_log(client, "west", TOPIC)).messages if logged.source]
            return bool(await read_cursors(admin, "west", TOPIC)) and max(sources, default=EARLIEST) >= position

        await until(is_copied)

    async def confirm(self, site: str) -> None:
        """Wait until the cursor of a site holds everything that was acknowledged."""

        async def is_confirmed() -> bool:
            return await self.consumer.confirm(site, self.clients[site].admin) == 0

        await until(is_confirmed)

    async def confirm_always(self, site: str) -> None:
        """Confirm what a site has taken, again and again until cancelled."""
        while True:
            await self.consumer.confirm(site, self.clients[site].admin)
            await asyncio.sleep(0.02)

    async def is_settled(self) -> bool:
        """Return True if both sites have the same messages and acknowledgements."""
        waiting = []
        for site in SITES:
            log = await read_log(self.clients[site].client, site, TOPIC)
            cursors = await read_cursors(self.clients[site].admin, site, TOPIC)
            waiting.append([{(logged.message, each.holds(logged)) for logged in log.messages} for each in cursors])
        return bool(waiting[0]) and waiting[0] == waiting[1]

    # ---- Steps of a switch

    async def set_role(self, site: str, role: str, url: str | None = None) -> dict[str, Position]:
        namespaces = self.clients[site].admin.namespaces
        answer = await namespaces.set_failover_role(NAMESPACE, role, 1, url=url, subscriptions_ready=url is not None)
        self.recorder.see_role(site, NAMESPACE, role, 1)
        return {topic: Position.parse(text) for topic, text in answer.get("positions", {}).items()}

    async def switch(self) -> None:
        self.recorder.fence("east", await self.set_role("east", "fenced"))
        await self.confirm("east")
        await until(self.is_settled)
        self.active = "west"
        self.recorder.promote("west", Cause.SWITCH)
        await self.set_role("west", "active")
        await self.set_role("east", "moved", url=self.pair.west.service_url)

    def file(self, directory: Path) -> PairConfig:
        """Return the file of the pair as the commands read it."""
        addresses = {site: self.pair.address(site) for site in SITES}
        sites = {
            site: {"cluster": site, "service_url": address.service_url, "admin_url": address.admin_url}
            for site, address in addresses.items()
        }
        pair = {"name": "orders", "sites": [*SITES], "namespaces": [NAMESPACE], "state": str(directory)}
        return parse_pair_config({"pair": pair, "limits": {"settle_s": 1}, **sites})

    async def history(self, **fields: Any) -> History:
        east, west = ((site, self.clients[site]) for site in SITES)
        return await read_history(self.recorder, east, west, [TOPIC], interval_ms=1000, **fields)


@asynccontextmanager
async def playing(directory: Path) -> AsyncGenerator[Play]:
    """Start both clusters, west on standby."""
    async with AsyncExitStack() as closing:
        pair = ClusterPair(directory, {"brokerDeduplicationEnabled": True}, replicates=True)
        await asyncio.to_thread(pair.start)
        closing.push_async_callback(asyncio.to_thread, pair.stop)
        clients = {}
        for site in SITES:
            address = pair.address(site)
            clients[site] = SiteClients(address.client(), address.admin())
            closing.push_async_callback(clients[site].client.close)
            closing.push_async_callback(clients[site].admin.close)
        await clients["west"].admin.namespaces.set_failover_role(NAMESPACE, "standby", 0)
        await clients["east"].admin.topics.create(TOPIC)
        for site in SITES:
            await clients[site].admin.namespaces.set_replication_clusters(NAMESPACE, SITES)
        yield Play(pair, clients)
