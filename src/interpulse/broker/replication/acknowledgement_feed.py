"""The acknowledgements of a namespace at this broker, for tools that carry them to another cluster.

A page has the whole state of each subscription that changed, and a token with which the next page goes on. A token of
another broker, or from before a restart, gives everything. Then topics are loaded that have such subscriptions, so that
nothing is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from interpulse.broker.live.registry.cursor_changes import Changed, Journal
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup.bundles import Bundles
from interpulse.in_turns import Turn, concurrently, in_turns
from interpulse.model.errors import NotFound, PulsarError, ServiceNotReady
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.topics import Requester
from interpulse.storage.cursors import RecordedCursors, read_cursor_names
from interpulse.wire.cursor_promise import RESERVED_SUBSCRIPTIONS
from interpulse.wire.ids import words_of

log = logging.getLogger(__name__)

SUBSCRIPTIONS_MAX: Final = 1000
"""Subscriptions of one page."""
_BYTES_MAX: Final = 4 * 1024 * 1024
"""The approximate size of a page, unless it has one subscription."""
_LOADS_MAX: Final = 32

State = dict[str, Any]


class Question(NamedTuple):
    """A question for changed subscriptions."""

    namespace: NamespaceName
    marked: bool = True
    """True for those that are marked as replicated; False for all durable ones of clients."""
    wait_seconds: float = 0.0
    """The time to wait if there is no change."""


class Page(NamedTuple):
    """Changed subscriptions, the oldest change first."""

    token: str
    subscriptions: Sequence[State] = ()
    more: bool = False

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


class AcknowledgementFeed:
    """The pages of this broker."""

    def __init__(self, lifecycle: TopicLifecycle, registry: TopicRegistry, bundles: Bundles) -> None:
        self._lifecycle = lifecycle
        self._registry = registry
        self._changes = registry.cursor_changes
        self._bundles = bundles

    async def page(self, question: Question, since: str) -> Page:
        """Return the subscriptions that changed after the page with the token ``since``. Raise NamespaceNotFound."""
        journal, number = await self._resumed(question, since)
        if journal.number <= number and question.wait_seconds:
            await self._changes.wait(journal, number, question.wait_seconds)
        return await self._page(journal, number)

    async def stored(self, namespace: NamespaceName, *, marked: bool) -> list[TopicName]:
        """Return the topics that have such subscriptions by their records, without a load."""
        found: list[TopicName] = []
        async for names in in_turns(await self._lifecycle.list_topics(namespace, PERSISTENT, include_system=False)):
            have = await concurrently(partial(self._has_any, marked=marked), names, limit=_LOADS_MAX)
            found += compress(names, have)
        return found

    # --- parts

    async def _resumed(self, question: Question, since: str) -> tuple[Journal, int]:
        """Return the journal, and the number of the last change that the caller knows."""
        namespace, marked = question.namespace, question.marked
        served = frozenset(await self._bundles.served(namespace))
        journal = self._changes.journal(namespace, marked=marked)
        if journal is None or not served <= journal.bundles:
            journal = await self._changes.begin(namespace, served, marked=marked)
        journal.bundles = served
        name, _, text = since.partition(".")
        number = int(text) if name == journal.name and text.isdecimal() else -1
        if not 0 <= number <= journal.number:
            number, journal.unloaded = 0, set(await self._here(namespace, marked=marked))
        await self._load(journal)
        return journal, number

    async def _here(self, namespace: NamespaceName, *, marked: bool) -> Iterable[TopicName]:
        is_here = await self._bundles.here(namespace)
        return filter(is_here, await self.stored(namespace, marked=marked))

    async def _has_any(self, name: TopicName, *, marked: bool) -> bool:
        metadata, codec = self._registry.metadata, self._registry.layout.cursors
        if not marked:
            return not all(
                cursor.startswith(RESERVED_SUBSCRIPTIONS) for cursor in await read_cursor_names(metadata, name.log_name)
            )
        records = await RecordedCursors(metadata, codec).of(name.log_name).load()
        return any(record.replicate_state for record in records.values())

    async def _load(self, journal: Journal) -> None:
        """Load the topics of the journal that are not. Topics that are gone, or served elsewhere now, are left out."""

        async def load(name: TopicName) -> None:
            try:
                await self._registry.open(name, by=Requester.ADMIN, create=False)
            except (NotFound, ServiceNotReady) as error:
                log.debug("topic not loaded for its acknowledgements topic=%s error=%s", name, error)
            except PulsarError as error:
                log.warning("topic not loaded for its acknowledgements topic=%s error=%s", name, error)
            journal.unloaded.discard(name)

        if journal.unloaded:
            await concurrently(load, sorted(journal.unloaded, key=str), limit=_LOADS_MAX)
            self._changes.look()

    async def _page(self, journal: Journal, number: int) -> Page:
        changed, upto = journal.after(number), journal.number
        states: list[State] = []
        size, turn = 0, Turn()
        for change in changed:
            if len(states) >= SUBSCRIPTIONS_MAX or size >= _BYTES_MAX:
                return Page(f"{journal.name}.{number}", states, more=True)
            number = change.number
            if change.subscription.deleted:
                states.append(_deleted(change))
            elif self._is_loaded(change):
                states.append(_state(change))
                size += _size(states[-1])
            await turn.give_way()
        return Page(f"{journal.name}.{upto}", states)

    def _is_loaded(self, change: Changed) -> bool:
        topic = self._registry.get(change.topic)
        name = change.subscription.name
        return isinstance(topic, Topic) and topic.subscriptions.get(name) is change.subscription


def _deleted(change: Changed) -> State:
    return {"topic": str(change.topic), "subscription": change.subscription.name, "deleted": True}


def _state(change: Changed) -> State:
    subscription, cursor = change.subscription, change.subscription.cursor
    return {
        "topic": str(change.topic),
        "subscription": subscription.name,
        "resets": cursor.resets,
        "markDelete": str(cursor.mark_delete),
        "ranges": list(cursor.ranges()),
        "masks": [(*position, words_of(mask)) for position, mask in cursor.batches()],
        "consumers": len(subscription.consumers),
        "replicated": subscription.replicate_state,
        "properties": subscription.properties,
    }


def _size(state: State) -> int:
    """Return the approximate size of a state as JSON, in bytes."""
    properties = sum(len(name) + len(value) for name, value in state["properties"].items())
    return 300 + properties + 30 * len(state["ranges"]) + sum(40 + 20 * len(words) for *_, words in state["masks"])
