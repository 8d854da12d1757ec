"""Positions of the copies that a lane has stored, collected from its receipts and from reading back."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from interpulse.client.producing.unconfirmed import Receipt
from interpulse.model.ids import Position
from interpulse.replication.position_runs import Run
from interpulse.spark.lanes import unpack_sequence


class CollectedRuns:
    """The runs of a lane of entries, whose sequence ids are source positions."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add_receipt(self, receipt: Receipt, refused: Collection[int]) -> None:
        """Add entries that were sent together, except for the refused ones.

        Both ids and positions rise. So the first and the last one show that all between are side by side as well.
        """
        ids, positions = receipt
        first, last, distance = positions[0], positions[-1], len(positions) - 1
        is_consecutive = ids[-1] - ids[0] == distance and last == (first.ledger, first.entry + distance)
        if is_consecutive and not refused:
            self._add(Run(unpack_sequence(ids[0]), first, distance + 1))
        else:
            self.add_copies((ids[at], positions[at]) for at in range(distance + 1) if ids[at] not in refused)

    def add_copies(self, copies: Iterable[tuple[int, Position]]) -> None:
        """Add single entries: the sequence id and the position of each."""
        for sequence_id, position in copies:
            self._add(Run(unpack_sequence(sequence_id), position, 1))

    def _add(self, run: Run) -> None:
        if self._runs and (last := self._runs[-1]).is_followed_by(run):
            self._runs[-1] = last._replace(length=last.length + run.length)
        else:
            self._runs.append(run)

    def take(self) -> list[Run]:
        """Return the runs that were collected since the last call."""
        taken, self._runs = self._runs, []
        return taken
