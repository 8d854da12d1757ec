"""The interface that selects the consumer of each entry.

`round_robin_selector` implements it for Shared, `key_selector` for Key_Shared. *Replays* are entries to be sent outside
the order of the log: returned by a consumer, held for one that cannot take them now, or due after a delay. The selector
owns them, because their order depends on the consumers that may get them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.model.ids import Position

Assignments = list[tuple[Consumer, list[Delivery]]]


class Selection(NamedTuple):
    """Consumers with their entries, and entries held for later; the rest of the batch lacks permits."""

    assignments: Assignments
    held: list[Delivery]

    @property
    def entry_count(self) -> int:
        """The number of entries from the beginning of the batch that were decided."""
        return len(self.held) + sum(len(part) for _, part in self.assignments)


class ConsumerSelector(Protocol):
    """The selector of consumers, and owner of the entries that wait."""

    @property
    def waiting(self) -> int:
        """The number of replays."""

    def entries_wanted(self, ready: Sequence[Consumer]) -> int:
        """Return how many new entries to read so that these receivers can use all or most of their permits."""

    def select(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        """Select consumers for entries from the log; held ones become replays."""

    def select_replays(self, batch: Sequence[Delivery], ready: Sequence[Consumer]) -> Selection:
        """Select consumers for replays that `next_replays` returned for these receivers.

        Assigned entries leave the replays; ``held`` ones were read and stay.
        """

    def next_replays(self, ready: Sequence[Consumer], entries_max: int) -> list[Position]:
        """Return the next replays that these receivers may be able to take, oldest first."""

    def await_turn(self, positions: Iterable[Position]) -> None:
        """Add entries that no consumer had yet to the replays."""

    def give_back(self, positions: Sequence[Position]) -> None:
        """Move entries, in order, from their consumer to the replays."""

    def acknowledged(self, position: Position, *, held: bool) -> bool:
        """Drop an entry that one consumer ``held``, or that may be a replay.

        Return True if a replay became playable.
        """

    def acknowledged_all(self, positions: Iterable[Position]) -> bool:
        """Drop entries that consumers held; see `acknowledged`."""

    def forget_upto(self, position: Position) -> None:
        """Drop the replays up to here."""

    def joined(self, consumer: Consumer) -> None:
        """Add a consumer. Raise ConsumerAssignError if its key ranges are taken."""

    def left(self, consumer: Consumer) -> None:
        """Remove a consumer. The caller then returns the entries that it holds."""

    def reset(self) -> None:
        """Forget every entry."""

    def stats(self) -> dict[str, Any]:
        """Return the selector's fields for the statistics of the subscription."""

    def consumer_stats(self, consumer: Consumer) -> dict[str, Any]:
        """Return the selector's fields for the statistics of one consumer."""
