"""Who may do what, read from tenants and namespaces that are really stored."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from interpulse.broker.access.authorization import Authorization
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import AuthorizationError, TenantNotFound, Unauthorized
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import NamespaceOperation, Permissions, Principal, TopicOperation
from interpulse.model.policies.policy_documents import NamespacePolicies
from tests.support.memory_storage import MemoryMetadataStore

APP = NamespaceName("acme", "app")
TOPIC = TopicName.parse("persistent://acme/app/t")
NOWHERE = TopicName.parse("persistent://acme/gone/t")
NO_TENANT = TopicName.parse("persistent://gone/gone/t")

ROOT, ADMIN, WRITER, READER, NOBODY = (Principal(role) for role in ("root", "admin", "writer", "reader", "nobody"))


@pytest.fixture
async def authorization() -> Authorization:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    tenants, namespaces = Tenants(store), Namespaces(store, local_cluster="east")
    await tenants.create("acme", TenantInfo(("admin",), ("east",)))
    grants = (
        Permissions().grant("writer", ["produce"]).grant("reader", ["consume"]).grant("proxy", ["produce", "consume"])
    ).grant("copier", ["consume"])
    await namespaces.create(APP, NamespacePolicies(granted=grants))
    return Authorization(
        tenants, namespaces, super_users=["root"], proxies=["proxy", "root-proxy"], replicators=["copier"]
    )


async def allowed(authorization: Authorization, principal: Principal, topic: TopicName = TOPIC) -> set[str]:
    """Of some operations those that are allowed."""
    granted = set()
    for operation in (TopicOperation.PRODUCE, TopicOperation.CONSUME, TopicOperation.LOOKUP, TopicOperation.TERMINATE):
        try:
            await authorization.check_topic(principal, operation, topic)
        except Unauthorized:
            continue
        granted.add(str(operation))
    return granted


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        (ROOT, "PRODUCE CONSUME LOOKUP TERMINATE"),
        (ADMIN, "PRODUCE CONSUME LOOKUP TERMINATE"),
        (WRITER, "PRODUCE LOOKUP"),
        (READER, "CONSUME LOOKUP"),
        (NOBODY, ""),
        (Principal("proxy", "writer"), "PRODUCE LOOKUP"),
        (Principal("proxy", "admin"), "PRODUCE CONSUME LOOKUP"),
        (Principal("proxy", "nobody"), ""),
        (Principal("root", "reader"), "CONSUME LOOKUP"),
        (Principal("nobody", "root"), ""),
    ],
    ids=str,
)
async def test_topic_when_asked_for_then_every_role_that_is_concerned_has_to_be_allowed(
    authorization: Authorization, principal: Principal, expected: str
) -> None:
    assert await allowed(authorization, principal) == set(expected.split())


async def test_topic_when_its_namespace_is_missing_then_only_administrators_get_past(
    authorization: Authorization,
) -> None:
    assert len(await allowed(authorization, ADMIN, NOWHERE)) == 4
    assert await allowed(authorization, WRITER, NOWHERE) == set()


async def test_tenant_when_missing_then_all_but_super_users_are_told(authorization: Authorization) -> None:
    assert len(await allowed(authorization, ROOT, NO_TENANT)) == 4
    with pytest.raises(TenantNotFound):
        await authorization.check_topic(ADMIN, TopicOperation.LOOKUP, NO_TENANT)


async def test_namespace_when_asked_for_then_grants_on_it_count(authorization: Authorization) -> None:
    await authorization.check_namespace(READER, NamespaceOperation.GET_TOPICS, APP)
    await authorization.check_namespace(ADMIN, NamespaceOperation.CREATE_TOPIC, APP)
    for principal, operation in ((READER, NamespaceOperation.CREATE_TOPIC), (NOBODY, NamespaceOperation.GET_TOPICS)):
        with pytest.raises(AuthorizationError, match=str(operation)):
            await authorization.check_namespace(principal, operation, APP)


async def test_tenant_when_asked_for_then_its_administrators_pass(authorization: Authorization) -> None:
    await authorization.check_tenant_admin(ROOT, "acme")
    await authorization.check_tenant_admin(ADMIN, "acme")
    with pytest.raises(Unauthorized, match="administrate resources on this tenant"):
        await authorization.check_tenant_admin(WRITER, "acme")
    with pytest.raises(AuthorizationError, match="because"):
        await authorization.check_tenant_admin(ADMIN, "public", AuthorizationError("because"))


def test_cluster_when_asked_for_then_only_super_users_pass(authorization: Authorization) -> None:
    authorization.check_super_user(ROOT)
    for principal in (ADMIN, Principal("root", "admin"), Principal("proxy", "root")):
        with pytest.raises(Unauthorized, match="super-user access"):
            authorization.check_super_user(principal)


def test_replicator_when_it_calls_itself_one_then_its_role_has_to_be_listed(authorization: Authorization) -> None:
    names = ("copier", "root", "writer")
    assert [authorization.is_replicator(Principal(name)) for name in names] == [True, True, False]
    assert not authorization.is_replicator(Principal("copier", "writer"))


@pytest.mark.parametrize(("role", "allowed"), [("root", 1), ("admin", 1), ("copier", 1), ("reader", 0), ("writer", 0)])
async def test_replication_cursor_when_it_is_named_then_only_replicators_and_administrators_may(
    authorization: Authorization, role: str, allowed: bool
) -> None:
    operations = (TopicOperation.CONSUME, TopicOperation.UNSUBSCRIBE, TopicOperation.SKIP, TopicOperation.RESET_CURSOR)
    checks = [authorization.check_topic(Principal(role), each, TOPIC, "pulsar.repl.west") for each in operations]
    clear = NamespaceOperation.CLEAR_BACKLOG
    for check in (*checks, authorization.check_namespace(Principal(role), clear, APP, "pulsar.repl.west")):
        with nullcontext() if allowed else pytest.raises(AuthorizationError):
            await check
    await authorization.check_topic(READER, TopicOperation.CONSUME, TOPIC, "pulsar.replica")


def test_principal_when_it_speaks_for_another_then_has_both_only_for_proxies(
    authorization: Authorization,
) -> None:
    assert authorization.principal("writer", None) == WRITER
    assert authorization.principal("proxy", "writer") == Principal("proxy", "writer")
    assert authorization.principal("writer", "writer", same_allowed=True) == WRITER
    for role, original in (("proxy", None), ("proxy", "root-proxy"), ("writer", "root")):
        with pytest.raises(Unauthorized):
            authorization.principal(role, original)


async def test_many_topics_when_looked_up_then_each_has_its_own_answer(authorization: Authorization) -> None:
    topics = {str(topic): topic for topic in (TOPIC, NOWHERE, NO_TENANT)}
    refused = await authorization.refused_lookups(WRITER, topics)
    assert {name: str(error) for name, error in refused.items()} == dict.fromkeys(
        (str(NOWHERE), str(NO_TENANT)), "Client is not authorized to Lookup"
    )
    assert await authorization.refused_lookups(ROOT, topics) == {}
