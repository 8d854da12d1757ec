"""The policies of one topic as Pulsar's JSON knows them: what they do not set, its namespace decides.

The policies this broker acts on are attributes, one line each here and in `_POLICIES`; everything else that is stored
is kept in ``other`` and written back unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interpulse.model.policies import InactiveTopicPolicies

__all__ = ["TopicPolicies"]

_POLICIES: Final = {"inactiveTopicPolicies": ("inactive_topics", InactiveTopicPolicies)}
"""By the key in JSON: the attribute, and the class that reads and writes it."""


@dataclass(frozen=True, slots=True)
class TopicPolicies:
    """The policies of one topic, of all partitions if it is partitioned. None = not set here."""

    inactive_topics: InactiveTopicPolicies | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What is set; empty if nothing is."""
        values = {key: getattr(self, name) for key, (name, _) in _POLICIES.items()}
        return dict(self.other) | {key: value.to_json() for key, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> TopicPolicies:
        known = {name: kind.from_json(body[key]) for key, (name, kind) in _POLICIES.items() if body.get(key)}
        other = {key: value for key, value in body.items() if key not in _POLICIES and value is not None}
        return cls(other=other, **known)

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> TopicPolicies:
        return cls.from_json(json.loads(raw))

    def changed(self, **values: Any) -> TopicPolicies:
        """A copy with some policies replaced; None takes one away."""
        return replace(self, **values)
