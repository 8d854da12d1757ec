"""Route of entries from the source cluster to one remote cluster, and its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.spark.lanes import lane_name, merged_lane_name, replicator_lane_name
from interpulse.spark.state_files import TOPICS_FILE, LaneFiles

Emit = Callable[..., None]
"""Function that takes the name of an event of the route, and its fields: ``emit("held", topic=..)``."""


@dataclass(frozen=True)
class Route:
    """One route. ``cursor`` is the subscription on the source that follows what is written."""

    config: PipelineConfig
    target: ClusterAddress
    cursor: str

    @property
    def remote(self) -> str:
        """Name of the target cluster."""
        return self.target.cluster

    @property
    def directory(self) -> Path:
        return self.config.state / self.remote

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def topics_file(self) -> Path:
        return self.directory / TOPICS_FILE

    @property
    def policies_file(self) -> Path:
        return self.directory / "policies.json"

    @property
    def files(self) -> LaneFiles:
        return LaneFiles(str(self.directory))

    @property
    def lane_name(self) -> str:
        source, epoch = self.config.source.cluster, self.config.lane_epoch
        if self.config.as_replicator:
            return replicator_lane_name(source, self.remote, epoch)
        return lane_name(self.config.name, source, self.remote, epoch)

    def lane_of(self, name: str) -> str:
        """Return the producer name of the lane of a topic-partition."""
        return merged_lane_name(self.lane_name, name) if self.config.map.merge else self.lane_name

    def target_name(self, topic: TopicName) -> TopicName:
        """Return the name of a source topic on the target. Raise InvalidTopicName if it is invalid."""
        return self.config.map.target(topic)
