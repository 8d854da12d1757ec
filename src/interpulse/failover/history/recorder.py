"""Recorder of a history: it numbers messages, and writes down what clients and an operation see."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from interpulse.failover.history.events import (
    Acknowledge,
    Cause,
    Deliver,
    Event,
    Fence,
    MessageName,
    Outcome,
    PassedByPolicy,
    Promotion,
    Publish,
    Release,
    Reset,
    RoleSeen,
    Subscribe,
)
from interpulse.model.ids import MessageId, Position

NAME_PROPERTY: Final = "interpulse.failover.history"
"""Property of recorded messages with producer and number, which copies have as well."""


def name_property(name: MessageName) -> dict[str, str]:
    """Return the property by which a message is found again at either site."""
    return {NAME_PROPERTY: f"{name.number} {name.producer}"}


def named_message(topic: str, properties: Mapping[str, str]) -> MessageName | None:
    """Return the name of a recorded message of a topic-partition; None for others."""
    number, space, producer = properties.get(NAME_PROPERTY, "").partition(" ")
    return MessageName(topic, producer, int(number)) if space and number.isdecimal() else None


class HistoryRecorder:
    """Events of one run, in order. Every method may be called from any thread."""

    def __init__(self, addresses: Mapping[str, Sequence[str]], clock: Callable[[], float] = time.monotonic) -> None:
        """``addresses`` has the service URLs of each site, by its name. ``clock`` returns seconds."""
        self.events: list[Event] = []
        self._sites = {url: site for site, urls in addresses.items() for url in urls}
        self._clock = clock
        self._start = clock()
        self._subscribed: set[tuple[str, str]] = set()
        self._sent: Counter[tuple[str, str]] = Counter()

    @property
    def now_ms(self) -> int:
        """Milliseconds since the recorder was created."""
        return int((self._clock() - self._start) * 1000)

    def site_of(self, service_url: str) -> str:
        """Return the name of the site with a service URL. Raise ValueError if it is of no site of the pair."""
        if service_url not in self._sites:
            known = ", ".join(sorted(self._sites))
            raise ValueError(f"{service_url} is the address of no site: add it to the addresses ({known})")
        return self._sites[service_url]

    # ---- Clients

    def next_name(self, topic: str, producer: str) -> MessageName:
        """Return the name of the next message of a producer. Send a producer's messages from one thread."""
        number = self._sent[topic, producer]
        self._sent[topic, producer] += 1
        return MessageName(topic, producer, number)

    def publish(
        self,
        site: str,
        message: MessageName,
        outcome: Outcome,
        *,
        position: MessageId | None = None,
        key: str | None = None,
    ) -> None:
        self.events.append(Publish(self.now_ms, site, message, outcome, position, key))

    def deliver(self, site: str, message: MessageName, subscription: str, consumer: str) -> None:
        self.events.append(Deliver(self.now_ms, site, message, subscription, consumer))

    def acknowledge(self, acknowledged: Acknowledge) -> None:
        """Record an acknowledgement, at the present time."""
        self.events.append(replace(acknowledged, at_ms=self.now_ms))

    def subscribe(self, site: str, topic: str, subscription: str, after: Position) -> None:
        """Record the start of a subscription, the first time that it is opened on either site."""
        if (topic, subscription) not in self._subscribed:
            self._subscribed.add((topic, subscription))
            self.events.append(Subscribe(self.now_ms, site, topic, subscription, after))

    def reset(self, site: str, topic: str, subscription: str, after: Position) -> None:
        self.events.append(Reset(self.now_ms, site, topic, subscription, after))

    def pass_by_policy(self, site: str, topic: str, subscription: str, upto: Position) -> None:
        self.events.append(PassedByPolicy(self.now_ms, site, topic, subscription, upto))

    # ---- Steps of an operation

    def fence(self, site: str, positions: Mapping[str, Position]) -> None:
        """Record the fence position of each topic-partition of a site."""
        at_ms = self.now_ms
        self.events.extend(Fence(at_ms, site, topic, position) for topic, position in positions.items())

    def release(self, site: str, positions: Mapping[str, Position]) -> None:
        """Record the end of a fence, with the ends of the logs that were read before it."""
        at_ms = self.now_ms
        self.events.extend(Release(at_ms, site, topic, position) for topic, position in positions.items())

    def promote(self, site: str, cause: Cause) -> None:
        self.events.append(Promotion(self.now_ms, site, cause))

    def see_role(self, site: str, namespace: str, role: str, epoch: int) -> None:
        self.events.append(RoleSeen(self.now_ms, site, namespace, role, epoch))
