"""Says in the log which connections the program drops, see `AddressEvents`; each has a line of its own at DEBUG.

Clients that were let in are told apart from strangers of the same address: behind a proxy all have one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from interpulse.serving.address_events import AddressEvents, Timer, later

__all__ = ["DroppedConnections"]

_logger = logging.getLogger(__name__)


class DroppedConnections:
    """See the module. `close` at the end."""

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = later) -> None:
        self.count = 0
        """All that were dropped since the start."""
        self._events = AddressEvents(_tell_more, later=later)

    def note(self, address: str, reason: str, *, let_in: bool, peer: str = "") -> None:
        """A connection is dropped. ``let_in``: its client had been accepted. ``peer``: the address with the port."""
        self.count += 1
        if self._events.is_first(address, reason, let_in=let_in):
            _logger.warning("connection dropped address=%s reason=%s", peer or address, reason)
        else:
            _logger.debug("connection dropped address=%s reason=%s", peer or address, reason)

    def close(self) -> None:
        """Tell what was not told yet."""
        self._events.close()


def _tell_more(address: str, count: int, reason: str) -> None:
    _logger.warning("more connections dropped address=%s count=%d newest_reason=%s", address, count, reason)
