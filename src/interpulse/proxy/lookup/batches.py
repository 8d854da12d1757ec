"""Batch lookups (PIP-35): one request to a broker, and one more to each broker that it redirects to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from interpulse.client.config import BrokerAddress
from interpulse.client.lookup.batch_lookup import lookup_singly
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import PulsarError, ServiceNotReady, UnknownError, UnsupportedVersion, error_for_wire_code
from interpulse.proxy.lookup.questions import REDIRECTS_MAX, UNREACHABLE, Questions, ask
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

_SINGLE_MAX: Final = 64
"""The most parallel single lookups for a batch that a broker does not support."""

_Redirects = defaultdict[tuple[BrokerAddress, bool], list[str]]


async def answer_batch(questions: Questions, request: pb.CommandBatchLookupTopic) -> bytes:
    """Return the answer: every topic in one group of a broker, or in one failure. Raise if the whole request fails."""
    batch = _Batch(questions, request)
    await batch.resolve()
    return batch.response()


class _Batch:
    def __init__(self, questions: Questions, request: pb.CommandBatchLookupTopic) -> None:
        self._questions = questions
        self._request = request
        self._brokers: defaultdict[str, list[str]] = defaultdict(list)
        self._failures: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
        self._partitions: dict[str, int] = {}

    async def resolve(self) -> None:
        topics = list(dict.fromkeys(self._request.topics))
        redirects = await self._ask_first(await self._questions.connection(), topics)
        for _ in range(REDIRECTS_MAX):
            if not redirects:
                return
            redirects = _joined(await asyncio.gather(*(self._follow(*key, names) for key, names in redirects.items())))
        for names in redirects.values():
            self._fail(names, ServiceNotReady(f"lookup of {names[0]}: more than {REDIRECTS_MAX} redirects"))

    def response(self) -> bytes:
        groups = [
            pb.BatchLookupGroup(
                brokerServiceUrl=url,
                brokerServiceUrlTls=url,
                response=pb.CommandLookupTopicResponse.Connect,
                authoritative=True,
                proxy_through_service_url=True,
                topicname=names,
            )
            for url, names in self._brokers.items()
        ]
        failures = []
        for (code, message), names in self._failures.items():
            failure = pb.BatchLookupFailure(message=message, topicname=names)
            failure.error = code  # type: ignore[assignment]  # the numbers are the same
            failures.append(failure)
        return commands.batch_lookup_response(
            self._request.request_id, groups=groups, failures=failures, partitions=self._partitions
        )

    async def _ask_first(self, connection: Connection, topics: Sequence[str]) -> _Redirects:
        """Ask the first broker, which counts partitions and may refuse the whole request.

        Later brokers are asked for less.

        """
        if connection.peer_flags.supports_batch_lookup:
            try:
                return await self._ask(connection, topics, self._request.authoritative, first=True)
            except UnsupportedVersion:  # switched off after the connection was opened
                pass
        await self._singly(topics)
        return defaultdict(list)

    async def _follow(self, address: BrokerAddress, authoritative: bool, names: list[str]) -> _Redirects:
        try:
            connection = await self._questions.pool.get(address)
            if not connection.peer_flags.supports_batch_lookup:
                await self._find_singly(names, authoritative, connection)
                return defaultdict(list)
            return await self._ask(connection, names, authoritative, first=False)
        except PulsarError as error:
            self._fail(names, error)
            return defaultdict(list)

    async def _ask(
        self, connection: Connection, topics: Sequence[str], authoritative: bool, *, first: bool
    ) -> _Redirects:
        question = pb.CommandBatchLookupTopic(
            topics=topics,
            request_id=0,
            authoritative=authoritative,
            create_if_missing=self._request.create_if_missing if first else True,
            expand_partitions=self._request.expand_partitions if first else False,
            properties=self._request.properties,
        )
        if self._request.HasField("advertised_listener_name"):
            question.advertised_listener_name = self._request.advertised_listener_name
        answer = (await ask(connection, question)).batchLookupTopicResponse
        self._partitions |= {topic.topic: topic.partitions for topic in answer.partitions}
        answered = {name for group in answer.groups for name in group.topicname}
        answered |= {name for failure in answer.failures for name in failure.topicname}
        left_out = [name for name in self._expanded(topics) if name not in answered]
        self._fail(left_out, UnknownError(f"{connection.address} omits requested topics"))
        return self._sort(answer, asked=None if first else connection.address)

    def _expanded(self, topics: Sequence[str]) -> list[str]:
        """Return the names that answers are for: those of the partitions, where they are counted."""
        if not self._request.expand_partitions:
            return list(topics)
        expanded: list[str] = []
        for topic in topics:
            count = self._partitions.get(topic, 0)
            expanded += [f"{topic}-partition-{index}" for index in range(count)] if count else [topic]
        return expanded

    def _sort(self, answer: pb.CommandBatchLookupTopicResponse, asked: BrokerAddress | None) -> _Redirects:
        """Sort an answer into groups and failures. For ``asked`` see `Questions.note_owner`."""
        redirects: _Redirects = defaultdict(list)
        for group in answer.groups:
            try:
                address = self._questions.named(group.brokerServiceUrl, group.brokerServiceUrlTls)
            except PulsarError as error:
                self._fail(group.topicname, error)
                continue
            if group.response == pb.CommandLookupTopicResponse.Connect:
                self._questions.note_owner(address, asked)
                self._brokers[str(address)] += group.topicname
            else:
                redirects[address, group.authoritative] += group.topicname
        for failure in answer.failures:
            self._fail(failure.topicname, error_for_wire_code(failure.error, failure.message))
        return redirects

    async def _singly(self, topics: Sequence[str]) -> None:
        """Look up the topics one by one, at a broker without batch lookups."""
        if self._request.create_if_missing and not self._request.expand_partitions:
            await self._find_singly(topics, self._request.authoritative)
            return
        counts = await lookup_singly(topics, self._count, _SINGLE_MAX)
        counted: list[str] = []
        for topic, count in counts.items():
            if isinstance(count, PulsarError):
                self._fail([topic], count)
                continue
            counted.append(topic)
            if self._request.expand_partitions:
                self._partitions[topic] = count
        await self._find_singly(self._expanded(counted), self._request.authoritative)

    async def _count(self, topic: str) -> int:
        creates = self._request.create_if_missing
        question = pb.CommandPartitionedTopicMetadata(
            topic=topic, request_id=0, metadata_auto_creation_enabled=None if creates else False
        )
        return await self._questions.partitions(question)

    async def _find_singly(
        self, topics: Sequence[str], authoritative: bool, connection: Connection | None = None
    ) -> None:
        async def find(topic: str) -> BrokerAddress:
            question = pb.CommandLookupTopic(
                topic=topic, request_id=0, authoritative=authoritative, properties=self._request.properties
            )
            if self._request.HasField("advertised_listener_name"):
                question.advertised_listener_name = self._request.advertised_listener_name
            return await self._questions.find(question, connection)

        for topic, broker in (await lookup_singly(topics, find, _SINGLE_MAX)).items():
            if isinstance(broker, PulsarError):
                self._fail([topic], broker)
            else:
                self._brokers[str(broker)].append(topic)

    def _fail(self, names: Sequence[str], error: PulsarError) -> None:
        if names:
            code = ServiceNotReady.wire_code if isinstance(error, UNREACHABLE) else error.wire_code
            self._failures[code, str(error)] += names


def _joined(several: Sequence[_Redirects]) -> _Redirects:
    joined: _Redirects = defaultdict(list)
    for redirects in several:
        for key, names in redirects.items():
            joined[key] += names
    return joined
