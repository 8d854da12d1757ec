"""Who the proxy is for brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interpulse.authentication.authentication import BadCredentials
from interpulse.authentication.tokens import create_token
from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.errors import AuthenticationError, ServiceNotReady
from interpulse.proxy.access import (
    PROXY_VERSION,
    AuthenticatedClient,
    OwnIdentity,
    ProxyAccess,
    broker_connect,
    broker_connect_for,
    build_access,
    forwarded_credentials,
)
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import OriginalClient
from interpulse.wire.frames import FrameDecoder
from tests.support.proxies import proxy_config
from tests.support.tokens import SECRET


def sent(**more: Any) -> pb.CommandConnect:
    return pb.CommandConnect(
        client_version="client",
        protocol_version=19,
        proxy_to_broker_url="broker:6650",
        original_principal="admin",
        original_auth_data="stolen",
        original_auth_method="token",
        auth_method_name="token",
        auth_data=b"mine",
        feature_flags=pb.FeatureFlags(supports_auth_refresh=True, supports_topic_watchers=True),
        **more,
    )


def forwarded(connect: pb.CommandConnect, *, credentials_forwarded: bool) -> pb.CommandConnect:
    (frame,) = FrameDecoder().feed(broker_connect(connect, credentials_forwarded=credentials_forwarded))
    return frame.command.connect


@pytest.mark.parametrize("credentials_forwarded", [True, False])
def test_connect_when_forwarded_then_keeps_version_and_flags_but_no_original_client(
    credentials_forwarded: bool,
) -> None:
    greeting = forwarded(sent(), credentials_forwarded=credentials_forwarded)
    assert greeting.proxy_version.startswith("interpulse-")
    for name in ("proxy_to_broker_url", "original_principal", "original_auth_data", "original_auth_method"):
        assert not greeting.HasField(name)
    assert (greeting.client_version, greeting.protocol_version) == ("client", 19)
    assert greeting.feature_flags == sent().feature_flags
    assert (greeting.auth_method_name, greeting.auth_data) == (
        ("token", b"mine") if credentials_forwarded else ("none", b"")
    )


@pytest.mark.parametrize("method", ["token", None])
def test_connect_when_the_proxy_speaks_for_the_client_then_names_it_and_shows_its_own_credentials(
    method: str | None,
) -> None:
    original = OriginalClient("app", PROXY_VERSION, method, "mine" if method else None)
    (frame,) = FrameDecoder().feed(broker_connect_for(original, sent(), "basic", b"proxy:word"))
    greeting = frame.command.connect
    assert (greeting.auth_method_name, greeting.auth_data) == ("basic", b"proxy:word")
    assert (greeting.original_principal, greeting.proxy_version) == ("app", PROXY_VERSION)
    assert greeting.HasField("original_auth_method") is greeting.HasField("original_auth_data") is (method is not None)
    assert (greeting.original_auth_method, greeting.original_auth_data) == ((method, "mine") if method else ("", ""))
    assert (greeting.client_version, greeting.protocol_version) == ("client", 19)
    assert greeting.feature_flags == sent().feature_flags
    assert not greeting.HasField("proxy_to_broker_url")


def test_connect_when_it_has_fields_that_are_newer_than_the_proxy_then_keeps_them() -> None:
    connect = sent()
    connect.MergeFromString(b"\xf2\x3f\x03new")  # field 1022
    assert b"\xf2\x3f\x03new" in broker_connect(connect, credentials_forwarded=False)


@pytest.mark.parametrize(
    ("method", "data", "secret"),
    [
        ("token", b"env:HOME", "env:HOME"),
        ("token", b"file:///etc/passwd", "file:///etc/passwd"),
        ("basic", b"a:b", "a:b"),
        ("basic", b"file:///etc/passwd", "file:///etc/passwd"),
        ("basic", b"env:HOME", "env:HOME"),
        ("basic", b'{"userId":"a"}:b', '{"userId":"a"}:b'),
    ],
)
def test_credentials_when_forwarded_then_are_the_text_itself_and_never_a_source(
    method: str, data: bytes, secret: str
) -> None:
    found = forwarded_credentials(pb.CommandConnect(client_version="", auth_method_name=method, auth_data=data))
    assert found is not None
    assert (found.method, found.secret()) == (method, secret)


@pytest.mark.parametrize("method", ["", "none"])
def test_credentials_when_there_are_none_then_none(method: str) -> None:
    assert forwarded_credentials(pb.CommandConnect(client_version="", auth_method_name=method)) is None


@pytest.mark.parametrize(
    ("method", "data"), [("athenz", b"x"), ("tls", b""), ("token", b"\xff"), ("basic", b"no-password")]
)
def test_credentials_when_they_cannot_be_forwarded_then_refused(method: str, data: bytes) -> None:
    with pytest.raises(AuthenticationError):
        forwarded_credentials(pb.CommandConnect(client_version="", auth_method_name=method, auth_data=data))


def access(tmp_path: Any, *, forwarded: bool) -> ProxyAccess:
    key = tmp_path / "secret.key"
    key.write_bytes(SECRET)
    built = build_access(
        proxy_config(
            "pulsar://b:6650",
            "http://b:8080",
            authenticationEnabled=True,
            authenticationProviders="AuthenticationProviderToken",
            tokenSecretKey=key.as_uri(),
            brokerClientAuthenticationPlugin="AuthenticationToken",
            brokerClientAuthenticationParameters="token:proxy",
            forwardAuthorizationCredentials=forwarded,
        )
    )
    assert built is not None
    return built


def token(role: str) -> bytes:
    return create_token(SECRET, role, signature="HS256").encode()


def connect(credentials: bytes, method: str = "token") -> pb.CommandConnect:
    return pb.CommandConnect(client_version="c", auth_method_name=method, auth_data=credentials)


@pytest.mark.parametrize("forwarded", [True, False])
async def test_client_when_authenticated_then_brokers_get_role_and_forwarded_credentials(
    tmp_path: Any, forwarded: bool
) -> None:
    client = await AuthenticatedClient.of(access(tmp_path, forwarded=forwarded), connect(token("app")), None)
    told = ("token", token("app").decode()) if forwarded else ()
    assert await client.original() == OriginalClient("app", PROXY_VERSION, *told)


@pytest.mark.parametrize("sent", [connect(b"abc"), connect(b""), connect(b"", "none"), connect(b"app:x", "basic")])
async def test_client_when_its_credentials_are_not_good_then_refused(tmp_path: Any, sent: pb.CommandConnect) -> None:
    with pytest.raises(BadCredentials, match=r"^Failed to authenticate$"):
        await AuthenticatedClient.of(access(tmp_path, forwarded=False), sent, None)


class Connection:
    lost = False
    accepts_auth_challenge = True

    def challenge(self, auth_method: str) -> None: ...

    def drop(self, reason: str) -> None: ...


async def test_client_when_it_brings_new_credentials_then_these_are_forwarded(tmp_path: Any) -> None:
    client = await AuthenticatedClient.of(access(tmp_path, forwarded=True), connect(token("app")), None)
    client.watch(Connection())
    renewed = create_token(SECRET, "app", signature="HS256", expires_in_seconds=600)
    await client.renew("token", renewed.encode())
    assert (await client.original(ended=True)).auth_data == renewed
    with pytest.raises(BadCredentials):
        await client.renew("token", token("other"))
    assert (await client.original()).auth_data == renewed
    client.close()


@pytest.mark.parametrize(
    ("credentials", "method", "secret", "header"),
    [
        (None, "none", b"", None),
        (Credentials.token("token:abc"), "token", b"abc", "Bearer abc"),
        (Credentials.basic("proxy", "word"), "basic", b"proxy:word", "Basic cHJveHk6d29yZA=="),
        (Credentials.tls("/c.pem", "/k.pem"), "tls", b"", None),
    ],
)
async def test_identity_when_shown_then_has_the_form_of_its_method(
    credentials: Credentials | None, method: str, secret: bytes, header: str | None
) -> None:
    own = OwnIdentity(credentials, TlsOptions())
    assert (own.method, await own.secret(), await own.http_header()) == (method, secret, header)


async def test_identity_when_its_token_file_is_renewed_then_the_new_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")
    own = OwnIdentity(Credentials.token(path.as_uri()), TlsOptions())
    assert await own.secret() == b"first"
    path.write_text("second")
    assert (await own.secret(), await own.http_header()) == (b"second", "Bearer second")


async def test_identity_when_unreadable_then_clients_get_no_path(tmp_path: Path) -> None:
    own = OwnIdentity(Credentials.token((tmp_path / "absent").as_uri()), TlsOptions())
    for asked in (own.secret, own.http_header):
        with pytest.raises(ServiceNotReady, match=r"^The proxy cannot show its credentials to brokers$"):
            await asked()


def test_access_when_authentication_is_off_then_none() -> None:
    assert build_access(proxy_config("pulsar://b:6650", "http://b:8080")) is None
