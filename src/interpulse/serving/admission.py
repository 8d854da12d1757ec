"""Limits of clients: connections, concurrent lookups, requests per second, and open files."""

from __future__ import annotations

import logging
import resource
from collections import Counter
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import Final

from interpulse.model.errors import TooManyRequests

_logger = logging.getLogger(__name__)

_SHARE_OF_FILES: Final = 0.75
"""Share of a process's open files for connections. The log and the metadata need the rest."""


class Full(Enum):
    """Limit that refuses one more connection."""

    TOTAL = "total"
    PER_ADDRESS = "per address"


class ConnectionQuota:
    """Counter of admitted connections. 0 means no limit, as in Pulsar's settings.

    The caller releases each admitted connection. ``within`` is the quota of the whole program, which services share.
    """

    def __init__(
        self, connections_max: int = 0, per_address_max: int = 0, *, within: ConnectionQuota | None = None
    ) -> None:
        self.open = 0
        self.refused = 0
        """Connections refused since the start."""
        self._connections_max = connections_max
        self._per_address_max = per_address_max
        self._within = within
        self._by_address: Counter[str] = Counter()

    def admit(self, address: str) -> Full | None:
        """Count one more connection from this address and return None, or return the limit that refuses it."""
        full = self._full(address) or (self._within.admit(address) if self._within is not None else None)
        if full is not None:
            self.refused += 1
            return full
        self.open += 1
        if self._per_address_max:
            self._by_address[address] += 1
        return None

    def release(self, address: str) -> None:
        """Count an admitted connection as ended."""
        self.open -= 1
        if self._within is not None:
            self._within.release(address)
        if self._per_address_max:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _full(self, address: str) -> Full | None:
        if self._connections_max and self.open >= self._connections_max:
            return Full.TOTAL
        if self._per_address_max and self._by_address[address] >= self._per_address_max:
            return Full.PER_ADDRESS
        return None


class LookupPermits:
    """Permits of concurrent lookups and metadata queries (``maxConcurrentLookupRequest``).

    Each runs inside ``with permits:``, which raises TooManyRequests if there is no permit.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        """Create the permits. ``limit`` is called for each permit, because it is a dynamic setting."""
        self._limit = limit
        self.taken = 0
        """Lookups and queries in flight."""
        self.rejected = 0
        """Lookups and queries refused since the start."""

    @property
    def left(self) -> bool:
        """Return True if one more may start now."""
        return self.taken < self._limit()

    def __enter__(self) -> None:
        if not self.left:
            self.rejected += 1
            raise TooManyRequests("Failed due to too many pending lookup requests")
        self.taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.taken -= 1


class RequestRate:
    """Permits that are refilled over time, up to those of one second. The rest of a larger burst is refused."""

    def __init__(self, per_second: float, now: Callable[[], float]) -> None:
        """Create the permits. ``now`` returns the seconds of a monotonic clock."""
        self._per_second = per_second
        self._now = now
        self._left = per_second
        self._at = now()

    def take(self) -> bool:
        """Take a permit. Return False if there is none."""
        now = self._now()
        self._left = min(self._per_second, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard one, as Java does. Return the limit in force.

    Every connection is a file, and so is every ledger that is read or written. Child processes inherit the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # some systems allow less than the hard limit
        _logger.warning("limit of open files cannot be raised soft=%d hard=%d reason=%s", soft, hard, error)
        return soft
    return hard


def sockets_max() -> int:
    """Return the number of connections that leaves enough files for the log and the metadata; 0 = no limit on files.

    Without a limit, clients that only connect would prevent a broker from opening its own files.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if files == resource.RLIM_INFINITY else max(1, int(files * _SHARE_OF_FILES))
