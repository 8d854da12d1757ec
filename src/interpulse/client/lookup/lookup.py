"""Interface of all lookups, over the binary protocol and over HTTP, and the schema of a topic.

Temporary failures (the broker is starting, the connection broke) are retried until the lookup timeout. A permanent
refusal is raised immediately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from interpulse.client.config import BrokerAddress
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.schemas import schema_from_wire, schema_to_wire

TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]


class VersionedSchema(NamedTuple):
    """Schema with its version in the topic, in the form that messages carry."""

    schema: SchemaInfo
    version: bytes


async def fetch_schema(connection: Connection, topic: TopicName, version: bytes | None) -> VersionedSchema | None:
    """Return the schema from the broker that serves the topic; None if there is none or not in that version."""
    try:
        answer = await connection.request(pb.CommandGetSchema(topic=str(topic), schema_version=version))
    except TopicNotFound:
        return None
    response = answer.getSchemaResponse
    return VersionedSchema(schema_from_wire(response.schema), response.schema_version)


async def store_schema(
    connection: Connection, topic: TopicName, schema: SchemaInfo, *, producer_name: str | None = None
) -> bytes:
    """Register ``schema`` and return its version. Raise IncompatibleSchema.

    The broker adds a new schema only if its policies allow it. ``producer_name`` names the producer: replicators may
    have other rights than producers (PIP-433).
    """
    answer = await connection.request(
        pb.CommandGetOrCreateSchema(topic=str(topic), schema=schema_to_wire(schema), producerName=producer_name)
    )
    return answer.getOrCreateSchemaResponse.schema_version


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
