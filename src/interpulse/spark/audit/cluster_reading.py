"""One namespace of a cluster as the audit reads it: policies, topics with counts, if asked for schemas, subscriptions.

A namespace that cannot be read is an answer with an error, never an exception: one refusal must not end an audit.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final, TypeVar

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.model.adjustments import AdminRequest
from interpulse.model.errors import NamespaceNotFound, NotFound, PulsarError, TenantNotFound
from interpulse.model.inventory import Difference, ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.snapshot import SNAPSHOT_SETTINGS, snapshot_of
from interpulse.rules.audit import NamespaceState, namespace_differences, topic_differences
from interpulse.rules.inventory import list_topics, with_count
from interpulse.spark.job.pipeline_config import ClusterAddress
from interpulse.spark.topic_map import TopicMap

__all__ = ["ClusterReading", "NamespaceContent", "ReadingRules", "differences_of", "sampled"]

Answer = TypeVar("Answer")
_SAMPLED: Final = 100
"""One topic of so many is asked for its count although its partitions are complete."""

_COUNTS_AT_ONCE: Final = 64


@dataclass(frozen=True, kw_only=True)
class ReadingRules:
    """How much is asked. ``exact``: which partition counts are asked for where lists do not tell them, see `_is_asked`;
    ``rate``: requests per second; ``patience_ms``: how long what may succeed without any change is asked again."""

    exact: str = "changed"
    schemas: bool = False
    subscriptions: bool = False
    rate: float = 500.0
    patience_ms: int = 15_000

    def shared(self, tasks: int) -> ReadingRules:
        """For one of so many tasks that read a cluster at the same time."""
        return replace(self, rate=self.rate / tasks)


@dataclass(frozen=True)
class NamespaceContent:
    """A namespace on one cluster. Without state and error it does not exist."""

    state: NamespaceState | None = None
    topics: Mapping[TopicName, TopicRow] = field(default_factory=dict)
    error: str | None = None

    def renamed(self, topic_map: TopicMap) -> NamespaceContent:
        """The same with the names that the topics have on the target."""
        rows = (replace(row, topic=_renamed(row.topic, topic_map)) for row in self.topics.values())
        return replace(self, topics={row.topic: row for row in rows})


def _renamed(topic: TopicName, topic_map: TopicMap) -> TopicName:
    return topic_map.target(topic) if topic.is_persistent else topic


def differences_of(
    cluster: str, namespace: NamespaceName, source: NamespaceContent, target: NamespaceContent
) -> list[Difference]:
    """Everything that differs in one namespace, by the rules; nothing where one side cannot be read."""
    if source.error is not None or target.error is not None:
        return []
    found = namespace_differences(cluster, namespace, source.state, target.state)
    for name in sorted(source.topics.keys() | target.topics.keys(), key=str):
        found += topic_differences(cluster, source.topics.get(name), target.topics.get(name))
    return found


def sampled(topic: TopicName) -> bool:
    """Whether a topic is in the sample: the same topics in every run."""
    return zlib.crc32(str(topic).encode()) % _SAMPLED == 0


class ClusterReading:
    """Reads through the admin API, at a rate. Use it as an asynchronous context manager."""

    def __init__(self, address: ClusterAddress, rules: ReadingRules) -> None:
        self._address = address
        self._rules = rules
        self._stack = AsyncExitStack()
        self._settings: Mapping[str, str] | None = None
        self._next = 0.0
        self._counting = asyncio.Semaphore(_COUNTS_AT_ONCE)

    async def __aenter__(self) -> ClusterReading:
        self._admin: AdminClient = await self._stack.enter_async_context(self._address.admin())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def namespaces(self) -> list[NamespaceName]:
        """All but those that brokers keep for themselves. Raises what the cluster answers."""
        found = [
            NamespaceName.parse(str(name))
            for tenant in await self._admin.tenants.list()
            for name in await self._admin.namespaces.list(tenant)
        ]
        return [name for name in found if not name.is_heartbeat and str(name) != "pulsar/system"]

    async def namespace(
        self, name: NamespaceName, asked: Callable[[TopicName], bool] | None = None
    ) -> NamespaceContent:
        """Everything about one namespace; with ``asked`` topic by topic only what it says, instead of by the rules."""
        try:
            return await self._namespace(name, asked)
        except (NamespaceNotFound, TenantNotFound):
            return NamespaceContent()
        except PulsarError as error:
            return NamespaceContent(error=str(error) or type(error).__name__)

    async def state(self, name: NamespaceName) -> NamespaceState | None:
        """The policies alone; None if it does not exist. Raises what the cluster answers."""
        try:
            return await self._state(name)
        except (NamespaceNotFound, TenantNotFound):
            return None

    async def topic(self, name: TopicName) -> TopicRow | None:
        """One topic by its recorded count, without a look at its partitions. Raises what the cluster answers."""
        try:
            count = await self._count(name)
        except NotFound:
            return None
        row = TopicRow(name, ListedKind.PARTITIONED if count else ListedKind.NON_PARTITIONED, count)
        return await self._with_details(row)

    async def send(self, request: AdminRequest) -> None:
        """Raises what the cluster answers."""
        await self._turn()
        await self._admin.send(request)

    async def _state(self, name: NamespaceName) -> NamespaceState:
        policies = await self._read(lambda: self._admin.namespaces.policies(name))
        if self._settings is None:
            settings = await self._read(self._admin.brokers.runtime_configuration)
            self._settings = {key: settings[key] for key in SNAPSHOT_SETTINGS if key in settings}
        return NamespaceState(policies, snapshot_of(policies, self._settings), self._settings)

    async def _namespace(self, name: NamespaceName, asked: Callable[[TopicName], bool] | None) -> NamespaceContent:
        state = await self._state(name)
        stored = await self._read(lambda: self._admin.topics.list(name, system_included=True), requests=2)
        counts = await self._read(lambda: self._admin.topics.partition_counts(name, system_included=True), requests=2)
        parsed = {TopicName.parse(text): count for text, count in counts.items()}
        listed = list_topics(map(TopicName.parse, stored), parsed)
        rows = await asyncio.gather(*(self._completed(row, asked) for row in listed))
        return NamespaceContent(state, {row.topic: row for row in rows})

    async def _completed(self, row: TopicRow, asked: Callable[[TopicName], bool] | None) -> TopicRow:
        if asked is not None and not asked(row.topic):
            return row
        try:
            if not row.exact and (asked is not None or self._is_asked(row)):
                async with self._counting:
                    row = with_count(row, await self._count(row.topic))
            return await self._with_details(row)
        except NotFound:
            return replace(row, error="deleted while it was read")
        except PulsarError as error:
            return replace(row, error=str(error))

    def _is_asked(self, row: TopicRow) -> bool:
        """``all``; ``none``; or ``changed``: where partitions are missing, and a sample. What differs is read again
        before it is reported, so a count that two clusters differ in is found all the same."""
        if self._rules.exact != "changed":
            return self._rules.exact == "all"
        return row.indexes is not None or sampled(row.topic)

    async def _with_details(self, row: TopicRow) -> TopicRow:
        """What is asked for topic by topic; nothing of what is no topic, or not stored."""
        if row.kind is ListedKind.ORPHAN_PARTITION or not row.topic.is_persistent:
            return row
        if self._rules.schemas:
            row = await self._with_schema(row)
        if self._rules.subscriptions and row.is_healthy:
            async with self._counting:
                names = await self._read(lambda: self._admin.topics.subscriptions(row.topic))
            row = replace(row, subscriptions=tuple(sorted(names)))
        return row

    async def _with_schema(self, row: TopicRow) -> TopicRow:
        async with self._counting:
            versions = await self._read(lambda: self._admin.schemas.history(row.topic))
        if not versions:
            return row
        hashed = hashlib.sha256()
        for version in versions:
            hashed.update(f"{version.schema.type.name} {len(version.schema.definition)} ".encode())
            hashed.update(version.schema.definition)
        return replace(
            row,
            schema_type=versions[-1].schema.type.name,
            schema_hash=hashed.hexdigest()[:16],
            schema_versions=len(versions),
        )

    async def _count(self, topic: TopicName) -> int:
        return (await self._read(lambda: self._admin.topics.partitioned_metadata(topic))).partitions

    async def _read(self, ask: Callable[[], Awaitable[Answer]], requests: int = 1) -> Answer:
        """The answer, at the rate; a broker that is busy or restarts for a moment is asked again."""

        async def attempt() -> Answer:
            await self._turn(requests)
            return await ask()

        return await retry(attempt, backoff=Backoff(), timeout_ms=self._rules.patience_ms, patient=True)

    async def _turn(self, requests: int = 1) -> None:
        """Wait until the rate allows so many requests more."""
        now = asyncio.get_running_loop().time()
        begin = max(now, self._next)
        self._next = begin + requests / self._rules.rate
        if begin > now:
            await asyncio.sleep(begin - now)
