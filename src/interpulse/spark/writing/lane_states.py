"""States of lanes at the start of a batch, carried from the sink's commits on the driver to the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from interpulse.spark.lanes import LaneState, topic_of_key
from interpulse.spark.state_files import LaneFiles


class LaneStates(NamedTuple):
    """The lanes after the two newest batches, by batch id, and their states before the first batch.

    A replayed batch finds its own commit among them. Only the task, which receives the batch id from Spark, knows the
    state that applies.
    """

    committed: Mapping[int, Mapping[str, LaneState]]
    anchors: Mapping[str, LaneState]

    def below(self, batch: int) -> Mapping[str, LaneState]:
        """Return the lane states at the start of a batch, by the keys of lanes."""
        below = [number for number in self.committed if number < batch]
        return {**self.anchors, **(self.committed[max(below)] if below else {})}

    def of(self, topics: Set[str]) -> LaneStates:
        """Return the states of some topic-partitions."""
        return LaneStates(
            {batch: _only(lanes, topics) for batch, lanes in self.committed.items()}, _only(self.anchors, topics)
        )


def _only(lanes: Mapping[str, LaneState], topics: Set[str]) -> dict[str, LaneState]:
    return {key: state for key, state in lanes.items() if topic_of_key(key) in topics}


def read_lane_states(files: LaneFiles) -> LaneStates:
    """Read the lane files of a sink."""
    newest, lanes = files.newest()
    if newest < 0:
        return LaneStates({}, files.anchors())
    older, lanes_before = files.newest(below=newest)
    return LaneStates({newest: lanes, older: lanes_before}, files.anchors())
