"""Where a producer or consumer lives: its connection, and its way back to the broker when it was lost."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Protocol

from interpulse.client.session import Session
from interpulse.client.transport.backoff import retry
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName

__all__ = ["Attached", "Attachment"]


class Attached(Protocol):
    """A producer or consumer as its attachment sees it."""

    async def register(self, connection: Connection) -> None:
        """Open at the broker of this connection, and begin work there."""

    def on_failed(self, failure: PulsarError) -> None:
        """It cannot come back."""


class Attachment:
    """Finds the broker of a topic, registers ``owner`` there, and does so again whenever the connection was lost.

    ``what`` says in the log who it is. ``timeout_ms`` is how long it tries to come back (None = for ever). ``patient``:
    registering may take as long as it likes.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        owner: Attached,
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
        self._returning: asyncio.Task[None] | None = None
        self._backoff = session.backoff()
        self._attached_at = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def is_returning(self) -> bool:
        """It was lost, and is on its way back."""
        return self._returning is not None

    async def open(
        self, *, timeout_ms: int, retriable: Callable[[PulsarError], bool] = lambda error: error.retriable
    ) -> None:
        """Register for the first time. Raises what the broker refuses it with."""
        await retry(
            self._attach,
            timeout_ms=timeout_ms,
            backoff=self._session.backoff(),
            retriable=retriable,
            patient=self._patient,
        )

    async def _attach(self, assigned_url: str | None = None) -> None:
        connection = await self._session.connect(self._topic, assigned_url=assigned_url)
        await self._owner.register(connection)

    def settle(self, connection: Connection) -> None:
        """The broker has answered: this is the connection now. Called by the owner while it registers."""
        self.connection = connection
        self._attached_at = self._loop.time()

    def lose(self) -> bool:
        """The connection is gone; whether there was one. While opening there is none: whoever opens tries again."""
        had_one = self.connection is not None
        self.connection = None
        return had_one

    def come_back(self, assigned_url: str | None = None, *, after: asyncio.Future[None] | None = None) -> None:
        """Begin the way back, unless it is under way. ``after``: what the owner does itself must be over first."""
        if self._returning is None and not self._session.is_closed:
            self._returning = self._session.spawn(self._return(assigned_url, after))

    async def _return(self, assigned_url: str | None, after: asyncio.Future[None] | None) -> None:
        held_s = self._loop.time() - self._attached_at
        if after is not None:
            await asyncio.wait([after])
            held_s = math.inf  # it was sent away on purpose
        try:
            await self._session.return_to_broker(
                self._attach,
                what=f"{self._what} on {self._topic}",
                backoff=self._backoff,
                held_s=held_s,
                assigned_url=assigned_url,
                timeout_ms=self._timeout_ms,
                patient=self._patient,
            )
        except PulsarError as failure:
            self._owner.on_failed(failure)
        finally:
            self._returning = None

    async def returned(self) -> None:
        """Wait for one that is on its way back, but not for ever."""
        if self._returning is not None:
            await asyncio.wait([self._returning], timeout=self._session.config.operation_timeout_ms / 1000)

    async def leave(self) -> Connection | None:
        """Come back no more; returns the connection on which the broker has to be told, if there is one."""
        connection, self.connection = self.connection, None
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
            self._returning = None  # one that had not begun could not do it itself
        return connection
