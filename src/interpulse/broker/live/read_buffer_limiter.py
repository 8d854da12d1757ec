"""The read buffer limiter: one bound, for the whole broker, on entries read from logs and not yet delivered.

Each owner of such entries says how many bytes they are and how it lets them go. Above the bound the entries that were
read first go first, and are read again when they are wanted. The entries that were read last stay, however large, so
every subscription moves on.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from weakref import WeakMethod

__all__ = ["ReadBufferLimiter"]


class ReadBufferLimiter:
    """See the module."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._numbers = count()
        self._held: dict[int, tuple[int, WeakMethod[Callable[[int], None]]]] = {}
        """Size, and the callback that frees it; oldest first."""
        self._bytes = 0

    @property
    def bytes_held(self) -> int:
        return self._bytes

    def hold(self, size: int, let_go: Callable[[int], None]) -> int:
        """A number for entries of ``size`` bytes; the method ``let_go(number)`` is called when they have to go.

        Its owner is not kept alive: what belongs to one that is gone counts until its turn comes.
        """
        number = next(self._numbers)
        self._held[number] = size, WeakMethod(let_go)
        self._bytes += size
        while self._bytes > self._bytes_max and len(self._held) > 1:
            oldest = next(iter(self._held))
            _, owners_method = self._held[oldest]
            self.free(oldest)
            if (forget := owners_method()) is not None:
                forget(oldest)
        return number

    def shrink(self, number: int, size: int) -> None:
        """Of them only ``size`` bytes are kept now; nothing happens if they were let go before."""
        held = self._held.get(number)
        if held is not None:
            self._held[number] = size, held[1]
            self._bytes += size - held[0]

    def free(self, number: int) -> None:
        """They are not kept any more; nothing happens if they were let go before."""
        held = self._held.pop(number, None)
        if held is not None:
            self._bytes -= held[0]
