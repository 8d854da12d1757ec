"""Policies of a standalone broker, with its cluster name replaced. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_LISTS: Final = ("allowedClusters", "allowed_clusters", "replication_clusters", "replicationClusters")
_RATES: Final = (
    "clusterDispatchRate",
    "clusterSubscribeRate",
    "publishMaxMessageRate",
    "replicatorDispatchRate",
    "subscriptionDispatchRate",
    "topicDispatchRate",
)
"""Policies keyed by the name of a cluster, or of two: `east->west`."""


def renamed(body: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return a document of a tenant, namespace or topic with one cluster name replaced by another."""

    def name_of(cluster: str) -> str:
        return new if cluster == old else cluster

    changed = dict(body)
    for field in _LISTS:
        if isinstance(body.get(field), list):
            changed[field] = list(dict.fromkeys(map(name_of, body[field])))
    for field in _RATES:
        if isinstance(body.get(field), dict):
            changed[field] = {"->".join(map(name_of, key.split("->"))): rate for key, rate in body[field].items()}
    if isinstance(body.get("global"), dict):
        changed["global"] = renamed(body["global"], old, new)
    return changed
