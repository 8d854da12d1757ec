"""A session with ZooKeeper, and how long one may rely on it.

The server counts the time-out from when it *received* something; a client knows only what was answered. So the session
lives at least until the time-out after the *sending* of the newest request that has been answered, and is relied on
for four fifths of it: nothing that rests on the session (an ephemeral node, a lock) may be used after that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import Final

__all__ = ["Session", "SessionEvent", "boot_clock"]

_RELIED_ON: Final = 0.8  # of the time-out; pings every third leave more than a third of slack in health
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)


def boot_clock() -> float:
    """Seconds that also pass while the machine sleeps, where the system has such a clock."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class SessionEvent(Enum):
    """What became of the session."""

    DISCONNECTED = "disconnected"  # the connection ended; the session may live on
    SUSPECT = "suspect"  # now it may have expired
    RESUMED = "resumed"  # connected, or answered, again, in the same session
    EXPIRED = "expired"  # the server said that it is over
    RENEWED = "renewed"  # a new one took its place
    ENDED = "ended"  # there will be none any more, since the servers cannot be worked with


class Session:
    """One session as its client knows it."""

    def __init__(self, session_id: int, password: bytes, timeout_s: float, clock: Callable[[], float]) -> None:
        self.id = session_id
        self.password = password
        self.timeout_s = timeout_s
        self.over = False
        self._clock = clock
        self._touched = float("-inf")

    @property
    def name(self) -> str:
        """The id as ZooKeeper's own tools print it."""
        return f"0x{self.id & 0xFFFFFFFFFFFFFFFF:x}"

    @property
    def deadline(self) -> float:
        """Until when one may rely on the session, by its clock."""
        return self._touched + _RELIED_ON * self.timeout_s

    def touch(self, sent_at: float) -> None:
        """What was sent then has been answered."""
        self._touched = max(self._touched, sent_at)

    def holds(self) -> bool:
        """Whether the session surely lives now. The clock is read here: no timer has to fire in time for it."""
        return not self.over and self._clock() < self.deadline
