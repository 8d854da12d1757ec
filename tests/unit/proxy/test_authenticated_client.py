"""A client that the proxy speaks for."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.authentication.authentication import BadCredentials
from interpulse.authentication.tokens import create_token
from interpulse.proxy.access import ProxyAccess, build_access
from interpulse.proxy.authenticated_client import AuthenticatedClient
from interpulse.proxy.forwarding import PROXY_VERSION
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import OriginalClient
from tests.support.proxies import proxy_config
from tests.support.tokens import SECRET


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
