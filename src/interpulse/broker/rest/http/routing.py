"""The handler of each path.

The paths form a tree of parts; a literal part wins over a variable one. Paths are matched as sent, because a topic name
may hold an encoded slash. A slash at the end is ignored for reads, as in Pulsar. For writes it is significant: it may
be the rest of a missing name, and the path without the name would mean every resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interpulse.broker.rest.http.call import Route
from interpulse.model.errors import NotFound
from interpulse.model.names import NON_PERSISTENT, PERSISTENT


class MethodNotAllowed(Exception):
    """The path exists, but not with this method."""

    http_status = 405

    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = tuple(sorted(allowed))
        super().__init__(f"{method} is not allowed here, only {', '.join(self.allowed)}")


def spelled_out(path: str) -> list[tuple[str, dict[str, str]]]:
    """Return the path with the parts it fixes: once per topic domain, or once."""
    if "{domain}" not in path:
        return [(path, {})]
    return [(path.replace("{domain}", domain), {"domain": domain}) for domain in (PERSISTENT, NON_PERSISTENT)]


@dataclass(slots=True)
class _Leaf:
    route: Route
    names: tuple[str, ...]
    constants: dict[str, str]


@dataclass(slots=True)
class _Node:
    literal: dict[str, _Node] = field(default_factory=dict)
    varying: _Node | None = None
    leaves: dict[str, _Leaf] = field(default_factory=dict)


class Router:
    """Finds handlers; built once from all routes."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            for path, constants in spelled_out(route.operation.path):
                self._add(route, path, constants)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route and the variable parts by name. Raise NotFound or MethodNotAllowed."""
        parts = (path.removesuffix("/") if method == "GET" else path).split("/")[1:]
        allowed: set[str] = set()
        found = _find(self._root, method, parts, 0, [], allowed)
        if found is not None:
            leaf, values = found
            return leaf.route, leaf.constants | dict(zip(leaf.names, values, strict=True))
        if allowed:
            raise MethodNotAllowed(method, allowed)
        raise NotFound(f"No resource at {path}")

    def _add(self, route: Route, path: str, constants: dict[str, str]) -> None:
        node, names = self._root, []
        for part in path.split("/")[1:]:
            if part.startswith("{"):
                names.append(part[1:-1])
                node.varying = node.varying or _Node()
                node = node.varying
            else:
                node = node.literal.setdefault(part, _Node())
        method = route.operation.method
        assert method not in node.leaves, f"two routes for {method} {path}"
        node.leaves[method] = _Leaf(route, tuple(names), constants)


def _find(
    node: _Node, method: str, parts: list[str], depth: int, values: list[str], allowed: set[str]
) -> tuple[_Leaf, list[str]] | None:
    if depth == len(parts):
        leaf = node.leaves.get(method)
        if leaf is None:
            allowed.update(node.leaves)
            return None
        return leaf, values
    part = parts[depth]
    literal = node.literal.get(part)
    found = None if literal is None else _find(literal, method, parts, depth + 1, values, allowed)
    if found is None and node.varying is not None and part:
        found = _find(node.varying, method, parts, depth + 1, [*values, part], allowed)
    return found
