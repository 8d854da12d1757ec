"""Remote clusters that a job cannot write to because of their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interpulse.model.names import NamespaceName, TopicName
from interpulse.spark.job.selection import partitions_of


@dataclass(frozen=True)
class UnusableRemote:
    """One cluster, with the topics and partition counts that policies replicate to it."""

    remote: str
    problem: str
    since_ms: int
    topics: Mapping[TopicName, int] = field(default_factory=dict)

    def records(self) -> dict[NamespaceName, list[dict[str, Any]]]:
        """Return status records by namespace."""
        by_namespace: dict[NamespaceName, list[dict[str, Any]]] = {}
        for topic, count in self.topics.items():
            rows = by_namespace.setdefault(topic.namespace_name, [])
            rows.extend(self._record(name) for name in partitions_of(topic, count))
        return by_namespace

    def _record(self, name: str) -> dict[str, Any]:
        return {
            "topic": name,
            "cluster": self.remote,
            "state": "HELD",
            "since": self.since_ms,
            "reason": self.problem,
            "remedy": f"fix the record of {self.remote} (clusters update {self.remote} ... with all its addresses: the "
            "whole record is replaced); it is read again automatically",
            "nextRetryAt": None,
            "lagEntries": None,
            "lagSeconds": None,
        }
