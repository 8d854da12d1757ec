"""Whether a topic is this broker's, where several brokers share the topics of a cluster."""

from __future__ import annotations

from typing import Protocol

from interpulse.model.names import TopicName

__all__ = ["TopicOwnership"]


class TopicOwnership(Protocol):
    """The bundles of this broker, as the registry of its topics sees them."""

    async def acquire(self, topic: TopicName) -> None:
        """The topic may be loaded; raises ServiceNotReady if its bundle is not this broker's."""

    async def opened(self, topic: TopicName) -> None:
        """The topic is loaded; raises ServiceNotReady if its bundle was lost since."""

    def serving(self) -> bool:
        """Whether what this broker holds surely is its own, as the clock says now."""

    def holds(self, topic: TopicName) -> bool:
        """Whether the bundle of an acquired topic is this broker's, as the clock says now."""

    def check(self, topic: TopicName) -> None:
        """Raises ServiceNotReady unless `holds`."""

    async def is_as_left(self, topic: TopicName) -> bool:
        """Whether nobody but this broker has changed the record of the topic since it was loaded."""

    def forget(self, topic: TopicName) -> None:
        """The topic is not loaded any more."""
