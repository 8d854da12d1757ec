"""Keeps what topics hold until replication has it, from the moment a namespace lists a remote cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
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
    """Opens the cursors by loading the topics: a topic takes up the policies of its namespace when it is loaded."""

    def __init__(self, lifecycle: TopicLifecycle, registry: TopicRegistry) -> None:
        self._lifecycle = lifecycle
        self._registry = registry

    async def open(self, namespace: NamespaceName, remotes: Collection[str]) -> None:
        """On return every topic keeps what is published from now on; the policies have to be stored before."""
        await self._registry.policies_changed(namespace)
        if not remotes:
            return
        limit = asyncio.Semaphore(_LOADS_MAX)
        names = await self._lifecycle.list_topics(namespace, "persistent", include_system=False)
        await asyncio.gather(*(self._load(name, limit) for name in names))

    async def _load(self, name: TopicName, limit: asyncio.Semaphore) -> None:
        async with limit:
            try:
                await self._registry.open(name, by=Requester.ADMIN, create=False)
            except (TopicInconsistent, TopicNotFound) as refusal:
                logger.warning("topic is not replicated topic=%s reason=%s", name, refusal)
