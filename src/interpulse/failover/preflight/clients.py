"""Rules about connected clients and subscriptions: what does not change over, or stands in the way of a fence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from interpulse.failover.preflight.facts import ClientFacts, PairFacts, SiteFacts, SubscriptionFacts
from interpulse.failover.preflight.findings import CheckKind, Finding
from interpulse.failover.preflight.shell_commands import admin_command
from interpulse.failover.preflight.ways import record_of
from interpulse.model.adjustments import Severity
from interpulse.model.names import TopicName
from interpulse.rules.failover_role import is_lane

_EXCLUSIVE: Final = ("Exclusive", "ExclusiveWithFencing", "WaitForExclusive")
_ONE_CONSUMER: Final = ("Exclusive", "Failover")
_OWN_PRODUCERS: Final = ("interpulse.failover.", "interpulse.fence.", "pulsar.repl.")
_AGE_MS_MAX: Final = 10_000
_ABORTING: Final = "Pulsar-CPP-v4.2"
"""Release that ends badly on TOPIC_MIGRATED: pulsar-client 3.13 of Python contains it."""


def subscription_not_marked(pair: PairFacts) -> Iterator[Finding]:
    """Yield the durable subscriptions in use on ``a`` whose positions are not carried."""
    seen: set[tuple[TopicName, str]] = set()
    for topic, each in _subscriptions(pair.a):
        if each.is_durable and each.is_used and not (each.is_marked or each.is_internal):
            seen.add((topic.base, each.name))
    for topic, name in sorted(seen, key=str):
        what = f"in use and not marked as replicated: {pair.b.name} would deliver from its own position"
        command = admin_command(pair.a.admin_url, "topics set-replicated-subscription-status", topic)
        subject = f"{name} of {topic}"
        remedy = f"{command} -s {name} --enable"
        yield Finding(CheckKind.SUBSCRIPTION_NOT_MARKED, Severity.WARNING, pair.a.name, what, remedy, (subject,))


def subscription_behind(pair: PairFacts) -> Iterator[Finding]:
    """Yield the topics whose acknowledgements have waited for more than 10 s to be carried."""
    late: dict[tuple[str, str], list[str]] = {}
    for topic in pair.a.topics:
        record = record_of(pair.a, pair.b, topic)
        if record is not None and record.subscription_age_ms > _AGE_MS_MAX:
            reason = record.subscription_reason or "the job has not carried them yet"
            late.setdefault((record.subscription_state, reason), []).append(str(topic))
    for (state, reason), topics in late.items():
        what = f"acknowledgements of more than {_AGE_MS_MAX // 1000} s ago are not on {pair.b.name} ({state}): {reason}"
        remedy = "wait until the job reports SYNCED; messages that were acknowledged since come again otherwise"
        yield Finding(CheckKind.SUBSCRIPTION_BEHIND, Severity.WARNING, pair.a.name, what, remedy, tuple(topics))


def exclusive_producers(pair: PairFacts) -> Iterator[Finding]:
    """Yield the producers with exclusive access on either site."""
    for site, severity in ((pair.a, Severity.WARNING), (pair.b, Severity.ERROR)):
        holders = tuple(
            f"{producer.name} at {producer} on {topic}"
            for topic, facts in site.topics.items()
            for producer in facts.producers
            if producer.access_mode in _EXCLUSIVE and not _is_own(producer)
        )
        if holders:
            what = (
                "has exclusive access: it shuts copies out" if site is pair.b else "has exclusive access and loses it"
            )
            remedy = f"stop it on {site.name}" if site is pair.b else f"let it open its topic on {pair.b.name} again"
            yield Finding(CheckKind.EXCLUSIVE_PRODUCERS, severity, site.name, what, remedy, holders)


def _is_own(producer: ClientFacts) -> bool:
    return producer.name.startswith(_OWN_PRODUCERS) or is_lane(producer.name)


def readers(pair: PairFacts) -> Iterator[Finding]:
    """Yield the readers and table views of official clients on ``a``."""
    found = _official(pair.a, lambda each: not each.is_durable)
    if found:
        what = "reader of an official client: it compares positions with those of the other site, and may see nothing"
        remedy = f"restart these programs once they are at {pair.b.name}"
        yield Finding(CheckKind.READERS, Severity.WARNING, pair.a.name, what, remedy, found)


def cumulative_acks(pair: PairFacts) -> Iterator[Finding]:
    """Yield the consumers of official clients on ``a`` that may acknowledge cumulatively."""
    found = _official(pair.a, lambda each: each.is_durable and each.kind in _ONE_CONSUMER)
    if found:
        what = "consumer of an official client that may acknowledge cumulatively: it can filter messages afterwards"
        remedy = f"restart these programs once they are at {pair.b.name}"
        yield Finding(CheckKind.CUMULATIVE_ACKS, Severity.WARNING, pair.a.name, what, remedy, found)


def tied_topics(site: SiteFacts) -> list[TopicName]:
    """Return the topic-partitions with official clients that compare the ledger numbers of both sites."""
    return sorted(
        {
            topic
            for topic, each in _subscriptions(site)
            if (not each.is_durable or each.kind in _ONE_CONSUMER) and _official_consumers(each)
        },
        key=str,
    )


def ledgers_lower(pair: PairFacts) -> Iterator[Finding]:
    """Yield the topics with such clients whose ledgers on ``b`` have lower numbers than on ``a``."""
    here, there = pair.a.last_ledgers, pair.b.last_ledgers
    lower = tuple(str(topic) for topic in here if topic in there and there[topic] < here[topic])
    if lower:
        what = f"the ledgers of {pair.b.name} have lower numbers: clients that are not restarted take messages for old"
        remedy = "restart the clients of READERS and CUMULATIVE_ACKS"
        yield Finding(CheckKind.LEDGERS_LOWER, Severity.WARNING, pair.b.name, what, remedy, lower)


def redirect_aborts(pair: PairFacts) -> Iterator[Finding]:
    """Yield the clients on ``a`` of the release that a redirect can end, if redirects move clients."""
    if not (pair.a.is_ours and pair.limits.redirects):
        return
    found = sorted({str(client) for _, client in pair.a.clients() if client.version.startswith(_ABORTING)})
    if found:
        what = "this release ends its process when it is redirected, if it logs to Python or at debug level"
        remedy = 'log with pulsar.ConsoleLogger above debug level, or leave "redirect" out of move in [clients]'
        yield Finding(CheckKind.REDIRECT_ABORTS, Severity.WARNING, pair.a.name, what, remedy, tuple(found))


def clients_not_moved(pair: PairFacts) -> Iterator[Finding]:
    """Yield that nothing moves clients, if ``a`` is no cluster of ours and redirects are the only way."""
    if not pair.a.is_ours and pair.limits.redirects and not pair.limits.moves_otherwise:
        what = "redirects are the only way to move clients, and Apache Pulsar has none that leave its topics open"
        remedy = 'add "file" or "hook" to move in [clients], or leave it empty to move them by hand'
        yield Finding(CheckKind.CLIENTS_NOT_MOVED, Severity.ERROR, pair.a.name, what, remedy)


def _subscriptions(site: SiteFacts) -> Iterator[tuple[TopicName, SubscriptionFacts]]:
    for topic, facts in site.topics.items():
        for subscription in facts.subscriptions:
            yield topic, subscription


def _official_consumers(subscription: SubscriptionFacts) -> list[ClientFacts]:
    return [] if subscription.is_internal else [each for each in subscription.consumers if each.is_official]


def _official(site: SiteFacts, wanted: Callable[[SubscriptionFacts], bool]) -> tuple[str, ...]:
    found = {
        f"{topic.base} by {consumer}"
        for topic, each in _subscriptions(site)
        if wanted(each)
        for consumer in _official_consumers(each)
    }
    return tuple(sorted(found))


RULES: Final = (
    subscription_not_marked,
    subscription_behind,
    exclusive_producers,
    readers,
    cumulative_acks,
    ledgers_lower,
    redirect_aborts,
    clients_not_moved,
)
