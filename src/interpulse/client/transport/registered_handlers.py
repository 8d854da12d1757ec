"""Producers, consumers and topic watchers registered on one connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import Message

from interpulse.model.errors import NotConnected, OperationTimeout, PulsarError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import MessageRun, ReceiptRun

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Receiver of the frames of one producer, consumer or topic watcher."""

    def on_disconnected(self, assigned_url: str | None) -> None:
        """Handle that the connection is lost or the broker closed this listener, perhaps assigning another broker."""


class RedirectedListener(Listener, Protocol):
    """Producer or consumer that may be redirected to another cluster."""

    def on_redirected(self, service_url: str) -> None:
        """Handle that the topic is served by another cluster. The loss of the connection follows."""


class ProducerListener(RedirectedListener, Protocol):
    """Producer, as its connection sees it."""

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None: ...

    def on_receipts(self, run: ReceiptRun) -> None: ...

    def on_send_error(self, error: pb.CommandSendError) -> None: ...


class ConsumerListener(RedirectedListener, Protocol):
    """Consumer, as its connection sees it."""

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None: ...

    def on_messages(self, run: MessageRun) -> None: ...

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...

    def on_leaving(self) -> None:
        """Send what still belongs on this connection, because the client is about to close it."""


class TopicListListener(Listener, Protocol):
    """Watcher of a list of topics, as its connection sees it."""

    def on_update(self, update: pb.CommandWatchTopicUpdate) -> None: ...


class RequestSender(Protocol):
    """Connection, as its registered handlers see it."""

    async def request(self, content: Message, *, accepted: asyncio.Future[bool] | None = None) -> pb.BaseCommand: ...

    @property
    def is_open(self) -> bool: ...


L = TypeVar("L", bound=Listener)


class RegisteredHandlers(Generic[L]):
    """Listeners of one kind by their ids. ``closing`` returns the content of the command that closes one.

    An opening that its caller abandons, by a timeout or a cancellation, may still succeed at the broker. It is closed
    once the broker has answered it, or ``patience_ms`` later. The reason for waiting: an Apache Pulsar broker that is
    asked to close a producer which it is still opening may hold the name as long as the connection lives. These tasks
    belong to the connection: its loss ends them, and :meth:`closed` awaits them.
    """

    def __init__(self, sender: RequestSender, closing: Callable[[int], Message], *, patience_ms: int = 30_000) -> None:
        self._sender = sender
        self._closing = closing
        self._patience_s = patience_ms / 1000
        self._handlers: dict[int, L] = {}
        self._opening: dict[int, Message] = {}
        """Commands that open listeners and have no answer yet, by the ids of the listeners."""
        self._given_up: dict[asyncio.Task[None], tuple[int, Hashable]] = {}
        """Abandoned openings that are not closed yet, with their ids and the names they hold."""
        self.get = self._handlers.get
        """Function that returns the listener with this id, or None."""

    def __iter__(self) -> Iterator[L]:
        return iter(list(self._handlers.values()))

    async def open(self, handler_id: int, listener: L, content: Message, *, holds: Hashable = None) -> pb.BaseCommand:
        """Register a listener and open it with the command of this content. Return the answer.

        ``holds`` identifies an exclusive resource, such as a producer name on its topic; None for none. An abandoned
        opening with the same id or the same ``holds`` is closed first. Raise the broker's refusal, OperationTimeout or
        NotConnected; then the listener is not registered.
        """
        await self._wait_for_given_up(handler_id, holds)
        self._handlers[handler_id] = listener
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._opening[handler_id] = content
        try:
            answer = await self._sender.request(content, accepted=accepted)
        except BaseException as error:
            self.forget(handler_id)
            if isinstance(error, OperationTimeout | asyncio.CancelledError):  # the broker may still open it
                task = asyncio.get_running_loop().create_task(self._close_given_up(handler_id, accepted))
                self._given_up[task] = handler_id, holds
                task.add_done_callback(self._given_up.pop)
            else:
                accepted.cancel()
            raise
        finally:
            self._opening.pop(handler_id, None)
        if handler_id not in self._handlers:
            raise NotConnected("the broker closed it while it was opening")
        return answer

    async def _wait_for_given_up(self, handler_id: int, holds: Hashable) -> None:
        earlier = [
            task
            for task, (its_id, its_hold) in self._given_up.items()
            if its_id == handler_id or (holds is not None and its_hold == holds)
        ]
        if earlier:
            await asyncio.wait(earlier)

    async def _close_given_up(self, handler_id: int, accepted: asyncio.Future[bool]) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                is_open = await accepted
        except TimeoutError:
            is_open = True  # perhaps
        if is_open:
            await self.close(handler_id)

    async def close(self, handler_id: int) -> None:
        """Close the listener at the broker. A refusal is only logged."""
        self.forget(handler_id)
        if not self._sender.is_open:
            return
        try:
            await self._sender.request(self._closing(handler_id))
        except PulsarError as error:
            _log.debug("broker refused to close id=%d error=%s", handler_id, error)

    def forget(self, handler_id: int) -> None:
        """Remove a listener that the broker has closed."""
        self._handlers.pop(handler_id, None)

    def take(self, handler_id: int) -> L | None:
        """Remove a listener that the broker has closed, and return it."""
        return self._handlers.pop(handler_id, None)

    def opening_request(self, handler_id: int) -> int | None:
        """Return the id of the request that opens a listener; None if it is answered."""
        content = self._opening.get(handler_id)
        return None if content is None else int(content.request_id)  # type: ignore[attr-defined]  # set when it is sent

    def disconnect_all(self) -> None:
        """Notify all listeners of the lost connection."""
        lost = list(self._handlers.values())
        self._handlers.clear()
        for listener in lost:
            listener.on_disconnected(None)

    async def closed(self) -> None:
        """Wait until no abandoned opening is left to be closed. Losing the connection ends them."""
        if self._given_up:
            await asyncio.wait(self._given_up)
