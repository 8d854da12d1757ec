"""How replication is going as a whole, for metrics: topics by their state, what waits, and what the job does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from interpulse.broker.replication.remote_topics import RemoteTopics
from interpulse.broker.replication.replication_status import REPLICATING, Record, ReplicationStatus
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
    replicating: set[tuple[str, str]] = field(default_factory=set)
    """Topics and partitions that are being copied, with the cluster."""

    def add(self, namespace: str, record: Record) -> None:
        """One topic, or partition, and one cluster."""
        cluster, which = record["cluster"], (record["cluster"], namespace)
        self.states[cluster, record["state"]] += 1
        if record["state"] == REPLICATING:
            self.replicating.add((record["topic"], cluster))
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
        for namespace, topics in (await self._topics()).items():
            async for some in in_turns(topics):
                survey.remotes.update(*map(self._remote_topics.clusters_of, some))
            async for record in self._status.of_pairs(namespace, self._pairs(topics)):
                survey.add(str(namespace), record)
        return survey

    async def records(self, allowed: Callable[[NamespaceName], Awaitable[bool]]) -> AsyncIterator[Record]:
        """The status records of every topic that is replicated, of the allowed namespaces; as `look`."""
        for namespace, topics in (await self._topics()).items():
            if await allowed(namespace):
                async for record in self._status.of_pairs(namespace, self._pairs(topics)):
                    yield record

    async def _topics(self) -> dict[NamespaceName, list[TopicName]]:
        """What is replicated, by namespace."""
        found: defaultdict[NamespaceName, list[TopicName]] = defaultdict(list)
        async for some in in_turns(self._remote_topics.topics()):
            for topic in some:
                found[topic.namespace_name].append(topic)
        return found

    def _pairs(self, topics: Iterable[TopicName]) -> Iterator[tuple[TopicName, tuple[str, ...]]]:
        """Each with its clusters."""
        return ((topic, self._remote_topics.clusters_of(topic)) for topic in topics)
