"""Lookups that arrive together and are combined into one batch lookup.

When a connection with a thousand producers is lost, each of them looks up its broker within milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from interpulse.client.config import BrokerAddress
from interpulse.model.errors import AlreadyClosed, PulsarError
from interpulse.model.names import TopicName

Answer = BrokerAddress | PulsarError
_Waiting = dict[TopicName, asyncio.Future[Answer]]

_WINDOW_S: Final = 0.01
"""Longest time that a lookup waits for others. Initial pauses between attempts spread over the same time."""


class GatheredLookups:
    """Combines concurrent lookups.

    A single lookup is sent immediately. Lookups that arrive while one is in flight wait until it ends, at most 10 ms,
    and are then sent as one request.
    """

    def __init__(
        self,
        single: Callable[[TopicName], Awaitable[BrokerAddress]],
        many: Callable[[Sequence[TopicName]], Awaitable[Mapping[TopicName, Answer]]],
        *,
        window_s: float = _WINDOW_S,
    ) -> None:
        """Create combined lookups. ``many`` returns an answer for each of its topics."""
        self._single = single
        self._many = many
        self._window_s = window_s
        self._waiting: _Waiting = {}
        self._under_way = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Mapping[TopicName, Answer]]] = set()

    async def find(self, topic: TopicName) -> BrokerAddress:
        """Return the broker of the topic. Raise the failure of its lookup."""
        if not self._under_way:
            return await self._alone(topic)
        answer = await asyncio.shield(self._enqueue(topic))
        if isinstance(answer, PulsarError):
            raise answer
        return answer

    async def _alone(self, topic: TopicName) -> BrokerAddress:
        self._under_way += 1
        try:
            return await self._single(topic)
        finally:
            self._ended()

    def _enqueue(self, topic: TopicName) -> asyncio.Future[Answer]:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(self._window_s, self._ask)
        future = self._waiting.get(topic)
        if future is None:
            future = self._waiting[topic] = loop.create_future()
        return future

    def _ended(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._ask()

    def _ask(self) -> None:
        """Look up all waiting topics."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        if waiting:
            self._under_way += 1
            task = asyncio.get_running_loop().create_task(self._together(list(waiting)))
            self._tasks.add(task)
            task.add_done_callback(partial(self._deliver, waiting))

    async def _together(self, topics: Sequence[TopicName]) -> Mapping[TopicName, Answer]:
        return await self._many(topics)

    def _deliver(self, waiting: _Waiting, task: asyncio.Task[Mapping[TopicName, Answer]]) -> None:
        self._tasks.discard(task)
        for topic, future in waiting.items():
            if task.cancelled():
                future.set_result(AlreadyClosed("the client is closed"))
            else:
                error = task.exception()
                future.set_exception(error) if error else future.set_result(task.result()[topic])
        self._ended()

    async def close(self) -> None:
        """Fail waiting lookups with AlreadyClosed."""
        self._ask()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
