"""Requests to one cluster at a limited rate, repeated while it is temporarily busy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from interpulse.client.transport.backoff import Backoff, retry

T = TypeVar("T")


class PacedRequests:
    """Wrapper of requests. All that go through one object share its rate.

    ``rate``: requests per second. ``patience_ms``: time limit for repeating a request after a temporary failure.
    """

    def __init__(self, rate: float, patience_ms: int = 15_000) -> None:
        self._rate = rate
        self._patience_ms = patience_ms
        self._next = 0.0
        self.count = 0
        """Number of requests so far, repeated ones included."""

    async def __call__(self, ask: Callable[[], Awaitable[T]], requests: int = 1) -> T:
        """Return the answer, at the rate. A broker that is temporarily busy or restarting is asked again.

        ``requests`` is the number of requests that ``ask`` makes. Raise the cluster's error.
        """

        async def attempt() -> T:
            await self.turn(requests)
            return await ask()

        return await retry(attempt, backoff=Backoff(), timeout_ms=self._patience_ms, patient=True)

    async def turn(self, requests: int = 1) -> None:
        """Wait for the turn of some requests, which the caller makes itself and once."""
        now = asyncio.get_running_loop().time()
        begin = max(now, self._next)
        self._next = begin + requests / self._rate
        self.count += requests
        if begin > now:
            await asyncio.sleep(begin - now)
