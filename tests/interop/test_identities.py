"""Official clients by password and by tokens of an issuer, on our broker and on a real Pulsar: the same outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pulsar
import pytest
from passlib.hash import apr_md5_crypt, des_crypt

from interpulse.client import AdminClient, Client
from interpulse.client.credentials import Credentials
from interpulse.model.errors import AuthenticationError, AuthorizationError
from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB
from tests.interop import go_program
from tests.interop.conftest import JavaCheck
from tests.interop.pulsar_with_tokens import TOKEN_PLUGIN
from tests.interop.real_pulsar import RealPulsar
from tests.interop.replicated_pairs import until
from tests.interop.test_remote_credentials import QUIET
from tests.support.certificates import Authority
from tests.support.issuer import AUDIENCE, Issuer
from tests.support.proxies import ProxyInThread, proxy_in_thread
from tools.engines.server import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOPIC = "persistent://public/default/identities"
PACKAGE = "org.apache.pulsar.broker.authentication."


@dataclass(frozen=True)
class Guarded:
    """A cluster that takes tokens, passwords and tokens of the issuer."""

    service_url: str
    web_url: str
    service_url_tls: str
    authority: Path
    issuer: Issuer
    directory: Path

    def key(self, client_id: str) -> str:
        return self.issuer.key_file(self.directory / f"{client_id}.json", client_id).as_uri()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


def settings(directory: Path, authority: Authority, providers: Sequence[str]) -> dict[str, str]:
    users = directory / "users"
    hashes = {"admin": apr_md5_crypt.hash("admin-word"), "nobody": des_crypt.hash("word")}
    hashes["proxy"] = apr_md5_crypt.hash("proxy-word")
    users.write_text("".join(f"{user}:{each}\n" for user, each in hashes.items()))
    certificate, key = authority.issue("broker", names=["localhost"])
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": ",".join(PACKAGE + name for name in providers),
        "superUserRoles": "admin,proxy",
        "proxyRoles": "proxy",
        "authenticateOriginalAuthData": "true",
        "basicAuthConf": users.as_uri(),
        "tlsCertificateFilePath": str(certificate),
        "tlsKeyFilePath": str(key),
    }


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("ours")
    authority = Authority(directory / "authority")
    providers = "AuthenticationProviderBasic", "AuthenticationProviderOpenID"
    given = settings(directory, authority, providers) | {
        "brokerServicePortTls": "0",
        "openIDAllowedTokenIssuers": issuer.url,
        "openIDAllowedAudiences": AUDIENCE,
        "openIDRequireIssuersUseHttps": "false",
        **NO_JOB,
    }
    with InProcessBroker(directory / "data", given) as broker:
        yield Guarded(
            broker.service_url, broker.web_url, broker.service_url_tls, authority.file, issuer, directory
        )  # fmt: skip


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[Guarded]:
    """Its packages here have no OpenID: it is given the key of the issuer, which makes no difference to clients."""
    directory = tmp_path_factory.mktemp("real")
    authority = Authority(directory / "authority")
    port = free_port()
    key = directory / "issuer.key"
    key.write_bytes(issuer.public_key)
    providers = "AuthenticationProviderBasic", "AuthenticationProviderToken"
    given = settings(directory, authority, providers) | {
        "brokerServicePortTls": str(port),
        "tokenPublicKey": key.as_uri(),
        "tokenPublicAlg": "ES256",
        "tokenAudienceClaim": "aud",
        "tokenAudience": AUDIENCE,
        "brokerClientAuthenticationPlugin": TOKEN_PLUGIN,
        "brokerClientAuthenticationParameters": f"token:{issuer.token('admin')}",
    }
    with RealPulsar(directory / "pulsar", settings=given) as broker:
        url_tls = f"pulsar+ssl://127.0.0.1:{port}"
        cluster = Guarded(broker.service_url, broker.web_url, url_tls, authority.file, issuer, directory)
        player = access.Player(broker.service_url, broker.web_url)
        header = {"Authorization": f"Bearer {issuer.token('admin')}"}
        # It says 401 before it has made what it needs itself.
        until(lambda: player.call(None, "GET", "/admin/v2/namespaces/public/default", headers=header)[0], 200)
        yield cluster


@pytest.fixture(params=["ours", "real"])
def cluster(request: pytest.FixtureRequest) -> Guarded:
    return request.getfixturevalue(request.param)


def published(cluster: Guarded, who: pulsar.Authentication, *, timeout_s: int = 20) -> str:
    """What comes of an attempt: the name of the exception, or ``done``."""
    client = pulsar.Client(
        cluster.service_url, authentication=who, operation_timeout_seconds=timeout_s, logger=QUIET
    )  # fmt: skip
    try:
        client.create_producer(TOPIC).send(b"1")
    except pulsar.PulsarException as refusal:
        return type(refusal).__name__
    finally:
        client.close()
    return "done"


def by_issuer(cluster: Guarded, client_id: str, audience: str = AUDIENCE) -> pulsar.AuthenticationOauth2:
    params = {"issuer_url": cluster.issuer.url, "private_key": cluster.key(client_id), "audience": audience}
    return pulsar.AuthenticationOauth2(json.dumps(params))


def test_python_client_by_password_and_by_issuer(cluster: Guarded) -> None:
    assert published(cluster, pulsar.AuthenticationBasic("admin", "admin-word")) == "done"
    assert published(cluster, by_issuer(cluster, "admin")) == "done"
    for who in (pulsar.AuthenticationBasic("nobody", "word"), by_issuer(cluster, "nobody")):
        assert published(cluster, who) == "AuthorizationError"
    # The C++ family does not read why it is turned away: it tries again until its timeout.
    for who in (pulsar.AuthenticationBasic("admin", "wrong"), by_issuer(cluster, "admin", "elsewhere")):
        assert published(cluster, who, timeout_s=1) in ("Timeout", "ConnectError", "AuthenticationError")


async def test_our_client_by_password_and_by_issuer(cluster: Guarded) -> None:
    for who in (Credentials.basic("admin", "admin-word"), oauth2(cluster, "admin")):
        async with Client(cluster.service_url, credentials=who) as client:
            await (await client.create_producer(TOPIC)).send(b"1")
        async with AdminClient(cluster.web_url, credentials=who) as admin:
            assert "public" in await admin.tenants.list()
    for who in (Credentials.basic("nobody", "word"), oauth2(cluster, "nobody")):
        async with Client(cluster.service_url, credentials=who) as client:
            with pytest.raises(AuthorizationError):
                await client.create_producer(TOPIC)
    for who in (Credentials.basic("admin", "wrong"), oauth2(cluster, "admin", audience="elsewhere")):
        async with Client(cluster.service_url, credentials=who, operation_timeout_ms=5000) as client:
            with pytest.raises(AuthenticationError):
                await client.create_producer(TOPIC)
        async with AdminClient(cluster.web_url, credentials=who) as admin:
            with pytest.raises(AuthenticationError):
                await admin.tenants.list()


def oauth2(cluster: Guarded, client_id: str, audience: str = AUDIENCE) -> Credentials:
    return Credentials.oauth2(cluster.issuer.url, cluster.key(client_id), audience=audience)


def proxy_of(cluster: Guarded) -> AbstractContextManager[ProxyInThread]:
    """One that checks clients itself, and forwards their credentials beside its own."""
    return proxy_in_thread(
        cluster.service_url,
        cluster.web_url,
        authenticationEnabled=True,
        authenticationProviders="AuthenticationProviderBasic,AuthenticationProviderOpenID",
        basicAuthConf=(cluster.directory / "users").as_uri(),
        openIDAllowedTokenIssuers=cluster.issuer.url,
        openIDAllowedAudiences=AUDIENCE,
        openIDRequireIssuersUseHttps=False,
        brokerClientAuthenticationPlugin="org.apache.pulsar.client.impl.auth.AuthenticationBasic",
        brokerClientAuthenticationParameters='{"userId":"proxy","password":"proxy-word"}',
        forwardAuthorizationCredentials=True,
    )


def test_java_clients_by_password_and_by_issuer(ours: Guarded, real: Guarded, java_check: JavaCheck) -> None:
    """At each broker, and through our proxy that speaks for them to the real one."""
    keys = ours.key("admin"), ours.key("nobody")
    with proxy_of(real) as proxy:
        places = [url for each in (ours, real, proxy) for url in (each.service_url, each.web_url)]
        told = java_check("Identities.java", TOPIC, ours.issuer.url, AUDIENCE, *keys, *places).splitlines()
    outcomes = [line.rpartition(": ")[2] for line in told]
    third = len(outcomes) // 3
    at_ours, *others = [outcomes[start : start + third] for start in range(0, len(outcomes), third)]
    assert others == [at_ours] * 2
    assert at_ours == [
        "done",
        "done",
        "AuthenticationException",
        "NotAuthorizedException",
        "AuthorizationException",
        "NotAuthorizedException",
        "done",
        "done",
        "AuthorizationException",
        "NotAuthorizedException",
    ]


def test_go_client_by_password_by_issuer_and_inside_tls(
    cluster: Guarded, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "Topic": TOPIC,
        "Issuer": cluster.issuer.url,
        "Audience": AUDIENCE,
        "Key": cluster.key("admin"),
        "Stranger": cluster.key("nobody"),
        "ServiceURLTLS": cluster.service_url_tls,
        "Authority": str(cluster.authority),
    }
    monkeypatch.setenv("IDENTITIES", json.dumps(given))
    outcomes = go_program.outcomes(program, cluster.service_url, cluster.web_url, "identities")
    assert outcomes == dict.fromkeys(
        ("basic", "basic_without_grant", "issuer", "issuer_without_grant", "inside_tls"), ""
    )
