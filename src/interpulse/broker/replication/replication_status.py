"""The replication status of each topic: from the reports of the job, and from the broker's own records.

A record is ``{topic, cluster, state, since, reason, remedy, nextRetryAt, lagEntries, lagMessages, lagSeconds,
skippedEntries, msgRateOut, msgThroughputOut, batchId, batchMs, provisioned, healedCount, healedReason, healedRemedy,
subscriptionState, subscriptionReason, subscriptionPending, subscriptionAgeMs}``; there is one for each topic (or
partition) and remote cluster. Times are milliseconds since 1970, rates are per second. The messages that wait are
estimated. ``skippedEntries`` were not copied since the job's query was started, because time to live or an operator
moved the cursor past them. What healed is that of all topics of the cluster since the job started, and the newest of
it. ``subscriptionState`` is null where no subscription is carried.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.replication.remote_topics import RemoteState, RemoteTopics
from interpulse.broker.replication.replication_supervisor import ReplicationJobView
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.in_turns import dumped_in_turns, in_turns, parsed_in_turns, sorted_in_turns
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from interpulse.model.topics import TopicKind
from interpulse.rules.replication import effective_replication_clusters, remote_clusters
from interpulse.storage.api import MetadataStore, Put
from interpulse.storage.cas import retry_on_conflict

Record = dict[str, Any]
_Reports = dict[TopicName, dict[str, list[Record]]]

REPLICATING: Final = "REPLICATING"
STATES: Final = (REPLICATING, "PROVISIONING", "HELD", "DISCONNECTED", "NOT_APPLICABLE", "DISABLED")
_TOPICS_AT_ONCE: Final = 100  # on a page
_SYSTEM_TOPIC: Final = "a system topic is created there; its messages are copied only with include_system_topics"
_UNREPORTED: Final = "wait for its report; if none comes, check that the job runs (replicationJob) and read its log"
_IN_STATS: Final = ("state", "since", "reason", "remedy", "nextRetryAt")
_LAG: Final = ("lagEntries", "lagMessages", "lagSeconds")
_RATES: Final = ("msgRateOut", "msgThroughputOut")
_BATCH: Final = ("batchId", "batchMs")
_HEALED: Final = ("healedCount", "healedReason", "healedRemedy")
_PENDING: Final = ("subscriptionPending", "subscriptionAgeMs")
_SUBSCRIPTIONS: Final = ("subscriptionState", "subscriptionReason", *_PENDING)
_OF_COPYING: Final = (*_LAG, "skippedEntries", *_RATES, *_BATCH, "provisioned", *_HEALED)
_FIELDS: Final = ("topic", "cluster", *_IN_STATS, *_OF_COPYING, *_SUBSCRIPTIONS)
_NUMBERS: Final = ("since", "nextRetryAt", *_LAG, "skippedEntries", *_RATES, *_BATCH, "healedCount", *_PENDING)
_TEXTS: Final = (
    *("reason", "remedy", "provisioned", "healedReason", "healedRemedy", "subscriptionState", "subscriptionReason"),
)
_FIELDS_OF_THE_PAST: Final = ("since", "remedy", "nextRetryAt", *_LAG, *_RATES)
"""Members of the last report that no longer apply once a topic is not held."""


class ReplicationStatus:
    """Stores the job's reports by namespace, and completes them with the policies and the state of remote topics."""

    def __init__(
        self,
        store: MetadataStore,
        namespaces: Namespaces,
        lifecycle: TopicLifecycle,
        topic_policies: TopicPolicyRecords,
        *,
        remote_topics: RemoteTopics,
        without_job: Callable[[Sequence[str]], list[Record]] = lambda topics: [],
    ) -> None:
        """Create the status; ``without_job`` returns records for topics while the job is down, else none."""
        self._store = store
        self._namespaces = namespaces
        self._lifecycle = lifecycle
        self._topic_policies = topic_policies
        self._remote_topics = remote_topics
        self._without_job = without_job
        self._parsed: dict[NamespaceName, tuple[int, _Reports]] = {}

    async def report(self, namespace: NamespaceName, records: Sequence[Any]) -> None:
        """Store the job's records. Each replaces the earlier one of its topic and cluster. Raise InvalidRequest."""
        checked = [_checked(namespace, record) async for some in in_turns(records, _TOPICS_AT_ONCE) for record in some]
        await self._namespaces.get_policies(namespace)
        key = keys.replication_status(namespace)

        async def attempt() -> None:
            stored = await self._store.get(key)
            before = await parsed_in_turns(stored.value.decode()) if stored else []
            existing = await self._of_what_exists(before, checked)
            merged: dict[tuple[str, str], Record] = {}
            async for some in in_turns(chain(existing, checked)):
                merged |= {_identity(record): record for record in some}
            content = await dumped_in_turns(merged.values())
            expect = {key: stored.version if stored else None, **await self._namespaces.expected_versions(namespace)}
            await self._store.commit([Put(key, content)], expect)

        await retry_on_conflict(attempt)

    async def _of_what_exists(self, stored: Sequence[Record], newer: Sequence[Record]) -> list[Record]:
        """Drop the records of deleted topics, which would otherwise accumulate.

        Topics that are reported again are not checked, because their records are replaced.
        """
        reported = {record["topic"] async for some in in_turns(newer) for record in some}
        existing: list[Record] = []
        async for some in in_turns(stored):
            names = {name: TopicName.parse(name) for record in some if (name := record["topic"]) not in reported}
            existences = await self._lifecycle.existences(names.values()) if names else {}
            gone = {name for name, topic in names.items() if existences[topic].kind is TopicKind.ABSENT}
            existing += [record for record in some if record["topic"] not in gone]
        return existing

    async def of_namespace(self, namespace: NamespaceName) -> list[Record]:
        """Return the records of all topics of a namespace, sorted by topic. Raise NamespaceNotFound."""
        return [record async for page in self.in_pages(namespace) for record in page]

    async def in_pages(self, namespace: NamespaceName) -> AsyncIterator[list[Record]]:
        """Yield the records of a namespace, a hundred topics at a time. Other work runs between pages."""
        policies = await self._namespaces.get_policies(namespace)
        own = await self._topic_policies.replication_clusters(namespace)
        reports = await self._reports(namespace)
        if not self._namespaces.remotes(policies) and not own and not reports:
            return
        async for topics in in_turns(await self._topics(namespace), _TOPICS_AT_ONCE):
            found = {topic: self._remotes(own.get(topic, policies.replication_clusters)) for topic in topics}
            if records := self._records(found, reports):
                yield records

    async def of_topic(self, name: TopicName) -> list[Record]:
        """Return the records of a topic and of its partitions. Raise TopicNotFound."""
        await self._lifecycle.partitions(name, create=False)
        return await self._of_existing(name)

    async def in_stats(self, name: TopicName) -> dict[str, Record]:
        """Return the replication fields for a topic's statistics, by remote cluster.

        They name the producer of the copies, the delay of the slowest partition, and the ``status``, where a partition
        in trouble comes first. Clusters that the topic is no longer replicated to are left out.
        """
        by_cluster: dict[str, list[Record]] = {}
        for record in await self._of_existing(name):
            if record["state"] != "DISABLED":
                by_cluster.setdefault(record["cluster"], []).append(record)
        return {cluster: _in_stats(records) for cluster, records in by_cluster.items()}

    async def _of_existing(self, name: TopicName) -> list[Record]:
        namespace = name.namespace_name
        policies = await self._namespaces.get_policies(namespace)
        clusters = effective_replication_clusters(await self._topic_policies.find(name), policies)
        records = self._records({name.base: self._remotes(clusters)}, await self._reports(namespace))
        names = {str(name), str(name.base)}
        return [record for record in records if not name.is_partition or record["topic"] in names]

    async def of_pairs(
        self, namespace: NamespaceName, remotes: Iterable[tuple[TopicName, Collection[str]]]
    ) -> AsyncIterator[Record]:
        """Yield the records of these topics of one namespace for their clusters. Yields to other work in between."""
        reports = await self._reports(namespace)
        async for some in in_turns(remotes, _TOPICS_AT_ONCE):
            for record in self._records(dict(some), reports):
                yield record

    def _remotes(self, clusters: Collection[str]) -> tuple[str, ...]:
        return remote_clusters(self._namespaces.local_cluster, clusters)

    def _records(self, remotes: Mapping[TopicName, Collection[str]], reports: _Reports) -> list[Record]:
        halted = [str(topic) for topic, clusters in remotes.items() if clusters and topic.is_persistent]
        stopped = {_identity(record): record for record in self._without_job(halted)} if halted else {}
        records: list[Record] = []
        for topic, clusters in remotes.items():
            reported = reports.get(topic, {})
            for cluster in {*clusters, *reported}:
                known = reported.get(cluster, [])
                if cluster in clusters:
                    records += self._of_pair(topic, cluster, known, stopped.get((str(topic), cluster)))
                else:
                    ended = dict.fromkeys(_FIELDS_OF_THE_PAST) | {"state": "DISABLED"}
                    ended["reason"] = f"{cluster} is not in the replication clusters"
                    records += [{**record, **ended} for record in known]
        return sorted(records, key=_identity)

    def _of_pair(self, topic: TopicName, cluster: str, known: list[Record], stopped: Record | None) -> list[Record]:
        """Return the obstacle on the remote cluster, else the reason that the job is down, else its newest report."""
        if not topic.is_persistent:
            reason = "non-persistent topics have no log, so they are not replicated"
            return [_record(topic, cluster, "NOT_APPLICABLE", reason=reason)]
        remote = self._remote_topics.state(topic, cluster)
        if remote is not None and remote.reason and not _is_newer(known, remote.since_ms):
            return [_of_problem(topic, cluster, remote)]
        change = remote.change if remote is not None else None
        if topic.is_system and not known:
            return [_record(topic, cluster, "NOT_APPLICABLE", reason=_SYSTEM_TOPIC, provisioned=change)]
        if stopped is not None:
            return [dict.fromkeys(_FIELDS) | stopped | {"provisioned": change}]
        if known:
            return [{**record, "provisioned": record["provisioned"] or change} for record in known]
        there = "the topic exists there" if remote is not None and remote.ready else "the topic is being checked there"
        return [
            _record(
                topic,
                cluster,
                "PROVISIONING",
                since=remote.since_ms if remote is not None else None,
                reason=f"{there}; the replication job has not reported this topic yet",
                remedy=_UNREPORTED,
                provisioned=change,
            )
        ]

    async def _topics(self, namespace: NamespaceName) -> list[TopicName]:
        bases: set[TopicName] = set()
        for domain in (PERSISTENT, NON_PERSISTENT):
            partitioned = await self._lifecycle.list_partitioned(namespace, domain, include_system=True)
            stored = await self._lifecycle.list_topics(namespace, domain, include_system=True)
            async for some in in_turns(chain(partitioned, (name.base for name in stored))):
                bases.update(some)
        return await sorted_in_turns(bases, key=str)

    async def _reports(self, namespace: NamespaceName) -> _Reports:
        """Return the job's reports by base name and cluster. Parsed again only after a new report."""
        stored = await self._store.get(keys.replication_status(namespace))
        if stored is None:
            self._parsed.pop(namespace, None)
            return {}
        version, reports = self._parsed.get(namespace, (None, {}))
        if version != stored.version:
            reports = {}
            async for some in in_turns(await parsed_in_turns(stored.value.decode())):
                for record in some:
                    of_topic = reports.setdefault(TopicName.parse(record["topic"]).base, {})
                    of_topic.setdefault(record["cluster"], []).append(record)
            self._parsed[namespace] = (stored.version, reports)
        return reports


def _in_stats(records: Sequence[Record]) -> Record:
    shown = next((record for record in records if record["state"] != REPLICATING), records[0])
    return {
        **{rate: float(sum(record.get(rate) or 0 for record in records)) for rate in _RATES},
        "replicationDelayInSeconds": int(max(record["lagSeconds"] or 0 for record in records)),
        "status": {field: shown[field] for field in _IN_STATS},
    }


def _is_newer(known: list[Record], since_ms: int) -> bool:
    """Return True if the job reported on the topic after that time."""
    return bool(known) and all((record["since"] or 0) > since_ms for record in known)


def _of_problem(topic: TopicName, cluster: str, remote: RemoteState) -> Record:
    return _record(
        topic,
        cluster,
        remote.state,
        since=remote.since_ms,
        reason=remote.reason,
        remedy=remote.remedy,
        nextRetryAt=remote.retry_at_ms,
        provisioned=remote.change,
    )


def _identity(record: Record) -> tuple[str, str]:
    return record["topic"], record["cluster"]


def _record(topic: TopicName, cluster: str, state: str, **values: Any) -> Record:
    return dict.fromkeys(_FIELDS) | {"topic": str(topic), "cluster": cluster, "state": state} | values


def _checked(namespace: NamespaceName, record: Any) -> Record:
    if not isinstance(record, dict):
        raise InvalidRequest("a status record is an object")
    topic = TopicName.parse(str(record.get("topic")))
    if topic.namespace_name != namespace:
        raise InvalidRequest(f"{topic} is not in namespace {namespace}")
    if not isinstance(record.get("cluster"), str) or record.get("state") not in STATES:
        raise InvalidRequest(f"a status record names its cluster, and its state is one of {', '.join(STATES)}")
    for name in _NUMBERS:
        if not isinstance(record.get(name), int | float | None) or isinstance(record.get(name), bool):
            raise InvalidRequest(f"{name} of a status record must be a number or null, not {record[name]!r}"[:200])
    for name in _TEXTS:
        if not isinstance(record.get(name), str | None):
            raise InvalidRequest(f"{name} of a status record must be a string or null, not {record[name]!r}"[:200])
    return {field: record.get(field) for field in _FIELDS} | {"topic": str(topic)}


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
