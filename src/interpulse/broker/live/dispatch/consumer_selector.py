"""What selects the consumer of each entry: `round_robin_selector` on Shared, `key_selector` on Key_Shared.

Entries wait among the *replays* when they have to be sent outside the order of the log: given back by a consumer, held
for one that cannot take them now, or due after a delay. The replays are kept here, because their order depends
on the consumers that may get them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.model.ids import Position

__all__ = ["Assignments", "ConsumerSelector", "Selection"]

Assignments = list[tuple[Consumer, list[Delivery]]]


class Selection(NamedTuple):
    """Consumers with their entries, and the entries held for later; the rest of the batch lacks permits."""

    assignments: Assignments
    held: list[Delivery]

    @property
    def entry_count(self) -> int:
        """How many entries from the beginning of the batch were decided about."""
        return len(self.held) + sum(len(part) for _, part in self.assignments)


class ConsumerSelector(Protocol):
    """Selects a consumer for each entry, keeps the entries that wait, and is told what becomes of them."""

    @property
    def waiting(self) -> int:
        """How many replays there are."""

    def entries_wanted(self, ready: Sequence[Consumer]) -> int:
        """How many new entries to read so that these get what they have permits for, or much of it."""

    def select(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        """Select consumers for entries that come from the log; what is held is among the replays now."""

    def select_replays(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        """Select consumers for replays that `next_replays` named for these.

        What is assigned has left them, what is ``held`` has been read and stays.
        """

    def next_replays(self, ready: Sequence[Consumer], entries_max: int) -> list[Position]:
        """The next replays that these may be able to take, oldest first."""

    def await_turn(self, positions: Iterable[Position]) -> None:
        """Entries that no consumer has had yet go among the replays."""

    def give_back(self, positions: Sequence[Position]) -> None:
        """Entries, in order, go from their consumer to the replays."""

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        """No consumer needs the entry; one ``held`` it, or it may be a replay. True if a replay became playable."""

    def acknowledged_all(self, positions: Iterable[Position]) -> bool:
        """As `acknowledged`, of entries that consumers held."""

    def forget_upto(self, position: Position) -> None:
        """No replay up to here is needed any more."""

    def joined(self, consumer: Consumer) -> None:
        """Raises ConsumerAssignError if its key ranges are taken."""

    def left(self, consumer: Consumer) -> None:
        """What it holds is given back next."""

    def reset(self) -> None:
        """Every entry is forgotten."""

    def stats(self) -> dict[str, Any]:
        """What this adds to the statistics of the subscription."""

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        """What this adds to the statistics of one of its consumers."""
