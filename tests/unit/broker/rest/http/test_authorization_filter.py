"""The path of every route has what its permission asks about."""

from __future__ import annotations

import pytest

from interpulse.broker.rest.server import ROUTES
from interpulse.model.operations import Access, Operation
from interpulse.model.permissions import NamespaceOperation, TopicOperation

OPEN_TO_ALL = {"GET /livez", "GET /readyz", "GET /status.html", "GET /metrics"}
OPERATIONS = [route.operation for route in ROUTES]


def asks(operation: Operation) -> list[str]:
    match operation.permission:
        case TopicOperation():
            return ["{tenant}", "{namespace}", "{topic}"]
        case Access.POLICY | NamespaceOperation():
            return ["{tenant}", "{namespace}"]
        case Access.TENANT_ADMIN | Access.TENANT_ITSELF:
            return ["{tenant}"]
    return []


def test_operation_without_a_permission_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="permission"):
        Operation("GET", "/x")  # type: ignore[call-arg]


def test_operations_open_to_all_are_listed_here() -> None:
    open_to_all = [operation for operation in OPERATIONS if operation.permission is Access.OPEN]
    assert {f"{operation.method} {operation.path}" for operation in open_to_all} == OPEN_TO_ALL


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_path_names_what_the_permission_asks_about(operation: Operation) -> None:
    assert all(part in operation.path for part in asks(operation))
