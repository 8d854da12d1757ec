"""The periodic deletion of inactive topics by `rules.inactivity`.

Only loaded topics are checked; a topic that was created and never opened is loaded for the check. The topic is checked
again at the moment of its deletion, when it cannot be opened any more, so a client that came meanwhile keeps its topic.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.broker.live.topic.non_persistent import NonPersistentTopic
from interpulse.broker.periodic import run_periodically
from interpulse.broker.topics.deletion import Deletion
from interpulse.model.errors import PreconditionFailed, PulsarError, TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.topics import Requester
from interpulse.rules.inactivity import TopicActivity, is_active, is_expendable

log = logging.getLogger(__name__)

_LOOKED_AT_AT_ONCE: Final = 50  # so that clients do not wait for thousands of topics
_AT_ONCE: Final = 32  # concurrent deletions share the waits for the disk
_NAMED_MAX: Final = 20  # in the summary line; each also has its own line


class InactiveTopics:
    """The periodic check. Call `start` to begin and `stop` to end it; tests call `check` themselves."""

    def __init__(self, registry: TopicRegistry, deletion: Deletion, config: Callable[[], BrokerConfig]) -> None:
        """Create the check; ``config`` is read each time, because it may change while the broker runs."""
        self._registry = registry
        self._deletion = deletion
        self._config = config
        self._created: list[TopicName] = []
        self._task: asyncio.Task[None] | None = None

    def note_created(self, topic: TopicName) -> None:
        """Note a topic that an operator created. The next check loads it, so that it is deleted if it is never used."""
        self._created.append(topic)

    def start(self) -> None:
        """Check the topics periodically."""
        check = run_periodically(
            "inactive topics", lambda: self._config().broker_delete_inactive_topics_frequency_seconds, self.check
        )
        self._task = asyncio.get_running_loop().create_task(check)

    async def stop(self) -> None:
        """End the periodic check; a deletion under way is finished by the registry."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def check(self) -> None:
        """Delete topics that were inactive for long enough, and partitioned topics that have no partition left."""
        await self._load_created()
        idle = await self._idle()
        gone: dict[TopicName, str] = {}
        for first in range(0, len(idle), _AT_ONCE):
            topics = idle[first : first + _AT_ONCE]
            deleted = await asyncio.gather(*map(self._deleted, topics))
            gone.update((topic.name, held) for topic, held in zip(topics, deleted, strict=True) if held is not None)
        _warn_of_messages({name: held for name, held in gone.items() if held})
        if self._config().broker_delete_inactive_partitioned_topic_metadata_enabled:
            await self._delete_orphaned_metadata({name.base for name in gone if name.is_partition})

    async def _load_created(self) -> None:
        created, self._created = self._created, []
        for first in range(0, len(created), _AT_ONCE):
            await asyncio.gather(*map(self._loaded, created[first : first + _AT_ONCE]))

    async def _loaded(self, topic: TopicName) -> None:
        with _logged("load created topic", topic), contextlib.suppress(TopicNotFound):
            await self._registry.open(topic, by=Requester.ADMIN, create=False)

    async def _idle(self) -> list[AnyTopic]:
        """Return the topics to delete, and remember the last activity of the others."""
        idle = []
        for count, topic in enumerate(self._registry.topics(), 1):
            if is_active(_activity(topic), topic.settings.inactive_topics.delete_mode):
                topic.active_ms = topic.now_ms()
            elif _expendable(topic):
                idle.append(topic)
            if count % _LOOKED_AT_AT_ONCE == 0:
                await asyncio.sleep(0)
        return idle

    async def _deleted(self, topic: AnyTopic) -> str | None:
        """Delete the topic and describe the entries it held without a subscription; None if it stays."""
        held = ""

        def check(found: AnyTopic | None) -> None:
            nonlocal held
            if found is not topic or not _expendable(topic):
                raise PreconditionFailed(f"Topic {topic.name} is active again")
            held = _unwanted(topic)

        with _logged("delete inactive topic", topic.name):
            await self._deletion.inactive_topic(topic.name, check)
            log.info("inactive topic deleted topic=%s held=%s", topic.name, held or None)
            return held
        return None

    async def _delete_orphaned_metadata(self, bases: Iterable[TopicName]) -> None:
        for base in sorted(bases, key=str):
            with _logged("delete orphaned partition metadata", base):
                if await self._deletion.orphaned_metadata(base):
                    log.info("inactive partitioned topic deleted topic=%s", base)


def _expendable(topic: AnyTopic) -> bool:
    return is_expendable(
        topic.name,
        _activity(topic),
        idle_ms=topic.now_ms() - _last_active_ms(topic),
        policies=topic.settings.inactive_topics,
        retention=topic.settings.retention,
    )


def _unwanted(topic: AnyTopic) -> str:
    """Describe the content of a topic without subscriptions; empty if there is none.

    Counts are in messages, or in entries if some entries predate the count of messages.
    """
    if isinstance(topic, NonPersistentTopic) or topic.subscriptions:
        return ""
    entries = sum(ledger.entries for ledger in topic.log.ledgers)
    if not entries:
        return ""
    if entries == topic.entries_added:
        published = topic.producers.published.messages
        return "1 message" if published == 1 else f"{published:,} messages"
    return "1 entry" if entries == 1 else f"{entries:,} entries"


def _warn_of_messages(held: Mapping[TopicName, str]) -> None:
    """Log the topics that were deleted with messages, as in Pulsar, and the policy that keeps such messages."""
    if not held:
        return
    named = [f"{topic} ({amount})" for topic, amount in itertools.islice(held.items(), _NAMED_MAX)]
    more = f" and {len(held) - _NAMED_MAX:,} more" if len(held) > _NAMED_MAX else ""
    log.warning(
        "inactive topics deleted with messages that no subscription has read topics=%d names=%s remedy=%s",
        len(held),
        ", ".join(named) + more,
        "a subscription or retention keeps a topic, brokerDeleteInactiveTopicsEnabled=false keeps all topics",
    )


def _last_active_ms(topic: AnyTopic) -> int:
    if isinstance(topic, NonPersistentTopic):
        return topic.active_ms
    return max(topic.active_ms, *(subscription.idle_since_ms for subscription in topic.subscriptions.values()), 0)


def _activity(topic: AnyTopic) -> TopicActivity:
    if isinstance(topic, NonPersistentTopic):
        return TopicActivity(in_use=topic.clients.connected)
    last = topic.positions.durable
    waiting = {name for name, subscription in topic.subscriptions.items() if subscription.cursor.backlog(last) > 0}
    replications = {name for name in topic.subscriptions if topic.remote_of(name) is not None}
    return TopicActivity(
        in_use=topic.clients.connected or topic.publishing.pending_count > 0,
        subscribed=len(topic.subscriptions) > len(replications),
        backlog=bool(waiting - replications),
        unreplicated=bool(waiting & replications),
        holds_entries=topic.log.first_position is not None,
    )


@contextlib.contextmanager
def _logged(what: str, topic: TopicName) -> Iterator[None]:
    try:
        yield
    except PreconditionFailed as refusal:
        log.debug("inactive topic kept for now what=%s topic=%s reason=%s", what, topic, refusal)
    except PulsarError as error:
        log.warning("check of a topic failed what=%s topic=%s error=%s", what, topic, error)
