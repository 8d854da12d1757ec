"""The periodic tasks of all loaded topics: rates, upkeep, compaction, expiry and backlog quotas."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.live.registry import upkeep
from interpulse.broker.live.topic.non_persistent import NonPersistentTopic
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.periodic import run_periodically
from interpulse.in_turns import Turn
from interpulse.model.errors import NoRoomLeft, PulsarError
from interpulse.model.names import TopicName

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
        """Expire and trim every topic."""
        await self._look_after("upkeep", upkeep.maintain)

    async def expire_subscriptions(self) -> None:
        """Delete the subscriptions that had no consumer for the time in the policies."""
        await self._look_after("subscription expiry", upkeep.expire_subscriptions)

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
                    await upkeep.free_disk_space(topic)
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
