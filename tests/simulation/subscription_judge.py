"""Judge of subscriptions: order, holders of keys, redelivery counts, delays, seeks, batch indexes and dead letters.

`Consumption` is the history of everything that consumers received and did. It knows `History` for what was sent and
stored. The letters are those of subscriptions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from interpulse.client.messages import Message
from interpulse.model.ids import MessageId, Position
from tests.simulation.judge import Acknowledged, Finding, History, Interval, came_again, falling

KEYS_PER_PRODUCER: Final = 5
_POISON_EVERY: Final = 11
_INDEX_SECONDS: Final = 0.5
"""The time after which no batch is on its way that was sent before its acknowledgement.

Only a consumer that has returned a batch can be late: its client sends acknowledgements before it returns anything.
"""


def key_of(payload: bytes) -> str:
    """Return the key of a message: each producer has its own."""
    producer, _, number = payload.decode().partition("/")
    return f"{producer}-{int(number) % KEYS_PER_PRODUCER}"


def is_poison(payload: bytes) -> bool:
    """Return True for a message that no application can process, where there are dead letters.

    None comes in batches, because brokers count the redeliveries of entries.
    """
    return not _may_be_batched(payload) and int(payload.rpartition(b"/")[2]) % _POISON_EVERY == 0


def _may_be_batched(payload: bytes) -> bool:
    return payload.startswith(b"batched")


class Received(NamedTuple):
    """A message that a consumer received."""

    at: float
    subscription: str
    id: MessageId
    payload: bytes
    redelivery_count: int
    deliver_at_ms: int | None
    batch_size: int

    @classmethod
    def of(cls, at: float, subscription: str, message: Message) -> Received:
        batch_size = message.batch_size if message.batch_size > 1 else 0
        content, count = message.content or b"", message.redelivery_count
        return cls(at, subscription, message.id, content, count, message.deliver_at_ms, batch_size)


class Letter(NamedTuple):
    """A message on the dead-letter topic of a subscription."""

    subscription: str
    payload: bytes


class Wall(NamedTuple):
    """A time in which the wall clock of the broker ran evenly."""

    begin: float
    end: float
    ahead: float
    """The difference between the wall clock and the time of the world, in seconds."""


@dataclass
class Consumption:
    """What the consumers of one topic received and did."""

    history: History
    kinds: Mapping[str, str]
    """The type of each subscription, by name."""
    redeliveries_max: Mapping[str, int]
    """The bound of subscriptions with dead letters, by name."""
    trimmed: bool = False
    """True: entries that every subscription has acknowledged are removed."""
    received: list[Received] = field(default_factory=list)
    counts: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    """The deliveries of each message."""
    finished: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    """Messages that applications acknowledged by themselves, or gave up as dead letters."""
    upto: dict[str, MessageId] = field(default_factory=dict)
    """The end of the cumulative acknowledgements of each subscription."""
    indexes: list[Acknowledged] = field(default_factory=list)
    """Acknowledged messages of batches, where consumers acknowledge batch indexes."""
    closings: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """The times at which a consumer of a subscription began or ended to close."""
    absences: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """The times at which a subscription lost its last consumer or got its first one."""
    seeks: list[list[MessageId]] = field(default_factory=list)
    """For each seek the message that it named, and those that came next."""
    findings: list[Finding] = field(default_factory=list)
    """Broken properties that were seen as they happened."""

    def open_work(self) -> Iterator[tuple[str, bytes]]:
        """Return the confirmed messages that no application has finished, and their subscriptions."""
        ids = {each.payload: each.id for each in self.received}
        for name in self.history.subscriptions:
            upto = self.upto.get(name)
            for payload in [each for each in self.history.receipts if each not in self.finished[name]]:
                if upto is None or payload not in ids or ids[payload] > upto:
                    yield name, payload

    def judge(self, excuses: Sequence[Interval], walls: Sequence[Wall], letters: Sequence[Letter]) -> list[Finding]:
        """Return the broken properties. ``walls`` is the clock of the broker over time."""
        return [
            *self.findings,
            *(
                Finding("S3", f"{payload!r} was never finished on {name}", payload)
                for name, payload in self.open_work()
            ),
            *self._keys_out_of_order(),
            *self._too_early(walls),
            *self._fallen_counts(excuses),
            *self._misled_seeks(),
            *came_again("S6", self.indexes, self.history.deliveries, excuses, seconds=_INDEX_SECONDS),
            *self._letters(excuses, letters),
        ]

    def _keys_out_of_order(self) -> Iterator[Finding]:
        for name in [name for name, kind in self.kinds.items() if kind == "key-shared"]:
            lanes: dict[str, dict[bytes, None]] = defaultdict(dict)
            for each in self.received:
                if each.subscription == name and not each.deliver_at_ms and not _may_be_batched(each.payload):
                    lanes[key_of(each.payload)][each.payload] = None
            for key, payloads in lanes.items():
                yield from falling("S4", f"delivered for the key {key} to {name}", payloads)

    def _too_early(self, walls: Sequence[Wall]) -> Iterator[Finding]:
        sent = {message.payload: message.at for message in self.history.sent}
        for each in self.received:
            if each.deliver_at_ms and self.kinds[each.subscription] in ("shared", "key-shared"):
                since = sent.get(each.payload, 0.0)
                clocks = [
                    min(wall.end, each.at) + wall.ahead for wall in walls if since <= wall.end and wall.begin <= each.at
                ]
                if each.deliver_at_ms > max(clocks) * 1000 + 1:
                    early = each.deliver_at_ms / 1000 - max(clocks)
                    text = (
                        f"{each.payload!r} came to {each.subscription} at {each.at:.3f}, {early:.3f} s before its time"
                    )
                    yield Finding("S5", text, each.payload)

    def _fallen_counts(self, excuses: Sequence[Interval]) -> Iterator[Finding]:
        """Compare the counts of entries with one message. Counts end with the last consumer of a subscription."""
        runs: dict[tuple[str, bytes], list[Received]] = defaultdict(list)
        for each in self.received:
            if self.kinds[each.subscription] in ("shared", "key-shared") and not each.batch_size:
                runs[each.subscription, each.payload].append(each)
        for (name, payload), run in runs.items():
            for before, after in pairwise(run):
                fell = after.redelivery_count < before.redelivery_count
                if fell and not _disturbed(before.at, after.at, excuses, self.absences[name]):
                    text = f"{payload!r} came to {name} with count {after.redelivery_count} at {after.at:.3f}"
                    yield Finding("S5", f"{text} after {before.redelivery_count} at {before.at:.3f}", payload)

    def _misled_seeks(self) -> Iterator[Finding]:
        order = {id_: number for number, (id_, _) in enumerate(self.history.stored)}
        for target, *coming in self.seeks:
            if coming and coming[0] != target and not (self.trimmed and coming[0] > target):
                yield Finding("S5", f"a seek to {target} is followed by {coming[0]}")
            for before, after in pairwise(coming):
                if before in order and order.get(after) != order[before] + 1:
                    yield Finding("S5", f"after a seek to {target}, {after} follows {before}")

    def _letters(self, excuses: Sequence[Interval], letters: Sequence[Letter]) -> Iterator[Finding]:
        arrived = set(letters)
        for letter in sorted(arrived):
            times = self.counts[letter.subscription, letter.payload]
            wanted = self.redeliveries_max[letter.subscription] + 1
            if times < wanted and not _may_be_batched(letter.payload):
                text = f"{letter.payload!r} is a dead letter of {letter.subscription} after {times} deliveries"
                yield Finding("S5", f"{text} of {wanted}", letter.payload)
        for name, redeliveries_max in self.redeliveries_max.items():
            for payload in self.history.receipts:
                if is_poison(payload):
                    if Letter(name, payload) not in arrived:
                        yield Finding("S5", f"{payload!r} is no dead letter of {name}", payload)
                    yield from self._too_often(name, payload, redeliveries_max + 1, excuses)

    def _too_often(self, name: str, payload: bytes, wanted: int, excuses: Sequence[Interval]) -> Iterator[Finding]:
        run = [each for each in self.received if each.subscription == name and each.payload == payload]
        if len(run) > wanted and not _disturbed(run[0].at, run[-1].at, excuses, self.closings[name]):
            text = f"{payload!r} came {len(run)} times to {name} before it was a dead letter, not {wanted} times"
            yield Finding("S5", text, payload)


def _disturbed(begin: float, end: float, excuses: Sequence[Interval], moments: Sequence[float]) -> bool:
    return any(begin <= excuse.end and excuse.begin <= end for excuse in excuses) or any(
        begin <= moment <= end for moment in moments
    )


class Holdings:
    """The messages of each key that consumers of key-shared subscriptions have in their hands."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], dict[object, set[Position]]] = defaultdict(lambda: defaultdict(set))

    def take(self, holder: object, subscription: str, key: str, position: Position) -> list[object]:
        """Note a delivery, and return the other consumers that hold messages of this key."""
        holders = self._held[subscription, key]
        holders[holder].add(position)
        return [other for other, positions in holders.items() if positions and other is not holder]

    def release(self, holder: object, subscription: str, key: str, position: Position) -> None:
        self._held[subscription, key][holder].discard(position)

    def forget(self, holder: object) -> None:
        """Note that a consumer has gone."""
        for holders in self._held.values():
            holders.pop(holder, None)
