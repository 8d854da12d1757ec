"""Who the proxy is for brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.model.errors import ServiceNotReady
from interpulse.proxy.access import OwnIdentity, build_access
from tests.support.proxies import proxy_config


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
