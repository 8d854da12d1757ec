"""How many clients may be connected: to one program, to one of its services, from one address."""

from __future__ import annotations

import resource
from collections import Counter
from enum import Enum
from typing import Final

__all__ = ["ConnectionQuota", "Full", "sockets_max"]

_SHARE_OF_FILES: Final = 0.75
"""Of the files that a process may open; the log and the metadata need the others."""


class Full(Enum):
    """What keeps one more connection out."""

    TOTAL = "total"
    PER_ADDRESS = "per address"


class ConnectionQuota:
    """Counts the connections that are let in. 0 is no limit, as in Pulsar's settings.

    What is admitted has to be released. ``within``: the quota of the whole program, which several services share.
    """

    def __init__(
        self, connections_max: int = 0, per_address_max: int = 0, *, within: ConnectionQuota | None = None
    ) -> None:
        self.open = 0
        self.refused = 0
        """How many were kept out so far."""
        self._connections_max = connections_max
        self._per_address_max = per_address_max
        self._within = within
        self._by_address: Counter[str] = Counter()

    def admit(self, address: str) -> Full | None:
        """Count one more connection from this address; or what keeps it out, and it is not counted."""
        full = self._full(address) or (self._within.admit(address) if self._within is not None else None)
        if full is not None:
            self.refused += 1
            return full
        self.open += 1
        if self._per_address_max:
            self._by_address[address] += 1
        return None

    def release(self, address: str) -> None:
        """A connection that was admitted has ended."""
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


def sockets_max() -> int:
    """How many connections leave enough files to the log and the metadata; 0 where files have no limit.

    Without a bound, clients that only connect would keep a broker from opening its own files.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if files == resource.RLIM_INFINITY else max(1, int(files * _SHARE_OF_FILES))
