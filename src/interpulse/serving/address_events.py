"""Log lines of dropped connections and failed authentications: at most two per address and minute at WARNING.

The first event of an address is logged immediately; the others are counted and logged together at the end of each
minute. At DEBUG every event has a line. The owner of each object closes it at the end, which logs the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

_logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 60.0
_ADDRESSES_MAX: Final = 1000
"""Maximum number of addresses with their own lines in one minute. All others are combined."""
_OTHERS: Final = "others"


class Timer(Protocol):
    """Scheduled call."""

    def cancel(self) -> None: ...


def later(seconds: float, call: Callable[[], None]) -> Timer:
    """Schedule the call after ``seconds`` on the running event loop."""
    return asyncio.get_running_loop().call_later(seconds, call)


@dataclass(slots=True)
class _Unlogged:
    timer: Timer
    count: int = 0
    newest_reason: str = ""


class _AddressEvents:
    def __init__(
        self, log_more: Callable[[str, int, str], None], later: Callable[[float, Callable[[], None]], Timer]
    ) -> None:
        """``log_more`` gets an address, the number of its events without a line, and the latest reason."""
        self._log_more = log_more
        self._later = later
        self._unlogged: dict[tuple[str, bool], _Unlogged] = {}

    def is_first(self, address: str, reason: str, *, let_in: bool = False) -> bool:
        """Return True if this event gets a line, otherwise count it. Clients that were ``let_in`` count separately."""
        key = address, let_in
        if key not in self._unlogged and len(self._unlogged) >= _ADDRESSES_MAX:
            key = _OTHERS, let_in
        unlogged = self._unlogged.get(key)
        if unlogged is None:
            self._await_more(key)
            return True
        unlogged.count += 1
        unlogged.newest_reason = reason
        return False

    def close(self) -> None:
        for (address, _), unlogged in self._unlogged.items():
            unlogged.timer.cancel()
            self._log(address, unlogged)
        self._unlogged.clear()

    def _await_more(self, key: tuple[str, bool]) -> None:
        self._unlogged[key] = _Unlogged(self._later(_PAUSE_SECONDS, lambda: self._end_minute(key)))

    def _end_minute(self, key: tuple[str, bool]) -> None:
        unlogged = self._unlogged.pop(key)
        if unlogged.count:
            self._log(key[0], unlogged)
            self._await_more(key)

    def _log(self, address: str, unlogged: _Unlogged) -> None:
        if unlogged.count:
            self._log_more(address, unlogged.count, unlogged.newest_reason)


class DroppedConnections:
    """Connections that the program drops.

    Accepted clients and unauthenticated ones of one address have separate lines: behind a proxy all have one address.
    """

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = later) -> None:
        self.count = 0
        """Connections dropped since the start."""
        self._events = _AddressEvents(_log_more_drops, later)

    def note(self, address: str, reason: str, *, let_in: bool, peer: str = "") -> None:
        """Log a dropped connection. ``let_in``: its client was accepted. ``peer``: the address with the port."""
        self.count += 1
        if self._events.is_first(address, reason, let_in=let_in):
            _logger.warning("connection dropped address=%s reason=%s", peer or address, reason)
        else:
            _logger.debug("connection dropped address=%s reason=%s", peer or address, reason)

    def close(self) -> None:
        self._events.close()


class FailedAuthentications:
    """HTTP requests without valid credentials."""

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = later) -> None:
        self._events = _AddressEvents(_log_more_failures, later)

    def note(self, address: str | None, reason: str) -> None:
        """Log a refused request. The reason must not contain a secret."""
        if self._events.is_first(address or "", reason):
            _logger.warning("authentication failed address=%s reason=%s", address, reason)
        else:
            _logger.debug("authentication failed address=%s reason=%s", address, reason)

    def close(self) -> None:
        self._events.close()


def _log_more_drops(address: str, count: int, reason: str) -> None:
    _logger.warning("more connections dropped address=%s count=%d newest_reason=%s", address, count, reason)


def _log_more_failures(address: str, count: int, reason: str) -> None:
    _logger.warning("more authentications failed address=%s count=%d newest_reason=%s", address, count, reason)
