"""Keeps what topics hold until replication has it, as long as a namespace or a topic lists a remote cluster."""

from __future__ import annotations

from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.model.names import NamespaceName, TopicName

__all__ = ["RegistryReplicationCursors"]


class RegistryReplicationCursors:
    """Opens and closes the cursors through the loaded topics, which follow their policies.

    A topic that is not loaded does so when it is, before it takes a message: nothing has to be done for it.
    """

    def __init__(self, registry: TopicRegistry) -> None:
        self._registry = registry

    async def follow(self, namespace: NamespaceName) -> None:
        """On return every topic keeps what is published from now on, for the clusters that are stored and no other."""
        await self._registry.policies_changed(namespace)

    async def follow_topic(self, name: TopicName) -> None:
        """The same for one topic with its partitions."""
        await self._registry.policies_changed(name.namespace_name, name.base)
