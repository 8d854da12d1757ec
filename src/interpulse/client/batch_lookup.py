"""Finding the brokers of many topics with few questions (PIP-35), or one by one where a broker does not offer that."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.connection import Connection
from interpulse.model.errors import (
    NotAllowed,
    PulsarError,
    UnknownError,
    UnsupportedVersion,
    error_for_wire_code,
)
from interpulse.model.names import TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

__all__ = ["lookup_batch", "lookup_singly"]

Answers = dict[TopicName, BrokerAddress | PulsarError]
Single = Callable[[TopicName], Awaitable[BrokerAddress]]


async def lookup_singly(topics: Sequence[TopicName], single: Single, concurrent_max: int) -> Answers:
    """One lookup per topic, at most ``concurrent_max`` under way."""
    permits = asyncio.Semaphore(concurrent_max)

    async def ask(topic: TopicName) -> BrokerAddress | PulsarError:
        async with permits:
            try:
                return await single(topic)
            except PulsarError as error:
                return error

    answers = await asyncio.gather(*map(ask, topics))
    return dict(zip(topics, answers, strict=True))


async def lookup_batch(
    topics: Sequence[TopicName],
    *,
    service: Callable[[], Awaitable[Connection]],
    connect: Callable[[BrokerAddress], Awaitable[Connection]],
    target: Callable[[pb.BatchLookupGroup], BrokerAddress],
    single: Single,
    config: ClientConfig,
) -> Answers:
    """Every topic has an address or its own failure. ``service`` gives a connection to ask first."""
    topics = list(dict.fromkeys(topics))
    if len(topics) < 2:
        return await lookup_singly(topics, single, config.concurrent_lookups_max)
    try:
        connection = await service()
        if not connection.peer_flags.supports_batch_lookup:
            return await lookup_singly(topics, single, config.concurrent_lookups_max)
        answers = await _BatchWalk(connect, target, config).run(connection, topics)
    except UnsupportedVersion:  # switched off after the connection was made
        answers = {}
    except PulsarError as error:
        if not error.retriable:
            raise
        answers = {}
    # What may pass is asked again the slow way, which retries until the lookup timeout.
    again = [topic for topic in topics if _may_pass(answers.get(topic))]
    return answers | await lookup_singly(again, single, config.concurrent_lookups_max)


def _may_pass(answer: BrokerAddress | PulsarError | None) -> bool:
    return answer is None or (isinstance(answer, PulsarError) and answer.retriable)


class _BatchWalk:
    """One batch lookup from the first question to the last redirect."""

    def __init__(
        self,
        connect: Callable[[BrokerAddress], Awaitable[Connection]],
        target: Callable[[pb.BatchLookupGroup], BrokerAddress],
        config: ClientConfig,
    ) -> None:
        self._connect = connect
        self._target = target
        self._config = config
        self._answers: Answers = {}

    async def run(self, connection: Connection, topics: Sequence[TopicName]) -> Answers:
        redirects = await self._ask_all(connection, topics, authoritative=False)
        for _ in range(self._config.lookup_redirects_max):
            if not redirects:
                break
            further: _Redirects = defaultdict(list)
            for (address, authoritative), moved in redirects.items():
                for key, names in (await self._ask_all(await self._connect(address), moved, authoritative)).items():
                    further[key] += names
            redirects = further
        for moved in redirects.values():
            limit = self._config.lookup_redirects_max
            self._answers |= {topic: UnknownError(f"lookup of {topic}: more than {limit} redirects") for topic in moved}
        return self._answers

    async def _ask_all(self, connection: Connection, topics: Sequence[TopicName], authoritative: bool) -> _Redirects:
        redirects: _Redirects = defaultdict(list)
        size = self._config.batch_lookup_topics_max
        parts = [topics[start : start + size] for start in range(0, len(topics), size)]
        for answer in await asyncio.gather(*(self._ask(connection, part, authoritative) for part in parts)):
            for key, names in answer.items():
                redirects[key] += names
        return redirects

    async def _ask(self, connection: Connection, topics: Sequence[TopicName], authoritative: bool) -> _Redirects:
        """One question. A broker that finds it too long gets two halves."""
        names = {str(topic): topic for topic in topics}
        try:
            answer = await connection.request(
                lambda request_id: commands.batch_lookup(
                    request_id, names, authoritative=authoritative, listener_name=self._config.listener_name
                )
            )
        except NotAllowed:
            if len(topics) < 2:
                raise
            half = len(topics) // 2
            redirects = await self._ask(connection, topics[:half], authoritative)
            for key, moved in (await self._ask(connection, topics[half:], authoritative)).items():
                redirects[key] += moved
            return redirects
        return self._sort(answer.batchLookupTopicResponse, names)

    def _sort(self, answer: pb.CommandBatchLookupTopicResponse, names: dict[str, TopicName]) -> _Redirects:
        """Keep addresses and failures; give back what another broker has to be asked about."""
        redirects: _Redirects = defaultdict(list)
        for group in answer.groups:
            address = self._target(group)
            topics = [names[name] for name in group.topicname if name in names]
            if group.response == _CONNECT:
                self._answers |= dict.fromkeys(topics, address)
            else:
                redirects[address, group.authoritative] += topics
        for failure in answer.failures:
            for name in failure.topicname:
                if name in names:
                    self._answers[names[name]] = error_for_wire_code(failure.error, failure.message)
        return redirects


_Redirects = defaultdict[tuple[BrokerAddress, bool], list[TopicName]]
_CONNECT: Final = pb.CommandLookupTopicResponse.Connect
