"""Events of clients and of the steps of a failover, in the order in which one process saw them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from interpulse.model.ids import MessageId, Position


class MessageName(NamedTuple):
    """Name of a message on both clusters: its topic or partition, its producer, and its number there."""

    topic: str
    producer: str
    number: int

    def __str__(self) -> str:
        return f"message {self.number} of {self.producer} on {self.topic}"


class Outcome(StrEnum):
    """Progress of a request. Each request is invoked once and ends at most once."""

    INVOKED = "invoked"
    OK = "ok"
    UNKNOWN = "unknown"
    """The cluster may or may not have stored the message."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Publish:
    """Attempt to publish a message at one site. A client that sends it again at another site makes a second attempt."""

    at_ms: int
    site: str
    message: MessageName
    outcome: Outcome
    position: MessageId | None = None
    """Position from the receipt; None unless the outcome is ok."""
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Deliver:
    """Delivery of a message to an application."""

    at_ms: int
    site: str
    message: MessageName
    subscription: str
    consumer: str


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Acknowledgement of a message, or of everything up to it."""

    at_ms: int
    site: str
    message: MessageName
    subscription: str
    consumer: str
    outcome: Outcome
    """INVOKED, or OK once the broker has taken it."""
    up_to: MessageId | None = None
    """Position on that site up to which everything is acknowledged; None for this message alone."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Creation of a subscription, which gets nothing up to ``after``. Without this event it starts at the earliest."""

    at_ms: int
    site: str
    topic: str
    subscription: str
    after: Position


@dataclass(frozen=True, slots=True)
class Reset:
    """Move of a cursor by a seek or an operator: everything behind ``after`` waits again."""

    at_ms: int
    site: str
    topic: str
    subscription: str
    after: Position


@dataclass(frozen=True, slots=True)
class PassedByPolicy:
    """Expiry or skip: a policy or an operator has acknowledged everything up to a position."""

    at_ms: int
    site: str
    topic: str
    subscription: str
    upto: Position


@dataclass(frozen=True, slots=True)
class Fence:
    """Fence of one topic-partition: nothing local is stored behind ``position`` until the release."""

    at_ms: int
    site: str
    topic: str
    position: Position
    gaps: tuple[tuple[Position, Position], ...] = ()
    """Spans ``(after, upto]`` in which the holder of the fence was away."""


@dataclass(frozen=True, slots=True)
class Release:
    """End of a fence. ``position`` is the end of the log, read before producers are served again."""

    at_ms: int
    site: str
    topic: str
    position: Position


class Cause(StrEnum):
    """Operation that promotes a site."""

    SWITCH = "switch"
    TAKEOVER = "takeover"
    BACK = "back"


@dataclass(frozen=True, slots=True)
class Promotion:
    """Promotion of a site, from which on its clients publish."""

    at_ms: int
    site: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class RoleSeen:
    """Role and epoch of a namespace at one site, as its cluster reports them."""

    at_ms: int
    site: str
    namespace: str
    role: str
    epoch: int


Event: TypeAlias = (
    Publish | Deliver | Acknowledge | Subscribe | Reset | PassedByPolicy | Fence | Release | Promotion | RoleSeen
)
