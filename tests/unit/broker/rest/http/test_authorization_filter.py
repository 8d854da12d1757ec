"""The permissions of operations: what they ask about, and who may call."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from interpulse.broker.rest.http.authorization_filter import AuthorizationFilter, check_permission
from interpulse.broker.rest.http.call import Call, Route
from interpulse.broker.rest.http.routing import MethodNotAllowed, Router
from interpulse.broker.rest.server import ROUTES
from interpulse.model.errors import AuthorizationError, NotFound, PulsarError, TenantNotFound, Unauthorized
from interpulse.model.operations import (
    Access,
    Brokers,
    Clusters,
    Grants,
    Namespaces,
    Operation,
    Subscriptions,
    Tenants,
    Topics,
)
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation

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


async def unused(call: Call) -> None:
    raise AssertionError


PARAMS = {"domain": "persistent", "tenant": "t", "namespace": "n", "topic": "x", "subscription": "s%252F", "role": "r"}


def call_of(operation: Operation, headers: Mapping[str, str] | None = None) -> Call:
    params = {name: value for name, value in PARAMS.items() if f"{{{name}}}" in operation.path}
    return Call(None, Route(operation, unused), params, {}, request_headers=headers or {})  # type: ignore[arg-type]


class Asked:
    """Authorization that notes each question, and refuses tenants with ``refusal``."""

    def __init__(self, refusal: PulsarError | None = None) -> None:
        self.questions: list[tuple[Any, ...]] = []
        self._refusal = refusal

    def check_super_user(self, principal: Principal) -> None:
        self.questions.append(("super user",))

    async def check_tenant_admin(self, principal: Principal, tenant: str, refusal: PulsarError | None = None) -> None:
        self.questions.append(("tenant", tenant))
        if self._refusal is not None:
            raise refusal or self._refusal

    async def check_namespace(self, principal: Principal, *question: Any) -> None:
        self.questions.append(tuple(map(str, question)))

    async def check_topic(self, principal: Principal, *question: Any) -> None:
        self.questions.append(tuple(map(str, question)))


@pytest.mark.parametrize(
    ("operation", "question"),
    [
        (Clusters.GET, ("super user",)),
        (Grants.GET_OF_TOPIC, ("tenant", "t")),
        (Tenants.GET, ("tenant", "t")),
        (Namespaces.GET_POLICIES, ("tenant", "t")),
        (Namespaces.CLEAR_ONE, ("CLEAR_BACKLOG", "t/n", "s%2F")),
        (Topics.GET_STATS, ("GET_STATS", "persistent://t/n/x", "None")),
        (Subscriptions.SKIP, ("SKIP", "persistent://t/n/x", "s/")),
    ],
)
async def test_permission_asks_one_question(operation: Operation, question: tuple[str, ...]) -> None:
    authorization = Asked()
    await check_permission(authorization, Principal("r"), call_of(operation))  # type: ignore[arg-type]
    assert authorization.questions == [question]


@pytest.mark.parametrize("operation", [Clusters.LIST, Brokers.IS_ALIVE])
async def test_any_role_is_asked_nothing(operation: Operation) -> None:
    authorization = Asked()
    await check_permission(authorization, Principal("r"), call_of(operation))  # type: ignore[arg-type]
    assert authorization.questions == []


@pytest.mark.parametrize(
    ("operation", "error", "text"),
    [
        (Tenants.GET, Unauthorized, "Don't have permission to administrate resources on this tenant"),
        (Namespaces.LIST, TenantNotFound, "gone"),
        (
            Namespaces.SET_CLUSTERS,
            AuthorizationError,
            "Unauthorized to validateNamespacePolicyOperation for operation [WRITE] on namespace [t/n] on policy "
            "[replication]",
        ),
        (
            Topics.GET_QUOTAS,
            AuthorizationError,
            "Unauthorized to validateTopicPolicyOperation for operation [READ] on topic [persistent://t/n/x] on policy "
            "[backlogQuotaMap]",
        ),
        (
            Namespaces.GET_POLICIES,
            AuthorizationError,
            "Unauthorized to validateNamespacePolicyOperation for operation [READ] on namespace [t/n] on policy [ALL]",
        ),
    ],
)
async def test_refusal_has_the_text_of_pulsar(operation: Operation, error: type[PulsarError], text: str) -> None:
    with pytest.raises(error) as refusal:
        await check_permission(Asked(TenantNotFound("gone")), Principal("r"), call_of(operation))  # type: ignore[arg-type]
    assert str(refusal.value) == text


def access(authenticated: list[str], *, metrics: bool = False) -> Any:
    async def authenticate_http(headers: Mapping[str, str], *, certificate: object) -> Any:
        authenticated.append("asked")
        return SimpleNamespace(role="r")

    return SimpleNamespace(
        authentication=SimpleNamespace(authenticate_http=authenticate_http),
        authorization=Asked(),
        metrics_authenticated=metrics,
        principal=lambda role, original, same_allowed: Principal(role, original),
    )


@pytest.mark.parametrize(
    ("operation", "metrics", "asked"),
    [
        (Brokers.IS_ALIVE, True, 0),
        (Brokers.GET_METRICS, False, 0),
        (Brokers.GET_METRICS, True, 1),
        (Clusters.LIST, False, 1),
    ],
)
async def test_open_operations_need_no_credentials(operation: Operation, metrics: bool, asked: int) -> None:
    authenticated: list[str] = []
    call = call_of(operation)
    await AuthorizationFilter(access(authenticated, metrics=metrics), None).check(call)
    assert len(authenticated) == asked
    assert (call.principal is not None) is (asked == 1)


async def test_caller_without_credentials_does_not_learn_which_paths_exist() -> None:
    authenticated: list[str] = []
    router = Router([Route(Clusters.LIST, unused)])
    for method, path, error in (("GET", "/x", NotFound), ("PUT", Clusters.LIST.path, MethodNotAllowed)):
        with pytest.raises(error):
            await AuthorizationFilter(access(authenticated), None).find(router, method, path, {})
    assert len(authenticated) == 2
    with pytest.raises(NotFound):
        await AuthorizationFilter(None, None).find(router, "GET", "/x", {})
