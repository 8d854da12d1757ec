"""The namespaces that a visitor may see. Permission is that of the REST call for one namespace."""

from __future__ import annotations

from collections.abc import Callable

from interpulse.console.visit import Visit
from interpulse.console.web.addresses import admin_path, namespace_path
from interpulse.model.names import PERSISTENT, NamespaceName


class VisibleNamespaces:
    """Answers True for namespaces whose ``path`` the visitor may read. Each namespace is checked once."""

    def __init__(self, visit: Visit, path: Callable[[NamespaceName], str]) -> None:
        self._visit = visit
        self._path = path
        self._known: dict[NamespaceName, bool] = {}

    async def __call__(self, namespace: NamespaceName) -> bool:
        if namespace not in self._known:
            self._known[namespace] = not await self._visit.refusal("GET", self._path(namespace))
        return self._known[namespace]


def to_see_replication(namespace: NamespaceName) -> str:
    """Return the path of the replication status."""
    return namespace_path(namespace, "/replication/status")


def to_list_topics(namespace: NamespaceName) -> str:
    """Return the path of the list of topics."""
    return admin_path(PERSISTENT, namespace.tenant, namespace.local)
