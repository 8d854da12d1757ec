"""Credentials of a client while its connection is open: looked at, asked for, waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from interpulse.authentication.authentication import Authentication, BadCredentials, Identity
from interpulse.authentication.credential_watch import CredentialWatch
from interpulse.authentication.tokens import TokenProvider, create_token
from interpulse.model.errors import NotConnected
from tests.support.tokens import SECRET


class Connection:
    """One that remembers what happened to it."""

    lost = False

    def __init__(self, *, askable: bool = True) -> None:
        self.accepts_auth_challenge = askable
        self.asked: list[str] = []
        self.dropped: list[str] = []

    def challenge(self, auth_method: str) -> None:
        self.asked.append(auth_method)

    def drop(self, reason: str) -> None:
        self.dropped.append(reason)


class Watched:
    """A watch of credentials that end at 100 s, and its clock."""

    def __init__(self, connection: Connection, *, renewable: bool = True) -> None:
        self.now = 0.0
        self.connection = connection
        self.watch = CredentialWatch(
            connection,
            Authentication([TokenProvider(SECRET)]),
            "token",
            Identity("app", 100.0, renewable=renewable),
            check_seconds=3600,
            now=lambda: self.now,
        )


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    one = Watched(Connection())
    yield one
    one.watch.close()


def token(role: str = "app") -> bytes:
    return create_token(SECRET, role, signature="HS256").encode()


async def test_good_when_nothing_expired_then_client_is_not_asked(watched: Watched) -> None:
    await watched.watch.wait_until_valid()
    assert watched.connection.asked == []


async def test_good_when_expired_then_client_is_asked_once_for_all_callers(watched: Watched) -> None:
    watched.now = 101
    waiting = [asyncio.create_task(watched.watch.wait_until_valid()) for _ in range(3)]
    await asyncio.sleep(0)
    assert watched.connection.asked == ["token"]
    await watched.watch.renew("token", token())
    await asyncio.gather(*waiting)
    assert watched.connection.dropped == []


async def test_good_when_new_credentials_prove_another_role_then_waits_on(watched: Watched) -> None:
    watched.now = 101
    waiting = asyncio.create_task(watched.watch.wait_until_valid())
    await asyncio.sleep(0)
    with pytest.raises(BadCredentials) as refused:
        await watched.watch.renew("token", token("other"))
    assert refused.value.detail == "new credentials are those of other, not of app"
    assert not waiting.done()
    watched.watch.close()
    with pytest.raises(NotConnected):
        await waiting


@pytest.mark.parametrize(("askable", "renewable"), [(False, True), (True, False)])
async def test_good_when_the_client_cannot_be_asked_then_its_connection_ends(askable: bool, renewable: bool) -> None:
    watched = Watched(Connection(askable=askable), renewable=renewable)
    watched.now = 101
    with pytest.raises(NotConnected):
        await watched.watch.wait_until_valid()
    assert watched.connection.dropped == ["credentials of app have expired"]
    assert watched.connection.asked == []
    watched.watch.close()
