"""Reports of tasks to the driver about their writing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import NO_SEQUENCE, UNTOUCHED, LaneState


@dataclass
class LaneReport:
    """The entries that one task wrote to one topic-partition, at least once or exactly once. It is sent pickled."""

    topic: str
    state: LaneState = UNTOUCHED
    """State of the lane, initially its state before the task. Without lanes it has no sequence id."""
    after: Position = EARLIEST
    """Start of the range that its rows show."""
    held: str | None = None
    """Reason why the whole range counts as unwritten, or None."""
    entries: int = 0
    messages: int = 0
    bytes: int = 0
    replays: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    key: str = ""
    """Key of the lane's state."""

    @property
    def has_sequence(self) -> bool:
        """Return True if the state includes ids that were, or may have been, written."""
        return max(self.state.sequence_id, self.state.claimed) != NO_SEQUENCE
