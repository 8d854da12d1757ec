"""Connection of one producer, consumer or reader, and its reconnection after a loss."""

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
    """Return True if a producer or consumer that was open before keeps reconnecting after this failure.

    The broker may still hold the name for the lost connection, a certificate may be about to be replaced, and quotas
    and full disks refuse writes until there is room again.
    """
    return error.retriable or isinstance(error, _TOLERATED)


class ConnectionOwner(Protocol):
    """Producer or consumer, as its connection handler sees it."""

    async def register(self, connection: Connection) -> None:
        """Register with the broker of this connection, and start work there."""

    def on_failed(self, failure: PulsarError) -> None:
        """Handle the failure that ended reconnecting."""


class ConnectionHandler:
    """Finds the broker of a topic, registers ``owner`` there, and registers it again after every lost connection.

    ``what`` names the owner in the log. ``timeout_ms`` limits reconnecting (None = no limit). ``patient``: one
    registration has no time limit.
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
        """Current connection, None while there is none."""

        self._session = session
        self._topic = topic
        self._owner = owner
        self._what = what
        self._timeout_ms = timeout_ms
        self._patient = patient
        self._reconnecting: asyncio.Task[None] | None = None
        self._assigned_url: str | None = None
        """Broker that was assigned while the owner was opening."""
        self._redirect: tuple[Session, int] | None = None
        """Session of the cluster to which a broker has redirected, and the generation of the client then."""
        self._backoff = session.backoff()
        self._connected_at = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def is_reconnecting(self) -> bool:
        return self._reconnecting is not None

    @property
    def session(self) -> Session:
        """Session of the cluster that serves the owner: the client's, or that of a redirect."""
        if self._redirect is None or self._redirect[1] != self._session.generation:
            return self._session
        return self._redirect[0]

    @property
    def generation(self) -> tuple[Session, int]:
        """Value that differs for every cluster between two changes of site."""
        return self.session, self._session.generation

    async def open(
        self, *, timeout_ms: int, retriable: Callable[[PulsarError], bool] = lambda error: error.retriable
    ) -> None:
        """Register for the first time. Raise the broker's refusal."""
        await retry(
            self._register,
            timeout_ms=timeout_ms,
            backoff=self._session.backoff(),
            retriable=retriable,
            patient=self._patient,
        )

    async def _register(self, assigned_url: str | None = None) -> None:
        assigned_url, self._assigned_url = assigned_url or self._assigned_url, None
        connection = await self.session.connect(self._topic, assigned_url=assigned_url)
        await self._owner.register(connection)

    def on_connected(self, connection: Connection) -> None:
        """Record that the broker has accepted the owner. The owner calls this while it registers."""
        self.connection = connection
        self._session.topic_in_use = self._topic
        self._connected_at = self._loop.time()

    def on_lost(self, assigned_url: str | None = None) -> bool:
        """Forget the lost connection. Return True if there was one.

        While the owner is opening there is none, and opening retries by itself, next at ``assigned_url``.
        """
        had_one = self.connection is not None
        self.connection = None
        self._assigned_url = None if had_one else assigned_url
        return had_one

    def redirect(self, service_url: str) -> None:
        """Look the topic up at another cluster from now on, until the client changes its site.

        An address that cannot be used is logged. The owner then stays at its cluster, which may redirect it again.
        """
        try:
            self._redirect = self._session.redirected(service_url), self._session.generation
        except ValueError as error:
            _log.warning("redirect cannot be followed what=%s topic=%s error=%s", self._what, self._topic, error)
        else:
            self._assigned_url = None
            _log.info("redirected what=%s topic=%s cluster=%s", self._what, self._topic, self.session.cluster)

    def reconnect(self, assigned_url: str | None = None, *, after: asyncio.Future[None] | None = None) -> None:
        """Start reconnecting, first to ``assigned_url``, unless a reconnection is already running.

        It waits for ``after``, a task of the owner.
        """
        if self._reconnecting is None and not self._session.is_closed:
            self._reconnecting = self._session.spawn(self._reconnect(assigned_url, after))
            self._session.note_waiting(self)

    def start_over(self) -> None:
        """Begin a running reconnection again, without a pause: the client has changed to another site."""
        before, self._reconnecting = self._reconnecting, None
        if before is not None:
            before.cancel()
            self.reconnect(after=before)

    async def _reconnect(self, assigned_url: str | None, after: asyncio.Future[None] | None) -> None:
        held_s = self._loop.time() - self._connected_at
        if after is not None:
            await asyncio.wait([after])
            held_s = math.inf  # the broker closed it for the owner's task
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
            if self._reconnecting is asyncio.current_task():  # otherwise a newer one is running
                self._reconnecting = None
                self._session.note_waiting(self, ended=True)
            if outages is not None:
                outages.given_up(self)  # it failed or was closed, unless it has reconnected

    def _is_tolerated(self, error: PulsarError) -> bool:
        outages = self._session.outages
        return tolerated_while_reconnecting(error) or (outages is not None and outages.may_resolve(error))

    def _note_pause(self, failure: PulsarError, pause: float) -> None:
        if self._session.outages is not None:
            self._session.outages.note(failure, self._loop.time(), waiter=self)
        _log.info(
            "cannot reconnect yet what=%s topic=%s pause_s=%.1f error=%s", self._what, self._topic, pause, failure
        )

    async def reconnected(self) -> None:
        """Wait for a running reconnection, at most for the operation timeout."""
        if self._reconnecting is not None:
            await asyncio.wait([self._reconnecting], timeout=self._session.config.operation_timeout_ms / 1000)

    async def stop(self) -> Connection | None:
        """Stop reconnecting. Return the connection on which the owner must be closed, if there is one."""
        connection, self.connection = self.connection, None
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
            self._reconnecting = None  # a task cancelled before its first step has not reset it
        self._session.note_waiting(self, ended=True)
        if connection is not None and connection.is_open and self.session is self._session:
            self._session.note_closed(self._topic, connection.address)
        return connection
