"""Keeps what topics hold until replication has it, from the moment a namespace lists a remote cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from interpulse.broker.lifecycle import TopicLifecycle
from interpulse.broker.live.registry import TopicRegistry
from interpulse.model.errors import TopicInconsistent, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.topics import Requester

__all__ = ["RegistryReplicationCursors"]

logger = logging.getLogger(__name__)

_LOADS_MAX: Final = 32


class RegistryReplicationCursors:
    """Opens and closes the cursors through the loaded topics, which follow their policies.

    A topic that is not loaded opens what is new when it is, before it takes a message: nothing has to be done for it.
    But it cannot know what was closed meanwhile: before a cluster is left out of a list, topics have to be loaded.
    """

    def __init__(self, lifecycle: TopicLifecycle, registry: TopicRegistry) -> None:
        self._lifecycle = lifecycle
        self._registry = registry

    async def open(self, namespace: NamespaceName) -> None:
        """On return every topic keeps what is published from now on; the policies have to be stored before."""
        await self._registry.policies_changed(namespace)

    async def open_topic(self, name: TopicName) -> None:
        """The same for one topic with its partitions."""
        await self._registry.policies_changed(name.namespace_name, name.base)

    async def load(self, namespace: NamespaceName) -> None:
        """From here on the topics of the namespace follow what is stored."""
        await self._load_all(await self._lifecycle.list_topics(namespace, "persistent", include_system=False))

    async def load_topic(self, name: TopicName) -> None:
        """The same for one topic with its partitions."""
        if name.is_persistent:
            count = await self._lifecycle.partitions(name, create=False)
            await self._load_all([name.partition(index) for index in range(count)] or [name])

    async def _load_all(self, names: Iterable[TopicName]) -> None:
        limit = asyncio.Semaphore(_LOADS_MAX)
        await asyncio.gather(*(self._load(name, limit) for name in names))

    async def _load(self, name: TopicName, limit: asyncio.Semaphore) -> None:
        async with limit:
            try:
                await self._registry.open(name, by=Requester.ADMIN, create=False)
            except (TopicInconsistent, TopicNotFound) as refusal:
                logger.warning("topic is not replicated topic=%s reason=%s", name, refusal)
