"""What tasks report to the driver of their writing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import NO_SEQUENCE, UNTOUCHED, LaneState

__all__ = ["LaneReport"]


@dataclass
class LaneReport:
    """What one task wrote to one topic-partition, at least once or exactly once; it travels pickled."""

    topic: str
    state: LaneState = UNTOUCHED
    """Where the lane stands now, at first where it stood before; without lanes it has no sequence id."""
    after: Position = EARLIEST
    """What the range begins behind, as far as its rows tell."""
    held: str | None = None
    """Why nothing of the range counts as written; None if all of it does."""
    entries: int = 0
    messages: int = 0
    bytes: int = 0
    replays: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    key: str = ""
    """By what the state is kept."""

    @property
    def has_sequence(self) -> bool:
        """Whether the state tells of ids that were, or may have been, written."""
        return max(self.state.sequence_id, self.state.claimed) != NO_SEQUENCE
