"""Lookups of many topics with few requests (PIP-35), or one by one if a broker has no batch lookup."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final, TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import NotAllowed, PulsarError, UnknownError, UnsupportedVersion, error_for_wire_code
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb

Found = TypeVar("Found")
Name = TypeVar("Name", bound=Hashable)
Answers = dict[TopicName, BrokerAddress | PulsarError]
Single = Callable[[TopicName], Awaitable[BrokerAddress]]
_Redirects = defaultdict[tuple[BrokerAddress, bool], list[TopicName]]

_CONNECT: Final = pb.CommandLookupTopicResponse.Connect


async def lookup_singly(
    topics: Sequence[Name], single: Callable[[Name], Awaitable[Found]], concurrent_max: int
) -> dict[Name, Found | PulsarError]:
    """Look up topics one by one, with at most ``concurrent_max`` requests in flight."""
    permits = asyncio.Semaphore(concurrent_max)

    async def ask(topic: Name) -> Found | PulsarError:
        async with permits:
            try:
                return await single(topic)
            except PulsarError as error:
                return error

    answers = await asyncio.gather(*map(ask, topics))
    return dict(zip(topics, answers, strict=True))


class BatchLookups:
    """Lookups of many topics. Every topic gets an address or its own failure."""

    def __init__(
        self,
        *,
        service: Callable[[], Awaitable[Connection]],
        connect: Callable[[BrokerAddress], Awaitable[Connection]],
        target: Callable[[pb.BatchLookupGroup], BrokerAddress],
        single: Single,
        config: ClientConfig,
    ) -> None:
        """Create batch lookups.

        ``service`` returns a connection to start with, ``single`` looks up one topic with retries.
        """
        self._service = service
        self._connect = connect
        self._target = target
        self._single = single
        self._config = config
        self._topics_max = config.batch_lookup_topics_max

    async def find(self, topics: Sequence[TopicName]) -> Answers:
        """Return the broker of each topic, or its failure. Temporary failures are retried until the lookup timeout."""
        topics = list(dict.fromkeys(topics))
        answers: Answers = {}

        async def attempt() -> None:
            answers.update(await self._ask_once([topic for topic in topics if _may_pass(answers.get(topic))]))
            for answer in answers.values():
                if isinstance(answer, PulsarError) and answer.retriable:
                    raise answer

        backoff = Backoff(self._config.backoff_initial_ms, self._config.backoff_max_ms)
        try:
            await retry(attempt, backoff=backoff, timeout_ms=self._config.lookup_timeout_ms)
        except PulsarError as failure:  # permanent, or a timeout: topics with an answer keep it
            return {topic: answers.get(topic, failure) for topic in topics}
        return {topic: answers[topic] for topic in topics}

    async def _ask_once(self, topics: Sequence[TopicName]) -> Answers:
        if len(topics) < 2:
            return await self._singly(topics)
        answers: Answers = {}
        redirects = await self._ask_broker(await self._service(), topics, False, answers)
        for _ in range(self._config.lookup_redirects_max):
            if not redirects:
                return answers
            redirects = await self._follow(redirects, answers)
        limit = self._config.lookup_redirects_max
        for moved in redirects.values():
            answers |= {topic: UnknownError(f"lookup of {topic}: more than {limit} redirects") for topic in moved}
        return answers

    async def _singly(self, topics: Sequence[TopicName]) -> Answers:
        return await lookup_singly(topics, self._single, self._config.concurrent_lookups_max)

    async def _follow(self, redirects: _Redirects, answers: Answers) -> _Redirects:
        """Ask the brokers that redirects name, each once. Return their redirects."""

        async def ask(address: BrokerAddress, authoritative: bool, topics: list[TopicName]) -> _Redirects:
            try:
                connection = await self._connect(address)
            except PulsarError as error:
                answers.update(dict.fromkeys(topics, error))
                return defaultdict(list)
            return await self._ask_broker(connection, topics, authoritative, answers)

        return _joined(await asyncio.gather(*(ask(*key, topics) for key, topics in redirects.items())))

    async def _ask_broker(
        self, connection: Connection, topics: Sequence[TopicName], authoritative: bool, answers: Answers
    ) -> _Redirects:
        """Store the answers of this broker in ``answers``. Return its redirects."""
        if not connection.peer_flags.supports_batch_lookup:
            answers.update(await self._singly(topics))
            return defaultdict(list)
        size = self._topics_max
        parts = [topics[start : start + size] for start in range(0, len(topics), size)]
        return _joined(await asyncio.gather(*(self._ask(connection, part, authoritative, answers) for part in parts)))

    async def _ask(
        self, connection: Connection, topics: Sequence[TopicName], authoritative: bool, answers: Answers
    ) -> _Redirects:
        """Send one request. If it is too long for the broker, send two halves, and shorter requests from then on."""
        names = {str(topic): topic for topic in topics}
        question = pb.CommandBatchLookupTopic(
            topics=names,
            authoritative=authoritative,
            advertised_listener_name=self._config.listener_name,
            create_if_missing=True,
            expand_partitions=False,
        )
        try:
            answer = await connection.request(question)
        except UnsupportedVersion:  # switched off after the connection was made
            answers.update(await self._singly(topics))
        except NotAllowed as error:
            if len(topics) > 1:
                half = (len(topics) + 1) // 2
                self._topics_max = min(self._topics_max, half)
                halves = (topics[:half], topics[half:])
                return _joined([await self._ask(connection, part, authoritative, answers) for part in halves])
            answers.update(dict.fromkeys(topics, error))
        except PulsarError as error:
            answers.update(dict.fromkeys(topics, error))
        else:
            return self._sort(answer.batchLookupTopicResponse, names, answers)
        return defaultdict(list)

    def _sort(
        self, response: pb.CommandBatchLookupTopicResponse, names: dict[str, TopicName], answers: Answers
    ) -> _Redirects:
        redirects: _Redirects = defaultdict(list)
        left = dict(names)
        for group in response.groups:
            topics = [left.pop(name) for name in group.topicname if name in left]
            try:
                address = self._target(group)
            except PulsarError as error:
                answers |= dict.fromkeys(topics, error)
                continue
            if group.response == _CONNECT:
                answers |= dict.fromkeys(topics, address)
            else:
                redirects[address, group.authoritative] += topics
        for failure in response.failures:
            reason = error_for_wire_code(failure.error, failure.message)
            answers |= {left.pop(name): reason for name in failure.topicname if name in left}
        answers |= {topic: UnknownError(f"the broker's answer leaves out {topic}") for topic in left.values()}
        return redirects


def _may_pass(answer: BrokerAddress | PulsarError | None) -> bool:
    return answer is None or (isinstance(answer, PulsarError) and answer.retriable)


def _joined(several: Sequence[_Redirects]) -> _Redirects:
    joined: _Redirects = defaultdict(list)
    for redirects in several:
        for key, topics in redirects.items():
            joined[key] += topics
    return joined
