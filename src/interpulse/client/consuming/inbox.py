"""Queue of received messages, shared by the partition consumers of one consumer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from interpulse.client.messages import Message
from interpulse.model.errors import OperationTimeout, PulsarError


class Source(Protocol):
    """Consumer that put a message in."""

    def on_taken(self, message: Message) -> None:
        """Handle that the application has taken the message."""


class Inbox:
    """Queue of received messages, first in, first out. The permits that its sources grant bound its size."""

    def __init__(self) -> None:
        self._items: deque[tuple[Message, Source]] = deque()
        self._filled = asyncio.Event()
        self._failure: PulsarError | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, message: Message, source: Source) -> None:
        self._items.append((message, source))
        self._filled.set()

    def fail(self, failure: PulsarError) -> None:
        """End the inbox. Once it is empty, callers get the failure."""
        self._failure = failure
        self._filled.set()

    def discard(self, source: Source, unwanted: Callable[[Message], bool] = lambda message: True) -> int:
        """Drop the queued messages of one source. Return their number."""
        before = len(self._items)
        self._items = deque(
            (message, owner) for message, owner in self._items if owner is not source or not unwanted(message)
        )
        return before - len(self._items)

    async def take(self, timeout_ms: int | None) -> Message:
        """Return the next message. Raise OperationTimeout, or the failure that ended the inbox."""
        while not self._items:
            if self._failure is not None:
                raise self._failure
            self._filled.clear()
            try:
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    await self._filled.wait()
            except TimeoutError:
                raise OperationTimeout(f"no message within {timeout_ms} ms") from None
        message, source = self._items.popleft()
        source.on_taken(message)
        return message

    async def take_batch(self, *, messages_max: int | None, bytes_max: int, timeout_ms: int) -> list[Message]:
        """Return messages up to a limit or the timeout; possibly none. Raise the failure that ended the inbox."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        batch: list[Message] = []
        size = 0
        while size < bytes_max and (messages_max is None or len(batch) < messages_max):
            try:
                message = await self.take(max(int((deadline - loop.time()) * 1000), 0))
            except OperationTimeout:
                break
            except PulsarError:
                if not batch:
                    raise
                break
            batch.append(message)
            size += len(message.content or b"")
        return batch
