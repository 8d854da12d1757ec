"""Where the lanes of a batch start from: what the sink's commits recorded, carried from the driver to its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from interpulse.spark.lanes import LaneState, topic_of_key
from interpulse.spark.state_files import LaneFiles

__all__ = ["LaneStates", "read_lane_states"]


class LaneStates(NamedTuple):
    """The lanes after the two newest batches, by batch id, and where they stood before their first.

    A batch that is replayed finds its own commit among them: which of the two counts is known in the task alone, where
    Spark gives the batch id.
    """

    committed: Mapping[int, Mapping[str, LaneState]]
    anchors: Mapping[str, LaneState]

    def below(self, batch: int) -> Mapping[str, LaneState]:
        """The lane states that a batch starts from, by the keys of lanes."""
        below = [number for number in self.committed if number < batch]
        return {**self.anchors, **(self.committed[max(below)] if below else {})}

    def of(self, topics: Set[str]) -> LaneStates:
        """Those of some topic-partitions."""
        return LaneStates(
            {batch: _only(lanes, topics) for batch, lanes in self.committed.items()}, _only(self.anchors, topics)
        )


def _only(lanes: Mapping[str, LaneState], topics: Set[str]) -> dict[str, LaneState]:
    return {key: state for key, state in lanes.items() if topic_of_key(key) in topics}


def read_lane_states(files: LaneFiles) -> LaneStates:
    """What the lane files of a sink hold."""
    newest, lanes = files.newest()
    if newest < 0:
        return LaneStates({}, files.anchors())
    older, lanes_before = files.newest(below=newest)
    return LaneStates({newest: lanes, older: lanes_before}, files.anchors())
