"""Interface of all lookups, over the binary protocol and over HTTP.

Temporary failures (the broker is starting, the connection broke) are retried until the lookup timeout. A permanent
refusal is raised immediately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from interpulse.client.config import BrokerAddress
from interpulse.client.lookup.topic_schemas import VersionedSchema
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName

TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]


class TopicList(NamedTuple):
    """Full names of topics. Partitioned topics appear as their partitions."""

    names: list[str]
    filtered: bool = False
    """True if the broker has omitted topics that do not match the pattern."""


class Lookup(Protocol):
    """Questions of a client about topics before it connects to them."""

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        """Return the partition count, 0 = not partitioned. Raise TopicNotFound (PIP-344)."""

    async def broker(self, topic: TopicName) -> BrokerAddress:
        """Return the broker to which producers and consumers of the topic connect."""

    async def brokers(self, topics: Sequence[TopicName]) -> dict[TopicName, BrokerAddress | PulsarError]:
        """Return the broker of each of many topics, or its own failure (PIP-35)."""

    async def topics_of_namespace(
        self,
        namespace: NamespaceName,
        mode: TopicMode = "PERSISTENT",
        pattern: str | None = None,
        properties: Mapping[str, str] = {},
    ) -> TopicList:
        """Return the topics of a namespace. Brokers that can omit those that do not match the pattern.

        ``properties`` describe the caller to a broker plug-in that selects topics (PIP-452).
        """

    async def service_connection(self) -> Connection | None:
        """Return a connection for requests that concern no particular topic; None if all requests use HTTP."""

    async def schema(self, topic: TopicName, version: bytes | None = None) -> VersionedSchema | None:
        """Return the latest schema of the topic, or one version of it; None if there is none."""

    async def close(self) -> None: ...
