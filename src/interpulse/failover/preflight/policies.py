"""Rules about policies and limits: what the other site could not carry, or would drop before it is merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.failover.preflight.audit import namespaces_of
from interpulse.failover.preflight.facts import PairFacts, ReplicatorFacts, SiteFacts, TopicFacts
from interpulse.failover.preflight.findings import CheckKind, Finding
from interpulse.failover.preflight.shell_commands import admin_command
from interpulse.model.adjustments import Severity
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import RetentionPolicies

_HOUR_S: Final = 3600
_MINUTE_S: Final = 60
_GB: Final = 1e9
_FREE_SHARE: Final = 0.1
"""Share of the disk below which it counts as nearly full, as for `interpulse check`."""

_QUOTA: Final = "destination_storage"
_NO_REPLICATOR: Final = ReplicatorFacts()


def ttl_shorter(pair: PairFacts) -> Iterator[Finding]:
    """Yield the namespaces whose messages expire within the longest expected outage, on either site."""
    outage_s = pair.limits.outage_s
    for site, namespace, _ in _policies(pair):
        ttl_s = _ttl_s(site, namespace)
        if 0 < ttl_s < outage_s:
            what = f"messages expire after {_duration(ttl_s)}, an outage may last {_duration(outage_s)}"
            remedy = _ttl_remedy(site, pair.b if site is pair.a else pair.a, namespace, outage_s)
            yield _warning(CheckKind.TTL_SHORTER, site, what, remedy, str(namespace))


def _ttl_s(site: SiteFacts, namespace: NamespaceName) -> int:
    """Return the time to live in force; 0 if messages do not expire."""
    ttl_s = _of(site, namespace).message_ttl_seconds
    return _default_ttl_s(site) if ttl_s is None else ttl_s


def _default_ttl_s(site: SiteFacts) -> int:
    return int(site.settings.get("ttlDurationDefaultInSeconds", "0"))


def _ttl_remedy(site: SiteFacts, other: SiteFacts, namespace: NamespaceName, outage_s: int) -> str:
    """Return the command for the policy of the other site, or for one that covers the outage if that is shorter too."""
    theirs_s = _of(other, namespace).message_ttl_seconds
    if theirs_s is None and _default_ttl_s(site) == 0:
        return admin_command(site.admin_url, "namespaces remove-message-ttl", namespace)
    ttl_s = theirs_s if theirs_s is not None and (theirs_s == 0 or theirs_s >= outage_s) else outage_s
    return f"{admin_command(site.admin_url, 'namespaces set-message-ttl', namespace)} -ttl {ttl_s}"


def retention_shorter(pair: PairFacts) -> Iterator[Finding]:
    """Yield the namespaces where nothing keeps acknowledged messages for the longest expected outage.

    The cursor of a replicator or a job keeps what it has not copied. Retention counts for topics without such a cursor.
    """
    outage_s = pair.limits.outage_s
    for site, namespace, policies in _policies(pair):
        retention = policies.retention or _broker_retention(site)
        other = pair.b if site is pair.a else pair.a
        loose = [topic for topic in _topics(site, namespace) if not _is_kept(site, other, topic)]
        if loose and not _covers(retention, outage_s):
            what = f"no cursor to {other.name} keeps messages of {len(loose)} topics, and retention is shorter "
            what += f"than an outage of {_duration(outage_s)}"
            remedy = admin_command(site.admin_url, "namespaces set-retention", namespace)
            minutes = -(-outage_s // _MINUTE_S)
            yield _warning(CheckKind.RETENTION_SHORTER, site, what, f"{remedy} -t {minutes}m -s -1", str(namespace))


def _broker_retention(site: SiteFacts) -> RetentionPolicies:
    minutes, megabytes = (
        int(site.settings.get(key, "0")) for key in ("defaultRetentionTimeInMinutes", "defaultRetentionSizeInMB")
    )
    return RetentionPolicies(minutes, megabytes)


def _covers(retention: RetentionPolicies, outage_s: int) -> bool:
    """Return True if retention by time covers the outage, and its size is not zero."""
    long = retention.time_minutes < 0 or retention.time_minutes * _MINUTE_S >= outage_s
    return long and retention.size_mb != 0


def _is_kept(site: SiteFacts, other: SiteFacts, topic: TopicName) -> bool:
    """Return True if a cursor for the other site holds what it has not copied."""
    return other.cluster in site.topics[topic].replicators or any(
        name.base == topic.base and to == other.cluster for name, to in site.ways
    )


def capacity(pair: PairFacts) -> Iterator[Finding]:
    """Yield the limits of ``b`` that are below what ``a`` carries at the moment."""
    for namespace in namespaces_of(pair):
        policies = _of(pair.b, namespace)
        topics = {topic: pair.a.topics[topic] for topic in _topics(pair.a, namespace)}
        for limit, most, carried, command in _limits(pair.b, policies, topics):
            if 0 < most < carried:
                what = f"{limit} is {most:g} on {pair.b.name}, and {pair.a.name} carries {carried:g}"
                remedy = admin_command(pair.b.admin_url, f"namespaces {command}", namespace)
                yield _warning(CheckKind.CAPACITY, pair.b, what, remedy, str(namespace))


def disk(pair: PairFacts) -> Iterator[Finding]:
    """Yield the disk of ``b`` if little room is left: a full disk refuses producers."""
    if pair.b.disk is not None:
        free, size = pair.b.disk
        if size and free < _FREE_SHARE * size:
            what = f"{free / _GB:.1f} GB of {size / _GB:.1f} GB are free on the disk of {pair.b.name}"
            remedy = "make room: see Handle a full disk"
            yield Finding(CheckKind.CAPACITY, Severity.WARNING, pair.b.name, what, remedy)


def _limits(
    site: SiteFacts, policies: NamespacePolicies, topics: dict[TopicName, TopicFacts]
) -> Iterator[tuple[str, float, float, str]]:
    """Yield each limit with its value, what the topics need, and the command that sets it."""
    facts = topics.values()
    yield _count(
        site, "maxProducersPerTopic", policies.max_producers, max((len(each.producers) for each in facts), default=0),
        "set-max-producers-per-topic", "-p",
    )  # fmt: skip
    consumers = [sum(len(each.consumers) for each in topic.subscriptions) for topic in facts]
    yield _count(
        site, "maxConsumersPerTopic", policies.max_consumers, max(consumers, default=0),
        "set-max-consumers-per-topic", "-c",
    )  # fmt: skip
    subscriptions = [sum(not each.is_internal for each in topic.subscriptions) for topic in facts]
    yield _count(
        site, "maxSubscriptionsPerTopic", policies.max_subscriptions, max(subscriptions, default=0),
        "set-max-subscriptions-per-topic", "-m",
    )  # fmt: skip
    yield _count(
        site, "maxTopicsPerNamespace", policies.max_topics_per_namespace, len(topics),
        "set-max-topics-per-namespace", "-t",
    )  # fmt: skip
    rate = policies.publish_rates.get(site.cluster)
    if rate is not None:
        fastest = max((each.rate_in for each in facts), default=0.0)
        yield "the publish rate", rate.messages, fastest, f"set-publish-rate -m {fastest:.0f} -b {rate.bytes}"
    quota = policies.backlog_quotas.get(_QUOTA)
    if quota is not None:
        largest = max((each.backlog_bytes for each in facts), default=0)
        yield "the backlog quota", quota.limit_bytes, largest, f"set-backlog-quota -l {largest} -p {quota.policy}"


def _count(
    site: SiteFacts, key: str, policy: int | None, carried: int, command: str, option: str
) -> tuple[str, float, float, str]:
    most = int(site.settings.get(key, "0")) if policy is None else policy
    return key, most, carried, f"{command} {option} {carried}"


def compacted(pair: PairFacts) -> Iterator[Finding]:
    """Yield the compacted topics of ``a``."""
    found = {
        str(topic.base)
        for topic, facts in pair.a.topics.items()
        if facts.is_compacted or _threshold(pair.a, topic.namespace_name)
    }
    what = "compacted: after a takeover, a late message may be older than the present value of its key"
    yield from _info(CheckKind.COMPACTED, pair.a, found, what, "none is needed for a switch")


def _threshold(site: SiteFacts, namespace: NamespaceName) -> int:
    return _of(site, namespace).compaction_threshold_bytes or 0


def delayed(pair: PairFacts) -> Iterator[Finding]:
    """Yield the topics of ``a`` with messages that are not due yet."""
    found = {
        str(topic.base)
        for topic, facts in pair.a.topics.items()
        if any(subscription.delayed for subscription in facts.subscriptions)
    }
    what = f"delayed messages are copied with their time, and become due by the clock of {pair.b.name}"
    yield from _info(CheckKind.DELAYED, pair.a, found, what, "none is needed")


def transactions(pair: PairFacts) -> Iterator[Finding]:
    """Yield the topics of ``a`` with open transactions."""
    found = {str(topic.base) for topic, facts in pair.a.topics.items() if facts.transactions}
    what = "open transactions: their messages are not copied before they are committed"
    yield from _info(CheckKind.TRANSACTIONS, pair.a, found, what, "end them, or wait for their time-out")


def _info(kind: CheckKind, site: SiteFacts, found: set[str], what: str, remedy: str) -> Iterator[Finding]:
    if found:
        yield Finding(kind, Severity.INFO, site.name, what, remedy, tuple(sorted(found)))


def _warning(kind: CheckKind, site: SiteFacts, what: str, remedy: str, subject: str) -> Finding:
    return Finding(kind, Severity.WARNING, site.name, what, remedy, (subject,))


def _policies(pair: PairFacts) -> Iterator[tuple[SiteFacts, NamespaceName, NamespacePolicies]]:
    for site in (pair.a, pair.b):
        for namespace, inventory in site.namespaces.items():
            if inventory.state is not None:
                yield site, namespace, inventory.state.policies


def _of(site: SiteFacts, namespace: NamespaceName) -> NamespacePolicies:
    inventory = site.namespaces.get(namespace)
    return inventory.state.policies if inventory is not None and inventory.state is not None else NamespacePolicies()


def _topics(site: SiteFacts, namespace: NamespaceName) -> list[TopicName]:
    return [topic for topic in site.topics if topic.namespace_name == namespace]


def _duration(seconds: int) -> str:
    return f"{seconds // _HOUR_S} h" if seconds % _HOUR_S == 0 else f"{seconds} s"


RULES: Final = (ttl_shorter, retention_shorter, capacity, disk, compacted, delayed, transactions)
