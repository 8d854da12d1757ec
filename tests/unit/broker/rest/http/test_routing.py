"""Paths find their handlers."""

from __future__ import annotations

import pytest

from interpulse.broker.rest.http.call import Answer, Call, Handler, Route
from interpulse.broker.rest.http.routing import MethodNotAllowed, Router
from interpulse.model.errors import NotFound
from interpulse.model.operations import Access, Operation


def handler_named(name: str) -> Handler:
    async def handler(call: Call) -> Answer:
        raise AssertionError(name)

    handler.__name__ = name
    return handler


ROUTER = Router(
    [
        Route(Operation("GET", "/namespaces/{tenant}", Access.OPEN), handler_named("list_namespaces")),
        Route(Operation("GET", "/namespaces/{tenant}/{namespace}/topics", Access.OPEN), handler_named("list_topics")),
        Route(
            Operation("GET", "/{domain}/{tenant}/{namespace}/partitioned", Access.OPEN),
            handler_named("list_partitioned"),
        ),
        Route(Operation("PUT", "/{domain}/{tenant}/{namespace}/{topic}", Access.OPEN), handler_named("create")),
        Route(Operation("GET", "/{domain}/{tenant}/{namespace}/{topic}/stats", Access.OPEN), handler_named("stats")),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "name", "params"),
    [
        ("GET", "/namespaces/demo", "list_namespaces", {"tenant": "demo"}),
        ("GET", "/namespaces/demo/", "list_namespaces", {"tenant": "demo"}),
        ("GET", "/namespaces/demo/a/topics", "list_topics", {"tenant": "demo", "namespace": "a"}),
        (
            "GET",
            "/persistent/demo/a/partitioned",
            "list_partitioned",
            {"domain": "persistent", "tenant": "demo", "namespace": "a"},
        ),
        (
            "PUT",
            "/persistent/demo/a/partitioned",
            "create",
            {"domain": "persistent", "tenant": "demo", "namespace": "a", "topic": "partitioned"},
        ),
        (
            "GET",
            "/non-persistent/demo/a/partitioned/stats",
            "stats",
            {"domain": "non-persistent", "tenant": "demo", "namespace": "a", "topic": "partitioned"},
        ),
        (
            "PUT",
            "/persistent/demo/a/x%2Fy+z",
            "create",
            {"domain": "persistent", "tenant": "demo", "namespace": "a", "topic": "x%2Fy+z"},
        ),
    ],
)
def test_path_finds_its_handler(method: str, path: str, name: str, params: dict[str, str]) -> None:
    route, found = ROUTER.find(method, path)
    assert (route.handler.__name__, found) == (name, params)


@pytest.mark.parametrize(
    "path", ["/", "", "/namespaces", "/namespaces/", "/namespaces/demo//", "/topic/demo/a/x", "/persistent/demo//x"]
)
def test_path_without_a_route_is_not_found(path: str) -> None:
    with pytest.raises(NotFound):
        ROUTER.find("GET", path)


def test_path_that_lacks_a_name_changes_nothing() -> None:
    with pytest.raises(NotFound):
        ROUTER.find("PUT", "/persistent/demo/a/x/")


def test_method_without_a_route_names_those_there_are() -> None:
    with pytest.raises(MethodNotAllowed) as refusal:
        ROUTER.find("DELETE", "/persistent/demo/a/partitioned")
    assert refusal.value.allowed == ("GET", "PUT")


def test_two_routes_for_one_path_are_a_mistake() -> None:
    route = Route(Operation("GET", "/x", Access.OPEN), handler_named("x"))
    with pytest.raises(AssertionError, match="two routes for GET /x"):
        Router([route, route])
