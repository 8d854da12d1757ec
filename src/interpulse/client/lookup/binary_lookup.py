"""Lookups over the binary protocol."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.batch_lookup import BatchLookups
from interpulse.client.lookup.gathered_lookups import GatheredLookups
from interpulse.client.lookup.lookup import TopicList, TopicMode
from interpulse.client.lookup.topic_schemas import VersionedSchema, fetch_schema
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import NotConnected, NotSupported, PulsarError, TopicNotFound, UnknownError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import pairs

Answer = TypeVar("Answer")


class BinaryLookup:
    """Lookups through the brokers of a ``pulsar://`` service URL. After a failure the next host is used."""

    def __init__(self, config: ClientConfig, pool: ConnectionPool) -> None:
        self._config = config
        self._pool = pool
        self._hosts = itertools.cycle(config.url.brokers)
        self._host = next(self._hosts)
        self._single_lookups = asyncio.Semaphore(config.concurrent_lookups_max)
        self._batches_offered = True  # until a broker refuses one
        self._batches = BatchLookups(
            service=self.service_connection,
            connect=pool.get,
            target=self._target,
            single=self._single,
            config=config,
        )
        self._gathered = GatheredLookups(self._single, self._batches.find)

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        """Return the partition count, 0 = not partitioned. Raise TopicNotFound.

        With ``create=False`` raise NotSupported if the broker is older than PIP-344 and would create the topic, unless
        ``fallback_on_old_broker`` accepts that.
        """

        async def attempt() -> int:
            connection = await self.service_connection()
            question = pb.CommandPartitionedTopicMetadata(topic=str(topic))
            if not create and connection.peer_flags.supports_get_partitioned_metadata_without_auto_creation:
                question.metadata_auto_creation_enabled = False
            elif not create and not fallback_on_old_broker:
                raise NotSupported(
                    f"{connection.address} is older than PIP-344: asking for partitions of {topic} could create "
                    f"it. Ask over HTTP, or with fallback_on_old_broker=True"
                )
            try:
                answer = await connection.request(question)
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
        question = pb.CommandLookupTopic(
            topic=str(topic), authoritative=False, advertised_listener_name=self._config.listener_name
        )
        for _ in range(self._config.lookup_redirects_max + 1):
            answer = (await connection.request(question)).lookupTopicResponse
            target = self._target(answer)
            if answer.response == pb.CommandLookupTopicResponse.Connect:
                return target
            question.authoritative = answer.authoritative
            connection = await self._pool.get(target)
        raise UnknownError(f"lookup of {topic}: more than {self._config.lookup_redirects_max} redirects")

    def _target(self, answer: pb.CommandLookupTopicResponse | pb.BatchLookupGroup) -> BrokerAddress:
        """Return the address to connect to. Behind a proxy this is the address in use."""
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
        self,
        namespace: NamespaceName,
        mode: TopicMode = "PERSISTENT",
        pattern: str | None = None,
        properties: Mapping[str, str] = {},
    ) -> TopicList:
        question = pb.CommandGetTopicsOfNamespace(
            namespace=str(namespace),
            mode=pb.CommandGetTopicsOfNamespace.Mode.Value(mode),
            topics_pattern=pattern,
            properties=pairs(properties),
        )

        async def attempt() -> TopicList:
            answer = (await (await self.service_connection()).request(question)).getTopicsOfNamespaceResponse
            return TopicList(list(answer.topics), answer.filtered)

        return await self._retried(attempt)

    async def schema(self, topic: TopicName, version: bytes | None = None) -> VersionedSchema | None:
        async def attempt() -> VersionedSchema | None:
            connection = await self._pool.get(await self._follow(topic))
            return await fetch_schema(connection, topic, version)

        return await self._retried(attempt)

    async def close(self) -> None:
        """Do nothing: the connections belong to the pool."""
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
