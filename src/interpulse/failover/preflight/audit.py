"""Findings of the comparison that an audit makes, for the namespaces of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from interpulse.failover.preflight.facts import PairFacts, SiteFacts, is_checked
from interpulse.failover.preflight.findings import CheckKind, Finding
from interpulse.failover.preflight.shell_commands import admin_command, http_command
from interpulse.model.adjustments import Difference, DifferenceKind, Severity
from interpulse.model.changes import SetNamespacePolicy
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.change_forms import advice_of, command_of, request_of
from interpulse.rules.comparison import inventory_differences
from interpulse.rules.inventory import NamespaceInventory

_BLOCKING: Final = (DifferenceKind.SCHEMA_MISSING, DifferenceKind.SCHEMA_DIFFERENT)
"""Warnings of an audit that stop a switch: producers of the other site would be refused."""

REPLACED: Final[Mapping[DifferenceKind, CheckKind]] = {
    DifferenceKind.DEDUPLICATION: CheckKind.DEDUP_OFF,
    DifferenceKind.MESSAGE_TTL: CheckKind.TTL_SHORTER,
    DifferenceKind.RETENTION: CheckKind.RETENTION_SHORTER,
    DifferenceKind.SUBSCRIPTION_MISSING: CheckKind.SUBSCRIPTION_NOT_MARKED,
}
"""Differences that are left out where a finding of the preflight names the same thing with its effect."""


def differences(pair: PairFacts) -> list[Difference]:
    """Return the differences of all namespaces, with ``b`` as the target. System topics belong to each site alone."""
    found: list[Difference] = []
    for namespace, here in pair.a.namespaces.items():
        there = pair.b.namespaces.get(namespace, NamespaceInventory())
        found += inventory_differences(
            pair.b.cluster, namespace, _with_subscriptions(pair.a, here), _with_subscriptions(pair.b, there)
        )
    absent = {each.namespace for each in found if each.kind is DifferenceKind.NAMESPACE_MISSING}
    return [each for each in found if each.topic is None or (is_checked(each.topic) and each.namespace not in absent)]


def missing_namespaces(pair: PairFacts) -> Iterator[Finding]:
    """Yield the namespaces that do not exist on ``a``: a name in the file of the pair may be wrong."""
    for namespace, inventory in pair.a.namespaces.items():
        if inventory.state is None and inventory.error is None:
            what = f"the namespace does not exist on {pair.a.name}"
            remedy = "correct namespaces in [pair] of the file"
            yield Finding(
                DifferenceKind.NAMESPACE_MISSING, Severity.ERROR, pair.a.name, what, remedy, (str(namespace),)
            )


def _with_subscriptions(site: SiteFacts, inventory: NamespaceInventory) -> NamespaceInventory:
    """Return the inventory with the durable subscriptions of the statistics."""
    names: dict[TopicName, set[str]] = {}
    for topic, facts in site.topics.items():
        durable = {each.name for each in facts.subscriptions if each.is_durable and not each.is_internal}
        names.setdefault(topic.base, set()).update(durable)
    topics = {
        topic: row._replace(subscriptions=tuple(sorted(names[topic]))) if topic in names else row
        for topic, row in inventory.topics.items()
    }
    return replace(inventory, topics=topics)


def differing_topics(found: Iterable[Difference]) -> set[TopicName]:
    """Return the topics that differ so much that they cannot be copied: other rules leave them out."""
    return {each.topic for each in found if each.topic is not None and each.severity is Severity.ERROR}


def findings_of_differences(pair: PairFacts, found: Iterable[Difference], others: Iterable[Finding]) -> list[Finding]:
    """Return the findings of an audit, without those whose effect one of the ``others`` names."""
    named = {(finding.kind, subject) for finding in others for subject in finding.subjects}
    kept = [finding for each in found if (finding := _finding(pair, each, named)) is not None]
    return list(_merged(kept))


def _finding(pair: PairFacts, difference: Difference, named: set[tuple[str, str]]) -> Finding | None:
    subject = str(difference.topic or difference.namespace)
    replacing = REPLACED.get(difference.kind)
    if replacing is CheckKind.SUBSCRIPTION_NOT_MARKED:
        missing = [name for name in difference.source if (replacing, f"{name} of {subject}") not in named]
        if not missing:
            return None
        difference = replace(difference, source=missing)
    elif replacing is not None and (replacing, subject) in named:
        return None
    return Finding(
        difference.kind,
        Severity.ERROR if difference.kind in _BLOCKING else difference.severity,
        pair.b.name if difference.fault == "" or difference.target is not None else pair.a.name,
        _what(pair, difference),
        _remedy(pair.b, difference),
        (subject,),
    )


def _what(pair: PairFacts, difference: Difference) -> str:
    if difference.fault:
        return difference.fault
    here, there = (_shown(side) for side in (difference.source, difference.target))
    return f"{difference.field or 'it'} is {here} on {pair.a.name} and {there} on {pair.b.name}"


def _shown(side: object) -> str:
    if isinstance(side, Mapping) and len(side) == 1:
        (side,) = side.values()
    return "absent" if side in (None, {}, []) else str(side)


def _remedy(site: SiteFacts, difference: Difference) -> str:
    """Return the command on the target if one removes the difference, else the advice of an audit."""
    match difference.change:
        case None:
            return advice_of(difference, site.cluster)
        case SetNamespacePolicy() as change:
            request = request_of(change, local_only=True)
            return http_command(site.admin_url, request.method, request.path, request.body)
        case change:
            return admin_command(site.admin_url, command_of(change))


def _merged(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield one finding for those that differ in their subjects only."""
    groups: dict[tuple[str, str, str, str, str], list[str]] = {}
    for each in findings:
        key = (each.kind, each.severity, each.site, each.what, each.remedy)
        groups.setdefault(key, []).extend(each.subjects)
    for (kind, severity, site, what, remedy), subjects in groups.items():
        yield Finding(kind, Severity(severity), site, what, remedy, tuple(subjects))


def namespaces_of(pair: PairFacts) -> list[NamespaceName]:
    """Return the namespaces that exist on both sites."""
    return [
        name
        for name, inventory in pair.a.namespaces.items()
        if inventory.state is not None
        and (there := pair.b.namespaces.get(name)) is not None
        and there.state is not None
    ]
