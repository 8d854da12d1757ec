"""The state of replication as a whole, for metrics: topics by state, the backlog, and the job."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from interpulse.broker.replication.remote_topics import RemoteTopics
from interpulse.broker.replication.replication_status import REPLICATING, Record, ReplicationStatus
from interpulse.broker.replication.replication_supervisor import ReplicationJobView
from interpulse.in_turns import in_turns
from interpulse.model.names import NamespaceName, TopicName


@dataclass(slots=True)
class Survey:
    """Totals of one look at replication; empty without replication."""

    remotes: set[str] = field(default_factory=set)
    """The clusters that some topic is replicated to."""
    states: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Topics and partitions by cluster and state."""
    lag_entries: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Entries in the backlog, by cluster and namespace."""
    lag_messages: Counter[tuple[str, str]] = field(default_factory=Counter)
    lag_seconds: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """The age of the oldest message in the backlog, by cluster and namespace."""
    delays: dict[tuple[str, str], float] = field(default_factory=dict)
    """The age of the oldest message in the backlog, by topic and cluster."""
    replicating: set[tuple[str, str]] = field(default_factory=set)
    """Topics and partitions that are being copied, with the cluster."""

    def add(self, namespace: str, record: Record) -> None:
        """Add the record of one topic or partition and one cluster."""
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
    """Surveys of all replicated topics."""

    def __init__(
        self, status: ReplicationStatus, remote_topics: RemoteTopics, job: Callable[[], ReplicationJobView]
    ) -> None:
        self._status = status
        self._remote_topics = remote_topics
        self._job = job

    @property
    def job(self) -> ReplicationJobView:
        """The state of the replication job."""
        return self._job()

    @property
    def provisioned(self) -> Mapping[tuple[str, str], int]:
        """Outcomes of provisioning; see `RemoteTopics.results`."""
        return self._remote_topics.results

    async def look(self) -> Survey:
        """Survey every replicated topic. Yields to other work between topics."""
        survey = Survey()
        for namespace, topics in (await self._topics()).items():
            async for some in in_turns(topics):
                survey.remotes.update(*map(self._remote_topics.clusters_of, some))
            async for record in self._status.of_pairs(namespace, self._pairs(topics)):
                survey.add(str(namespace), record)
        return survey

    async def records(self, allowed: Callable[[NamespaceName], Awaitable[bool]]) -> AsyncIterator[Record]:
        """Yield the status records of replicated topics in allowed namespaces. Yields to other work between topics."""
        for namespace, topics in (await self._topics()).items():
            if await allowed(namespace):
                async for record in self._status.of_pairs(namespace, self._pairs(topics)):
                    yield record

    async def _topics(self) -> dict[NamespaceName, list[TopicName]]:
        topics: defaultdict[NamespaceName, list[TopicName]] = defaultdict(list)
        async for some in in_turns(self._remote_topics.topics()):
            for topic in some:
                topics[topic.namespace_name].append(topic)
        return topics

    def _pairs(self, topics: Iterable[TopicName]) -> Iterator[tuple[TopicName, tuple[str, ...]]]:
        return ((topic, self._remote_topics.clusters_of(topic)) for topic in topics)
