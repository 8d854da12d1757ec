"""Keep-alive of one end of a connection: the peer must say something in every interval, and a PING makes it answer."""

from __future__ import annotations

from interpulse.wire.errors import RemoteProtocolError

__all__ = ["KeepAlive"]


class KeepAlive:
    """Both ends ask it in their ``tick``. ``interval`` and every ``now`` are seconds of one monotonic clock."""

    __slots__ = ("_interval", "heard", "next_tick")

    def __init__(self, interval: float, now: float) -> None:
        self._interval = interval
        self.next_tick = now + interval
        """When the interval ends."""
        self.heard = False
        """Whether the peer has said anything since the last PING; its end of the connection keeps this."""

    def elapsed(self, now: float) -> bool:
        """Whether the interval has ended, and the next one begun."""
        if now < self.next_tick:
            return False
        self.next_tick = now + self._interval
        return True

    def check_heard(self) -> None:
        """Raises RemoteProtocolError if the peer was silent in the interval that has ended."""
        if not self.heard:
            raise RemoteProtocolError(f"nothing heard for {self._interval:g} s")
