"""The read buffer limiter: one bound, for the whole broker, on entries read from logs and not yet delivered.

Each owner registers the size of such entries and a callback that frees them. Above the bound, the entries that were
read first are freed, and are read again when they are wanted. The entries that were read last stay, at any size, so
every subscription makes progress.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from weakref import WeakMethod


class ReadBufferLimiter:
    """The bound on entries that were read and not delivered."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._numbers = count()
        self._held: dict[int, tuple[int, WeakMethod[Callable[[int], None]]]] = {}
        """Size and callback of each registration, oldest first."""
        self._bytes = 0

    @property
    def bytes_held(self) -> int:
        return self._bytes

    def hold(self, size: int, let_go: Callable[[int], None]) -> int:
        """Register ``size`` bytes, and return their number. The method ``let_go(number)`` is called to free them.

        The owner is not kept alive: the bytes of a deleted one count until their turn comes.
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
        """Reduce a registration to ``size`` bytes; does nothing if it was freed."""
        held = self._held.get(number)
        if held is not None:
            self._held[number] = size, held[1]
            self._bytes += size - held[0]

    def free(self, number: int) -> None:
        """End a registration; does nothing if it was freed."""
        held = self._held.pop(number, None)
        if held is not None:
            self._bytes -= held[0]
