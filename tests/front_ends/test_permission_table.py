"""Every route and every command, by every kind of caller, about what exists and what does not.

The rows are the routing table and the table of commands themselves. What is expected stands here, by the need that a
route declares: a route with a need of its own is red until it is written down. No handler runs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from interpulse.authentication.authentication import Authentication
from interpulse.authentication.tokens import TokenProvider
from interpulse.broker.access.authorization import Authorization
from interpulse.broker.access.setup import Access
from interpulse.broker.binary.handlers import AWAITING
from interpulse.broker.rest.http.authorization_filter import AuthorizationFilter
from interpulse.broker.rest.http.call import Call, Route
from interpulse.broker.rest.http.routing import Router, spelled_out
from interpulse.broker.rest.server import ROUTES
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model import operations
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import Permissions, Principal, TopicOperation
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.tokens import SECRET, signed

SUPER: Final = frozenset({"super"})
TENANT: Final = SUPER | {"tenant-admin"}
PRODUCERS: Final = TENANT | {"produces"}
CONSUMERS: Final = TENANT | {"consumes"}
CLIENTS: Final = PRODUCERS | CONSUMERS
ROLES: Final = CLIENTS | {"other-admin", "packages", "stranger"}
"""Those that hold a token. ``anonymous`` and ``expired`` come besides."""

PLACES: Final = {
    "topic": ("acme", "app", "t"),
    "no topic": ("acme", "app", "gone"),
    "no namespace": ("acme", "gone", "t"),
    "no tenant": ("gone", "gone", "t"),
}

NEEDS: Final[Mapping[str, frozenset[str]]] = {
    "ANY_ROLE": ROLES,
    "SUPER_USER": SUPER,
    "TENANT_ADMIN": TENANT,
    "TENANT_ITSELF": TENANT,
    "POLICY": TENANT,
    "namespace CREATE_TOPIC": TENANT,
    "namespace DELETE_TOPIC": TENANT,
    "namespace GET_PERMISSION": TENANT,
    "namespace GRANT_PERMISSION": TENANT,
    "namespace REVOKE_PERMISSION": TENANT,
    "namespace GET_TOPICS": CLIENTS,
    "namespace GET_BUNDLE": CLIENTS,
    "namespace CLEAR_BACKLOG": CONSUMERS,
    "namespace UNSUBSCRIBE": CONSUMERS,
    "topic COMPACT": TENANT,
    "topic DELETE_METADATA": TENANT,
    "topic OFFLOAD": TENANT,
    "topic TERMINATE": TENANT,
    "topic TRIM_TOPIC": TENANT,
    "topic UNLOAD": TENANT,
    "topic UPDATE_METADATA": TENANT,
    "topic PRODUCE": PRODUCERS,
    "topic GET_METADATA": CLIENTS,
    "topic GET_STATS": CLIENTS,
    "topic LOOKUP": CLIENTS,
    "topic CONSUME": CONSUMERS,
    "topic EXPIRE_MESSAGES": CONSUMERS,
    "topic GET_BACKLOG_SIZE": CONSUMERS,
    "topic GET_REPLICATED_SUBSCRIPTION_STATUS": CONSUMERS,
    "topic GET_SUBSCRIPTIONS": CONSUMERS,
    "topic PEEK_MESSAGES": CONSUMERS,
    "topic RESET_CURSOR": CONSUMERS,
    "topic SET_REPLICATED_SUBSCRIPTION_STATUS": CONSUMERS,
    "topic SKIP": CONSUMERS,
    "topic SUBSCRIBE": CONSUMERS,
    "topic UNSUBSCRIBE": CONSUMERS,
    "_to_produce": PRODUCERS,
    "_to_subscribe": CONSUMERS,
    "_nothing": ROLES,
}
"""Who may, where the namespace exists. Elsewhere nothing is granted: administrators alone are left."""

ABOUT_A_SUBJECT: Final = re.compile("topic |namespace |POLICY|TENANT_|_to_")


@pytest.fixture(scope="module")
def access() -> Access:
    """A tenant with a namespace, and roles with one grant each there."""

    async def build() -> Access:
        store = MemoryMetadataStore()
        await bootstrap(store, local_cluster="east", cluster=ClusterData())
        tenants, namespaces = Tenants(store), Namespaces(store, local_cluster="east")
        await tenants.create("acme", TenantInfo(("tenant-admin",), ("east",)))
        await tenants.create("other", TenantInfo(("other-admin",), ("east",)))
        grants = Permissions()
        for role, action in (("produces", "produce"), ("consumes", "consume"), ("packages", "packages")):
            grants = grants.grant(role, [action])
        await namespaces.create(NamespaceName("acme", "app"), NamespacePolicies(granted=grants))
        authentication = Authentication([TokenProvider(SECRET)])
        return Access(authentication, Authorization(tenants, namespaces, super_users=["super"]))

    return asyncio.run(build())


def header(role: str) -> dict[str, str]:
    if role == "anonymous":
        return {}
    return {"Authorization": "Bearer " + (signed(sub="super", exp=1) if role == "expired" else signed(sub=role))}


def filled(path: str, place: tuple[str, str, str]) -> str:
    known = dict(zip(("tenant", "namespace", "topic"), place, strict=True))
    return re.sub(r"{(\w+)}", lambda part: known.get(part[1], "x"), path)


def expected(need: str, place: str) -> frozenset[str]:
    allowed = NEEDS[need]
    if not ABOUT_A_SUBJECT.match(need):
        return allowed
    if place == "no tenant":
        return allowed & SUPER
    return allowed & TENANT if place == "no namespace" else allowed


def need_of(route: Route) -> str:
    permission = route.operation.permission
    if isinstance(permission, operations.Access):
        return permission.name
    return f"{'topic' if isinstance(permission, TopicOperation) else 'namespace'} {permission}"


async def refusal(access: Access, router: Router, route: Route, path: str, role: str) -> str | None:
    """The status and the reason; None if the handler would run."""
    found, params = router.find(route.operation.method, path)
    assert found is route, f"{path} is {found.operation.path}"
    call = Call(None, route, params, {}, request_headers=header(role))  # type: ignore[arg-type]
    try:
        await AuthorizationFilter(access, None).check(call)
    except PulsarError as error:
        return f"{error.http_status} {error}"
    return None


def test_need_when_a_route_or_command_declares_one_then_it_is_written_down() -> None:
    declared = {need_of(route) for route in ROUTES} | {check.__name__ for _, _, check in AWAITING.values()}
    assert declared - {"OPEN"} == set(NEEDS)


@pytest.mark.parametrize("place", PLACES)
async def test_every_route_by_every_caller(access: Access, place: str) -> None:
    router, wrong = Router(ROUTES), []
    for route in ROUTES:
        need = need_of(route)
        for spelled, _ in spelled_out(route.operation.path):
            path = filled(spelled, PLACES[place])
            for role in (*sorted(ROLES), "anonymous", "expired"):
                told = await refusal(access, router, route, path, role)
                allowed = need == "OPEN" or role in expected(need, place)
                if (told is None) is not allowed or (
                    role in ("anonymous", "expired") and told not in (None, "401 Authentication required")
                ):
                    wrong.append(f"{route.operation.method} {path} by {role}: {told}")
    assert not wrong, "\n".join(wrong[:40])


async def test_refusal_of_a_call_when_compared_then_does_not_tell_what_exists(access: Access) -> None:
    router, telling = Router(ROUTES), []
    for route in ROUTES:
        for spelled, _ in spelled_out(route.operation.path):
            for role in sorted(ROLES - TENANT):
                told = []
                for place in ("topic", "no topic", "no namespace"):
                    names = PLACES[place]
                    reason = await refusal(access, router, route, filled(spelled, names), role)
                    told.append(reason and reason.replace("/".join(names), "T").replace("/".join(names[:2]), "N"))
                if told[0] is not None and len(set(told)) > 1:
                    telling.append(f"{route.operation.method} {spelled} by {role}: {told}")
    assert not telling, "\n".join(telling[:40])


@pytest.mark.parametrize("place", PLACES)
async def test_every_command_by_every_caller(access: Access, place: str) -> None:
    wrong = []
    for kind, (field, _, check) in AWAITING.items():
        for role in sorted(ROLES):
            told = await refused_command(access, check, request(field, PLACES[place]), role)
            if (told is None) is not (role in expected(check.__name__, place)):
                wrong.append(f"{pb.BaseCommand.Type.Name(kind)} by {role}: {told}")  # type: ignore[arg-type]
    assert not wrong, "\n".join(wrong)


async def test_refusal_of_a_command_when_compared_then_does_not_tell_what_exists(access: Access) -> None:
    for kind, (field, _, check) in AWAITING.items():
        for role in sorted(ROLES - TENANT):
            told = [
                await refused_command(access, check, request(field, PLACES[place]), role)
                for place in ("topic", "no topic", "no namespace")
            ]
            assert told[0] is None or len(set(told)) == 1, (kind, role, told)


async def refused_command(access: Access, check: Any, asked: Any, role: str) -> str | None:
    try:
        await check(access.authorization, Principal(role), asked)
    except PulsarError as error:
        return f"{error.wire_code} {error}"
    return None


def request(field: str, place: tuple[str, str, str]) -> Any:
    """The request of a command about this topic or its namespace, as far as it names one."""
    asked = getattr(pb.BaseCommand(), field)
    names = {each.name for each in asked.DESCRIPTOR.fields}
    if "topic" in names and not asked.DESCRIPTOR.fields_by_name["topic"].is_repeated:
        asked.topic = str(TopicName.of("persistent", *place))
    if "namespace" in names:
        asked.namespace = "/".join(place[:2])
    if "subscription" in names:
        asked.subscription = "s"
    return asked
