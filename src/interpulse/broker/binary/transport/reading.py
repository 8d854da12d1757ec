"""Reading from one client, which pauses while there is a reason."""

from __future__ import annotations

import asyncio
from typing import Final

PUBLISHES: Final = "publishes"
"""Reason: too many entries have no answer yet."""
REQUESTS: Final = "requests"
"""Reason: too many requests are in progress."""
OUTPUT: Final = "output"
"""Reason: too much output waits for the client to read it."""
RATE: Final = "rate"
"""Reason: the client published faster than a policy allows."""


class Reading:
    """The reading side of a transport, paused by the first reason and resumed when the last one is released."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.held_by: set[str] = set()
        """The reasons for the pause; `hold` and `release` change them."""

    def hold(self, reason: str) -> None:
        """Pause reading until this reason is released."""
        if not self.held_by:
            self._transport.pause_reading()
        self.held_by.add(reason)

    def release(self, reason: str) -> None:
        """Release a reason, and resume reading after the last one."""
        if reason in self.held_by:
            self.held_by.remove(reason)
            if not self.held_by and not self._transport.is_closing():
                self._transport.resume_reading()
