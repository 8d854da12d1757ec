"""The order in which subscriptions of a namespace changed, for tools that carry acknowledgements to other clusters.

An acknowledgement costs nothing here. It schedules a flush of its topic in any case, and those topics are looked at:
before an answer, and a few times per second while a call waits for changes. A change counter in each cursor says which
subscriptions changed. Without calls nothing is noted.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterable, Mapping
from itertools import takewhile
from typing import Any, Final, NamedTuple

from interpulse.broker.live.api import HostedTopic
from interpulse.broker.live.registry.topic_tasks import AnyTopic, loaded_in_turns
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import NamespaceName, TopicName
from interpulse.wire.cursor_promise import RESERVED_SUBSCRIPTIONS

TICK_SECONDS: Final = 0.2
"""The time between two looks while a call waits."""
JOURNAL_SECONDS: Final = 600.0
"""The time without calls after which a journal ends."""
"""Beginnings of the names of cursors that are no subscriptions of clients."""


class Changed(NamedTuple):
    """A subscription that changed. ``number`` counts the changes of its journal."""

    number: int
    topic: TopicName
    subscription: Subscription


class Journal:
    """The subscriptions of one namespace that are loaded here, in the order of their last changes."""

    def __init__(self, bundles: frozenset[str], *, marked: bool) -> None:
        """``bundles`` are those of the namespace that this broker serves. With ``marked``, other ones are left out."""
        self.name = secrets.token_hex(8)
        """A name that no other journal has, on no broker and after no restart."""
        self.bundles = bundles
        self.number = 0
        """The number of changes so far."""
        self.unloaded: set[TopicName] = set()
        """Topics with subscriptions that were closed here. Perhaps they changed until then."""
        self.asked_at = 0.0
        self.news = asyncio.Event()
        self._marked = marked
        self._order: dict[Subscription, Changed] = {}
        self._seen: dict[TopicName, dict[Subscription, int]] = {}

    def look_at(self, topic: Topic) -> None:
        """Note the subscriptions that changed since the last look at this topic."""
        before, now = self._seen.pop(topic.name, {}), {}
        for subscription in before:
            if subscription.deleted:  # first: one of the same name may be there again
                self._note(topic.name, subscription)
        for subscription in topic.subscription_set.of_clients():
            if not (self._is_noted(subscription) or subscription in before):
                continue  # one that lost its mark is noted, so that this is seen
            now[subscription] = subscription.cursor.changes
            if before.get(subscription) != subscription.cursor.changes:
                self._note(topic.name, subscription)
        if now:
            self._seen[topic.name] = now

    def close(self, topic: TopicName) -> None:
        """Forget the subscriptions of a topic that is no longer loaded."""
        for subscription in self._seen.pop(topic, {}):
            del self._order[subscription]
            self.unloaded.add(topic)

    def after(self, number: int) -> list[Changed]:
        """Return the subscriptions that changed after this number, the oldest change first."""
        return list(takewhile(lambda changed: changed.number > number, reversed(self._order.values())))[::-1]

    def _note(self, topic: TopicName, subscription: Subscription) -> None:
        self.number += 1
        self._order.pop(subscription, None)
        self._order[subscription] = Changed(self.number, topic, subscription)
        self.news.set()

    def _is_noted(self, subscription: Subscription) -> bool:
        of_clients = (
            subscription.durable and subscription.stored and not subscription.name.startswith(RESERVED_SUBSCRIPTIONS)
        )
        return of_clients and (subscription.replicate_state or not self._marked)


class CursorChanges:
    """The journals of a broker."""

    def __init__(
        self,
        topics: Mapping[TopicName, AnyTopic],
        changed: Mapping[HostedTopic, None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """``topics`` are the loaded ones, ``changed`` those whose cursors wait to be stored; both are live views."""
        self._topics = topics
        self._changed = changed
        self._spawn = spawn
        self._journals: dict[tuple[NamespaceName, bool], Journal] = {}
        self._touched: dict[HostedTopic, None] = {}
        """Topics that may have changed since the last look, besides ``changed``."""
        self._waiting = 0
        """The number of calls that wait."""
        self._looking = False
        self._stopping = False

    # --- called by the registry

    def touch(self, topics: Iterable[HostedTopic]) -> None:
        """Note that these topics were loaded, or that their cursors are being stored."""
        self._end_unused()
        if self._journals:
            self._touched.update(dict.fromkeys(topics))

    def close(self, topic: HostedTopic) -> None:
        """Note that a topic is no longer loaded."""
        self._touched.pop(topic, None)
        for journal in self._of(topic.name.namespace_name):
            journal.close(topic.name)

    # --- called for calls

    def journal(self, namespace: NamespaceName, *, marked: bool) -> Journal | None:
        """Return the journal, up to date; None if there is none."""
        self.look()
        journal = self._journals.get((namespace, marked))
        if journal is not None:
            journal.asked_at = asyncio.get_running_loop().time()
        return journal

    async def begin(self, namespace: NamespaceName, bundles: frozenset[str], *, marked: bool) -> Journal:
        """Return a new journal of all subscriptions that are loaded. Gives way to other work between topics."""
        journal = self._journals[namespace, marked] = Journal(bundles, marked=marked)
        journal.asked_at = asyncio.get_running_loop().time()
        async for topic in loaded_in_turns(self._topics):
            if topic.name.namespace_name == namespace and isinstance(topic, Topic):
                journal.look_at(topic)
        return journal

    async def wait(self, journal: Journal, number: int, seconds: float) -> None:
        """Wait until something changes after this number, for so many seconds at most.

        Raise ServiceNotReady when the broker stops.
        """
        self._waiting += 1
        if not self._looking:
            self._looking = True
            self._spawn(self._look_around())
        try:
            async with asyncio.timeout(seconds):
                while journal.number <= number:
                    if self._stopping:
                        raise ServiceNotReady("The broker is shutting down")
                    journal.news.clear()
                    await journal.news.wait()
        except TimeoutError:
            self.look()
        finally:
            self._waiting -= 1

    def stop_waiting(self) -> None:
        """End the calls that wait, because the broker stops."""
        self._stopping = True
        for journal in self._journals.values():
            journal.news.set()

    def look(self) -> None:
        """Note the changes since the last look."""
        if not self._journals:
            return
        for topic in self._touched | dict.fromkeys(self._changed):
            if self._topics.get(topic.name) is topic and isinstance(topic, Topic):
                for journal in self._of(topic.name.namespace_name):
                    journal.look_at(topic)
        self._touched.clear()

    async def _look_around(self) -> None:
        try:
            while self._waiting:
                self.look()
                await asyncio.sleep(TICK_SECONDS)
        finally:
            self._looking = False

    def _of(self, namespace: NamespaceName) -> list[Journal]:
        return [journal for marked in (True, False) if (journal := self._journals.get((namespace, marked)))]

    def _end_unused(self) -> None:
        if not self._journals:
            return
        now = asyncio.get_running_loop().time()
        for key, journal in list(self._journals.items()):
            if journal.asked_at + JOURNAL_SECONDS < now:
                del self._journals[key]
        if not self._journals:
            self._touched.clear()
