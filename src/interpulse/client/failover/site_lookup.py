"""Lookups of a client with several sites, which follow it to another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from interpulse.client.config import BrokerAddress
from interpulse.client.lookup.lookup import Lookup, TopicList, TopicMode, VersionedSchema
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName

Answer = TypeVar("Answer")


class SiteLookup:
    """Lookups at the present site. A question that the client takes with it to another site is asked again there."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._asked: set[asyncio.Task[Any]] = set()

    def move(self, lookup: Lookup) -> Lookup:
        """Ask at another site from now on. Return the former lookup, which the caller closes."""
        before, self._lookup = self._lookup, lookup
        asked, self._asked = self._asked, set()
        for task in asked:
            task.cancel()
        return before

    async def _ask(self, question: Callable[[Lookup], Coroutine[Any, Any, Answer]]) -> Answer:
        while True:
            lookup = self._lookup
            task = asyncio.get_running_loop().create_task(question(lookup))
            self._asked.add(task)
            task.add_done_callback(self._asked.discard)
            await _ended(task)
            if lookup is self._lookup:
                return task.result()

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        return await self._ask(
            lambda lookup: lookup.partitions(topic, create=create, fallback_on_old_broker=fallback_on_old_broker)
        )

    async def broker(self, topic: TopicName) -> BrokerAddress:
        return await self._ask(lambda lookup: lookup.broker(topic))

    async def brokers(self, topics: Sequence[TopicName]) -> dict[TopicName, BrokerAddress | PulsarError]:
        return await self._ask(lambda lookup: lookup.brokers(topics))

    async def topics_of_namespace(
        self,
        namespace: NamespaceName,
        mode: TopicMode = "PERSISTENT",
        pattern: str | None = None,
        properties: Mapping[str, str] = {},
    ) -> TopicList:
        return await self._ask(lambda lookup: lookup.topics_of_namespace(namespace, mode, pattern, properties))

    async def service_connection(self) -> Connection | None:
        return await self._ask(lambda lookup: lookup.service_connection())

    async def schema(self, topic: TopicName, version: bytes | None = None) -> VersionedSchema | None:
        return await self._ask(lambda lookup: lookup.schema(topic, version))

    async def close(self) -> None:
        await self._lookup.close()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait for the end of a task, however it ends. Cancel it with the caller."""
    try:
        await asyncio.wait([task])
        task.cancelled() or task.exception()  # retrieved, so that the event loop does not warn
    except asyncio.CancelledError:
        task.cancel()
        raise
