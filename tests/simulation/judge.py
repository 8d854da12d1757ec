"""Judge of a history: properties that a log, its subscriptions and its clients must keep.

L: log, S: subscriptions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from interpulse.model.ids import MessageId, Position


class Finding(NamedTuple):
    """A broken property, by its letter and number, with what was seen."""

    property: str
    text: str
    payload: bytes = b""
    """The message concerned; empty if there is none."""

    def __str__(self) -> str:
        return f"{self.property}: {self.text}"


class Sent(NamedTuple):
    """A message that a program gave to its producer."""

    producer: str
    number: int
    at: float = 0.0

    @property
    def payload(self) -> bytes:
        """The content, which names the message."""
        return f"{self.producer}/{self.number}".encode()


class Delivery(NamedTuple):
    """A message that a program received."""

    at: float
    subscription: str
    id: MessageId
    payload: bytes


class Acknowledged(NamedTuple):
    """An acknowledgement that a program gave to its consumer."""

    at: float
    subscription: str
    payload: bytes


class Interval(NamedTuple):
    """A time in which acknowledgements may be lost, from a fault until it is noticed."""

    begin: float
    end: float


@dataclass
class History:
    """Everything that the programs of one topic saw, in seconds of the world."""

    subscriptions: Sequence[str] = ()
    ordered: set[str] = field(default_factory=set)
    """Subscriptions with one consumer at a time."""
    sent: list[Sent] = field(default_factory=list)
    receipts: dict[bytes, MessageId] = field(default_factory=dict)
    """The ids of the messages that were confirmed, in the order of the receipts."""
    deliveries: list[Delivery] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    stored: list[tuple[MessageId, bytes]] = field(default_factory=list)
    """The topic at the end, from its first to its last message."""

    def judge(self, excuses: Sequence[Interval]) -> list[Finding]:
        """Return the broken properties. ``excuses`` are the times in which acknowledgements may be lost."""
        return [
            *self._lost(),
            *self._doubled(),
            *self._reordered(),
            *self._phantoms(),
            *self._changed_positions(),
            *self._undelivered(),
            *self._came_again(excuses),
            *self._out_of_order(),
        ]

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        """Return what happened to the message of the first finding that names one."""
        named = next((finding.payload for finding in findings if finding.payload), b"")
        return self._events(named) if named else []

    def _events(self, payload: bytes) -> list[str]:
        lines = [f"receipt {self.receipts[payload]}"] if payload in self.receipts else ["no receipt"]
        lines += [
            f"{each.at:.3f} delivered {each.subscription} {each.id}"
            for each in self.deliveries
            if each.payload == payload
        ]
        lines += [
            f"{each.at:.3f} acknowledged {each.subscription}" for each in self.acknowledged if each.payload == payload
        ]
        return lines + [f"stored {id_}" for id_, stored in self.stored if stored == payload]

    def _lost(self) -> Iterator[Finding]:
        stored: dict[bytes, list[Position]] = defaultdict(list)
        for id_, payload in self.stored:
            stored[payload].append(id_.position)
        for payload, id_ in self.receipts.items():
            positions = stored.get(payload)
            if positions is None:
                yield Finding("L1", f"{payload!r} was confirmed as {id_} and is not stored", payload)
            elif id_.ledger >= 0 and id_.position not in positions:  # below 0: a duplicate, not stored again
                yield Finding("L1", f"{payload!r} was confirmed as {id_} and is stored at {positions[0]}", payload)

    def _doubled(self) -> Iterator[Finding]:
        for payload, count in Counter(payload for _, payload in self.stored).items():
            if count > 1:
                yield Finding("L2", f"{payload!r} is stored {count} times", payload)

    def _reordered(self) -> Iterator[Finding]:
        yield from falling("L3", "stored", (payload for _, payload in self.stored))
        yield from falling("L3", "confirmed", self.receipts)

    def _phantoms(self) -> Iterator[Finding]:
        sent = {message.payload for message in self.sent}
        for payload in {payload for _, payload in self.stored} | {each.payload for each in self.deliveries}:
            if payload not in sent:
                yield Finding("L4", f"{payload!r} was never sent", payload)

    def _changed_positions(self) -> Iterator[Finding]:
        contents: dict[MessageId, bytes] = dict(self.stored)
        for delivery in self.deliveries:
            if contents.get(delivery.id) != delivery.payload:
                now = contents.get(delivery.id)
                yield Finding(
                    "L5",
                    f"{delivery.payload!r} was delivered as {delivery.id}, where {now!r} is stored",
                    delivery.payload,
                )

    def _undelivered(self) -> Iterator[Finding]:
        delivered: dict[str, set[bytes]] = {name: set() for name in self.subscriptions}
        for delivery in self.deliveries:
            delivered[delivery.subscription].add(delivery.payload)
        for subscription, payloads in delivered.items():
            for _, payload in self.stored:
                if payload not in payloads:
                    yield Finding("S1", f"{payload!r} was never delivered to {subscription}", payload)

    def _came_again(self, excuses: Sequence[Interval]) -> Iterator[Finding]:
        return came_again("S2", self.acknowledged, self.deliveries, excuses)

    def _out_of_order(self) -> Iterator[Finding]:
        for subscription in sorted(self.ordered):
            first_times = dict.fromkeys(each.payload for each in self.deliveries if each.subscription == subscription)
            yield from falling("S4", f"delivered to {subscription}", first_times)


def came_again(
    letter: str,
    acknowledged: Iterable[Acknowledged],
    deliveries: Iterable[Delivery],
    excuses: Sequence[Interval],
    *,
    seconds: float = 15.0,
) -> Iterator[Finding]:
    """Yield a finding for each message that came again although its acknowledgement cannot be lost.

    After ``seconds`` an acknowledgement without a receipt counts as taken, without a fault that excuses it.
    """
    firm: dict[tuple[str, bytes], float] = {}
    for each in acknowledged:
        if not any(excuse.begin <= each.at <= excuse.end for excuse in excuses):
            firm.setdefault((each.subscription, each.payload), each.at)
    for delivery in deliveries:
        at = firm.get((delivery.subscription, delivery.payload))
        if at is not None and delivery.at > at + seconds:
            text = f"{delivery.payload!r}, acknowledged at {at:.3f}, came again to {delivery.subscription}"
            yield Finding(letter, f"{text} at {delivery.at:.3f}", delivery.payload)


def falling(letter: str, what: str, payloads: Iterable[bytes]) -> Iterator[Finding]:
    """Yield a finding for each message that comes behind a later one of its producer."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for payload in payloads:
        producer, _, number = payload.decode(errors="replace").partition("/")
        if number.isdigit():
            numbers[producer].append(int(number))
    for producer, seen in numbers.items():
        for before, after in pairwise(seen):
            if after < before:
                yield Finding(
                    letter, f"{producer}/{after} is {what} behind {producer}/{before}", Sent(producer, after).payload
                )
