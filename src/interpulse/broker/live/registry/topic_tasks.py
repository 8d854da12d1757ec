"""Work on all loaded topics: periodic tasks, new settings, and the storing of changed cursors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.live.api import HostedTopic, TopicSettings
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.registry.executors import BackgroundTasks
from interpulse.broker.live.topic.non_persistent import NonPersistentTopic
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.periodic import run_periodically
from interpulse.in_turns import Turn
from interpulse.model.errors import NoRoomLeft, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.storage.metadata.session_bounded import SessionLost

log = logging.getLogger(__name__)

AnyTopic = Topic | NonPersistentTopic

TOPICS_AT_ONCE: Final = 100
"""Topics that a task handles at the same time."""


async def loaded_in_turns(topics: Mapping[TopicName, AnyTopic]) -> AsyncIterator[AnyTopic]:
    """Yield the loaded topics, and give way to other work. Topics that are closed meanwhile are left out."""
    async for topic in topics_in_turns(list(topics.values())):
        if topics.get(topic.name) is topic:
            yield topic


async def topics_in_turns(topics: Iterable[AnyTopic]) -> AsyncIterator[AnyTopic]:
    """Yield all of these topics, and give way to other work every few milliseconds."""
    turn = Turn()
    for topic in topics:
        yield topic
        await turn.give_way()


@dataclass(frozen=True, slots=True)
class TaskPeriods:
    """The seconds between two runs of each periodic task."""

    rates: float = 10.0
    upkeep: float = 60.0
    compaction: float = 60.0
    subscription_expiry: float = 300.0
    quota_check: float | None = 60.0
    """The period of quota checks. None: backlog quotas are checked only when a producer opens."""


class TopicTasks:
    """The periodic tasks; see the module."""

    def __init__(
        self,
        topics: Mapping[TopicName, AnyTopic],
        periods: TaskPeriods,
        check_disk_space: Callable[[], None] = lambda: None,
    ) -> None:
        """``topics`` is a live view of the loaded topics; ``check_disk_space`` raises NoRoomLeft on a full disk."""
        self._topics = topics
        self._periods = periods
        self._check_room = check_disk_space

    def begin(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Start the tasks; ``spawn`` owns them."""
        periods = self._periods
        spawn(run_periodically("rates", lambda: periods.rates, self._tick))
        spawn(run_periodically("upkeep", lambda: periods.upkeep, self.maintain))
        spawn(run_periodically("compaction", lambda: periods.compaction, self.compact_due))
        spawn(run_periodically("subscription expiry", lambda: periods.subscription_expiry, self.expire_subscriptions))
        if (seconds := periods.quota_check) is not None:
            spawn(run_periodically("backlog quotas", lambda: seconds, self.check_backlogs))

    async def maintain(self) -> None:
        await self._look_after("upkeep", backlog_operations.maintain)

    async def expire_subscriptions(self) -> None:
        """Delete the subscriptions that had no consumer for the time in the policies."""
        await self._look_after("subscription expiry", backlog_operations.expire_subscriptions)

    async def compact_due(self) -> None:
        """Start every compaction that is due; none while the disk has no room for it."""
        try:
            self._check_room()
        except NoRoomLeft:
            return

        async def begin(topic: Topic) -> None:
            topic.compaction.begin_if_due()

        await self._look_after("compaction", begin)

    async def check_backlogs(self) -> None:
        """Keep every topic within its backlog quotas."""
        await self._look_after("backlog check", lambda topic: topic.backlog_keeper.check())

    async def free_disk_space(self) -> None:
        """While the disk is full, disconnect producers and trim acknowledged entries."""
        async for topic in loaded_in_turns(self._topics):
            if isinstance(topic, Topic):
                topic.producers.close_by_broker()
                try:
                    await backlog_operations.free_disk_space(topic)
                except PulsarError as error:  # the full disk is already logged, and the next run comes soon
                    log.debug("disk space not freed topic=%s error=%s", topic.name, error)

    async def _tick(self) -> None:
        async for topic in loaded_in_turns(self._topics):
            topic.tick(self._periods.rates)

    async def _look_after(self, what: str, work: Callable[[Topic], Awaitable[None]]) -> None:
        """Run this for every persistent topic. A failure is logged, and the others follow."""
        async for topic in loaded_in_turns(self._topics):
            try:
                if isinstance(topic, Topic):
                    await work(topic)
            except PulsarError as error:
                log.warning("periodic task failed for a topic task=%s topic=%s error=%s", what, topic.name, error)
            except Exception:  # a bug must not end the task
                log.exception("periodic task failed for a topic task=%s topic=%s", what, topic.name)


class SettingsRefresh:
    """The refresh of settings of loaded topics."""

    def __init__(
        self,
        topics: Mapping[TopicName, AnyTopic],
        read: Callable[[TopicName], Awaitable[TopicSettings]],
        tasks: BackgroundTasks,
    ) -> None:
        """``topics`` is a live view of the loaded topics; ``read`` returns the effective policies of a topic."""
        self._topics = topics
        self._read = read
        self._tasks = tasks
        self._newest = TopicSettings()
        self._applying = asyncio.Lock()
        self._to_apply: dict[tuple[NamespaceName | None, TopicName | None], asyncio.Task[PulsarError | None]] = {}

    async def of(self, name: TopicName) -> TopicSettings:
        """Return the settings of a topic. Equal settings of consecutive topics share one object."""
        settings = await self._read(name)
        if settings != self._newest:
            self._newest = settings
        return self._newest

    async def refresh(self, namespace: NamespaceName | None, base: TopicName | None) -> None:
        """Apply the new settings to the loaded topics of a namespace, of one base name, or to all.

        They are in force on return. Topics store their changes together, in groups. Raise the first failure after every
        topic was tried.
        """
        failure = await asyncio.shield(self.begin(namespace, base))
        if failure is not None:
            raise failure

    def begin(self, namespace: NamespaceName | None, base: TopicName | None) -> asyncio.Task[PulsarError | None]:
        """Apply the new settings in a task, which callers share until it begins to read."""
        concerned = (namespace, base)
        if concerned not in self._to_apply:
            self._to_apply[concerned] = self._tasks.begin(self._apply_new_settings(namespace, base))
        return self._to_apply[concerned]

    async def _apply_new_settings(self, namespace: NamespaceName | None, base: TopicName | None) -> PulsarError | None:
        """Return the first failure. The log gets each one."""
        failures: list[PulsarError] = []
        async with self._applying:
            del self._to_apply[namespace, base]
            concerned = [
                topic
                async for topic in loaded_in_turns(self._topics)
                if namespace in (None, topic.name.namespace_name) and base in (None, topic.name.base)
            ]
            for first in range(0, len(concerned), TOPICS_AT_ONCE):
                some = concerned[first : first + TOPICS_AT_ONCE]
                failures += filter(None, await asyncio.gather(*map(self._apply_settings, some)))
        return next(iter(failures), None)

    async def _apply_settings(self, topic: AnyTopic) -> PulsarError | None:
        try:
            settings = await self.of(topic.name)
            if self._topics.get(topic.name) is topic:  # it may be closed by now
                await topic.apply(settings)
        except SessionLost as error:  # every watch is called back when the store answers again
            log.warning("policies not applied until the metadata store answers topic=%s", topic.name)
            return error
        except PulsarError as error:
            log.error("policies not applied topic=%s error=%s", topic.name, error)
            return error
        return None


class CursorFlushes:
    """The schedule of changed cursors. A topic whose cursors cannot be stored is retried with the next call."""

    def __init__(self, is_loaded: Callable[[HostedTopic], bool], tasks: BackgroundTasks) -> None:
        self._is_loaded = is_loaded
        self._tasks = tasks
        self.changed: dict[HostedTopic, None] = {}
        """Topics whose cursors the next `flush_all` stores, in this order."""
        self._flushing: set[HostedTopic] = set()
        self.unstored: set[HostedTopic] = set()
        """Topics whose last attempt failed. The log gets one line for each."""

    def forget(self, topic: HostedTopic) -> None:
        self.changed.pop(topic, None)
        self.unstored.discard(topic)

    async def flush_all(self, *, within_seconds: float | None = None) -> None:
        """Store every cursor that changed. The store syncs changes that arrive together once.

        With ``within_seconds``, topics that take longer go on in the background. Later calls leave them out until then.
        """
        left_out = set() if within_seconds is None else self._flushing
        changed = [topic for topic in self.changed if topic not in left_out]
        for topic in changed:
            del self.changed[topic]
        flushes: list[asyncio.Task[None]] = []
        try:
            for number, topic in enumerate(changed, 1):
                flush = self._tasks.own(asyncio.create_task(self._flush_again_if_it_fails(topic)))
                flushes.append(flush)
                if number % TOPICS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            if not flushes:
                return
            done, late = await asyncio.wait(flushes, timeout=within_seconds)
        except BaseException:
            self.changed |= dict.fromkeys(changed)
            for flush in flushes:
                flush.cancel()
            raise
        for flush in late:
            flush.add_done_callback(self._tasks.log_failure)
        failures = [
            failure for flush in done if not flush.cancelled() and isinstance(failure := flush.exception(), Exception)
        ]
        if failures:
            raise ExceptionGroup("cursors of topics are not stored", failures)

    async def _flush_again_if_it_fails(self, topic: HostedTopic) -> None:
        self._flushing.add(topic)
        try:
            await self.flush(topic)
        except BaseException:
            self.changed[topic] = None
            raise
        finally:
            self._flushing.discard(topic)

    async def flush(self, topic: HostedTopic) -> None:
        try:
            await topic.flush()
        except PulsarError as error:
            if not self._is_loaded(topic):
                log.info("cursors not stored, the topic is closed topic=%s error=%s", topic.name, error)
                return
            self.changed[topic] = None
            if topic not in self.unstored:
                log.warning("cursors not stored, retrying every second topic=%s error=%s", topic.name, error)
                self.unstored.add(topic)
            return
        if topic in self.unstored:
            log.info("cursors stored again topic=%s", topic.name)
            self.unstored.discard(topic)
