"""The connection of one producer, consumer or reader, and its reconnection after a loss."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Final, Protocol

from interpulse.client.session import Session
from interpulse.client.transport.backoff import retry
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import (
    CertificateError,
    ConsumerBusy,
    NotConnected,
    ProducerBusy,
    PulsarError,
    QuotaExceededError,
    QuotaExceededException,
    UnknownError,
)
from interpulse.model.names import TopicName

__all__ = ["ConnectionHandler", "ConnectionOwner", "tolerated_while_reconnecting"]

_log = logging.getLogger(__name__)

_TOLERATED: Final = (
    ProducerBusy,
    ConsumerBusy,
    CertificateError,
    QuotaExceededError,
    QuotaExceededException,
    UnknownError,
)


def tolerated_while_reconnecting(error: PulsarError) -> bool:
    """Whether a producer or consumer that was open before keeps trying to reconnect.

    The broker may still hold the name for the lost connection, a certificate may be replaced at that moment, and quotas
    and full disks refuse until there is room again.
    """
    return error.retriable or isinstance(error, _TOLERATED)


class ConnectionOwner(Protocol):
    """A producer or consumer as its connection handler sees it."""

    async def register(self, connection: Connection) -> None:
        """Open at the broker of this connection, and start work there."""

    def on_failed(self, failure: PulsarError) -> None:
        """It cannot reconnect."""


class ConnectionHandler:
    """Finds the broker of a topic, registers ``owner`` there, and registers it again after every loss.

    ``what`` names the owner in the log. ``timeout_ms`` limits reconnecting (None = no limit). ``patient``: registering
    itself has no time limit.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        owner: ConnectionOwner,
        *,
        what: str,
        timeout_ms: int | None = None,
        patient: bool = False,
    ) -> None:
        self.connection: Connection | None = None
        """None while there is none."""

        self._session = session
        self._topic = topic
        self._owner = owner
        self._what = what
        self._timeout_ms = timeout_ms
        self._patient = patient
        self._reconnecting: asyncio.Task[None] | None = None
        self._backoff = session.backoff()
        self._connected_at = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def is_reconnecting(self) -> bool:
        return self._reconnecting is not None

    async def open(
        self, *, timeout_ms: int, retriable: Callable[[PulsarError], bool] = lambda error: error.retriable
    ) -> None:
        """Register for the first time. Raises what the broker refuses it with."""
        await retry(
            self._register,
            timeout_ms=timeout_ms,
            backoff=self._session.backoff(),
            retriable=retriable,
            patient=self._patient,
        )

    async def _register(self, assigned_url: str | None = None) -> None:
        connection = await self._session.connect(self._topic, assigned_url=assigned_url)
        await self._owner.register(connection)

    def on_connected(self, connection: Connection) -> None:
        """The broker has accepted the owner, which calls this while it registers."""
        self.connection = connection
        self._connected_at = self._loop.time()

    def on_lost(self) -> bool:
        """The connection is gone; whether there was one. There is none while opening, which tries again itself."""
        had_one = self.connection is not None
        self.connection = None
        return had_one

    def reconnect(self, assigned_url: str | None = None, *, after: asyncio.Future[None] | None = None) -> None:
        """Start to reconnect, first to ``assigned_url``, unless that is under way. It waits for ``after``, work of the
        owner itself."""
        if self._reconnecting is None and not self._session.is_closed:
            self._reconnecting = self._session.spawn(self._reconnect(assigned_url, after))

    async def _reconnect(self, assigned_url: str | None, after: asyncio.Future[None] | None) -> None:
        held_s = self._loop.time() - self._connected_at
        if after is not None:
            await asyncio.wait([after])
            held_s = math.inf  # the broker closed it for that work
        urls = iter([assigned_url])
        outages = self._session.outages
        if outages is not None:
            lost = NotConnected(
                f"the {self._what} of {self._topic} was closed by its broker, or its connection was lost"
            )
            outages.note(lost, self._loop.time(), waiter=self)
        try:
            await asyncio.sleep(self._backoff.pause_after(held_s))
            await retry(
                lambda: self._register(next(urls, None)),
                backoff=self._backoff,
                timeout_ms=self._timeout_ms,
                attempt_timeout_ms=self._session.config.operation_timeout_ms,
                retriable=self._is_tolerated,
                patient=self._patient,
                on_pause=self._note_pause,
            )
            if outages is not None:
                outages.over(self._loop.time())
        except PulsarError as failure:
            self._owner.on_failed(failure)
        finally:
            self._reconnecting = None
            if outages is not None:
                outages.given_up(self)  # unless it has come back: it failed, or is closed meanwhile

    def _is_tolerated(self, error: PulsarError) -> bool:
        outages = self._session.outages
        return tolerated_while_reconnecting(error) or (outages is not None and outages.heals(error))

    def _note_pause(self, failure: PulsarError, pause: float) -> None:
        if self._session.outages is not None:
            self._session.outages.note(failure, self._loop.time(), waiter=self)
        _log.info(
            "cannot reconnect yet what=%s topic=%s pause_s=%.1f error=%s", self._what, self._topic, pause, failure
        )

    async def reconnected(self) -> None:
        """Wait for a reconnection that is under way, for the operation timeout at most."""
        if self._reconnecting is not None:
            await asyncio.wait([self._reconnecting], timeout=self._session.config.operation_timeout_ms / 1000)

    async def stop(self) -> Connection | None:
        """Reconnect no more; returns the connection to close the owner on, if there is one."""
        connection, self.connection = self.connection, None
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
            self._reconnecting = None  # a task cancelled before its first step has not reset it
        if connection is not None and connection.is_open:
            self._session.note_closed(self._topic, connection.address)
        return connection
