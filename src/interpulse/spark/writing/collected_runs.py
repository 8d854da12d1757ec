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
        """Add entries that were sent together, except for the refused ones."""
        if refused:
            pairs = zip(receipt.sequence_ids, receipt.positions, strict=True)
            self.add_copies(pair for pair in pairs if pair[0] not in refused)
        else:
            self._add_between(receipt, 0, len(receipt.positions) - 1)

    def _add_between(self, receipt: Receipt, first: int, last: int) -> None:
        """Add the entries with these and the indexes between, in halves unless they are side by side.

        Both ids and positions rise. So the first and the last one show if all between are side by side as well.
        """
        ids, positions = receipt
        start, distance = positions[first], last - first
        is_consecutive = ids[last] - ids[first] == distance
        if is_consecutive and positions[last] == (start.ledger, start.entry + distance):
            self._add(Run(unpack_sequence(ids[first]), start, distance + 1))
        else:
            middle = (first + last) // 2
            self._add_between(receipt, first, middle)
            self._add_between(receipt, middle + 1, last)

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
