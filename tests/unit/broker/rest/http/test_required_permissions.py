"""Every route declares the permission that it requires, and its path has what the permission asks about."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from interpulse.broker.rest.http.call import RequiredPermission, Route
from interpulse.broker.rest.http.required_permissions import (
    on_namespace,
    on_policy,
    on_topic,
    open_to_all,
    tenant_admin,
    tenant_itself,
)
from interpulse.broker.rest.server import ROUTES
from interpulse.model.permissions import NamespaceOperation, TopicOperation

OPEN_TO_ALL = {"GET /livez", "GET /readyz", "GET /status.html", "GET /metrics"}


def kind(required: RequiredPermission) -> str:
    return getattr(required, "__qualname__", "")


def requiring(*permissions: RequiredPermission) -> Iterator[Route]:
    kinds = {kind(each) for each in permissions}
    return (route for route in ROUTES if kind(route.required) in kinds)


def test_route_when_no_permission_is_named_then_cannot_be_made() -> None:
    assert inspect.signature(Route).parameters["required"].default is inspect.Parameter.empty
    with pytest.raises(TypeError, match="required"):
        Route("GET", "/x", ROUTES[0].handler)  # type: ignore[call-arg]


def test_route_when_it_is_open_to_all_then_is_one_of_these() -> None:
    assert {f"{route.method} {route.path}" for route in requiring(open_to_all)} == OPEN_TO_ALL


@pytest.mark.parametrize(
    ("permissions", "asked"),
    [
        pytest.param([tenant_admin, tenant_itself], ["{tenant}"], id="tenant"),
        pytest.param([on_policy, on_namespace(NamespaceOperation.GET_TOPICS)], ["{tenant}", "{namespace}"], id="ns"),
        pytest.param([on_topic(TopicOperation.LOOKUP)], ["{tenant}", "{namespace}", "{topic}"], id="topic"),
    ],
)
def test_route_when_its_permission_asks_about_a_resource_then_the_path_names_it(
    permissions: list[RequiredPermission], asked: list[str]
) -> None:
    routes = list(requiring(*permissions))
    assert routes
    assert not [route for route in routes if not all(part in route.path for part in asked)]
