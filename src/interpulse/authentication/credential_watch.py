"""The credentials of one client while its connection is open.

Credentials that can expire or be revoked are checked every ``authenticationRefreshCheckSeconds``. The client is then
asked for new ones over the same connection. The connection is closed if none come until the next check, or if they
prove another role. Credentials that cannot be presented again, such as a certificate, end the connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from interpulse.authentication.authentication import Authentication, BadCredentials, Identity, PeerCertificate
from interpulse.model.errors import NotConnected


class WatchedConnection(Protocol):
    """The methods of a connection that a watch needs."""

    @property
    def lost(self) -> bool:
        """True once the connection is closed."""

    @property
    def accepts_auth_challenge(self) -> bool:
        """True if the client can be asked for new credentials."""

    def challenge(self, auth_method: str) -> None:
        """Ask the client for new credentials."""

    def drop(self, reason: str) -> None:
        """Close the connection; ``reason`` is for the log."""


class CredentialWatch:
    """Checks the credentials of one client from its greeting on, until `close`."""

    def __init__(
        self,
        connection: WatchedConnection,
        authentication: Authentication,
        method: str,
        identity: Identity,
        *,
        check_seconds: int,
        certificate: PeerCertificate | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``check_seconds`` 0: credentials are never checked.

        ``certificate`` is the client's. ``now`` returns seconds since 1970, in which credentials expire.
        """
        self._connection = connection
        self._authentication = authentication
        self._method = method
        self._identity = identity
        self._check_seconds = check_seconds
        self._certificate = certificate
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._challenged = False
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._watch()

    async def renew(self, method: str, credentials: bytes) -> None:
        """Accept new credentials. Raise BadCredentials if they are bad or prove another role."""
        identity = await self._authentication.authenticate(method, credentials, certificate=self._certificate)
        if identity.role != self._identity.role:
            raise BadCredentials(detail=f"new credentials are those of {identity.role}, not of {self._identity.role}")
        self._identity = identity
        self._challenged = False
        self._release(None)
        self._watch()

    async def wait_until_valid(self) -> None:
        """Return once the credentials are valid, after asking the client for new ones if they have expired.

        Raise NotConnected if the connection is closed instead.
        """
        if not self._identity.has_ended(self._now()):
            return
        renewed = self._loop.create_future()
        self._waiting.append(renewed)
        if not self._challenged:
            self._check()
        await renewed

    def close(self) -> None:
        """Stop, because the connection is closed."""
        self._stop()
        self._release(NotConnected("the client left without new credentials"))

    def _watch(self) -> None:
        self._stop()
        if self._identity.can_end and self._check_seconds and not self._connection.lost:
            self._timer = self._loop.call_later(self._check_seconds, self._check)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release(self, error: NotConnected | None) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    def _check(self) -> None:
        if self._identity.has_ended(self._now()):
            askable = self._identity.renewable and self._connection.accepts_auth_challenge
            if self._challenged or not askable:
                self._connection.drop(f"credentials of {self._identity.role} have expired")
                self._release(NotConnected("the client has no new credentials"))
                return
            self._challenged = True
            self._connection.challenge(self._method)
        self._watch()
