"""A session with ZooKeeper, and its deadline.

The server counts the time-out from when it *received* something; a client knows only which requests were answered. So
the session lives at least for the time-out after the *sending* of the newest answered request. The deadline is at four
fifths of it: after that, nothing that depends on the session (an ephemeral node, a lock) may be used. Source:
docs/reference/cluster-protocol.md#session-deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import Final

from interpulse.storage.zookeeper.errors import shown_session

_RELIED_ON: Final = 0.8  # of the time-out; pings every third of it leave more than a third of slack
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)


def boot_clock() -> float:
    """Return seconds that also pass while the machine sleeps, if the system has such a clock."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class SessionEvent(Enum):
    """An event in the life of a session."""

    DISCONNECTED = "disconnected"  # the connection ended; the session may live on
    SUSPECT = "suspect"  # the session may have expired
    RESUMED = "resumed"  # connected, or answered, again in the same session
    EXPIRED = "expired"  # the server declared the session over
    RENEWED = "renewed"  # a new session took its place
    ENDED = "ended"  # there will be no further session, since the servers are unusable


class Session:
    """One session, as its client knows it."""

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
        return shown_session(self.id)

    @property
    def deadline(self) -> float:
        """The time until which the session may be relied on, by its clock."""
        return self._touched + _RELIED_ON * self.timeout_s

    def touch(self, sent_at: float) -> None:
        """Note that the request sent at ``sent_at`` was answered."""
        self._touched = max(self._touched, sent_at)

    def holds(self) -> bool:
        """Return True if the session certainly lives now. The clock is read here: no timer has to fire for it."""
        return not self.over and self._clock() < self.deadline
