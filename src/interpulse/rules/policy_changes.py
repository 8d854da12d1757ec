"""Decisions on single policies: the documents of a namespace or topic with one policy set or removed.

A refusal is an error of `interpulse.model.errors`. A value of None removes the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from interpulse.model.changes import Decision, SetTopicPolicies
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.policies.catalogue import PolicyAtLevel
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import DESTINATION_STORAGE, BacklogQuota
from interpulse.rules.effective_policies import effective_policies
from interpulse.rules.policy_checks import check_quotas_fit

_REMEDY: Final = "Please increase retention quota and retry"
_NAMESPACE_RETENTION: Final = "Retention Quota must exceed configured backlog quota for namespace."
_NAMESPACE_QUOTA: Final = f"Backlog Quota exceeds configured retention quota for namespace. {_REMEDY}"
_TOPIC_RETENTION: Final = f"Retention Quota must exceed configured backlog quota for topic. {_REMEDY}"
_TOPIC_QUOTA: Final = f"Backlog Quota exceeds configured retention quota for topic. {_REMEDY}"


def namespace_with_policy(
    policies: NamespacePolicies, entry: PolicyAtLevel, value: Any, *, cluster: str
) -> NamespacePolicies:
    """Set a policy of a namespace. A policy with one value per cluster is set for ``cluster``.

    Raise PreconditionFailed for a retention below the size quota. As in Pulsar the age quota does not count here.
    """
    if entry.level.plural:
        value = _replaced(getattr(policies, entry.attribute), cluster, value)
    changed = policies.changed(**{entry.attribute: value})
    if entry.attribute == "retention":
        _check_size_quota(changed, _NAMESPACE_RETENTION)
    return changed


def namespace_with_quota(policies: NamespacePolicies, kind: str, quota: BacklogQuota | None) -> NamespacePolicies:
    """Set the backlog quota of one type. Raise PreconditionFailed for a size above the retention."""
    changed = policies.changed(backlog_quotas=_replaced(policies.backlog_quotas, kind, quota))
    if kind == DESTINATION_STORAGE and quota is not None:
        _check_size_quota(changed, _NAMESPACE_QUOTA)
    return changed


def topic_with_policy(
    policies: TopicPolicies, entry: PolicyAtLevel, value: Any, *, namespace: TopicPolicies
) -> TopicPolicies:
    """Set a policy of a topic. ``namespace`` has the policies of its namespace.

    Raise PreconditionFailed for a retention below a quota in force. Only this policy is checked, so that an earlier
    contradiction does not block others.
    """
    changed = policies.changed(**{entry.attribute: value})
    if entry.attribute == "retention" and value is not None:
        in_force = effective_policies(changed, namespace, TopicPolicies())
        check_quotas_fit((in_force.backlog_quotas or {}).values(), in_force.retention, _TOPIC_RETENTION)
    return changed


def topic_with_quota(
    policies: TopicPolicies, kind: str, quota: BacklogQuota | None, *, namespace: TopicPolicies
) -> TopicPolicies:
    """Set the backlog quota of one type. Raise PreconditionFailed for a quota above the retention in force."""
    changed = policies.changed(backlog_quotas=_replaced(policies.backlog_quotas or {}, kind, quota) or None)
    in_force = effective_policies(changed, namespace, TopicPolicies())
    check_quotas_fit([quota] if quota else [], in_force.retention, _TOPIC_QUOTA)
    return changed


def _replaced(values: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    joined = {**values, name: value}
    return {name: value for name, value in joined.items() if value is not None}


def _check_size_quota(policies: NamespacePolicies, refusal: str) -> None:
    quota = policies.backlog_quotas.get(DESTINATION_STORAGE)
    check_quotas_fit([quota] if quota else [], policies.retention, refusal)


def decide_reported_policies(
    name: TopicName,
    record: TopicPolicyRecord | None,
    policies: TopicPolicies | None,
    position: Position,
    *,
    everywhere: bool,
) -> Decision[None]:
    """Store one level of a topic's policies, None = removed, unless the record has a later event of that level.

    ``position`` is that of the event, ``record`` the stored one. Nothing is stored for a topic without policies.
    """
    old = record or TopicPolicyRecord()
    seen = old.position(everywhere=everywhere)
    if seen is not None and seen >= position:
        return Decision(None)
    changed = old.changed(policies or TopicPolicies(), everywhere=everywhere).reported_at(
        position, everywhere=everywhere
    )
    if record is None and not changed.to_json():
        return Decision(None)
    return Decision(None, (SetTopicPolicies(name, changed),))
