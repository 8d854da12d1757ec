"""Bytes between a client and its broker, both ways, as they arrive.

Each end reads only while the other one accepts: the process holds at most one read and the write buffer of a socket for
each direction. An end that stops sending is reported to the other one, which may go on. An end that is gone closes the
other one, after what was read has been delivered.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Final, cast

from interpulse.proxy.meter import ProxyMeter

_logger = logging.getLogger(__name__)

_WRITE_BYTES_HIGH: Final = 256 * 1024
_WRITE_BYTES_LOW: Final = 64 * 1024
# The time for an end to accept the rest after its peer is gone.
_DRAIN_SECONDS_MAX: Final = 10.0


class RelayEnd(asyncio.Protocol):
    """One of the two sockets."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self.transport: asyncio.Transport | None = None
        self.other: RelayEnd
        self._aborting: asyncio.TimerHandle | None = None
        self._deadline = math.inf
        self.peer_sends = True

    def attach(self, transport: asyncio.Transport) -> None:
        """Take over a socket."""
        transport.set_write_buffer_limits(high=_WRITE_BYTES_HIGH, low=_WRITE_BYTES_LOW)
        self.transport = transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attach(cast("asyncio.Transport", transport))  # uvloop's transport does not inherit from it

    def data_received(self, data: bytes) -> None:
        self._relay.moved(len(data))
        self.other.write(data)

    def write(self, data: bytes) -> None:
        """Write what the other end has read."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.other.hold(True)

    def resume_writing(self) -> None:
        self.other.hold(False)

    def hold(self, held: bool) -> None:
        """Stop reading, or go on."""
        if self.transport is None or self.transport.is_closing() or not self.peer_sends:
            return
        if held:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def eof_received(self) -> bool:
        """Report that the peer sends no more. It still receives, if the connection can be half-closed."""
        self.peer_sends = False
        self.other.end_writing()
        if not self.other.peer_sends:  # nothing will move any more
            self.close()
            self.other.close()
        return self.transport is not None and self.transport.get_extra_info("ssl_object") is None

    def end_writing(self) -> None:
        """Tell the peer that the other end sends no more."""
        if self.transport is None or self.transport.is_closing():
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.close()

    def close(self, seconds: float = _DRAIN_SECONDS_MAX) -> None:
        """Deliver what is pending, for at most ``seconds``, and close. The earliest of several deadlines counts."""
        if self.transport is None:
            return
        self.transport.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if deadline < self._deadline:
            self._deadline = deadline
            if self._aborting is not None:
                self._aborting.cancel()
            self._aborting = loop.call_at(deadline, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._aborting is not None:
            self._aborting.cancel()
        self.transport = None
        self._relay.end_lost(self, exc)


class Relay:
    """Both ends of one data connection."""

    def __init__(self, meter: ProxyMeter, idle_seconds: float, on_lost: Callable[[], None]) -> None:
        """``on_lost`` is called once, when both ends are gone."""
        self._loop = asyncio.get_running_loop()
        self._meter = meter
        self._idle_seconds = idle_seconds
        self._on_lost = on_lost
        self.client, self.broker = RelayEnd(self), RelayEnd(self)
        self.client.other, self.broker.other = self.broker, self.client
        self._moved_at = self._loop.time()
        self._timer = self._loop.call_later(idle_seconds, self._look)
        self._ends = 2

    def moved(self, size: int) -> None:
        self._moved_at = self._loop.time()
        self._meter.moved(size)

    def end_lost(self, end: RelayEnd, exc: Exception | None) -> None:
        if not self._ends:
            return
        self._ends -= 1
        if self._ends:
            end.other.close()
            return
        self._timer.cancel()
        _logger.debug("data connection closed cause=%s", exc)
        self._on_lost()

    def abandon(self) -> None:
        """Stop, because the broker was not connected. The client's connection stays with its owner."""
        self._timer.cancel()
        self._ends = 0
        self.broker.close(0)

    def close(self, seconds: float) -> None:
        """Deliver what is pending and close both ends, within ``seconds``."""
        self.client.close(seconds)
        self.broker.close(seconds)

    def _look(self) -> None:
        """Close an idle connection: one of the two has vanished without a word."""
        left = self._moved_at + self._idle_seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
            return
        _logger.warning("data connection closed, idle seconds=%s", self._idle_seconds)
        self.close(0)
