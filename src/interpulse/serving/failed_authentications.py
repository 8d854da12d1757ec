"""Says in the log which calls over HTTP brought no good credentials, see `AddressEvents`; each has a line at DEBUG."""

from __future__ import annotations

import logging
from collections.abc import Callable

from interpulse.serving.address_events import AddressEvents, Timer, later

__all__ = ["FailedAuthentications"]

_logger = logging.getLogger(__name__)


class FailedAuthentications:
    """See the module. `close` at the end."""

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = later) -> None:
        self._events = AddressEvents(_tell_more, later=later)

    def note(self, address: str | None, reason: str) -> None:
        """A call is refused; the reason holds no secret."""
        if self._events.is_first(address or "", reason):
            _logger.warning("authentication failed address=%s reason=%s", address, reason)
        else:
            _logger.debug("authentication failed address=%s reason=%s", address, reason)

    def close(self) -> None:
        """Tell what was not told yet."""
        self._events.close()


def _tell_more(address: str, count: int, reason: str) -> None:
    _logger.warning("more authentications failed address=%s count=%d newest_reason=%s", address, count, reason)
