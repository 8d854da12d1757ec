"""Two clusters with a job in each direction, whose copies are made on request and without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from interpulse.client.consuming.consumer import Consumer
from interpulse.client.messages import Message
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection, SubscriptionSettings
from tests.support.pipeline_turns import Broker, copy_log
from tests.support.waiting import SECONDS_MAX

TOPIC = TopicName.parse("persistent://public/default/orders")
NAME = "billing"
OTHER_SITE = {"east": "west", "west": "east"}


class Sites:
    """The clusters east and west."""

    def __init__(self, directory: Path, east: Broker, west: Broker) -> None:
        self.directory = directory
        self._addresses = addresses = {
            name: ClusterAddress(cluster=name, service_url=broker.service_url, admin_url=broker.web_url)
            for name, broker in (("east", east), ("west", west))
        }
        self.admins = {name: address.admin() for name, address in addresses.items()}
        self.clients = {name: address.client() for name, address in addresses.items()}
        self.events: list[dict[str, Any]] = []
        self._consumers: dict[str, Consumer] = {}
        self.jobs: dict[str, Pipeline] = {}

    def start(self, source: str) -> None:
        """Start the job that copies from one cluster to the other."""
        remote = OTHER_SITE[source]
        config = PipelineConfig(
            name="t",
            state=self.directory / source,
            source=self._addresses[source],
            target=self._addresses[remote],
            select=Selection(topics=(str(TOPIC),)),
            as_replicator=True,
            subscriptions=SubscriptionSettings(interval_ms=20),
        )
        arguments = self._addresses[remote], None, self.events.append, f"pulsar.repl.{remote}"
        self.jobs[source] = Pipeline(config, self.admins[source], *arguments)

    async def stop(self, source: str) -> None:
        await self.jobs.pop(source).stop()

    async def copy(self, *sources: str) -> None:
        for source in sources:
            await copy_log(self.clients[source], self.clients[OTHER_SITE[source]], TOPIC, self.jobs[source])

    async def turn(self) -> None:
        """Let the control side of the jobs look once, as they do every second."""
        for job in self.jobs.values():
            await job.update({TOPIC: 0})
        await asyncio.sleep(0.02)

    async def until(self, reached: Callable[[], Awaitable[bool]]) -> None:
        """Let the jobs work until something is so."""
        async with asyncio.timeout(SECONDS_MAX):
            while not await reached():
                await self.turn()

    async def ready(self) -> None:
        """Wait until the jobs may copy."""

        async def are_ready() -> bool:
            records = [record for job in self.jobs.values() for rows in job.records().values() for record in rows]
            return bool(records) and all(record["reason"] == "Spark is starting" for record in records)

        await self.until(are_ready)

    async def publish(self, site: str, values: Iterable[int], *, batch: int = 1) -> None:
        settings = {"batching_enabled": batch > 1, "batch_messages_max": batch, "batch_delay_ms": 60_000}
        producer = await self.clients[site].create_producer(str(TOPIC), **settings)
        await asyncio.gather(*(producer.send(b"%d" % value) for value in values))
        await producer.close()

    async def receive(self, site: str, count: int) -> dict[int, Message]:
        """Receive so many messages, and return them by number. The consumer stays open."""
        consumer = await self.clients[site].subscribe(
            str(TOPIC), NAME, subscription_type="shared", batch_index_ack_enabled=True
        )
        messages = [await consumer.receive() for _ in range(count)]
        self._consumers[site] = consumer
        return {int(message.content or b""): message for message in messages}

    async def acknowledge(self, site: str, messages: Iterable[Message]) -> None:
        """Acknowledge messages that the last consumer of the site has received, and close it."""
        consumer = self._consumers.pop(site)
        for message in messages:
            consumer.acknowledge(message)
        await consumer.close()

    async def take(self, site: str, count: int, wanted: Callable[[int], bool]) -> None:
        """Receive messages, and acknowledge those that are wanted."""
        messages = await self.receive(site, count)
        await self.acknowledge(site, (message for value, message in messages.items() if wanted(value)))

    async def waiting(self, site: str, count: int | None = None) -> set[int]:
        """Return the messages that the subscription waits for: so many, or one for each entry."""
        messages = await self.receive(site, await self.backlog(site) if count is None else count)
        await self.acknowledge(site, ())
        return set(messages)

    async def backlog(self, site: str) -> int:
        shown = (await self.admins[site].topics.stats(TOPIC))["subscriptions"]
        return int(shown[NAME]["msgBacklog"]) if NAME in shown else -1

    async def until_backlog(self, site: str, count: int) -> None:
        async def is_so() -> bool:
            return await self.backlog(site) == count

        await self.until(is_so)

    async def ids(self, site: str) -> dict[int, MessageId]:
        """Return the ids of all messages by number."""
        reader = await self.clients[site].create_reader(str(TOPIC))
        found = {}
        while await reader.has_message_available():
            message = await reader.read_next()
            found[int(message.content or b"")] = message.id
        await reader.close()
        return found

    async def until_standing(self, source: str, state: str, pending: int) -> None:
        async def is_so() -> bool:
            ((record,),) = self.jobs[source].records().values()
            return (record.get("subscriptionState"), record.get("subscriptionPending")) == (state, pending)

        await self.until(is_so)

    async def until_carried(self, **expected: int) -> None:
        """Wait until so many acknowledgements were carried to each cluster; an event comes after them."""

        async def is_so() -> bool:
            return self.carried() == expected

        await self.until(is_so)

    def carried(self) -> dict[str, int]:
        """Return how many acknowledgements were carried to each cluster."""
        counts: dict[str, int] = {}
        for event in self.events:
            if event["event"] == "subscription":
                counts[event["on"]] = counts.get(event["on"], 0) + event.get("acknowledged", 0)
        return counts

    async def close(self) -> None:
        for source in list(self.jobs):
            await self.stop(source)
        for closing in [*self.clients.values(), *self.admins.values()]:
            await closing.close()
