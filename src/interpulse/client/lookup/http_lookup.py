"""Lookups over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.json_readers import UnexpectedJson, made_by, names, record
from interpulse.client.lookup.batch_lookup import lookup_singly
from interpulse.client.lookup.http_batch_lookup import Addresses, lookup_over_http
from interpulse.client.lookup.lookup import TopicList, TopicMode
from interpulse.client.lookup.topic_schemas import VersionedSchema, fetch_schema
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import NotFound, PulsarError, TopicNotFound, UnknownError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.operations import Lookups, Namespaces, Topics
from interpulse.model.topics import PartitionedTopicMetadata

Answer = TypeVar("Answer")

_METADATA = made_by(PartitionedTopicMetadata.from_json)


class HttpLookup:
    """Lookups through the web service of an ``http://`` service URL."""

    def __init__(self, config: ClientConfig, pool: ConnectionPool) -> None:
        from interpulse.client.transport.http_session import (
            HttpSession,  # imported here: binary clients need no HTTP library
        )

        self._config = config
        self._pool = pool
        self._http = HttpSession(
            config.service_url, credentials=config.credentials, timeout_ms=config.lookup_timeout_ms, tls=config.tls
        )

    async def close(self) -> None:
        await self._http.close()

    async def partitions(self, topic: TopicName, *, create: bool, fallback_on_old_broker: bool = False) -> int:
        """Return the partition count, 0 = not partitioned. Raise TopicNotFound.

        Every release supports ``create=False``, so ``fallback_on_old_broker`` has no effect.
        """
        path = Topics.GET_PARTITIONS.path_of(topic)
        query = {"checkAllowAutoCreation": create}
        try:
            metadata = await self._retried(lambda: self._http.get(path, kind="topic", read=_METADATA, query=query))
        except NotFound as error:  # as over the binary protocol: a topic of a missing namespace does not exist
            raise TopicNotFound(str(error)) from error
        return metadata.partitions

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
        again = [topic for topic, answer in answers.items() if isinstance(answer, PulsarError) and answer.retriable]
        answers |= await lookup_singly(again, self._addresses, self._config.concurrent_lookups_max)
        return {topic: self._address_or_failure(answer) for topic, answer in answers.items()}

    async def _addresses(self, topic: TopicName) -> Addresses:
        query = {"listenerName": self._config.listener_name}
        path = Lookups.FIND.path_of(topic)
        return await self._retried(lambda: self._http.get(path, kind="topic", read=record, query=query))

    def _address_or_failure(self, answer: Addresses | PulsarError) -> BrokerAddress | PulsarError:
        try:
            return answer if isinstance(answer, PulsarError) else self._address(answer)
        except UnknownError as error:
            return error

    def _address(self, body: Addresses) -> BrokerAddress:
        url = (body.get("brokerUrlTls") or body.get("brokerUrlSsl")) if self._config.url.tls else body.get("brokerUrl")
        try:
            return BrokerAddress.parse(url or "")
        except ValueError as error:
            raise UnknownError(f"the broker answered a lookup with {url!r}") from error

    async def topics_of_namespace(
        self,
        namespace: NamespaceName,
        mode: TopicMode = "PERSISTENT",
        pattern: str | None = None,
        properties: Mapping[str, str] = {},
    ) -> TopicList:
        """Return the topics of a namespace. The web service filters neither by pattern nor by properties."""
        path = Namespaces.LIST_TOPICS.path_of(namespace)
        query = {"mode": mode}
        topics = await self._retried(lambda: self._http.get(path, kind="namespace", read=names, query=query))
        return TopicList(topics)

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
    """Return True for a temporary failure.

    A broker that cannot reach its metadata answers 500, which is temporary. An unexpected form of JSON is not.
    """
    return error.retriable or (isinstance(error, UnknownError) and not isinstance(error.__cause__, UnexpectedJson))
