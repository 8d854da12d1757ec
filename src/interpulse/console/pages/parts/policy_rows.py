"""The policies in force for a topic, each with the level that it comes from. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.rules.effective_policies import effective_policies, topic_level

TOPIC: Final = "topic"
EVERYWHERE: Final = "topic, on all its clusters"
NAMESPACE: Final = "namespace"
BROKER: Final = "broker"
_QUOTAS: Final = "backLogQuotaMap"


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy by its name in Pulsar's JSON; ``hidden`` are lower levels with other values."""

    name: str
    value: str
    level: str
    hidden: list[str]


def policy_rows(record: TopicPolicyRecord, namespace: TopicPolicies, broker: TopicPolicies) -> list[PolicyRow]:
    """Return the policies, with those of the topic and the namespace before those of the broker."""
    levels = [
        (TOPIC, _said(record.here)),
        (EVERYWHERE, _said(record.everywhere)),
        (NAMESPACE, _said(namespace)),
        (BROKER, _said(broker)),
    ]
    in_force = _said(effective_policies(topic_level(record), namespace, broker))
    rows = [_row(name, value, levels) for name, value in in_force.items()]
    order = [TOPIC, EVERYWHERE, NAMESPACE, BROKER]
    return sorted(rows, key=lambda row: (order.index(row.level), row.name))


def _said(policies: TopicPolicies) -> dict[str, Any]:
    """Return one entry per policy; quotas have one per type."""
    body = policies.to_json()
    quotas: Mapping[str, Any] = body.pop(_QUOTAS, None) or {}
    return {name: value for name, value in body.items() if value not in (None, [])} | {
        f"{_QUOTAS}.{kind}": value for kind, value in quotas.items()
    }


def _row(name: str, value: Any, levels: list[tuple[str, dict[str, Any]]]) -> PolicyRow:
    settings = [(level, said[name]) for level, said in levels if name in said]
    level = next((level for level, setting in settings if setting == value), BROKER)
    hidden = [f"{other}: {_text(setting)}" for other, setting in settings if other != level and setting != value]
    return PolicyRow(name, _text(value), level, hidden)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items() if item is not None)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
