"""The proxy checks its clients and speaks for them: the official client, our clients, and what must not get through."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.authentication.authentication import Identity
from interpulse.broker.app import BrokerApp
from interpulse.client import AdminClient, Client
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.errors import AuthenticationError, AuthorizationError
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.front_ends import access
from tests.front_ends.access import TOPIC, token
from tests.front_ends.brokers import NO_JOB
from tests.support import commands
from tests.support.certificates import Authority, Certificate
from tests.support.official_client import RECEIVE_MS, _quiet_logger
from tests.support.proxies import ProxyInThread, proxy_in_thread
from tests.support.raw_client import RawClient
from tests.support.stub_web import StubWeb
from tests.support.waiting import SECONDS_MAX, until

TLS_AND_TOKENS = "AuthenticationProviderToken,AuthenticationProviderTls"
REFUSED = ("Timeout", "ConnectError", "AuthenticationError")
"""The C++ family does not read why it is turned away: it tries again until its timeout."""


@dataclass(frozen=True)
class Guarded:
    """A broker that takes tokens, and a proxy in front of it."""

    broker: InProcessBroker
    proxy: ProxyInThread
    authority: Authority

    @property
    def place(self) -> str:
        """As a client of the proxy names the broker."""
        return self.broker.service_url.removeprefix("pulsar://")


def guarded(directory: Path, *, forwarded: bool, **more: object) -> Iterator[Guarded]:
    authority = Authority(directory / "authority")
    shown = authority.issue("localhost", names=["localhost"])
    given = access.settings(directory) | NO_JOB
    mine = {"superUserRoles": "admin,proxy", "authenticateOriginalAuthData": str(forwarded).lower()}
    with InProcessBroker(directory / "data", given | mine) as broker:
        access.Player(broker.service_url, broker.web_url).prepare()
        settings = {
            "authenticationEnabled": True,
            "authenticationProviders": TLS_AND_TOKENS,
            "tokenSecretKey": given["tokenSecretKey"],
            "authenticationRefreshCheckSeconds": 1,
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{token('proxy')}",
            "forwardAuthorizationCredentials": forwarded,
            "servicePortTls": 0,
            "webServicePortTls": 0,
            "tlsCertificateFilePath": shown.certificate,
            "tlsKeyFilePath": shown.key,
            "tlsTrustCertsFilePath": authority.file,
            **more,
        }
        with proxy_in_thread(broker.service_url, broker.web_url, **settings) as proxy:
            yield Guarded(broker, proxy, authority)


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The broker hears the names of clients alone."""
    yield from guarded(tmp_path_factory.mktemp("speaking"), forwarded=False)


@pytest.fixture(scope="module")
def forwarding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The broker checks the credentials of clients, too."""
    yield from guarded(tmp_path_factory.mktemp("forwarding"), forwarded=True)


@pytest.fixture(scope="module")
def of_workloads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The proxy makes roles of the URIs in certificates; the broker never sees one."""
    rules = {
        "tlsCertIdentitySource": "SAN:URI",
        "tlsAuthPrincipalMappingRules": "RULE:^spiffe://acme/sa/([^/]+)$/acme-$1/L",
    }
    yield from guarded(tmp_path_factory.mktemp("workloads"), forwarded=False, **rules)


@pytest.fixture(params=["speaking", "forwarding"])
def cluster(request: pytest.FixtureRequest) -> Guarded:
    return request.getfixturevalue(request.param)


# --- who is let in


def outcome(service_url: str, who: pulsar.Authentication | None, seconds: int = 20, **more: Any) -> str:
    """What comes of publishing and reading: the name of the exception, or ``done``."""
    client = pulsar.Client(
        service_url, authentication=who, operation_timeout_seconds=seconds, logger=_quiet_logger(), **more
    )
    try:
        consumer = client.subscribe(TOPIC, f"by {service_url}")
        client.create_producer(TOPIC).send(b"hello")
        return "done" if consumer.receive(RECEIVE_MS).data() == b"hello" else "another message"
    except pulsar.PulsarException as refusal:
        return type(refusal).__name__
    finally:
        client.close()


def test_official_client_when_its_credentials_are_right_or_not_then_told_as_by_the_broker(cluster: Guarded) -> None:
    for url in (cluster.broker.service_url, cluster.proxy.service_url):
        assert outcome(url, pulsar.AuthenticationToken(token("acme-admin"))) == "done"
        assert outcome(url, pulsar.AuthenticationToken(token("nobody"))) == "AuthorizationError"
        for who in (pulsar.AuthenticationToken("abc"), None):
            assert outcome(url, who, seconds=1) in REFUSED


async def test_our_clients_when_their_credentials_are_right_or_not_then_told_as_by_the_broker(cluster: Guarded) -> None:
    broker, proxy = cluster.broker, cluster.proxy
    expired = Credentials.token(f"token:{token('admin', expires_in_seconds=-60)}")
    for service_url, web_url in ((broker.service_url, broker.web_url), (proxy.service_url, proxy.web_url)):
        who = Credentials.token(f"token:{token('acme-admin')}")
        async with Client(service_url, credentials=who) as client, AdminClient(web_url, credentials=who) as admin:
            await (await client.create_producer(TOPIC)).send(b"x")
            assert set(await client.lookup_batch([TOPIC])) == {TOPIC}
            assert await admin.namespaces.list("acme") == ["acme/app"]
            with pytest.raises(AuthenticationError, match="super-user"):
                await admin.tenants.list()
        stranger = Credentials.token(f"token:{token('nobody')}")
        async with Client(service_url, credentials=stranger) as client:
            with pytest.raises(AuthorizationError, match="not authorized"):
                await client.create_producer(TOPIC)
        for wrong in (Credentials.token("token:abc"), expired, None):
            async with Client(service_url, credentials=wrong, operation_timeout_ms=5000) as client:
                with pytest.raises(AuthenticationError, match="Failed to authenticate"):
                    await client.create_producer(TOPIC)
            async with AdminClient(web_url, credentials=wrong) as admin:
                with pytest.raises(AuthenticationError, match="Authentication required"):
                    await admin.tenants.list()


def shown(cluster: Guarded, certificate: Certificate | None, seconds: int = 20) -> str:
    who = None if certificate is None else pulsar.AuthenticationTLS(*map(str, certificate))
    trusted = {"tls_trust_certs_file_path": str(cluster.authority.file), "tls_validate_hostname": True}
    return outcome(cluster.proxy.app.service_url_tls, who, seconds=seconds if certificate else 1, **trusted)


async def test_clients_when_they_show_certificates_then_the_name_in_it_is_their_role(speaking: Guarded) -> None:
    certificates = {name: speaking.authority.issue(name) for name in ("acme-admin", "nobody")}
    assert await asyncio.to_thread(shown, speaking, certificates["acme-admin"]) == "done"
    assert await asyncio.to_thread(shown, speaking, certificates["nobody"]) == "AuthorizationError"
    assert await asyncio.to_thread(shown, speaking, None) in REFUSED
    credentials = Credentials.tls(*map(str, certificates["acme-admin"]))
    trusted = TlsOptions(str(speaking.authority.file))
    async with AdminClient(speaking.proxy.app.web_url_tls, credentials=credentials, tls=trusted) as admin:
        assert await admin.namespaces.list("acme") == ["acme/app"]


async def test_workloads_when_the_uri_in_their_certificates_is_their_role_then_count_by_it(
    of_workloads: Guarded,
) -> None:
    authority = of_workloads.authority
    admin_files = authority.issue("workload", workload="spiffe://acme/sa/Admin")
    stranger = authority.issue("acme-admin")  # its common name would do
    assert await asyncio.to_thread(shown, of_workloads, admin_files) == "done"
    assert await asyncio.to_thread(shown, of_workloads, stranger, seconds=1) in REFUSED
    trusted = TlsOptions(str(authority.file))
    url = of_workloads.proxy.app.web_url_tls
    async with AdminClient(url, credentials=Credentials.tls(*map(str, admin_files)), tls=trusted) as admin:
        assert await admin.namespaces.list("acme") == ["acme/app"]
    async with AdminClient(url, credentials=Credentials.tls(*map(str, stranger)), tls=trusted) as admin:
        with pytest.raises(AuthenticationError, match="Authentication required"):
            await admin.namespaces.list("acme")


@pytest.mark.parametrize("place", [None, "{place}"])
def test_client_when_it_claims_another_role_then_the_claim_is_dropped(cluster: Guarded, place: str | None) -> None:
    with RawClient(cluster.proxy.service_url, greet=False) as client:
        client.send(greeting(cluster, token("nobody"), place=place, original_principal="admin"))
        assert client.receive().command.type == pb.BaseCommand.CONNECTED
        answer = client.ask(commands.lookup(1, TOPIC))
        assert answer.error == pb.AuthorizationError
    headers = {"Authorization": f"Bearer {token('nobody')}", "X-Original-Principal": "admin"}
    assert page(f"{cluster.proxy.web_url}/admin/v2/tenants", **headers)[0] in (401, 403)


# --- the admin API


def page(url: str, **headers: str) -> tuple[int, str, str | None]:
    """Status and content of a web page, and how to authenticate for it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=named), timeout=SECONDS_MAX) as answer:
            return answer.status, answer.read().decode(), None
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers["WWW-Authenticate"]


def test_calls_when_forwarded_then_carry_the_role_of_the_caller_and_the_credentials_of_the_proxy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "authenticationEnabled": True,
        "authenticationProviders": "AuthenticationProviderToken",
        "tokenSecretKey": access.settings(tmp_path)["tokenSecretKey"],
        "brokerClientAuthenticationPlugin": "AuthenticationBasic",
        "brokerClientAuthenticationParameters": "proxy:word",
    }
    with StubWeb() as broker, proxy_in_thread("pulsar://127.0.0.1:1", broker.url, **settings) as proxy:
        url = f"{proxy.web_url}/admin/v2/clusters"
        mine = {"Authorization": f"Bearer {token('app')}", "X-Original-Principal": "admin", "Cookie": "mine"}
        mine["X-Pulsar-Auth-Method-Name"] = "token"
        assert page(url, **mine)[0] == 204
        assert broker.last.headers["X-Original-Principal"] == "app"
        assert broker.last.headers["Authorization"] == "Basic cHJveHk6d29yZA=="
        assert broker.last.headers["X-Pulsar-Auth-Method-Name"] == "basic"
        assert "Cookie" not in broker.last.headers
        asked = len(broker.asked)
        for wrong in ({}, {"Authorization": "Bearer abc"}, {"X-Original-Principal": "admin"}):
            status, body, how = page(url, **wrong)
            assert (status, json.loads(body), how) == (401, {"reason": "Authentication required"}, "Bearer")
        assert len(broker.asked) == asked
    told = [line.partition(" newest_reason=")[0] for line in caplog.messages if "authentication" in line]
    assert told[0].startswith("authentication failed address=127.0.0.1 ")
    assert told[1:] == ["more authentications failed address=127.0.0.1 count=2"]


def test_metrics_when_clients_authenticate_then_want_credentials_and_count_them(speaking: Guarded) -> None:
    url = f"{speaking.proxy.web_url}/metrics"
    assert page(url)[0] == 401
    assert page(f"{speaking.proxy.web_url}/livez")[0] == 200
    status, body, _ = page(url, Authorization=f"Bearer {token('anybody')}")
    assert status == 200
    assert 'pulsar_authentication_success_total{provider_name="' in body
    assert 'pulsar_expiring_token_minutes_bucket{le="5.0"}' in body


# --- credentials that end


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Roles whose credentials have ended, if they have an end at all."""
    roles: list[str] = []

    def has_ended(identity: Identity, now: float) -> bool:
        return identity.expires_at is not None and identity.role in roles

    monkeypatch.setattr(Identity, "has_ended", has_ended)
    yield roles
    roles.clear()


def greeting(cluster: Guarded, secret: str, *, place: str | None = None, **fields: Any) -> bytes:
    """CONNECT; ``place`` {place}: for the broker behind the proxy."""
    return commands.encode(
        pb.CommandConnect(
            client_version="raw",
            protocol_version=21,
            auth_method_name="token",
            auth_data=secret.encode(),
            feature_flags=pb.FeatureFlags(supports_auth_refresh=True),
            proxy_to_broker_url=place and place.format(place=cluster.place),
            **fields,
        )
    )


def ending(role: str) -> str:
    return token(role, expires_in_seconds=3600)


def renewal(secret: str) -> bytes:
    return commands.auth_response(
        client_version="raw", protocol_version=21, auth_method="token", auth_data=secret.encode()
    )


@pytest.mark.parametrize(
    ("kind", "place"), [("speaking", None), ("forwarding", None), ("forwarding", "{place}")], ids=str
)
def test_credentials_when_they_end_then_new_ones_are_asked_for_and_the_connection_goes_on(
    kind: str, place: str | None, ended: list[str], request: pytest.FixtureRequest
) -> None:
    cluster: Guarded = request.getfixturevalue(kind)
    with RawClient(cluster.proxy.service_url, greet=False) as client:
        client.send(greeting(cluster, ending("acme-admin"), place=place))
        assert client.receive().command.type == pb.BaseCommand.CONNECTED
        assert client.ask(commands.lookup(1, TOPIC)).brokerServiceUrl
        ended.append("acme-admin")
        asked = client.receive().command.authChallenge.challenge
        assert (asked.auth_method_name, asked.auth_data) == ("token", b"PulsarAuthRefresh")
        client.send(renewal(token("acme-admin")))
        assert client.ask(commands.lookup(2, TOPIC)).brokerServiceUrl
        if kind == "forwarding":
            until(lambda: lasting(cluster, "acme-admin"))
            assert client.ask(commands.lookup(3, TOPIC)).brokerServiceUrl


def lasting(cluster: Guarded, role: str) -> bool:
    """Whether the broker has connections for this role, and credentials without an end on all of them."""

    async def known(app: BrokerApp) -> list[Identity]:
        sessions = [each.session for each in app.parts.binary_server._connections]
        return [session._credentials._identity for session in sessions if session is not None]

    found = [identity for identity in cluster.broker.call(known) if identity.role == role]
    return bool(found) and all(identity.expires_at is None for identity in found)


@pytest.mark.parametrize("secret", ["abc", "nobody"])
@pytest.mark.parametrize(("kind", "place"), [("speaking", None), ("forwarding", "{place}")], ids=str)
def test_credentials_when_the_new_ones_are_not_good_then_refused_and_hung_up_on(
    kind: str, place: str | None, secret: str, ended: list[str], request: pytest.FixtureRequest
) -> None:
    cluster: Guarded = request.getfixturevalue(kind)
    with RawClient(cluster.proxy.service_url, greet=False) as client:
        client.send(greeting(cluster, ending("tprod"), place=place))
        client.receive()
        ended.append("tprod")
        assert client.receive().command.type == pb.BaseCommand.AUTH_CHALLENGE
        client.send(renewal(secret if secret == "abc" else token(secret)))
        error = client.receive().command.error
        assert (error.error, error.message) == (pb.AuthenticationError, "Failed to authenticate")
        assert client.closed_by_broker()


def test_credentials_when_brokers_do_not_get_them_then_a_data_connection_ends_with_them(
    speaking: Guarded, ended: list[str]
) -> None:
    with RawClient(speaking.proxy.service_url, greet=False) as client:
        client.send(greeting(speaking, ending("tcons"), place="{place}"))
        assert client.receive().command.type == pb.BaseCommand.CONNECTED
        ended.append("tcons")
        assert client.closed_by_broker()
