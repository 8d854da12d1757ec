"""The policies in force for a topic, each with the level that it comes from. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.rules.effective_policies import effective_policies, topic_level

_LEVELS: Final = ("topic", "topic, on all its clusters", "namespace", "broker")
_QUOTAS: Final = "backLogQuotaMap"


def policy_rows(record: TopicPolicyRecord, namespace: TopicPolicies, broker: TopicPolicies) -> list[dict[str, Any]]:
    """Return the policies by name, with those of the topic and the namespace before those of the broker."""
    policies = zip(_LEVELS, (record.here, record.everywhere, namespace, broker), strict=True)
    levels = {level: _entries(of_level) for level, of_level in policies}
    in_force = _entries(effective_policies(topic_level(record), namespace, broker))
    rows = [_row(name, value, levels) for name, value in in_force.items()]
    return sorted(rows, key=lambda row: (_LEVELS.index(row["level"]), row["name"]))


def _entries(policies: TopicPolicies) -> dict[str, Any]:
    """Return one entry per policy; quotas have one per type."""
    body = policies.to_json()
    quotas: Mapping[str, Any] = body.pop(_QUOTAS, None) or {}
    entries = {name: value for name, value in body.items() if value not in (None, [])}
    return entries | {f"{_QUOTAS}.{kind}": value for kind, value in quotas.items()}


def _row(name: str, value: Any, levels: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    settings = {level: entries[name] for level, entries in levels.items() if name in entries}
    source = next((level for level, setting in settings.items() if setting == value), _LEVELS[-1])
    hidden = [f"{level}: {_text(item)}" for level, item in settings.items() if level != source and item != value]
    return {"name": name, "value": _text(value), "level": source, "hidden": hidden}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items() if item is not None)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
