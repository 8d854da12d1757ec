"""Deliveries and acknowledgements of each subscription, replayed in order. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from interpulse.failover.history.events import (
    Acknowledge,
    Deliver,
    Event,
    MessageName,
    Outcome,
    PassedByPolicy,
    Reset,
    Subscribe,
)
from interpulse.failover.history.record import History, LoggedMessage
from interpulse.model.ids import MessageId, Position

_Key: TypeAlias = tuple[str, str]


class Confirmed(NamedTuple):
    """Acknowledgement that a broker has taken."""

    at_ms: int
    site: str


@dataclass(slots=True)
class Progress:
    """State of one subscription on both sites. Resets take back what they cover."""

    delivered: set[MessageName] = field(default_factory=set)
    asked: set[MessageName] = field(default_factory=set)
    """Messages that a consumer has acknowledged, whether or not a broker has taken it."""
    confirmed: dict[MessageName, Confirmed] = field(default_factory=dict)
    exempt: set[MessageName] = field(default_factory=set)
    """Messages before the subscription, and those that a policy or a reset has passed."""
    cumulative: dict[tuple[str, Outcome], int] = field(default_factory=dict)
    """Number of messages of a site's log that a cumulative acknowledgement has covered."""


class Consumption:
    """Progress of all subscriptions. Feed it the events in order."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._progress: dict[_Key, Progress] = defaultdict(Progress)
        self._logs = {(log.site, log.topic): log.messages for log in reversed(history.logs)}
        self._indexes: dict[_Key, list[tuple[int, int, int]]] = {}

    def of(self, topic: str, subscription: str) -> Progress:
        """Return the progress of a subscription of a topic-partition."""
        return self._progress[topic, subscription]

    def subscriptions(self) -> Iterable[tuple[_Key, Progress]]:
        """Return all subscriptions that had an event, by topic-partition and name."""
        return self._progress.items()

    def take_all(self) -> None:
        """Take all events of the history."""
        for event in self._history.events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take the next event."""
        kind = type(event)
        if kind is Deliver:
            assert isinstance(event, Deliver)
            self._progress[event.message.topic, event.subscription].delivered.add(event.message)
        elif kind is Acknowledge:
            assert isinstance(event, Acknowledge)
            self._acknowledge(event)
        elif isinstance(event, Subscribe):
            before, _ = self._split(event.site, event.topic, event.after)
            self._progress[event.topic, event.subscription].exempt.update(before)
        elif isinstance(event, PassedByPolicy):
            before, _ = self._split(event.site, event.topic, event.upto)
            self._progress[event.topic, event.subscription].exempt.update(before)
        elif isinstance(event, Reset):
            self._reset(event)

    def _acknowledge(self, event: Acknowledge) -> None:
        progress = self._progress[event.message.topic, event.subscription]
        messages: Iterable[MessageName] = (event.message,)
        if event.up_to is not None:
            messages = self._covered(progress, event, event.up_to)
        if event.outcome is Outcome.OK:
            confirmed = Confirmed(event.at_ms, event.site)
            for message in messages:
                progress.confirmed[message] = confirmed
                progress.asked.add(message)
        else:
            progress.asked.update(messages)

    def _covered(self, progress: Progress, event: Acknowledge, up_to: MessageId) -> Iterable[MessageName]:
        """Return the messages that a cumulative acknowledgement adds to those of earlier ones."""
        topic = event.message.topic
        ledger, entry, _, index = up_to
        end = bisect_right(self._index(event.site, topic), (ledger, entry, max(index, 0)))
        key = event.site, event.outcome
        start = progress.cumulative.get(key, 0)
        progress.cumulative[key] = max(start, end)
        return [event.message, *(logged.message for logged in self._messages(event.site, topic)[start:end])]

    def _reset(self, event: Reset) -> None:
        progress = self._progress[event.topic, event.subscription]
        before, behind = self._split(event.site, event.topic, event.after)
        for messages in (progress.delivered, progress.asked, progress.exempt):
            messages.difference_update(behind)
        for message in behind:
            progress.confirmed.pop(message, None)
        progress.exempt.update(before)
        progress.cumulative.clear()

    def _split(self, site: str, topic: str, after: Position) -> tuple[list[MessageName], list[MessageName]]:
        """Return the messages of a log up to a position, and those behind it."""
        at = bisect_right(self._index(site, topic), (after.ledger, after.entry + 1, -1))
        messages = [logged.message for logged in self._messages(site, topic)]
        return messages[:at], messages[at:]

    def _messages(self, site: str, topic: str) -> Sequence[LoggedMessage]:
        return self._logs.get((site, topic), ())

    def _index(self, site: str, topic: str) -> list[tuple[int, int, int]]:
        index = self._indexes.get((site, topic))
        if index is None:
            index = [(*position, at) for position, at, _, _ in self._messages(site, topic)]
            self._indexes[site, topic] = index
        return index
