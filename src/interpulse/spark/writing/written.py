"""What tasks tell the driver of their writing."""

from __future__ import annotations

from typing import NamedTuple

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import NO_SEQUENCE, LaneState

__all__ = ["TopicWritten"]


class TopicWritten(NamedTuple):
    """What one task wrote to one topic-partition."""

    topic: str
    sequence_id: int = NO_SEQUENCE
    last_position: Position = EARLIEST
    claimed: int = NO_SEQUENCE
    entries: int = 0
    messages: int = 0
    bytes: int = 0
    replays: int = 0
    skipped: tuple[tuple[str, int], ...] = ()
    after: Position = EARLIEST
    held: str | None = None

    @property
    def lane_state(self) -> LaneState:
        return LaneState(self.sequence_id, self.last_position, self.claimed)
