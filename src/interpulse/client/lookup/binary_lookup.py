"""Lookups over the binary protocol."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.batch_lookup import BatchLookups
from interpulse.client.lookup.lookup import TopicList, TopicMode, VersionedSchema, fetch_schema
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import AlreadyClosed, NotConnected, NotSupported, PulsarError, TopicNotFound, UnknownError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import pairs

Answer = TypeVar("Answer")
_BrokerOrFailure = BrokerAddress | PulsarError
_Waiting = dict[TopicName, asyncio.Future[_BrokerOrFailure]]

_WINDOW_S: Final = 0.01
"""Longest time that a lookup waits for others. Initial pauses between attempts spread over the same time."""


class GatheredLookups:
    """Combines concurrent lookups.

    A single lookup is sent immediately. Lookups that arrive while one is in flight wait until it ends, at most 10 ms,
    and are then sent as one request.
    """

    def __init__(
        self,
        single: Callable[[TopicName], Awaitable[BrokerAddress]],
        many: Callable[[Sequence[TopicName]], Awaitable[Mapping[TopicName, _BrokerOrFailure]]],
        *,
        window_s: float = _WINDOW_S,
    ) -> None:
        """``many`` returns an answer for each of its topics."""
        self._single = single
        self._many = many
        self._window_s = window_s
        self._waiting: _Waiting = {}
        self._under_way = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Mapping[TopicName, _BrokerOrFailure]]] = set()

    async def find(self, topic: TopicName) -> BrokerAddress:
        """Return the broker of the topic. Raise the failure of its lookup."""
        if not self._under_way:
            self._under_way += 1
            try:
                return await self._single(topic)
            finally:
                self._ended()
        answer = await asyncio.shield(self._enqueue(topic))
        if isinstance(answer, PulsarError):
            raise answer
        return answer

    def _enqueue(self, topic: TopicName) -> asyncio.Future[_BrokerOrFailure]:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(self._window_s, self._ask)
        future = self._waiting.get(topic)
        if future is None:
            future = self._waiting[topic] = loop.create_future()
        return future

    def _ended(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._ask()

    def _ask(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        if waiting:
            self._under_way += 1
            task = asyncio.get_running_loop().create_task(self._together(list(waiting)))
            self._tasks.add(task)
            task.add_done_callback(partial(self._deliver, waiting))

    async def _together(self, topics: Sequence[TopicName]) -> Mapping[TopicName, _BrokerOrFailure]:
        return await self._many(topics)

    def _deliver(self, waiting: _Waiting, task: asyncio.Task[Mapping[TopicName, _BrokerOrFailure]]) -> None:
        self._tasks.discard(task)
        for topic, future in waiting.items():
            if task.cancelled():
                future.set_result(AlreadyClosed("the client is closed"))
            else:
                error = task.exception()
                future.set_exception(error) if error else future.set_result(task.result()[topic])
        self._ended()

    async def close(self) -> None:
        """Fail waiting lookups with AlreadyClosed."""
        self._ask()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
            service=self.service_connection, connect=pool.get, target=self._target, single=self._single, config=config
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
