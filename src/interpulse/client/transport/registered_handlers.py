"""The producers, consumers and topic watchers that are registered on one connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from interpulse.model.errors import NotConnected, OperationTimeout, PulsarError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import MessageRun, ReceiptRun

__all__ = ["ConsumerListener", "ProducerListener", "RegisteredHandlers", "TopicListListener"]

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Gets the frames of one producer, consumer or topic watcher."""

    def on_disconnected(self, assigned_url: str | None) -> None:
        """The connection is lost, or the broker closed this one, and may assign it to another broker."""


class ProducerListener(Listener, Protocol):
    """A producer as its connection sees it."""

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None: ...

    def on_receipts(self, run: ReceiptRun) -> None: ...

    def on_send_error(self, error: pb.CommandSendError) -> None: ...


class ConsumerListener(Listener, Protocol):
    """A consumer as its connection sees it."""

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None: ...

    def on_messages(self, run: MessageRun) -> None: ...

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...


class TopicListListener(Listener, Protocol):
    """A watcher of a list of topics, as its connection sees it."""

    def on_update(self, update: pb.CommandWatchTopicUpdate) -> None: ...


class RequestSender(Protocol):
    """The connection as its registered handlers see it."""

    def next_request_id(self) -> int: ...

    def write(self, *parts: bytes | memoryview) -> None: ...

    async def request(self, build: Callable[[int], bytes]) -> pb.BaseCommand: ...

    @property
    def is_open(self) -> bool: ...


L = TypeVar("L", bound=Listener)


class RegisteredHandlers(Generic[L]):
    """The listeners of one kind by their ids. ``close_frame`` makes the command that closes one, from its id and a
    request id."""

    def __init__(self, sender: RequestSender, close_frame: Callable[[int, int], bytes]) -> None:
        self._sender = sender
        self._close_frame = close_frame
        self._handlers: dict[int, L] = {}
        self.get = self._handlers.get
        """The listener with this id, or None."""

    def __iter__(self) -> Iterator[L]:
        return iter(list(self._handlers.values()))

    async def open(self, handler_id: int, listener: L, build: Callable[[int], bytes]) -> pb.BaseCommand:
        """Register a listener, and open it with the frame that ``build`` makes; returns the answer.

        Raises what the broker refuses it with, OperationTimeout or NotConnected; then it is not registered.
        """
        self._handlers[handler_id] = listener
        try:
            answer = await self._sender.request(build)
        except BaseException as error:
            self.forget(handler_id)
            if isinstance(error, OperationTimeout | asyncio.CancelledError):  # the broker may open it all the same
                self._sender.write(self._close_frame(handler_id, self._sender.next_request_id()))
            raise
        if handler_id not in self._handlers:
            raise NotConnected("the broker closed it while it was opening")
        return answer

    async def close(self, handler_id: int) -> None:
        """Close it at the broker; a refusal is only logged."""
        self.forget(handler_id)
        if not self._sender.is_open:
            return
        try:
            await self._sender.request(lambda request_id: self._close_frame(handler_id, request_id))
        except PulsarError as error:
            _log.debug("broker refused to close id=%d error=%s", handler_id, error)

    def forget(self, handler_id: int) -> None:
        """The broker has closed it."""
        self._handlers.pop(handler_id, None)

    def take(self, handler_id: int) -> L | None:
        """As :meth:`forget`; returns its listener."""
        return self._handlers.pop(handler_id, None)

    def disconnect_all(self) -> None:
        """The connection is lost."""
        lost = list(self._handlers.values())
        self._handlers.clear()
        for listener in lost:
            listener.on_disconnected(None)
