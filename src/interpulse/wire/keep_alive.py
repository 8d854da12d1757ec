"""Keep-alive of one end of a connection: the peer must send something in every interval, and a PING makes it answer."""

from __future__ import annotations

from interpulse.wire.errors import RemoteProtocolError


class KeepAlive:
    """The intervals of a connection, used by both ends in their ``tick``.

    ``interval`` and every ``now`` are seconds of one monotonic clock.
    """

    __slots__ = ("_interval", "heard", "next_tick")

    def __init__(self, interval: float, now: float) -> None:
        self._interval = interval
        self.next_tick = now + interval
        """The end of the interval."""
        self.heard = False
        """True if the peer has sent anything since the last PING. The owner of the connection sets it."""

    def elapsed(self, now: float) -> bool:
        """Return True if the interval has ended, and begin the next one."""
        if now < self.next_tick:
            return False
        self.next_tick = now + self._interval
        return True

    def check_heard(self) -> None:
        """Raise RemoteProtocolError if the peer was silent in the past interval."""
        if not self.heard:
            raise RemoteProtocolError(f"nothing heard for {self._interval:g} s")
