"""How replication is going as a whole, for metrics: topics by their state, what waits, and what the job does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from interpulse.broker.replication.remote_topics import RemoteTopics
from interpulse.broker.replication.replication_status import Record, ReplicationStatus
from interpulse.broker.replication.replication_supervisor import ReplicationJobView
from interpulse.in_turns import in_turns
from interpulse.model.names import NamespaceName, TopicName

__all__ = ["ReplicationSurvey", "Survey"]


@dataclass(slots=True)
class Survey:
    """What was found. Without replication everything is empty."""

    remotes: set[str] = field(default_factory=set)
    """The clusters that some topic is replicated to."""
    states: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Topics and partitions by cluster and state."""
    lag_entries: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What waits, by cluster and namespace."""
    lag_messages: Counter[tuple[str, str]] = field(default_factory=Counter)
    lag_seconds: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """The age of the oldest message that waits, by cluster and namespace."""
    delays: dict[tuple[str, str], float] = field(default_factory=dict)
    """The same, by topic and cluster."""

    def add(self, namespace: str, record: Record) -> None:
        """One topic, or partition, and one cluster."""
        cluster, which = record["cluster"], (record["cluster"], namespace)
        self.states[cluster, record["state"]] += 1
        self.lag_entries[which] += int(record["lagEntries"] or 0)
        self.lag_messages[which] += int(record["lagMessages"] or 0)
        seconds = float(record["lagSeconds"] or 0)
        self.lag_seconds[which] = max(self.lag_seconds[which], seconds)
        if seconds:
            self.delays[record["topic"], cluster] = seconds


class ReplicationSurvey:
    """See the module."""

    def __init__(
        self, status: ReplicationStatus, remote_topics: RemoteTopics, job: Callable[[], ReplicationJobView]
    ) -> None:
        self._status = status
        self._remote_topics = remote_topics
        self._job = job

    @property
    def job(self) -> ReplicationJobView:
        """What the replication job does."""
        return self._job()

    @property
    def provisioned(self) -> Mapping[tuple[str, str], int]:
        """See `RemoteTopics.results`."""
        return self._remote_topics.results

    async def look(self) -> Survey:
        """Look at every topic that is replicated, giving way to other work."""
        survey = Survey()
        for namespace, remotes in (await self._pairs()).items():
            async for some in in_turns(remotes):
                survey.remotes.update(*(clusters for _, clusters in some))
            async for record in self._status.of_pairs(namespace, remotes):
                survey.add(str(namespace), record)
        return survey

    async def records(self, allowed: Callable[[NamespaceName], Awaitable[bool]]) -> AsyncIterator[Record]:
        """The status records of every topic that is replicated, of the allowed namespaces; as `look`."""
        for namespace, remotes in (await self._pairs()).items():
            if await allowed(namespace):
                async for record in self._status.of_pairs(namespace, remotes):
                    yield record

    async def _pairs(self) -> dict[NamespaceName, list[tuple[TopicName, tuple[str, ...]]]]:
        """The topics with their clusters, by namespace."""
        pairs: defaultdict[NamespaceName, list[tuple[TopicName, tuple[str, ...]]]] = defaultdict(list)
        async for some in in_turns(self._remote_topics.topics()):
            for topic in some:
                pairs[topic.namespace_name].append((topic, self._remote_topics.clusters_of(topic)))
        return pairs
