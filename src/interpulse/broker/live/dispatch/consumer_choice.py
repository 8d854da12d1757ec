"""The choice of receivers. Pure: it counts permits and names receivers, and sends nothing.

One permit is one message. An entry goes to a receiver that has at least one permit left, so a batch may overdraw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Protocol, TypeVar

from interpulse.broker.live.api import Delivery
from interpulse.wire.hashing import murmur3_hash

TURN_ENTRIES_MAX = 20
"""Entries that a receiver gets before the next one's turn (dispatcherMaxRoundRobinBatchSize)."""

_message_count = itemgetter(4)


class Receiver(Protocol):
    """The interface of a consumer for the choice."""

    @property
    def name(self) -> str: ...

    @property
    def permits(self) -> int: ...

    @property
    def priority_level(self) -> int: ...


R = TypeVar("R", bound=Receiver)


def message_total(batch: Iterable[Delivery]) -> int:
    """Return the permits that these entries cost together."""
    return sum(map(_message_count, batch))


def covered_by(batch: Sequence[Delivery], permits: int) -> int:
    """Return how many entries from the beginning of ``batch`` fit the ``permits``; the last may overdraw."""
    if permits <= 0:
        return 0
    if message_total(batch) <= permits:
        return len(batch)
    for number, delivery in enumerate(batch, 1):
        permits -= delivery.message_count
        if permits <= 0:
            return number
    return len(batch)


def choose_active(receivers: Sequence[R], topic: str, partition_index: int) -> R | None:
    """Return the active consumer of a Failover subscription.

    Among the lowest priority level, the partitions of a topic are assigned in the order of consumer names. For a topic
    without partitions the choice depends on the topic's name, so that many topics spread over the consumers, and it
    changes only when the active one leaves or a new one outranks it.
    """
    if not receivers:
        return None
    level = min(map(attrgetter("priority_level"), receivers))
    candidates = sorted(
        (receiver for receiver in receivers if receiver.priority_level == level), key=attrgetter("name")
    )
    if partition_index >= 0:
        return candidates[partition_index % len(candidates)]
    return max(candidates, key=lambda receiver: murmur3_hash(f"{receiver.name}@{topic}".encode()))


def share_out(
    batch: Sequence[Delivery], receivers: Sequence[R], budgets: list[int], turn: int
) -> tuple[list[tuple[R, list[Delivery]]], int]:
    """Distribute entries among receivers, lowest priority level first, some entries each in turn.

    ``budgets`` are the permits of each receiver; they are charged. Returns the shares, and the turn that begins the
    next round. Entries without permits are in no share; they are always the end of the batch.
    """
    if len(receivers) == 1:
        part = list(batch[: covered_by(batch, budgets[0])])
        budgets[0] -= message_total(part)
        return ([(receivers[0], part)], 1) if part else ([], turn)
    parts: list[list[Delivery]] = [[] for _ in receivers]
    done = 0
    while done < len(batch):
        index = _next_in_turn(receivers, budgets, turn)
        if index < 0:
            break
        turn = index + 1
        piece = batch[done : done + TURN_ENTRIES_MAX]
        number = covered_by(piece, budgets[index])
        taken = piece[:number]
        parts[index] += taken
        budgets[index] -= message_total(taken)
        done += number
    return [(receiver, part) for receiver, part in zip(receivers, parts, strict=True) if part], turn


def _next_in_turn(receivers: Sequence[R], budgets: Sequence[int], turn: int) -> int:
    """Return the index of the next receiver with permits, of the lowest level that has any; -1 = none."""
    best = -1
    count = len(receivers)
    for step in range(count):
        index = (turn + step) % count
        if budgets[index] <= 0:
            continue
        if best < 0 or receivers[index].priority_level < receivers[best].priority_level:
            best = index
    return best
