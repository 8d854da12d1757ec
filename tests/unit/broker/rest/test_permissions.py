"""Calls about permissions over namespaces that are really stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from interpulse.broker.rest import permissions
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import InvalidRequest, NamespaceNotFound, NotFound, TopicNotFound
from interpulse.model.names import PUBLIC_DEFAULT, NamespaceName, TopicName
from interpulse.model.operations import Grants as Operations
from interpulse.model.permissions import Permissions
from interpulse.model.topics import Existence, TopicKind
from tests.support.memory_storage import MemoryMetadataStore

TOPIC = TopicName.parse("persistent://public/default/t")
ABSENT = TopicName.parse("persistent://public/default/absent")
MISSING = NamespaceName("public", "missing")


class Lifecycle:
    """Knows one topic that is missing."""

    async def existence(self, name: TopicName) -> Existence:
        return Existence(TopicKind.ABSENT if name == ABSENT else TopicKind.NON_PARTITIONED)


class Grants:
    """Calls of the handlers, each with what it needs of its request."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces

    async def of_namespace(self, namespace: NamespaceName) -> Permissions:
        return (await self._namespaces.get_policies(namespace)).permissions

    async def _call(self, handler: Callable[[Any], Awaitable[Any]], body: Any = None, **values: Any) -> Any:
        context = SimpleNamespace(namespaces=self._namespaces, lifecycle=Lifecycle())
        request = {"json_or_none": lambda: body, "strings": lambda: body, "param": lambda name: values[name]}
        answer = await handler(SimpleNamespace(context=context, **request, **values))
        return answer

    async def grant(self, namespace: NamespaceName, role: str, actions: list[str]) -> None:
        await self._call(permissions.grant, actions, namespace=namespace, role=role)

    async def revoke(self, namespace: NamespaceName, role: str) -> None:
        (handler,) = (route.handler for route in permissions.ROUTES if route.operation is Operations.REVOKE)
        await self._call(handler, namespace=namespace, role=role)

    async def on_topic(self, topic: TopicName) -> dict[str, list[str]]:
        return dict(await self._call(permissions.get_of_topic, topic=topic))

    async def grant_on_topic(self, topic: TopicName, role: str, actions: list[str]) -> None:
        await self._call(permissions.grant_on_topic, actions, topic=topic, role=role)

    async def revoke_on_topic(self, topic: TopicName, role: str) -> None:
        await self._call(permissions.revoke_on_topic, topic=topic, role=role)

    async def grant_on_subscription(self, namespace: NamespaceName, subscription: str, roles: list[str]) -> None:
        await self._call(permissions.grant_on_subscription, roles, namespace=namespace, subscription=subscription)

    async def revoke_on_subscription(self, namespace: NamespaceName, subscription: str, role: str) -> None:
        options = {"namespace": namespace, "subscription": subscription, "role": role}
        await self._call(permissions.revoke_on_subscription, **options)

    async def auth_mode(self, namespace: NamespaceName) -> str:
        return str(await self._call(permissions.get_auth_mode, namespace=namespace))

    async def set_auth_mode(self, namespace: NamespaceName, mode: str | None) -> None:
        await self._call(permissions.set_auth_mode, mode, namespace=namespace)


@pytest.fixture
async def grants() -> Grants:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    return Grants(Namespaces(store, local_cluster="east"))


async def test_namespace_when_granted_and_revoked_then_shows_what_is_left(grants: Grants) -> None:
    await grants.grant(PUBLIC_DEFAULT, "app", ["produce"])
    await grants.grant(PUBLIC_DEFAULT, "other", ["consume"])
    await grants.revoke(PUBLIC_DEFAULT, "app")
    await grants.revoke(PUBLIC_DEFAULT, "never there")
    assert (await grants.of_namespace(PUBLIC_DEFAULT)).namespace == {"other": {"consume"}}


async def test_topic_when_granted_then_is_shown_with_what_its_namespace_grants(grants: Grants) -> None:
    await grants.grant(PUBLIC_DEFAULT, "app", ["produce"])
    await grants.grant_on_topic(TOPIC, "one", ["consume"])
    assert await grants.on_topic(TOPIC) == {"app": ["produce"], "one": ["consume"]}
    await grants.revoke_on_topic(TOPIC, "one")
    assert await grants.on_topic(TOPIC) == {"app": ["produce"]}


async def test_topic_when_absent_then_nothing_is_granted_to_its_creator(grants: Grants) -> None:
    for refused in (
        grants.on_topic(ABSENT),
        grants.grant_on_topic(ABSENT, "one", ["consume"]),
        grants.revoke_on_topic(ABSENT, "one"),
    ):
        with pytest.raises(TopicNotFound, match="absent not found"):
            await refused
    assert (await grants.of_namespace(PUBLIC_DEFAULT)).topics == {}


async def test_subscription_when_revoked_from_a_role_without_it_then_says_so(grants: Grants) -> None:
    await grants.grant_on_subscription(PUBLIC_DEFAULT, "s", ["one", "two"])
    await grants.revoke_on_subscription(PUBLIC_DEFAULT, "s", "one")
    assert (await grants.of_namespace(PUBLIC_DEFAULT)).subscriptions == {"s": {"two"}}
    for subscription, role in (("s", "one"), ("other", "two")):
        with pytest.raises(NotFound, match=f"Role {role} has no permission on subscription {subscription}"):
            await grants.revoke_on_subscription(PUBLIC_DEFAULT, subscription, role)


async def test_auth_mode_when_set_then_is_shown_and_none_by_default(grants: Grants) -> None:
    assert await grants.auth_mode(PUBLIC_DEFAULT) == "None"
    await grants.set_auth_mode(PUBLIC_DEFAULT, "Prefix")
    assert await grants.auth_mode(PUBLIC_DEFAULT) == "Prefix"
    await grants.set_auth_mode(PUBLIC_DEFAULT, None)
    assert await grants.auth_mode(PUBLIC_DEFAULT) == "None"


async def test_namespace_when_missing_then_every_call_says_so(grants: Grants) -> None:
    for call in (
        grants.of_namespace(MISSING),
        grants.grant(MISSING, "app", ["produce"]),
        grants.revoke(MISSING, "app"),
        grants.grant_on_subscription(MISSING, "s", ["app"]),
        grants.auth_mode(MISSING),
    ):
        with pytest.raises(NamespaceNotFound):
            await call


async def test_grant_when_it_means_nothing_then_is_refused_and_nothing_is_stored(grants: Grants) -> None:
    for call in (
        grants.grant(PUBLIC_DEFAULT, "app", ["read"]),
        grants.grant(PUBLIC_DEFAULT, " ", ["produce"]),
        grants.grant_on_topic(TOPIC, "app", []),
        grants.grant_on_subscription(PUBLIC_DEFAULT, "s", []),
    ):
        with pytest.raises(InvalidRequest):
            await call
    assert (await grants.of_namespace(PUBLIC_DEFAULT)).to_json()["namespace_auth"] == {}
