"""Reading from one client, which stops while there is a reason to."""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["OUTPUT", "PUBLISHES", "RATE", "REQUESTS", "Reading"]

PUBLISHES: Final = "publishes"
"""Too many entries have no answer yet."""
REQUESTS: Final = "requests"
"""Too many requests are in work."""
OUTPUT: Final = "output"
"""Too much output waits for the client to read it."""
RATE: Final = "rate"
"""The client published faster than a policy allows."""


class Reading:
    """Pauses the transport with the first reason, and resumes it when the last one has gone."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.held_by: set[str] = set()
        """The reasons not to read now; `hold` and `release` change them."""

    def hold(self, reason: str) -> None:
        """Read nothing more until this is released."""
        if not self.held_by:
            self._transport.pause_reading()
        self.held_by.add(reason)

    def release(self, reason: str) -> None:
        """The reason has gone."""
        if reason in self.held_by:
            self.held_by.remove(reason)
            if not self.held_by and not self._transport.is_closing():
                self._transport.resume_reading()
