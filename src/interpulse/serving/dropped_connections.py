"""Says in the log which connections the program drops: a line per address and minute, however many there are.

The first of an address is told at once, the others are counted and told together at the end of each minute; each has a
line of its own at DEBUG. Clients that were let in are told apart from strangers of the same address: behind a proxy all
have one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["DroppedConnections"]

_logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 60.0
_ADDRESSES_MAX: Final = 1000
"""Told apart in one minute; those above are told together."""
_OTHERS: Final = "others"


class Timer(Protocol):
    """What has been put off."""

    def cancel(self) -> None: ...


def _later(seconds: float, call: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, call)


@dataclass(slots=True)
class _Untold:
    """What was dropped since the last line of an address."""

    timer: Timer
    count: int = 0
    reason: str = ""
    """The newest."""


class DroppedConnections:
    """See the module. `close` at the end."""

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = _later) -> None:
        self.count = 0
        """All that were dropped since the start."""
        self._later = later
        self._untold: dict[tuple[str, bool], _Untold] = {}

    def note(self, address: str, reason: str, *, let_in: bool, peer: str = "") -> None:
        """A connection is dropped. ``let_in``: its client had been accepted. ``peer``: the address with the port."""
        self.count += 1
        key = address, let_in
        if key not in self._untold and len(self._untold) >= _ADDRESSES_MAX:
            key = _OTHERS, let_in
        untold = self._untold.get(key)
        if untold is None:
            _logger.warning("connection dropped address=%s reason=%s", peer or address, reason)
            self._untold[key] = _Untold(self._later(_PAUSE_SECONDS, lambda: self._tell(key)))
            return
        _logger.debug("connection dropped address=%s reason=%s", peer or address, reason)
        untold.count += 1
        untold.reason = reason

    def close(self) -> None:
        """Tell what was not told yet."""
        for (address, _), untold in self._untold.items():
            untold.timer.cancel()
            _log(address, untold)
        self._untold.clear()

    def _tell(self, key: tuple[str, bool]) -> None:
        untold = self._untold.pop(key)
        if untold.count:
            _log(key[0], untold)
            self._untold[key] = _Untold(self._later(_PAUSE_SECONDS, lambda: self._tell(key)))


def _log(address: str, untold: _Untold) -> None:
    if untold.count:
        _logger.warning(
            "more connections dropped address=%s count=%d newest_reason=%s", address, untold.count, untold.reason
        )
