"""One lane within one task: sends in order under its producer name, and settles retries against the target.

The producer name excludes a second writer meanwhile. Model: docs/models/lane_settlement.tla.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from interpulse.model.errors import NotAllowed
from interpulse.model.ids import Position
from interpulse.spark.lanes import (
    NO_SEQUENCE,
    LaneReport,
    LaneState,
    Opening,
    decide_opening,
    is_overrun,
    unpack_sequence,
)
from interpulse.spark.writing.broker_target import BrokerTarget, LaneSender, StoredEntry


class HolesFound(NotAllowed):
    """Entries that the target's broker takes for repeats although they are not stored."""


class LaneInUse(NotAllowed):
    """A lane whose producer name another writer uses."""


class Lane:
    """One lane of a task. Open it, :meth:`settle_past`, send, :meth:`finish`, and close its sender in any case."""

    def __init__(
        self,
        target: BrokerTarget,
        sender: LaneSender,
        report: LaneReport,
        *,
        shown: Callable[[int], str] = lambda sequence_id: str(unpack_sequence(sequence_id)),
    ) -> None:
        """Start from the state of the last commit in ``report``. ``shown`` formats a sequence id for errors."""
        self.sender = sender
        self.report = report
        self.before = report.state
        self.settled_upto = NO_SEQUENCE
        self.is_read_back = False
        self.last = NO_SEQUENCE
        """Highest sequence id of the rows so far."""
        self.holes: list[int] = []
        self._target = target
        self._shown = shown
        self.stored: dict[int, Position] = {}

    async def settle_past(
        self, first: int, note: Callable[[StoredEntry], None] = lambda entry: None, *, is_anchored: bool = False
    ) -> None:
        """Read the entries of earlier attempts, and pass each to ``note``. Raises LaneInUse.

        ``is_anchored``: see `decide_opening`.
        """
        opening = decide_opening(self.before, self.sender.last_sequence_id, first, is_anchored=is_anchored)
        if opening is Opening.IN_USE:
            raise self.in_use()
        if opening is Opening.READ_BACK:
            await self.read_back(note)
        elif self.sender.unproven_after is not None:
            await self.read_back(note, after=max(self.before.target, self.sender.unproven_after))

    async def read_back(
        self, note: Callable[[StoredEntry], None] = lambda entry: None, after: Position | None = None
    ) -> None:
        """Read the target behind the last commit. Entries in flight may be missing.

        This task sent those, and does not need to find them.
        """
        highest = NO_SEQUENCE
        async for entry in self._stored_after(self.before.target if after is None else after):
            self.stored[entry.sequence_id] = entry.position
            highest = max(highest, entry.highest_id)
            note(entry)
        reported = (self.settled_upto, self.before.sequence_id, self.sender.last_sequence_id, highest)
        self.settled_upto = max([*reported, *self.stored])
        self.is_read_back = True
        if self.sender.runs is not None:
            self.sender.runs.add_copies(self.stored.items())

    def _stored_after(self, after: Position) -> AsyncIterator[StoredEntry]:
        return self._target.read_back(self.report.topic, after, self.sender.name)

    def settle(self, sequence_id: int) -> None:
        """Settle an id that the broker would drop: a repeat if it is committed or on the target, else a hole.

        Committed ids return when a topic leaves the selection and comes back: its cursor on the source is slightly
        behind the last commit.
        """
        if sequence_id <= self.before.sequence_id or sequence_id in self.stored:
            self.report.replays += 1
        else:
            self.holes.append(sequence_id)

    async def send(
        self,
        sequence_ids: Sequence[int],
        counts: Sequence[int],
        entries: Sequence[bytes],
        *,
        is_chunk: bool = False,
        highest_id: int | None = None,
    ) -> None:
        """Send entries with the message count of each; see `LaneSender.send`."""
        await self.sender.send(sequence_ids, counts, entries, is_chunk=is_chunk, highest_id=highest_id)
        self.report.entries += len(entries)
        self.report.messages += sum(counts)
        self.report.bytes += sum(map(len, entries))

    @property
    def takes_runs(self) -> bool:
        """True if entries behind :attr:`settled_upto` may be sent in runs: the topic is known to de-duplicate."""
        return self.sender.unproven_after is None

    def held_state(self) -> LaneState:
        """Return the state to record for a lane that could not be finished: some of its ids may be written."""
        return self.before._replace(claimed=max(self.before.claimed, self.last))

    async def finish(self) -> None:
        """Wait for all receipts and complete the report. Raises HolesFound or LaneInUse when the target disagrees."""
        await self.sender.drain()
        await self._verify_refused()
        if self.holes:
            raise self.has_holes()
        if self.owed != NO_SEQUENCE:
            raise self.in_use()
        self.report.state = self._state_after()

    async def _verify_refused(self) -> None:
        """Check refused ids against the target.

        Repeats are expected if the connection broke between an entry and its receipt.
        """
        refused = set(self.sender.refused)
        if refused:
            stored = {entry.sequence_id: entry.position async for entry in self._stored_after(self.before.target)}
            self.holes.extend(refused - set(stored))
            self.stored |= stored
            self.report.replays += len(refused & set(stored))
            if self.sender.runs is not None:
                self.sender.runs.add_copies(item for item in stored.items() if item[0] in refused)

    def _state_after(self) -> LaneState:
        # Only this range is confirmed: the next range must read back the entries behind it.
        reached = [self.before.target, *(position for number, position in self.stored.items() if number <= self.last)]
        if self.sender.last_position is not None:
            reached.append(self.sender.last_position)
        return self.before._replace(sequence_id=max(self.before.sequence_id, self.last), target=max(reached))

    def claim(self, sequence_id: int) -> None:
        """Count ids up to here as ones of the lane: their entries cannot be read any more."""
        self.before = self.before._replace(claimed=max(self.before.claimed, sequence_id))

    @property
    def owed(self) -> int:
        """The broker's last id if that is beyond all this task has come to, else NO_SEQUENCE.

        A crashed attempt that ran ahead of its range has written up to there.
        """
        known = self.sender.last_sequence_id
        return known if is_overrun(self.before, known, self.last) else NO_SEQUENCE

    def in_use(self) -> LaneInUse:
        """Return the error for sequence ids at the broker that are not ours."""
        upto = self._shown(self.sender.last_sequence_id)
        return LaneInUse(
            f"{self.report.topic}: producer {self.sender.name} has written up to {upto} there, which "
            f"this query did not; another one uses the name, or its source was rebuilt. Choose another pipeline "
            f"or producer name, or confirm with the next laneEpoch"
        )

    def has_holes(self) -> HolesFound:
        """Return the error for entries that the broker drops as repeats although they are not stored."""
        shown = ", ".join(self._shown(number) for number in sorted(self.holes)[:10])
        return HolesFound(
            f"{self.report.topic}: the target drops source entries {shown} ({len(self.holes)} in all) as repeats, but "
            f"does not hold them; an earlier send failed while a later one was stored. Nothing was skipped; start "
            f"again with the next laneEpoch to write them"
        )
