"""The servers of a ZooKeeper ensemble, and a session with them and its deadline.

The server counts the time-out from when it *received* something; a client knows only which requests were answered. So
the session lives at least for the time-out after the *sending* of the newest answered request. The deadline is at four
fifths of it: after that, nothing that depends on the session (an ephemeral node, a lock) may be used. Source:
docs/reference/cluster-protocol.md#session-deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

_RELIED_ON: Final = 0.8  # of the time-out; pings every third of it leave more than a third of slack
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)


def boot_clock() -> float:
    """Return seconds that also pass while the machine sleeps, if the system has such a clock."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class SessionEvent(Enum):
    """An event in the life of a session."""

    DISCONNECTED = "disconnected"  # the connection ended; the session may live on
    SUSPECT = "suspect"  # the session may have expired
    RESUMED = "resumed"  # connected, or answered, again in the same session
    EXPIRED = "expired"  # the server declared the session over
    RENEWED = "renewed"  # a new session took its place
    ENDED = "ended"  # there will be no further session, since the servers are unusable


class Session:
    """One session, as its client knows it."""

    def __init__(self, session_id: int, password: bytes, timeout_s: float, clock: Callable[[], float]) -> None:
        self.id = session_id
        self.password = password
        self.timeout_s = timeout_s
        self.over = False
        self._clock = clock
        self._touched = float("-inf")

    @property
    def deadline(self) -> float:
        """The time until which the session may be relied on, by its clock."""
        return self._touched + _RELIED_ON * self.timeout_s

    def touch(self, sent_at: float) -> None:
        """Note that the request sent at ``sent_at`` was answered."""
        self._touched = max(self._touched, sent_at)

    def holds(self) -> bool:
        """Return True if the session certainly lives now. The clock is read here: no timer has to fire for it."""
        return not self.over and self._clock() < self.deadline


_PORT: Final = 2181


class Server(NamedTuple):
    """One server of the ensemble."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Servers(NamedTuple):
    """All servers that may be asked, and the node that acts as the root (empty: the root itself)."""

    servers: tuple[Server, ...]
    chroot: str = ""

    def __str__(self) -> str:
        return ",".join(map(str, self.servers)) + self.chroot


def parse_servers(text: str) -> Servers:
    """Parse ``host1:2181,host2:2181/chroot``, with or without Pulsar's ``zk:`` in front. Raise ValueError."""
    addresses, slash, chroot = text.removeprefix("zk:").removeprefix("//").partition("/")
    chroot = "/" + chroot.strip("/") if slash and chroot.strip("/") else ""
    try:
        if "//" in chroot:
            raise ValueError("two slashes in the path")
        return Servers(tuple(_server(address.strip()) for address in addresses.split(",")), chroot)
    except ValueError as error:
        raise ValueError(
            f"{text!r} does not name ZooKeeper servers: {error}; write host1:2181,host2:2181/path"
        ) from None


def _server(address: str) -> Server:
    if address.startswith("["):
        host, closed, rest = address[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(f"{address!r} is no address")
        colon, port = rest[:1], rest[1:]
    else:
        host, colon, port = address.partition(":")
    if not host or (colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError(f"{address!r} is no host and port")
    return Server(host, int(port) if colon else _PORT)
