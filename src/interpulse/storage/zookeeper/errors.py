"""Errors between this process and ZooKeeper.

All are `MetadataUnavailable`, so that callers of a metadata store need to know none of them. An error code in an answer
is a `Refused`, with a subclass for each code that callers of the client distinguish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from interpulse.storage.api import MetadataUnavailable


def shown_session(session_id: int) -> str:
    """Return the id of a session as ZooKeeper's own tools print it."""
    return f"0x{session_id & 0xFFFFFFFFFFFFFFFF:x}"


class ZooKeeperError(MetadataUnavailable):
    """ZooKeeper cannot do what it was asked to do."""


@dataclass(eq=False, repr=False)
class NotConnected(ZooKeeperError):
    """No server answers; the request was not carried out."""

    servers: str
    seconds: float
    what: str

    def __str__(self) -> str:
        return (
            f"no ZooKeeper server of {self.servers} answered for {self.seconds:g} s, so this was not done: {self.what}."
            " Check that they run and can be reached"
        )


@dataclass(eq=False, repr=False)
class OutcomeUnknown(ZooKeeperError):
    """The connection ended between a write and its answer, so it may or may not be applied."""

    server: str
    what: str

    def __str__(self) -> str:
        return f"the connection to ZooKeeper server {self.server} ended before it answered: {self.what}"


@dataclass(eq=False, repr=False)
class SessionExpired(ZooKeeperError):
    """The session of a request is over, and its ephemeral nodes are gone.

    Unanswered requests are no longer applied. Read the key to find out if one was applied before.
    """

    session_id: int
    what: str

    def __str__(self) -> str:
        return f"ZooKeeper ended session {shown_session(self.session_id)} before it answered: {self.what}"


class Unusable(ZooKeeperError, retriable=False):
    """These servers cannot be used, however often they are asked."""


@dataclass(eq=False, repr=False)
class Refused(ZooKeeperError):
    """A server answered a request with an error code."""

    code: int
    what: str

    def __str__(self) -> str:
        return f"ZooKeeper refused ({_MEANINGS.get(self.code, f'error {self.code}')}): {self.what}"


class NoNode(Refused):
    """The node does not exist, or a new node has no parent."""


class NodeExists(Refused):
    """The node exists already."""


class BadVersion(Refused):
    """The node has another version."""


class NotEmpty(Refused):
    """The node has children."""


@dataclass(eq=False, repr=False)
class StepsRefused(Refused):
    """One step of a multi was refused, so none was applied."""

    index: int


class BrokenConnection(Exception):
    """The bytes of the peer are not ZooKeeper's protocol, or not the answer that is due."""


_MEANINGS: Final = {
    -2: "a step before it was refused",
    -3: "its data are inconsistent",
    -5: "it could not read the request",
    -6: "it does not know the operation; ZooKeeper 3.6 or newer is needed",
    -8: "the path is not allowed",
    -101: "no such node",
    -102: "no permission; nodes with access control are not supported",
    -103: "the node has another version",
    -108: "an ephemeral node cannot have children",
    -110: "the node exists",
    -111: "the node has children",
    -112: "the session has expired",
    -114: "the access control list is not allowed",
    -115: "authentication failed; it is not supported",
    -118: "the session has moved to another server",
    -119: "the server is read-only",
    -122: "the request took too long",
    -124: "clients have to authenticate with SASL, which is not supported",
    -125: "a quota is exceeded",
    -127: "the server is too busy; try again later",
}
_CLASSES: Final[dict[int, type[Refused]]] = {-101: NoNode, -103: BadVersion, -110: NodeExists, -111: NotEmpty}
_NEVER: Final = (-6, -102, -114, -115, -124)


def refusal(code: int, what: str) -> ZooKeeperError:
    """Return the error for an error code."""
    error: ZooKeeperError = _CLASSES.get(code, Refused)(code, what)
    return Unusable(str(error)) if code in _NEVER else error
