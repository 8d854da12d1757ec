"""Login over the binary protocol: who is let in, who has to bring new credentials, who is shut out again."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from interpulse.authentication.authentication import Authentication, Identity
from interpulse.authentication.tokens import TokenProvider, create_token
from interpulse.broker.access.authorization import Authorization
from interpulse.broker.access.setup import Access
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.names import NamespaceName
from interpulse.model.permissions import Permissions, Principal
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.memory_storage import MemoryMetadataStore

SECRET = bytes(range(32))
APP = NamespaceName("acme", "app")
TOPIC = "persistent://acme/app/t"


def token(role: str, **more: Any) -> bytes:
    return create_token(SECRET, role, signature="HS256", **more).encode()


def login(role: str = "app", *, refreshes: bool = True, method: str = "token", **fields: Any) -> bytes:
    """CONNECT with credentials."""
    values = {"auth_data": token(role), **fields}
    return commands.encode(
        pb.CommandConnect(
            client_version="raw",
            protocol_version=21,
            auth_method_name=method,
            feature_flags=pb.FeatureFlags(supports_auth_refresh=refreshes),
            **values,
        )
    )


@pytest.fixture
async def namespaces() -> Namespaces:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    await Tenants(store).create("acme", TenantInfo((), ("east",)))
    namespaces = Namespaces(store, local_cluster="east")
    grants = Permissions().grant("app", ["produce", "consume"]).grant("proxy", ["produce", "consume"])
    await namespaces.create(APP, NamespacePolicies(granted=grants))
    namespaces.tenants = Tenants(store)  # type: ignore[attr-defined]
    return namespaces


@pytest.fixture
def context(context: Any, namespaces: Any) -> Any:
    """The context of a broker with authentication and authorisation."""
    authorization = Authorization(
        namespaces.tenants, namespaces, super_users=["root"], proxies=["proxy"], replicators=["copier"]
    )
    context.access = Access(Authentication([TokenProvider(SECRET)]), authorization, refresh_check_seconds=60)
    return context


@pytest.mark.parametrize(
    "greeting",
    [
        login(auth_data=b"abc"),
        login(auth_data=b""),
        login(auth_data=token("app", expires_in_seconds=-60)),
        login(method="none"),
        login(method=""),
        login(method="basic", auth_data=b"app:secret"),
    ],
    ids=["garbage", "empty", "expired", "none", "unnamed", "basic"],
)
async def test_connect_when_credentials_are_not_good_then_refused_and_closed(dial: Any, greeting: bytes) -> None:
    client = dial()
    client.send(greeting + commands.lookup(1, TOPIC))
    (answer,) = await client.answers()
    error = answer.command.error
    assert (error.request_id, error.error, error.message) == (2**64 - 1, 3, "Failed to authenticate")
    assert client.transport.closed


@pytest.mark.parametrize(
    ("greeting", "principal"),
    [
        (login("app"), Principal("app")),
        (login("proxy", original_principal="app"), Principal("proxy", "app")),
        (login("proxy"), None),
        (login("proxy", original_principal="proxy"), None),
        (login("app", original_principal="root"), None),
        (login("app", original_principal="app"), None),
    ],
    ids=["alone", "proxied", "proxy-for-nobody", "proxy-for-proxy", "no-proxy", "no-proxy-for-itself"],
)
async def test_connect_when_a_role_speaks_for_another_then_it_has_to_be_a_proxy(
    dial: Any, greeting: bytes, principal: Principal | None
) -> None:
    client = dial()
    answer = await client.ask(greeting)
    if principal is not None:
        assert client.connection.session.principal == principal
        return
    assert (answer.error, answer.message) == (4, "Invalid roles.")
    assert client.transport.closed


@pytest.mark.parametrize(("data", "let_in"), [(token("app"), True), (b"abc", False), (b"", False)])
async def test_connect_when_proxies_hand_on_credentials_then_these_tell_for_whom(
    dial: Any, context: Any, data: bytes, let_in: bool
) -> None:
    context.access = Access(context.access.authentication, context.access.authorization, original_authenticated=True)
    client = dial()
    await client.ask(
        login("proxy", original_principal="root", original_auth_data=data.decode(), original_auth_method="token")
    )
    assert client.transport.closed is not let_in
    if let_in:
        assert client.connection.session.principal == Principal("proxy", "app")


async def test_connect_when_authorization_is_off_then_every_authenticated_role_may_do_everything(
    dial: Any, context: Any
) -> None:
    context.access = Access(context.access.authentication, None)
    client = dial()
    await client.ask(login("nobody", original_principal="somebody"))
    assert isinstance(await client.ask(commands.producer(1, 1, TOPIC)), pb.CommandProducerSuccess)


async def test_command_when_not_allowed_then_refused_and_its_handler_never_sees_it(dial: Any, context: Any) -> None:
    client = dial()
    await client.ask(login("nobody"))
    answer = await client.ask(commands.producer(7, 1, TOPIC))
    assert (answer.request_id, answer.error, answer.message) == (7, 4, "Client is not authorized to Produce")
    assert context.opened == []


async def test_command_when_the_subscription_needs_a_prefix_then_the_refusal_says_which(
    dial: Any, namespaces: Namespaces
) -> None:
    await namespaces.update_policies(APP, lambda old: old.changed(subscription_auth_mode="Prefix"))
    client = dial()
    await client.ask(login("app"))
    answer = await client.ask(commands.subscribe(1, 1, TOPIC, "mine"))
    assert answer.error == 4
    assert f"like app-xxxx for topic: {TOPIC}" in answer.message
    assert isinstance(await client.ask(commands.subscribe(2, 1, TOPIC, "app-mine")), pb.CommandSuccess)


@pytest.mark.parametrize(("role", "replicator"), [("app", False), ("copier", True), ("root", True)])
async def test_producer_when_it_calls_itself_a_replicator_then_its_role_decides(
    dial: Any, role: str, replicator: bool
) -> None:
    client = dial()
    await client.ask(login(role))
    assert client.connection.calls_itself_replicator("pulsar.repl.west") is replicator
    assert not client.connection.calls_itself_replicator("anybody")


class Watched:
    """A client with credentials that end, and the clock of its session in our hands."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.session = client.connection.session
        self.watch = self.session._credentials
        self.now = time.time()
        self.watch._now = lambda: self.now

    def look(self) -> None:
        """What happens every ``authenticationRefreshCheckSeconds``."""
        self.watch._check()

    @property
    def watched(self) -> bool:
        """Whether it will be looked at again."""
        return self.watch._timer is not None


async def watched(client: Any, **fields: Any) -> Watched:
    await client.ask(login(auth_data=token("app", expires_in_seconds=600), **fields))
    return Watched(client)


def renewal(data: bytes) -> bytes:
    return commands.auth_response(client_version="raw", protocol_version=0, auth_method="token", auth_data=data)


async def test_credentials_when_they_end_then_new_ones_are_asked_for_and_work_goes_on(dial: Any) -> None:
    seen = await watched(dial())
    seen.look()
    assert await seen.client.answers() == []
    seen.now += 601
    seen.look()
    (challenge,) = await seen.client.answers()
    asked = challenge.command.authChallenge.challenge
    assert (asked.auth_method_name, asked.auth_data) == ("token", b"PulsarAuthRefresh")
    seen.client.send(renewal(token("app", expires_in_seconds=6000)))
    seen.look()
    assert await seen.client.answers() == []
    assert not seen.client.transport.closed
    assert seen.watched


async def test_credentials_when_no_new_ones_come_until_the_next_look_then_closed(dial: Any) -> None:
    seen = await watched(dial())
    seen.now += 601
    seen.look()
    assert len(await seen.client.answers()) == 1
    assert not seen.client.transport.closed
    seen.look()
    assert seen.client.transport.closed


@pytest.mark.parametrize("data", [token("other"), b"abc"], ids=["another-role", "garbage"])
async def test_credentials_when_the_new_ones_are_not_good_then_closed(dial: Any, data: bytes) -> None:
    seen = await watched(dial())
    seen.now += 601
    seen.look()
    await seen.client.answers()
    answer = await seen.client.ask(renewal(data))
    assert (answer.error, answer.message) == (3, "Failed to authenticate")
    assert seen.client.transport.closed


async def test_credentials_when_the_client_cannot_renew_them_then_closed_when_they_end(dial: Any) -> None:
    seen = await watched(dial(), refreshes=False)
    seen.now += 601
    seen.look()
    assert await seen.client.answers() == []
    assert seen.client.transport.closed


async def test_credentials_when_they_do_not_end_or_are_not_checked_then_there_is_no_timer(
    dial: Any, context: Any
) -> None:
    lasting = dial()
    await lasting.ask(login("app"))
    assert not Watched(lasting).watched
    context.access = Access(context.access.authentication, context.access.authorization, refresh_check_seconds=0)
    assert not (await watched(dial())).watched


async def test_connection_when_it_ends_then_it_is_not_looked_at_any_more(dial: Any) -> None:
    seen = await watched(dial())
    assert seen.watched
    seen.client.end()
    assert not seen.watched


async def test_credentials_when_a_proxy_has_forwarded_them_then_its_client_is_asked_for_new_ones(
    dial: Any, context: Any
) -> None:
    context.access = Access(context.access.authentication, context.access.authorization, original_authenticated=True)
    client = dial()
    forwarded = {"original_auth_method": "token", "original_auth_data": token("app", expires_in_seconds=600).decode()}
    await client.ask(login("proxy", original_principal="app", **forwarded))  # type: ignore[arg-type]
    seen = Watched(client)
    seen.now += 601
    seen.look()
    (challenge,) = await client.answers()
    assert challenge.command.authChallenge.challenge.auth_method_name == "token"
    client.send(renewal(token("app", expires_in_seconds=6000)))
    seen.look()
    assert await client.answers() == []
    assert not client.transport.closed
    answer = await client.ask(renewal(token("proxy")))
    assert (answer.error, client.transport.closed) == (3, True)


async def test_credentials_when_a_proxy_keeps_those_of_its_client_then_closed_when_its_own_end(dial: Any) -> None:
    client = dial()
    await client.ask(login("proxy", auth_data=token("proxy", expires_in_seconds=600), original_principal="app"))
    seen = Watched(client)
    seen.now += 601
    seen.look()
    assert await client.answers() == []
    assert client.transport.closed


async def test_answer_when_authentication_is_off_then_changes_nothing(dial: Any, context: Any) -> None:
    context.access = None
    client = dial()
    await client.ask(login("app"))
    client.send(renewal(b"abc"))
    assert await client.answers() == []
    assert not client.transport.closed


async def test_permissions_when_they_are_taken_away_then_what_is_open_is_closed(
    dial: Any, context: Any, namespaces: Namespaces
) -> None:
    client = dial()
    await client.ask(login("app"))
    context.topic.name = context.topic.name.parse(TOPIC)
    await client.ask(commands.producer(1, 1, TOPIC))
    await client.ask(commands.subscribe(2, 1, TOPIC, "s"))
    producer, consumer = context.topic.producers[-1], context.topic.consumers[-1]
    closed: list[Any] = []
    producer.close_by_broker = lambda: closed.append(producer)
    consumer.close_by_broker = lambda: closed.append(consumer)
    consumer.subscription_name = "s"
    session = client.connection.session
    await session.recheck(APP)
    assert closed == []
    await namespaces.update_policies(APP, lambda old: old.changed(granted=Permissions().grant("app", ["consume"])))
    await session.recheck(NamespaceName("acme", "other"))
    assert closed == []
    await session.recheck(APP)
    assert closed == [producer]
    await namespaces.update_policies(APP, lambda old: old.changed(granted=None))
    await session.recheck(APP)
    assert closed == [producer, producer, consumer]


async def test_permissions_when_they_are_taken_away_then_watchers_hear_nothing_more(
    dial: Any, context: Any, namespaces: Namespaces
) -> None:
    client = dial()
    await client.ask(login("app"))
    watch = commands.watch_topic_list(1, 7, str(APP), ".*")
    assert (await client.ask(watch)).watcher_id == 7
    await client.connection.session.recheck(APP)
    assert len(context.watches) == 1
    await namespaces.update_policies(APP, lambda old: old.changed(granted=None))
    await client.connection.session.recheck(APP)
    assert context.watches == []
    assert (await client.ask(watch)).error == 4


async def test_permissions_when_they_are_taken_away_while_something_is_opened_then_it_is_closed(
    dial: Any, context: Any, namespaces: Namespaces
) -> None:
    client = dial()
    await client.ask(login("app"))
    context.topic.name = context.topic.name.parse(TOPIC)
    context.topic.gate = asyncio.Event()
    closed: list[Any] = []
    add_producer = context.topic.add_producer

    async def noted(request: Any, sink: Any) -> Any:
        producer = await add_producer(request, sink)
        producer.close_by_broker = lambda: closed.append(producer)
        return producer

    context.topic.add_producer = noted
    client.send(commands.producer(1, 1, TOPIC))
    assert await client.answers() == []
    await namespaces.update_policies(APP, lambda old: old.changed(granted=None))
    await client.connection.session.recheck(APP)
    context.topic.gate.set()
    await client.answers()
    assert closed == context.topic.producers
    assert len(closed) == 1


def test_identity_when_shown_then_holds_no_secret() -> None:
    assert repr(Identity("app", 1.0)) == "Identity(role='app', expires_at=1.0, renewable=True)"
