"""The description of the API beside the routes that answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from interpulse.broker.rest.http.call import Answer, Call, Route
from interpulse.broker.rest.http.routing import Router
from interpulse.broker.rest.openapi import described, document
from interpulse.broker.rest.server import ROUTES
from interpulse.model.operations import Access, Brokers, Operation

ROUTER = Router(ROUTES)
TEMPLATE = re.compile(r"{(\w+)}")


@pytest.fixture(scope="module")
def described_routes() -> dict[str, Any]:
    (route,) = [route for route in ROUTES if route.operation.path == "/openapi.json"]
    coroutine = route.handler(None)  # type: ignore[arg-type]  # it looks at nothing
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)  # type: ignore[attr-defined]  # nor does it wait
    answer: Answer = ended.value.value
    assert answer.content_type == "application/json"
    found: dict[str, Any] = json.loads(answer.body)
    return found


def test_every_route_is_described_and_found_under_its_description(described_routes: dict[str, Any]) -> None:
    found = set()
    for path, operations in described_routes["paths"].items():
        for method in operations:
            route, params = ROUTER.find(method.upper(), TEMPLATE.sub(lambda name: f"any-{name[1]}", path))
            assert {f"any-{name}" for name in TEMPLATE.findall(path)} <= set(params.values()), path
            found.add(route)
    assert found == set(ROUTES)


def test_description_is_valid(described_routes: dict[str, Any]) -> None:
    """The rules of OpenAPI 3.0 that concern what stands in it."""
    assert described_routes["openapi"].startswith("3.0.")
    assert set(described_routes) <= {"openapi", "info", "servers", "paths", "components", "security", "tags"}
    assert described_routes["info"].keys() >= {"title", "version"}
    shapes = [TEMPLATE.sub("{}", path) for path in described_routes["paths"]]
    assert len(shapes) == len(set(shapes)), "paths that differ in the names of their parts only are the same path"
    operations = [
        (path, operation) for path, methods in described_routes["paths"].items() for operation in methods.values()
    ]
    names = [operation["operationId"] for _, operation in operations]
    assert len(names) == len(set(names))
    schemes = described_routes["components"]["securitySchemes"].keys()
    for path, operation in operations:
        assert path.startswith("/")
        parameters = operation["parameters"]
        assert [each["name"] for each in parameters] == TEMPLATE.findall(path)
        assert all(each["in"] == "path" and each["required"] and each["schema"] for each in parameters)
        assert len({each["name"] for each in parameters}) == len(parameters)
        assert all(re.fullmatch(r"[1-5](\d\d|XX)|default", status) for status in operation["responses"])
        assert all(answer["description"] for answer in operation["responses"].values())
        assert all(each.keys() <= schemes for each in operation["security"])
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(described_routes)):
        place: Any = described_routes
        for part in reference.split("/"):
            place = place[part]


async def read_stats(call: Call) -> Answer:
    """The figures."""
    return Answer()


ALIVE = Route(Brokers.IS_ALIVE, read_stats)


def test_operation_says_what_its_route_knows() -> None:
    topic = "/admin/v2/{domain}/{tenant}/internalStats"
    one = document(
        [Route(Operation("GET", topic, Access.ANY_ROLE), read_stats), ALIVE],
        not_offered=[Route(Operation("PUT", "/admin/v2/packages/{name}", Access.ANY_ROLE), read_stats)],
    )
    assert list(one["paths"]) == [
        "/admin/v2/persistent/{tenant}/internalStats",
        "/admin/v2/non-persistent/{tenant}/internalStats",
        "/livez",
        "/admin/v2/packages/{name}",
    ]
    stats = one["paths"]["/admin/v2/non-persistent/{tenant}/internalStats"]["get"]
    assert stats["operationId"] == "get_admin_v2_non_persistent_tenant_internalStats"
    assert (stats["tags"], stats["summary"], stats["description"]) == (
        ["non-persistent"],
        "Read internal stats",
        "The figures.",
    )
    assert stats["security"][-1] == {}
    assert one["paths"]["/livez"]["get"]["security"] == []
    packages = one["paths"]["/admin/v2/packages/{name}"]["put"]
    assert packages["tags"] == ["not offered"]
    assert "requestBody" in packages
    assert "requestBody" not in stats


def test_description_describes_itself() -> None:
    routes = described([ALIVE])
    assert [route.operation.path for route in routes] == ["/livez", "/openapi.json"]
