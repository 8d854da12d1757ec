"""Tokens that an issuer gives: asked for when needed, shared, and replaced in time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpulse.client.credentials import Credentials
from interpulse.client.tls import TlsOptions
from interpulse.client.transport.issued_tokens import IssuedTokens
from interpulse.model.errors import AuthenticationError
from tests.support.certificates import Authority
from tests.support.fake_clock import FakeClock
from tests.support.issuer import AUDIENCE, Issuer

TOKEN = "/token"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


def tokens(issuer: Issuer, directory: Path, clock: FakeClock | None = None, **more: str) -> IssuedTokens:
    key = issuer.key_file(directory / "key.json", "app", **more)
    return IssuedTokens(Credentials.oauth2(issuer.url, str(key), audience=AUDIENCE), None, now=clock or FakeClock(0.0))


async def test_token_when_many_want_it_then_is_asked_for_once_until_shortly_before_its_end(
    issuer: Issuer, tmp_path: Path
) -> None:
    clock = FakeClock(0.0)
    given = tokens(issuer, tmp_path, clock)
    assert len(set(await asyncio.gather(*(given.current() for _ in range(10))))) == 1
    clock.now = 3569.0
    await given.current()
    assert issuer.asked(TOKEN) == 1
    clock.now = 3570.0
    await given.current()
    assert issuer.asked(TOKEN) == 2


async def test_token_when_a_broker_no_longer_takes_it_then_another_is_asked_for(issuer: Issuer, tmp_path: Path) -> None:
    clock = FakeClock(0.0)
    given = tokens(issuer, tmp_path, clock)
    await given.current()
    await given.current(refused=True)  # of another connection, which was asked at the same moment
    assert issuer.asked(TOKEN) == 1
    clock.now = 60.0
    await given.current(refused=True)
    assert issuer.asked(TOKEN) == 2


async def test_client_when_the_issuer_does_not_know_it_then_is_told_so(issuer: Issuer, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="refuses a token for client app: 401 invalid_client, the secret"):
        await tokens(issuer, tmp_path, secret="wrong").current()


async def test_issuer_when_it_cannot_be_asked_then_is_named(issuer: Issuer, tmp_path: Path) -> None:
    issuer.reachable = False
    with pytest.raises(AuthenticationError, match=f"no token from the issuer {issuer.url}: .* answers 503"):
        await tokens(issuer, tmp_path).current()


async def test_issuer_when_inside_tls_then_is_checked_by_the_authorities_that_are_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("issuer"))
    with Issuer(context) as issuer:
        key = issuer.key_file(tmp_path / "key.json", "app")
        credentials = Credentials.oauth2(issuer.url, str(key))
        assert await IssuedTokens(credentials, TlsOptions(str(authority.file))).current()
        with pytest.raises(AuthenticationError, match=r"cannot be reached: .*certificate"):
            await IssuedTokens(credentials, None).current()
