"""The interface of every lookup, over the binary protocol or over HTTP.

Failures that may pass (the broker is starting, the connection broke) are retried until the lookup timeout; a final
refusal is raised at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from interpulse.client.config import BrokerAddress
from interpulse.client.lookup.topic_schemas import VersionedSchema
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName

__all__ = ["Lookup", "TopicList", "TopicMode"]

TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]


class TopicList(NamedTuple):
    """Complete names; partitioned topics appear as their partitions."""

    names: list[str]
    filtered: bool = False
    """The broker has left out what does not match the pattern."""


class Lookup(Protocol):
    """The questions of a client about topics before it connects to them."""

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        """The partition count, 0 = not partitioned. Raises TopicNotFound (PIP-344)."""

    async def broker(self, topic: TopicName) -> BrokerAddress:
        """Where producers and consumers of the topic connect to."""

    async def brokers(self, topics: Sequence[TopicName]) -> dict[TopicName, BrokerAddress | PulsarError]:
        """The same for many topics in one go; every topic has an answer or its own failure (PIP-35)."""

    async def topics_of_namespace(
        self,
        namespace: NamespaceName,
        mode: TopicMode = "PERSISTENT",
        pattern: str | None = None,
        properties: Mapping[str, str] = {},
    ) -> TopicList:
        """The topics of a namespace; a broker that can leaves out what does not match the pattern.

        ``properties`` say who asks, for a plug-in of the broker that chooses topics by them (PIP-452).
        """

    async def service_connection(self) -> Connection | None:
        """Where to ask what concerns no topic in particular; None where everything is asked over HTTP."""

    async def schema(self, topic: TopicName, version: bytes | None = None) -> VersionedSchema | None:
        """The schema of the topic (the latest, or a version of it); None if it has none."""

    async def close(self) -> None: ...
