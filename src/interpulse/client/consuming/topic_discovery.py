"""Topics that match a pattern, now and later. Topic watchers announce changes; other brokers are polled."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.partition_consumers import PartitionConsumers
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import InvalidTopicName, NotAllowed, PulsarError, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import topics_hash

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TopicsPattern:
    """Pattern for whole topic names. Partitions match by the name of their topic; the domain is ignored."""

    namespace: NamespaceName
    text: str
    """Pattern in the form for brokers: ``persistent://tenant/namespace/expression``."""

    expression: re.Pattern[str]
    """Expression for ``tenant/namespace/topic``."""

    @classmethod
    def of(cls, pattern: re.Pattern[str]) -> TopicsPattern:
        """Parse an expression in the form of a topic name, short or full. Only its last part may vary.

        Raise InvalidTopicName if it names no namespace.
        """
        text = pattern.pattern.removeprefix("^")
        _, separator, complete = text.partition("://")
        parts = (complete if separator else text).split("/", 2)
        if len(parts) == 1 and not separator:
            parts = ["public", "default", *parts]
        if len(parts) != 3:
            raise InvalidTopicName(
                f"Invalid topic name: {pattern.pattern}: a pattern is either an expression for topics of "
                f"public/default, or tenant/namespace/expression with persistent:// or without it"
            )
        tenant, namespace, local = parts
        checked = TopicName.of("persistent", tenant, namespace, "x").namespace_name
        return cls(
            checked,
            f"persistent://{tenant}/{namespace}/{local}",
            re.compile(f"{re.escape(f'{tenant}/{namespace}')}/(?:{local})", pattern.flags),
        )

    def matches(self, topic: TopicName) -> bool:
        name = f"{topic.tenant}/{topic.namespace}/{topic.base.local_name}"
        return self.expression.fullmatch(name) is not None


class TopicDiscovery:
    """Subscribes a consumer to all topics that match, and to no others.

    A broker with topic watchers announces changes. The list is still requested in every
    ``pattern_discovery_interval_ms``, and sooner if a topic could not be opened.
    """

    def __init__(
        self, session: Session, pattern: TopicsPattern, consumers: PartitionConsumers, config: ConsumerConfig
    ) -> None:
        self._session = session
        self._pattern = pattern
        self._consumers = consumers
        self._mode = config.topics_mode
        self._properties = config.properties
        self._interval_s = self._pause_s = config.pattern_discovery_interval_ms / 1000
        self._retries = session.backoff()
        self._wanted: set[str] = set()
        self._watch: _Watch | None = None
        self._watch_refused = False
        self._following: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the topics that match now. Raise the broker's refusal, except for topics deleted meanwhile."""
        self._wanted = await self._listed()
        for failure in (await self._add(late=False)).values():
            if not isinstance(failure, TopicNotFound):
                raise failure
        self._following = self._session.spawn(self._follow())

    async def stop(self) -> None:
        """Stop following changes."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        if self._watch is not None:
            await self._watch.close()

    async def _listed(self) -> set[str]:
        namespace, text = self._pattern.namespace, self._pattern.text
        listed = await self._session.lookup.topics_of_namespace(namespace, self._mode, text, self._properties)
        if listed.filtered:
            return set(listed.names)
        return {name for name in listed.names if self._pattern.matches(TopicName.parse(name))}

    async def _follow(self) -> None:
        backoff, loop = self._session.backoff(), asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                connection = await self._watching_connection()
                if connection is not None:
                    await self._follow_watch(connection)
                    await asyncio.sleep(backoff.pause_after(loop.time() - started))
                else:
                    await asyncio.sleep(self._pause_s)
                    await self._become(await self._listed())
            except (NotAllowed, InvalidTopicName) as refused:
                _log.info("broker does not watch this pattern pattern=%s reason=%s", self._pattern.text, refused)
                self._watch_refused = True
            except PulsarError as error:
                _log.warning("topics cannot be watched, trying again pattern=%s error=%s", self._pattern.text, error)
                await asyncio.sleep(backoff.next_pause())

    async def _watching_connection(self) -> Connection | None:
        """Return a connection to a broker with topic watchers, or None. Only persistent topics are watched."""
        if self._watch_refused or self._mode != "PERSISTENT":
            return None
        connection = await self._session.lookup.service_connection()
        return connection if connection is not None and connection.peer_flags.supports_topic_watchers else None

    async def _follow_watch(self, connection: Connection) -> None:
        watch = self._watch = _Watch(self._session.next_id(), connection, self._pattern)
        await self._reconcile(await watch.open(topics_hash(self._wanted)))
        while True:
            update = await watch.next_update(self._pause_s)
            if watch.is_lost:
                return
            if update is not None:
                await self._become((self._wanted | set(update.new_topics)) - set(update.deleted_topics))
            if update is None or update.topics_hash != topics_hash(self._wanted):
                await self._reconcile(await watch.ask_again(topics_hash(self._wanted)))

    async def _reconcile(self, listed: pb.CommandWatchTopicListSuccess) -> None:
        """Apply the list. The broker omits it if ours is equal."""
        same = listed.topics_hash == topics_hash(self._wanted)
        await self._become(self._wanted if same else set(listed.topic))

    async def _become(self, wanted: Iterable[str]) -> None:
        """Open new topics from their beginning, and close deleted ones."""
        self._wanted = set(wanted)
        gone = sorted(self._consumers.names - self._wanted)
        await self._consumers.remove([TopicName.parse(name) for name in gone])
        for name, failure in (await self._add(late=True)).items():
            _log.warning("topic cannot be subscribed to yet topic=%s error=%s", name, failure)

    async def _add(self, *, late: bool) -> dict[str, PulsarError]:
        """Open the missing topics. After a failure the list is requested sooner."""
        failures = await self._consumers.add_listed(sorted(self._wanted - self._consumers.names), late=late)
        if failures:
            self._pause_s = min(self._retries.next_pause(), self._interval_s)
        else:
            self._retries.reset()
            self._pause_s = self._interval_s
        return failures


class _Watch:
    """Topic watcher at a broker."""

    def __init__(self, watcher_id: int, connection: Connection, pattern: TopicsPattern) -> None:
        self.is_lost = False
        self._id = watcher_id
        self._connection = connection
        self._pattern = pattern
        self._updates: asyncio.Queue[pb.CommandWatchTopicUpdate | None] = asyncio.Queue()

    async def open(self, known_hash: str) -> pb.CommandWatchTopicListSuccess:
        """Start watching. Return the list, without names if the hash shows that ours is equal."""
        answer = await self._connection.topic_watchers.open(self._id, self, self._command(known_hash))
        return answer.watchTopicListSuccess

    async def ask_again(self, known_hash: str) -> pb.CommandWatchTopicListSuccess:
        """Return the current list."""
        return (await self._connection.request(self._command(known_hash))).watchTopicListSuccess

    def _command(self, known_hash: str) -> pb.CommandWatchTopicList:
        return pb.CommandWatchTopicList(
            watcher_id=self._id,
            namespace=str(self._pattern.namespace),
            topics_pattern=self._pattern.text,
            topics_hash=known_hash,
        )

    async def next_update(self, timeout_s: float) -> pb.CommandWatchTopicUpdate | None:
        """Return the next change; None after the timeout or when the connection is lost."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._updates.get()
        except TimeoutError:
            return None

    async def close(self) -> None:
        if not self.is_lost:
            await self._connection.topic_watchers.close(self._id)

    def on_update(self, update: pb.CommandWatchTopicUpdate) -> None:
        self._updates.put_nowait(update)

    def on_disconnected(self, assigned_url: str | None) -> None:
        self.is_lost = True
        self._updates.put_nowait(None)
