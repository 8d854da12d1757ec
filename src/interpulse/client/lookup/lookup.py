"""Finding topics: how many partitions, which broker, which schema - over the binary protocol or over HTTP.

Failures that may pass (the broker is starting, the connection broke) are retried until the lookup timeout; what the
broker decided for good is raised at once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.batch_lookup import BatchLookups, lookup_singly
from interpulse.client.lookup.gathered_lookups import GatheredLookups
from interpulse.client.lookup.http_lookup import Addresses, lookup_over_http
from interpulse.client.shapes import UnexpectedShape, made_by, names, record
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    NotConnected,
    NotFound,
    NotSupported,
    PulsarError,
    TopicNotFound,
    UnknownError,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.schemas import schema_from_wire

__all__ = [
    "BinaryLookup",
    "HttpLookup",
    "Lookup",
    "TopicList",
    "TopicMode",
    "VersionedSchema",
    "fetch_schema",
    "store_schema",
]

Answer = TypeVar("Answer")

_METADATA = made_by(PartitionedTopicMetadata.from_json)
TopicMode = Literal["PERSISTENT", "NON_PERSISTENT", "ALL"]


class VersionedSchema(NamedTuple):
    """A schema and the version under which the topic knows it, as it travels in messages."""

    schema: SchemaInfo
    version: bytes


class TopicList(NamedTuple):
    """Complete names; partitioned topics appear as their partitions."""

    names: list[str]
    filtered: bool = False
    """The broker has left out what does not match the pattern."""


class Lookup(Protocol):
    """What the client needs to know about topics before it connects to them."""

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        """The partition count, 0 = not partitioned. Raises TopicNotFound (PIP-344)."""

    async def broker(self, topic: TopicName) -> BrokerAddress:
        """Where producers and consumers of the topic connect to."""

    async def brokers(self, topics: Sequence[TopicName]) -> dict[TopicName, BrokerAddress | PulsarError]:
        """The same for many topics in one go; every topic has an answer or its own failure (PIP-35)."""

    async def topics_of_namespace(
        self, namespace: NamespaceName, mode: TopicMode = "PERSISTENT", pattern: str | None = None
    ) -> TopicList:
        """The topics of a namespace; a broker that can leaves out what does not match the pattern."""

    async def service_connection(self) -> Connection | None:
        """Where to ask what concerns no topic in particular; None where everything is asked over HTTP."""

    async def schema(self, topic: TopicName, version: bytes | None = None) -> VersionedSchema | None:
        """The schema of the topic (the latest, or a version of it); None if it has none."""

    async def close(self) -> None: ...


class BinaryLookup:
    """Lookups through the brokers of a ``pulsar://`` service URL. A host that fails is followed by the next one."""

    def __init__(self, config: ClientConfig, pool: ConnectionPool) -> None:
        self._config = config
        self._pool = pool
        self._hosts = itertools.cycle(config.url.brokers)
        self._host = next(self._hosts)
        self._single_lookups = asyncio.Semaphore(config.concurrent_lookups_max)
        self._batches_offered = True  # until a broker says otherwise
        self._batches = BatchLookups(
            service=self.service_connection,
            connect=pool.get,
            target=self._target,
            single=self._single,
            config=config,
        )
        self._gathered = GatheredLookups(self._single, self._batches.find)

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        """Raises NotSupported for ``create=False`` when the broker is older than PIP-344 and would create the topic,
        unless ``fallback_on_old_broker`` accepts that."""

        async def attempt() -> int:
            connection = await self.service_connection()
            asks_to_create = create
            if not create and not connection.peer_flags.supports_get_partitioned_metadata_without_auto_creation:
                if not fallback_on_old_broker:
                    raise NotSupported(
                        f"{connection.address} is older than PIP-344: asking for partitions of {topic} could create "
                        f"it. Ask over HTTP, or with fallback_on_old_broker=True"
                    )
                asks_to_create = True
            try:
                answer = await connection.request(
                    lambda request_id: commands.partitioned_metadata(request_id, str(topic), create=asks_to_create)
                )
            except TopicNotFound as error:  # Pulsar sends no text with it
                raise TopicNotFound(str(error) or f"{topic} does not exist") from None
            if not answer.HasField("partitionMetadataResponse"):  # a proxy may wrap failures, never a count
                raise UnknownError(f"{connection.address} answered a question for partitions with type {answer.type}")
            return answer.partitionMetadataResponse.partitions

        return await self._retried(attempt)

    async def broker(self, topic: TopicName) -> BrokerAddress:
        return await (self._gathered.find(topic) if self._batches_offered else self._single(topic))

    async def _single(self, topic: TopicName) -> BrokerAddress:
        async def attempt() -> BrokerAddress:
            async with self._single_lookups:
                return await self._follow(topic)

        return await self._retried(attempt)

    async def _follow(self, topic: TopicName) -> BrokerAddress:
        connection = await self.service_connection()
        authoritative = False
        for _ in range(self._config.lookup_redirects_max + 1):
            answer = (await connection.request(self._lookup_frame(topic, authoritative))).lookupTopicResponse
            target = self._target(answer)
            if answer.response == pb.CommandLookupTopicResponse.Connect:
                return target
            authoritative = answer.authoritative
            connection = await self._pool.get(target)
        raise UnknownError(f"lookup of {topic}: more than {self._config.lookup_redirects_max} redirects")

    def _lookup_frame(self, topic: TopicName, authoritative: bool) -> Callable[[int], bytes]:
        return lambda request_id: commands.lookup(
            request_id, str(topic), authoritative=authoritative, listener_name=self._config.listener_name
        )

    def _target(self, answer: pb.CommandLookupTopicResponse | pb.BatchLookupGroup) -> BrokerAddress:
        """The address to connect to: behind a proxy that is the address we already use."""
        url = answer.brokerServiceUrlTls if self._config.url.tls else answer.brokerServiceUrl
        try:
            broker = BrokerAddress.parse(url)
        except ValueError as error:
            raise UnknownError(f"the broker answered a lookup with {url!r}") from error
        if not answer.proxy_through_service_url:
            return broker
        service = self._host
        return BrokerAddress(service.host, service.port, service.tls, behind=f"{broker.host}:{broker.port}")

    async def brokers(self, topics: Sequence[TopicName]) -> dict[TopicName, BrokerAddress | PulsarError]:
        return await self._batches.find(topics)

    async def topics_of_namespace(
        self, namespace: NamespaceName, mode: TopicMode = "PERSISTENT", pattern: str | None = None
    ) -> TopicList:
        wire_mode = pb.CommandGetTopicsOfNamespace.Mode.Value(mode)

        def frame(request_id: int) -> bytes:
            return commands.get_topics_of_namespace(request_id, str(namespace), mode=wire_mode, topics_pattern=pattern)

        async def attempt() -> TopicList:
            answer = (await (await self.service_connection()).request(frame)).getTopicsOfNamespaceResponse
            return TopicList(list(answer.topics), answer.filtered)

        return await self._retried(attempt)

    async def schema(self, topic: TopicName, version: bytes | None = None) -> VersionedSchema | None:
        async def attempt() -> VersionedSchema | None:
            connection = await self._pool.get(await self._follow(topic))
            return await fetch_schema(connection, topic, version)

        return await self._retried(attempt)

    async def close(self) -> None:
        """The connections belong to the pool."""
        await self._gathered.close()

    async def service_connection(self) -> Connection:
        try:
            connection = await self._pool.get(self._host)
        except NotConnected:
            self._host = next(self._hosts)
            raise
        self._batches_offered = connection.peer_flags.supports_batch_lookup
        return connection

    async def _retried(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        config = self._config
        backoff = Backoff(config.backoff_initial_ms, config.backoff_max_ms)
        return await retry(attempt, timeout_ms=config.lookup_timeout_ms, backoff=backoff)


class HttpLookup:
    """Lookups through the web service of an ``http://`` service URL."""

    def __init__(self, config: ClientConfig, pool: ConnectionPool) -> None:
        from interpulse.client.transport.http_session import (
            HttpSession,  # only here: binary clients do without an HTTP library
        )

        self._config = config
        self._pool = pool
        self._http = HttpSession(
            config.service_url, credentials=config.credentials, timeout_ms=config.lookup_timeout_ms, tls=config.tls
        )

    async def close(self) -> None:
        await self._http.close()

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        """``create=False`` is understood by every release, so there is nothing to fall back from."""
        path = f"/admin/v2/{topic.rest_path}/partitions"
        query = {"checkAllowAutoCreation": create}
        try:
            found = await self._retried(lambda: self._http.get(path, kind="topic", read=_METADATA, query=query))
        except NotFound as error:  # as over the binary protocol: a topic of a missing namespace is not there either
            raise TopicNotFound(str(error)) from error
        return found.partitions

    async def broker(self, topic: TopicName) -> BrokerAddress:
        return self._address(await self._addresses(topic))

    async def brokers(self, topics: Sequence[TopicName]) -> dict[TopicName, BrokerAddress | PulsarError]:
        async def attempt() -> dict[TopicName, Addresses | PulsarError]:
            return await lookup_over_http(
                self._http,
                topics,
                self._addresses,
                listener_name=self._config.listener_name,
                topics_max=self._config.batch_lookup_topics_max,
            )

        try:
            answers = await self._retried(attempt)
        except PulsarError as failure:
            return dict.fromkeys(topics, failure)
        again = [topic for topic, found in answers.items() if isinstance(found, PulsarError) and found.retriable]
        answers |= await lookup_singly(again, self._addresses, self._config.concurrent_lookups_max)
        return {topic: self._address_or_failure(found) for topic, found in answers.items()}

    async def _addresses(self, topic: TopicName) -> Addresses:
        query = {"listenerName": self._config.listener_name}
        path = f"/lookup/v2/topic/{topic.rest_path}"
        return await self._retried(lambda: self._http.get(path, kind="topic", read=record, query=query))

    def _address_or_failure(self, found: Addresses | PulsarError) -> BrokerAddress | PulsarError:
        try:
            return found if isinstance(found, PulsarError) else self._address(found)
        except UnknownError as error:
            return error

    def _address(self, body: Addresses) -> BrokerAddress:
        url = (body.get("brokerUrlTls") or body.get("brokerUrlSsl")) if self._config.url.tls else body.get("brokerUrl")
        try:
            return BrokerAddress.parse(url or "")
        except ValueError as error:
            raise UnknownError(f"the broker answered a lookup with {url!r}") from error

    async def topics_of_namespace(
        self, namespace: NamespaceName, mode: TopicMode = "PERSISTENT", pattern: str | None = None
    ) -> TopicList:
        """The web service knows no patterns."""
        path = f"/admin/v2/namespaces/{namespace}/topics"
        query = {"mode": mode}
        found = await self._retried(lambda: self._http.get(path, kind="namespace", read=names, query=query))
        return TopicList(found)

    async def service_connection(self) -> None:
        return None

    async def schema(self, topic: TopicName, version: bytes | None = None) -> VersionedSchema | None:
        connection = await self._pool.get(await self.broker(topic))
        return await fetch_schema(connection, topic, version)

    async def _retried(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        config = self._config
        backoff = Backoff(config.backoff_initial_ms, config.backoff_max_ms)
        return await retry(attempt, timeout_ms=config.lookup_timeout_ms, backoff=backoff, retriable=_passes_over_http)


def _passes_over_http(error: PulsarError) -> bool:
    """A broker that cannot reach its metadata answers 500, which alone does not say why; a wrong shape stays wrong."""
    return error.retriable or (isinstance(error, UnknownError) and not isinstance(error.__cause__, UnexpectedShape))


async def fetch_schema(connection: Connection, topic: TopicName, version: bytes | None) -> VersionedSchema | None:
    """Ask the broker that serves the topic; None if the topic has no schema, or not in that version."""
    try:
        answer = await connection.request(lambda request_id: commands.get_schema(request_id, str(topic), version))
    except TopicNotFound:
        return None
    response = answer.getSchemaResponse
    return VersionedSchema(schema_from_wire(response.schema), response.schema_version)


async def store_schema(
    connection: Connection, topic: TopicName, schema: SchemaInfo, *, producer_name: str | None = None
) -> bytes:
    """The version of ``schema``, which the broker adds if its policies allow. Raises IncompatibleSchema.

    ``producer_name``: for whom; replicators may be allowed what producers are not (PIP-433).
    """
    answer = await connection.request(
        lambda request_id: commands.get_or_create_schema(request_id, str(topic), schema, producer_name=producer_name)
    )
    return answer.getOrCreateSchemaResponse.schema_version
