"""The producers, consumers and watchers that live on one connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from interpulse.model.errors import NotConnected, OperationTimeout, PulsarError
from interpulse.wire import pulsar_api_pb2 as pb

__all__ = ["ConsumerListener", "ProducerListener", "Residents", "TopicListListener"]

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Whoever lives on a connection."""

    def on_disconnected(self, assigned_url: str | None) -> None:
        """The connection is lost, or the broker closed this one (and may have named another broker)."""


class ProducerListener(Listener, Protocol):
    """A producer as its connection sees it."""

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None: ...

    def on_send_error(self, error: pb.CommandSendError) -> None: ...


class ConsumerListener(Listener, Protocol):
    """A consumer as its connection sees it."""

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None: ...

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...


class TopicListListener(Listener, Protocol):
    """Who watches a list of topics, as its connection sees it."""

    def on_update(self, update: pb.CommandWatchTopicUpdate) -> None: ...


class Line(Protocol):
    """What residents need of their connection."""

    def next_request_id(self) -> int: ...

    def write(self, *parts: bytes | memoryview) -> None: ...

    async def request(self, build: Callable[[int], bytes]) -> pb.BaseCommand: ...

    @property
    def is_open(self) -> bool: ...


L = TypeVar("L", bound=Listener)


class Residents(Generic[L]):
    """Those of one kind, by their ids. ``close_frame`` makes the command that closes one, from its id and a request
    id."""

    def __init__(self, line: Line, close_frame: Callable[[int, int], bytes]) -> None:
        self._line = line
        self._close_frame = close_frame
        self._residents: dict[int, L] = {}
        self.get = self._residents.get
        """The resident with this id, or None."""

    def __iter__(self) -> Iterator[L]:
        return iter(list(self._residents.values()))

    async def open(self, resident_id: int, listener: L, build: Callable[[int], bytes]) -> pb.BaseCommand:
        """Register one with the frame that ``build`` makes; returns the answer.

        Raises what the broker refuses it with, OperationTimeout or NotConnected; then it does not live here.
        """
        self._residents[resident_id] = listener
        try:
            answer = await self._line.request(build)
        except BaseException as error:
            self.forget(resident_id)
            if isinstance(error, OperationTimeout | asyncio.CancelledError):  # the broker may let it in all the same
                self._line.write(self._close_frame(resident_id, self._line.next_request_id()))
            raise
        if resident_id not in self._residents:
            raise NotConnected("the broker closed right after it had opened")
        return answer

    async def close(self, resident_id: int) -> None:
        """Say goodbye to the broker; what it answers makes no difference."""
        self.forget(resident_id)
        if not self._line.is_open:
            return
        try:
            await self._line.request(lambda request_id: self._close_frame(resident_id, request_id))
        except PulsarError as error:
            _log.debug("not closed properly id=%d error=%s", resident_id, error)

    def forget(self, resident_id: int) -> None:
        """The broker has nothing of it any more."""
        self._residents.pop(resident_id, None)

    def take(self, resident_id: int) -> L | None:
        """As :meth:`forget`; returns who it was."""
        return self._residents.pop(resident_id, None)

    def disconnect_all(self) -> None:
        """The connection is lost."""
        lost = list(self._residents.values())
        self._residents.clear()
        for resident in lost:
            resident.on_disconnected(None)
