"""Readers for policies in a broker's answers."""

from __future__ import annotations

from typing import Any, Final

from interpulse.client.json_readers import Read, UnexpectedJson, each, made_by, optional
from interpulse.model.policies.catalogue import TOPIC_CLUSTERS, PolicyAtLevel
from interpulse.model.policies.policy_records import BacklogQuota

QUOTAS: Final = each(made_by(BacklogQuota.from_json))
"""Reader for backlog quotas by type."""


def read_policy(entry: PolicyAtLevel) -> Read[Any]:
    """Return a reader for the policy. It returns None for an empty body and raises UnexpectedJson."""
    kind = entry.policy.kind

    def read(body: Any) -> Any:
        try:
            value = kind.read("the policy", body)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UnexpectedJson(f"{entry.level.path} ({error})") from error
        return list(value or ()) if kind is TOPIC_CLUSTERS else value

    return optional(read)
