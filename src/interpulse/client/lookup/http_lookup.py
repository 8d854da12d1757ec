"""Lookups over HTTP: of many topics with one request (PIP-35), or one by one if a broker has no batch lookup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.json_readers import UnexpectedJson, made_by, names, record
from interpulse.client.lookup.batch_lookup import lookup_singly
from interpulse.client.lookup.lookup import TopicList, TopicMode, VersionedSchema, fetch_schema
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    NotAllowed,
    NotFound,
    NotImplementedYet,
    NotSupported,
    PulsarError,
    RequestTooLarge,
    TopicNotFound,
    UnknownError,
    error_for_wire_code,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.operations import Lookups, Namespaces, Topics
from interpulse.model.topics import PartitionedTopicMetadata

if TYPE_CHECKING:
    from interpulse.client.transport.http_session import HttpSession


Addresses = dict[str, Any]
"""``brokerUrl``, ``httpUrl`` and the other addresses of one broker."""

Answers = dict[TopicName, Addresses | PulsarError]

_TOPICS_AT_ONCE: Final = 500
_CONCURRENT_MAX: Final = 50
Answer = TypeVar("Answer")
_METADATA = made_by(PartitionedTopicMetadata.from_json)


async def lookup_over_http(
    http: HttpSession,
    topics: Sequence[TopicName],
    single: Callable[[TopicName], Awaitable[Addresses]],
    *,
    listener_name: str | None = None,
    topics_max: int = _TOPICS_AT_ONCE,
) -> Answers:
    """Return the addresses of each topic, or its own failure.

    One request contains at most ``topics_max`` topics; ``single`` looks up one topic. Raise the failure of the whole
    request: NotConnected, OperationTimeout, ServiceNotReady and others.
    """
    topics = list(dict.fromkeys(topics))
    answers: Answers = {}
    try:
        for start in range(0, len(topics), topics_max):
            answers |= await _ask(http, topics[start : start + topics_max], listener_name)
    except (NotFound, NotSupported, NotAllowed, NotImplementedYet):  # any of them may come from an older broker
        pass
    left = [topic for topic in topics if topic not in answers]
    answers |= await lookup_singly(left, single, _CONCURRENT_MAX)
    return {topic: answers[topic] for topic in topics}


async def _ask(http: HttpSession, topics: Sequence[TopicName], listener_name: str | None) -> Answers:
    """Send one request, or its two halves. Topics that belong to another broker are omitted."""
    names = {str(topic): topic for topic in topics}
    body = {"topics": list(names), "listenerName": listener_name}
    read = made_by(lambda answer: _answers(answer, names))
    try:
        operation = Lookups.FIND_MANY
        return await http.request(operation.method, operation.path, kind=operation.subject, read=read, body=body)
    except RequestTooLarge:
        if len(topics) < 2:
            raise
        half = len(topics) // 2
        return await _ask(http, topics[:half], listener_name) | await _ask(http, topics[half:], listener_name)


def _answers(answer: Mapping[str, Any], names: Mapping[str, TopicName]) -> Answers:
    answers: Answers = {}
    for group in answer["groups"]:
        if group["response"] == "Connect":
            answers |= {names[name]: dict(group) for name in group["topics"] if name in names}
    for failure in answer["failures"]:
        error = error_for_wire_code(failure["code"], failure["reason"])
        answers |= {names[name]: error for name in failure["topics"] if name in names}
    return answers


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
