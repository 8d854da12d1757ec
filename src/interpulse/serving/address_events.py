"""Which events that clients cause have a line in the log: one per address and minute, however many there are.

The first of an address is told at once, the others are counted and told together at the end of each minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["AddressEvents", "Timer", "later"]

_PAUSE_SECONDS: Final = 60.0
_ADDRESSES_MAX: Final = 1000
"""Told apart in one minute; those above are told together."""
_OTHERS: Final = "others"


class Timer(Protocol):
    """What has been put off."""

    def cancel(self) -> None: ...


def later(seconds: float, call: Callable[[], None]) -> Timer:
    """Put a call off, on the running event loop."""
    return asyncio.get_running_loop().call_later(seconds, call)


@dataclass(slots=True)
class _Untold:
    """What happened since the last line of an address."""

    timer: Timer
    count: int = 0
    reason: str = ""
    """The newest."""


class AddressEvents:
    """See the module. `close` at the end."""

    def __init__(
        self,
        tell_more: Callable[[str, int, str], None],
        *,
        later: Callable[[float, Callable[[], None]], Timer] = later,
    ) -> None:
        """``tell_more`` gets an address, the number of its events without a line, and the newest reason."""
        self._tell_more = tell_more
        self._later = later
        self._untold: dict[tuple[str, bool], _Untold] = {}

    def is_first(self, address: str, reason: str, *, let_in: bool = False) -> bool:
        """Something happened: whether it has a line; otherwise it is counted. Clients that were ``let_in`` are apart.

        ``reason`` is told if it is the newest of those without a line.
        """
        key = address, let_in
        if key not in self._untold and len(self._untold) >= _ADDRESSES_MAX:
            key = _OTHERS, let_in
        untold = self._untold.get(key)
        if untold is None:
            self._untold[key] = _Untold(self._later(_PAUSE_SECONDS, lambda: self._minute_over(key)))
            return True
        untold.count += 1
        untold.reason = reason
        return False

    def close(self) -> None:
        """Tell what was not told yet."""
        for (address, _), untold in self._untold.items():
            untold.timer.cancel()
            self._tell(address, untold)
        self._untold.clear()

    def _minute_over(self, key: tuple[str, bool]) -> None:
        untold = self._untold.pop(key)
        if untold.count:
            self._tell(key[0], untold)
            self._untold[key] = _Untold(self._later(_PAUSE_SECONDS, lambda: self._minute_over(key)))

    def _tell(self, address: str, untold: _Untold) -> None:
        if untold.count:
            self._tell_more(address, untold.count, untold.reason)
