"""Rules about the ways between the sites: what copies each topic, if copies name their source, and the lag."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from interpulse.failover.preflight.facts import PairFacts, ReplicatorFacts, SiteFacts, WayRecord
from interpulse.failover.preflight.findings import CheckKind, Finding
from interpulse.failover.preflight.shell_commands import admin_command
from interpulse.failover.site import REPLICATING
from interpulse.model.adjustments import Severity
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.copy import is_lane_between
from interpulse.rules.failover_role import is_lane

_NONE: Final = ReplicatorFacts()


def record_of(source: SiteFacts, target: SiteFacts, topic: TopicName) -> WayRecord | None:
    """Return the job's report about a topic-partition, or about its topic; None without one."""
    ways = source.ways
    return ways.get((topic, target.cluster)) or ways.get((topic.base, target.cluster))


def is_copied(source: SiteFacts, target: SiteFacts, topic: TopicName) -> bool:
    """Return True if a job or a replicator copies this topic-partition at the moment."""
    record = record_of(source, target, topic)
    if record is not None and record.state == REPLICATING:
        return True
    here, there = source.topics.get(topic), target.topics.get(topic)
    sends = here is not None and here.replicators.get(target.cluster, _NONE).sends
    receives = there is not None and there.replicators.get(source.cluster, _NONE).receives
    return sends or receives or has_lane(source, target, topic)


def has_lane(source: SiteFacts, target: SiteFacts, topic: TopicName) -> bool:
    """Return True if a replication job has a producer open on the copy of this topic-partition."""
    there = target.topics.get(topic)
    return there is not None and any(
        is_lane(each.name) and is_lane_between(each.name, source.cluster, target.cluster) for each in there.producers
    )


def not_copied(pair: PairFacts, left_out: Collection[TopicName]) -> Iterator[Finding]:
    """Yield the topics of ``a`` that nothing copies to ``b``, by reason. ``left_out`` have another finding."""
    yield from _uncopied(pair.a, pair.b, pair.a.topics, left_out, CheckKind.NOT_COPIED, Severity.ERROR)


def way_back_missing(pair: PairFacts, left_out: Collection[TopicName]) -> Iterator[Finding]:
    """Yield the topics of both sites that nothing copies back, by reason."""
    severity = Severity.WARNING if pair.limits.one_way else Severity.ERROR
    shared = [topic for topic in pair.a.topics if topic in pair.b.topics]
    yield from _uncopied(pair.b, pair.a, shared, left_out, CheckKind.WAY_BACK_MISSING, severity)


def _uncopied(
    source: SiteFacts,
    target: SiteFacts,
    topics: Iterable[TopicName],
    left_out: Collection[TopicName],
    kind: CheckKind,
    severity: Severity,
) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[str]] = {}
    for topic in topics:
        if topic.base not in left_out and not is_copied(source, target, topic):
            groups.setdefault(_reason(source, target, topic), []).append(str(topic))
    for (reason, remedy), names in groups.items():
        what = f"not copied from {source.name} to {target.name}: {reason}"
        yield Finding(kind, severity, source.name, what, remedy, tuple(sorted(names)))


def _reason(source: SiteFacts, target: SiteFacts, topic: TopicName) -> tuple[str, str]:
    """Return why a topic is not copied, and the remedy."""
    record = record_of(source, target, topic)
    if record is not None:
        return f"it is {record.state}, {record.reason}".rstrip(" ,"), record.remedy or _status(source, topic)
    clusters = _clusters(source, topic.namespace_name)
    if target.cluster not in clusters:
        names = ",".join(sorted({*clusters, source.cluster, target.cluster}))
        remedy = admin_command(source.admin_url, "namespaces set-clusters", topic.namespace_name)
        return f"{target.cluster} is not a replication cluster of {topic.namespace_name}", f"{remedy} -c {names}"
    return "no replicator is connected, and no job reports it", _status(source, topic)


def _clusters(site: SiteFacts, namespace: NamespaceName) -> tuple[str, ...]:
    inventory = site.namespaces.get(namespace)
    return inventory.state.policies.replication_clusters if inventory and inventory.state else ()


def _status(site: SiteFacts, topic: TopicName) -> str:
    command = "topics replication-status" if site.is_ours else "topics stats"
    return f"start what copies it; {admin_command(site.admin_url, command, topic)} shows it"


def no_source_positions(pair: PairFacts) -> Iterator[Finding]:
    """Yield the topics whose copies on ``b`` do not name the entries that they are copies of."""
    if pair.b.unmarked_copies:
        what = f"the newest copy from {pair.a.name} has no source position, so it is not known what was copied"
        remedy = f"run Pulsar 4.0 or later on {pair.a.name}, or copy by interpulse replicate"
        topics = tuple(sorted(map(str, pair.b.unmarked_copies)))
        yield Finding(CheckKind.NO_SOURCE_POSITIONS, Severity.ERROR, pair.b.name, what, remedy, topics)


def dedup_off(pair: PairFacts) -> Iterator[Finding]:
    """Yield the namespaces that a replication job writes to and that do not de-duplicate."""
    for source, target in ((pair.a, pair.b), (pair.b, pair.a)):
        for namespace in target.namespaces:
            if _has_job(source, target, namespace) and not _deduplicates(target, namespace):
                remedy = f"{admin_command(target.admin_url, 'namespaces set-deduplication', namespace)} --enable"
                what = f"a job copies there from {source.name}, and de-duplication is off: repeats would be stored"
                yield Finding(CheckKind.DEDUP_OFF, Severity.ERROR, target.name, what, remedy, (str(namespace),))


def _has_job(source: SiteFacts, target: SiteFacts, namespace: NamespaceName) -> bool:
    """Return True if a job copies topics of the namespace: only jobs report, and brokers of ours have no other way."""
    if any(topic.namespace_name == namespace and to == target.cluster for topic, to in source.ways):
        return True
    return any(has_lane(source, target, topic) for topic in target.topics if topic.namespace_name == namespace)


def _deduplicates(site: SiteFacts, namespace: NamespaceName) -> bool:
    inventory = site.namespaces[namespace]
    if inventory.state is None:
        return True  # the namespace is missing, which is a finding of its own
    enabled = inventory.state.policies.deduplication_enabled
    return site.settings.get("brokerDeduplicationEnabled", "false") == "true" if enabled is None else enabled


def lag(pair: PairFacts) -> Iterator[Finding]:
    """Yield the topic-partitions with more messages to copy than the limit, each with the time it may take."""
    for topic, facts in pair.a.topics.items():
        record = record_of(pair.a, pair.b, topic)
        behind = max(record.lag_messages if record else 0, facts.replicators.get(pair.b.cluster, _NONE).backlog)
        if behind > pair.limits.lag_messages_max:
            rate = record.rate_out if record else 0.0
            time = f"about {behind / rate:.0f} s at {rate:.0f} a second" if rate else "nothing is copied at the moment"
            what = f"{behind} messages are not copied to {pair.b.name} yet, {time}"
            remedy = "wait, or raise drain_s in [limits]"
            yield Finding(CheckKind.LAG, Severity.WARNING, pair.a.name, what, remedy, (str(topic),))


Rule = Callable[[PairFacts], Iterator[Finding]]
RULES: Final[tuple[Rule, ...]] = (no_source_positions, dedup_off, lag)
