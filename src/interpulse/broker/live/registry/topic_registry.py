"""The loaded topics. Each is loaded once for any number of callers, and is loaded and unloaded as a whole.

For one name, loads, unloads and deletions are serial. Each runs in a task of its own, so that a disconnecting client
does not leave half a topic behind. The rules are checked before a topic is loaded, never for a loaded one.

Where several brokers share the topics, `TopicOwnership` checks before and after a load that this broker owns the topic.
A topic that another broker may own is closed without any write: `forsake`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from interpulse.broker.committer import ALONE, Layout
from interpulse.broker.instruments import LatencyMeter
from interpulse.broker.live.api import HostedTopic, TopicSettings
from interpulse.broker.live.registry.cursor_changes import CursorChanges
from interpulse.broker.live.registry.executors import BackgroundTasks, KeyedExecutor, LoadPermits
from interpulse.broker.live.registry.topic_tasks import (
    TOPICS_AT_ONCE,
    AnyTopic,
    CursorFlushes,
    SettingsRefresh,
    TaskPeriods,
    TopicTasks,
)
from interpulse.broker.live.shared_reads import ReadBufferLimiter
from interpulse.broker.live.topic.loading import load_topic
from interpulse.broker.live.topic.non_persistent import NonPersistentTopic
from interpulse.broker.live.topic.subscription_set import stored_subscription_names
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.periodic import run_periodically
from interpulse.clock import Clock
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.topics import Requester
from interpulse.storage.api import Change, Delete, LogStore, MetadataStore
from interpulse.storage.cas import advance_counter
from interpulse.storage.cursors import CursorStore, RecordedCursors, read_cursor_names

log = logging.getLogger(__name__)
DeleteCheck = Callable[[AnyTopic | None], None]
"""A check at the moment of deletion. Raises to refuse; the topic is None if it is not loaded."""

OpenRule = Callable[[TopicName, Requester, bool], Awaitable[None]]
"""The rule for a load (name, by, create). Raises to refuse, and creates the record where that is allowed."""

_NAME_COUNTER_KEY = "/counters/producer-name"
_FLUSH_SECONDS = 1.0
_FLUSH_WITHIN_SECONDS = 1.0  # slower topics continue in the background, and others need not wait
_LOADS_MAX = 5000
_COMPACTIONS_AT_ONCE = 2  # each of them has memory for its keys


class TopicOwnership(Protocol):
    """The interface of this broker's bundles for the registry."""

    async def acquire(self, topic: TopicName) -> None:
        """Let a topic be loaded. Raise ServiceNotReady if its bundle is not this broker's."""

    async def opened(self, topic: TopicName) -> None:
        """Note that a topic is loaded. Raise ServiceNotReady if its bundle was lost since."""

    def serving(self) -> bool:
        """Return True if held topics certainly belong to this broker at this moment."""

    def holds(self, topic: TopicName) -> bool:
        """Return True if the bundle of an acquired topic belongs to this broker at this moment."""

    def check(self, topic: TopicName) -> None:
        """Raise ServiceNotReady unless `holds`."""

    async def is_as_left(self, topic: TopicName) -> bool:
        """Return True if only this broker has changed the record of the topic since it was loaded."""

    def forget(self, topic: TopicName) -> None:
        """Note that a topic is no longer loaded."""


@dataclass(frozen=True, slots=True)
class TopicStores:
    """The stores of topics."""

    metadata: MetadataStore
    logs: LogStore
    layout: Layout = ALONE
    cursors: CursorStore | None = None
    """The store of cursors. None: each cursor is a record of the metadata, in the form of the layout."""

    check_disk_space: Callable[[], None] = lambda: None
    """Raise NoRoomLeft while messages cannot be stored."""


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Settings of a broker that apply to all its topics."""

    replicator_prefix: str = "pulsar.repl"
    broker_entry_fields: BrokerEntryFields | None = None
    read_bytes_max: int = 64 * 1024 * 1024
    """Bytes of entries that were read from logs and wait for consumers."""

    periods: TaskPeriods = field(default_factory=TaskPeriods)


class TopicRegistry:
    """The loaded topics. Call `start` before any other method, and `close` at the end."""

    def __init__(
        self,
        stores: TopicStores,
        *,
        cluster: str,
        clock: Clock,
        open_rule: OpenRule,
        settings_of: Callable[[TopicName], Awaitable[TopicSettings]],
        settings: RegistrySettings | None = None,
        ownership: TopicOwnership | None = None,
        loads_max: Callable[[], int] = lambda: _LOADS_MAX,
    ) -> None:
        """``settings_of`` returns the effective policies of a topic.

        Without ``ownership`` every topic is this broker's. At most ``loads_max`` topics load at the same time.
        """
        settings = settings or RegistrySettings()
        self.metadata = stores.metadata
        self.layout = stores.layout
        self.cursor_store = stores.cursors or RecordedCursors(stores.metadata, stores.layout.cursors)
        self.loads = LatencyMeter()
        """Loads of topics that the rules allowed."""
        self.replicator_prefix = settings.replicator_prefix
        self.now_ms = clock.now_ms
        self.broker_entry_fields = settings.broker_entry_fields
        self.read_buffer_limiter = ReadBufferLimiter(settings.read_bytes_max)
        self.cluster = cluster
        self._logs = stores.logs
        self._ownership = ownership
        self.serving = None if ownership is None else ownership.serving
        self._open_rule = open_rule
        self._topics: dict[TopicName, AnyTopic] = {}
        self.topic_tasks = TopicTasks(self._topics, settings.periods, stores.check_disk_space)
        self._executor = KeyedExecutor()
        self._load_permits = LoadPermits(loads_max)
        self._tasks = BackgroundTasks()
        self._flushes = CursorFlushes(lambda topic: self._topics.get(topic.name) is topic, self._tasks)
        self.cursor_changes = CursorChanges(self._topics, self._flushes.changed, self.spawn)
        self._settings = SettingsRefresh(self._topics, settings_of, self._tasks)
        self._closing = False
        self.compaction_permits = asyncio.Semaphore(_COMPACTIONS_AT_ONCE)
        self._names_given = 0
        self._starts = 0

    # --- life

    async def start(self) -> None:
        """Count this start, so that generated producer names are never used twice; begin the upkeep."""
        self._starts = await self._count_start()
        flush = partial(self.flush, within_seconds=_FLUSH_WITHIN_SECONDS)
        self.spawn(run_periodically("cursors", lambda: _FLUSH_SECONDS, flush))
        self.topic_tasks.begin(self.spawn)

    async def close(self) -> None:
        """Unload everything: answer pending publishes, store all cursors. No topic can be opened any more."""
        self._closing = True
        await self._executor.close()
        await asyncio.gather(*(self._unload_at_end(topic) for topic in self.topics()))
        await self._tasks.close()

    async def _count_start(self) -> int:
        """Return a number that no other start of a broker of this cluster has."""
        if not self.layout.shared:
            return await advance_counter(self.metadata, _NAME_COUNTER_KEY, 1, start=0)
        key = await self.metadata.create_sequential(f"{_NAME_COUNTER_KEY}/-")
        return int(key.rpartition("-")[2])

    # --- topics

    @property
    def names(self) -> KeysView[TopicName]:
        return self._topics.keys()

    def get(self, name: TopicName) -> AnyTopic | None:
        return self._topics.get(name)

    def topics(self) -> list[AnyTopic]:
        return list(self._topics.values())

    async def open(self, name: TopicName, *, by: Requester = Requester.CLIENT, create: bool = True) -> AnyTopic:
        """Return the loaded topic. Raise TopicNotFound, NotAllowed, ServiceNotReady, LogDamaged."""
        await self._executor.idle(name)
        topic = self._topics.get(name)
        if topic is not None:
            if self._ownership is not None:
                self._ownership.check(name)
            return topic
        if self._closing:
            raise ServiceNotReady("The broker is shutting down")
        return await self._executor.run([name], lambda: self._load(name, by, create))

    async def subscription_names(self, name: TopicName) -> list[str]:
        """Return the subscriptions of a topic without a load, sorted, but replication cursors; raise TopicNotFound."""
        await self._executor.idle(name)
        if name in self._topics or not name.is_persistent:
            return (await self.open(name, by=Requester.ADMIN, create=False)).subscription_names()
        await self._open_rule(name, Requester.ADMIN, False)
        names = await read_cursor_names(self.metadata, name.log_name)
        return stored_subscription_names(names, self.replicator_prefix)

    async def unload(self, name: TopicName) -> None:
        """Close the topic if it is loaded; clients come back and load it again."""
        await self._executor.idle(name)
        topic = self._topics.get(name)
        if topic is not None:
            await self._executor.run([name], lambda: self._unload(topic))

    async def unload_all(self, names: Sequence[TopicName]) -> None:
        """Close these topics. One that cannot store its cursors is logged, and closed nevertheless."""

        async def unload(name: TopicName) -> None:
            try:
                await self.unload(name)
            except PulsarError as error:
                log.error("topic not closed cleanly topic=%s error=%s", name, error)

        for first in range(0, len(names), TOPICS_AT_ONCE):
            await asyncio.gather(*map(unload, names[first : first + TOPICS_AT_ONCE]))

    def forsake(self, names: Sequence[TopicName]) -> None:
        """Disconnect the clients of these topics immediately and write nothing: another broker may have them."""
        for name in names:
            topic = self._topics.pop(name, None)
            if topic is not None:
                topic.forsake()
                self._executor.submit([name], partial(self._depart, topic))

    async def recheck(self, names: Sequence[TopicName]) -> None:
        """Forsake topics that another broker may have opened while their bundle was free."""
        assert self._ownership is not None, "only where there are others"
        for name in names:
            topic = self._topics.get(name)
            # a load by another broker begins a ledger, so it changes the record, unless the topic is terminated
            recorded = isinstance(topic, Topic) and not topic.log.terminated
            if topic is not None and not (recorded and await self._ownership.is_as_left(name)):
                self.forsake([name])

    async def delete(
        self,
        *names: TopicName,
        force: bool = False,
        check: DeleteCheck | None = None,
        also: Sequence[Change] = (),
        expect: Mapping[str, int | None] = {},
    ) -> None:
        """Remove topics with their entries, records and cursors, and apply ``also``, in one commit.

        Raises PreconditionFailed if one of them is in use and it is not forced, and CommitConflict if ``expect`` does
        not hold; then none is removed. ``check`` is called at the moment of the deletion, after which a topic cannot be
        used.
        """
        await self._executor.run(names, lambda: self._delete(names, force, check, also, expect))

    async def delete_left_over(self, keys: Sequence[str], *, expect: Mapping[str, int | None]) -> None:
        """Remove records that no topic needs, and their ledgers. Raise CommitConflict if ``expect`` does not hold."""
        await self._logs.delete(also=[Delete(key) for key in keys], expect=expect)

    def names_in(self, namespace: NamespaceName) -> list[TopicName]:
        """Return the topics of a namespace that are loaded, being loaded or being closed."""
        names = dict.fromkeys([*self._topics, *self._executor.names])
        return [name for name in names if name.namespace_name == namespace]

    async def policies_changed(self, namespace: NamespaceName | None = None, base: TopicName | None = None) -> None:
        """Apply new settings to loaded topics, all or those of a namespace or base name; see `SettingsRefresh`."""
        await self._settings.refresh(namespace, base)

    def begin_applying(self, namespace: NamespaceName | None = None, base: TopicName | None = None) -> None:
        """Apply new settings in the background; see `policies_changed`."""
        self._settings.begin(namespace, base)

    async def flush(self, *, within_seconds: float | None = None) -> None:
        """Store every cursor that changed; see `CursorFlushes`."""
        self.cursor_changes.touch(self._flushes.changed)
        await self._flushes.flush_all(within_seconds=within_seconds)

    # --- what topics ask

    def generate_producer_name(self) -> str:
        self._names_given += 1
        return f"{self.cluster}-{self._starts}-{self._names_given - 1}"

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.begin(work)

    def call_later(self, wait_ms: int, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(wait_ms / 1000, call)

    def cursors_changed(self, topic: HostedTopic) -> None:
        self._flushes.changed[topic] = None

    def topic_failed(self, topic: HostedTopic) -> None:
        self._flushes.unstored.discard(topic)
        if self._topics.get(topic.name) is topic:
            del self._topics[topic.name]
            self._executor.submit([topic.name], lambda: self._close_failed(topic))

    # --- loading and unloading

    async def _load(self, name: TopicName, by: Requester, create: bool) -> AnyTopic:
        if self._ownership is not None:
            await self._ownership.acquire(name)
        try:
            await self._open_rule(name, by, create)
            with self.loads.timed():
                async with self._load_permits:
                    return await self._load_now(name)
        except BaseException:
            if self._ownership is not None:
                self._ownership.forget(name)
            raise

    async def _load_now(self, name: TopicName) -> AnyTopic:
        settings = await self._settings.of(name)
        topic: AnyTopic
        if name.is_persistent:
            topic = await load_topic(name, self, settings, self._logs)
        else:
            topic = NonPersistentTopic(name, self, settings)
        self._topics[name] = topic
        try:
            while (newest := await self._settings.of(name)) != topic.settings:  # changed during the load
                await topic.apply(newest)
            if self._ownership is not None:
                await self._ownership.opened(name)
        except BaseException:
            if self._ownership is not None and not self._ownership.holds(name):
                self._topics.pop(name, None)
                topic.forsake()
                await self._depart(topic)
            else:
                await self._unload(topic)
            raise
        self.cursor_changes.touch([topic])
        log.info("topic loaded topic=%s", name)
        return topic

    async def _unload(self, topic: AnyTopic) -> None:
        try:
            await topic.close()
        finally:
            self._topics.pop(topic.name, None)
            self._gone(topic)
        log.info("topic unloaded topic=%s", topic.name)

    def _gone(self, topic: HostedTopic) -> None:
        self.cursor_changes.close(topic)
        self._flushes.forget(topic)
        if self._ownership is not None:
            self._ownership.forget(topic.name)

    async def _depart(self, topic: AnyTopic) -> None:
        try:
            await topic.depart()
        finally:
            self._gone(topic)
        log.info("topic left to another broker topic=%s", topic.name)

    async def _unload_at_end(self, topic: AnyTopic) -> None:
        try:
            await self._unload(topic)
        except PulsarError as error:
            log.error("topic not closed cleanly topic=%s error=%s", topic.name, error)

    async def _close_failed(self, topic: HostedTopic) -> None:
        try:
            await topic.close()
        except PulsarError as error:
            log.error("failed topic could not store its cursors topic=%s error=%s", topic.name, error)
        finally:
            self._gone(topic)

    async def _delete(
        self,
        names: Sequence[TopicName],
        force: bool,
        check: DeleteCheck | None,
        also: Sequence[Change],
        expect: Mapping[str, int | None],
    ) -> None:
        loaded = [topic for topic in map(self._topics.get, names) if topic is not None]
        if check is not None:
            for name in names:
                check(self._topics.get(name))
        if not force:
            for topic in loaded:
                topic.clients.check_none()
        for topic in loaded:  # all together, so that none is used while others are being closed
            topic.clients.retire()
        # keep the last acknowledgements if the commit fails and the topics stay
        await asyncio.gather(*(self._flushes.flush(topic) for topic in loaded if topic in self._flushes.changed))
        for number, topic in enumerate(loaded, 1):
            await topic.abandon()
            self._topics.pop(topic.name, None)  # it may have failed meanwhile
            if number % TOPICS_AT_ONCE == 0:
                await asyncio.sleep(0)
        logs = [name.log_name for name in names if name.is_persistent]
        try:
            await self._logs.delete(*logs, also=also, expect=expect)
        finally:
            for topic in loaded:
                self._gone(topic)
        log.info("topics deleted count=%d first=%s", len(names), names[0])
