"""Everything that a judgement of failovers needs: events, logs, cursors, incidents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from interpulse.failover.history.events import Event, MessageName
from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import ALL_WAIT, Acknowledgements


class LoggedMessage(NamedTuple):
    """Message in a log, with the position of its original if it is a copy."""

    position: Position
    batch_index: int
    """Index in its batch, 0 outside of batches."""
    message: MessageName
    source: Position | None = None

    @property
    def place(self) -> str:
        return f"{self.position}[{self.batch_index}]"


@dataclass(frozen=True, slots=True)
class Log:
    """Log of a topic-partition at one site, in order.

    Late messages that were put aside are another log of the same site. Their names keep the topic of the original.
    """

    site: str
    topic: str
    messages: Sequence[LoggedMessage]


@dataclass(frozen=True, slots=True)
class CursorState:
    """Acknowledgements of a subscription at one site at the end."""

    site: str
    topic: str
    subscription: str
    acknowledged: Acknowledgements

    def holds(self, logged: LoggedMessage) -> bool:
        """Return True if this message is acknowledged."""
        waiting = self.acknowledged.masks.get(logged.position, ALL_WAIT)
        return not waiting >> logged.batch_index & 1 or self.acknowledged.holds(logged.position)


class Listed(NamedTuple):
    """Message in the list of an incident, at the site that was lost."""

    position: Position
    batch_index: int
    message: MessageName


@dataclass(frozen=True, slots=True)
class Stake:
    """Messages at stake on one topic-partition of a lost site."""

    topic: str
    known: int
    """Number of messages at stake by the last report."""
    reported: Position
    """End of the log by that report."""
    end: Position
    """End of the lost site's log when it stood by again."""
    closed: Position
    """End of the other site's log when it took over, behind which nothing is copied until the tails are merged."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Loss of a site, from the takeover to the merged tails."""

    site: str
    epoch: int
    stakes: tuple[Stake, ...] = ()
    tail: tuple[Listed, ...] | None = None
    """Messages that only the lost site had; None before they are listed."""
    lost: frozenset[MessageName] = frozenset()
    """Messages that no site has any more: retention trimmed them before the tails were merged."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Two looks at the end of a log while all clients are idle, ``seconds`` apart, at least five."""

    site: str
    topic: str
    first: Position
    last: Position
    seconds: float


@dataclass(frozen=True)
class History:
    """Events in order, and what both sites hold at the end."""

    sites: tuple[str, str]
    events: Sequence[Event]
    logs: Sequence[Log]
    cursors: Sequence[CursorState] = ()
    incidents: Sequence[Incident] = ()
    rests: Sequence[Rest] = ()
    interval_ms: int = 1000
    """Period in which acknowledgements are exchanged."""
    lag_ms: int = 0
    """Time by which copies were behind when a site was lost."""
    both_ways: bool = True
    """False if only the first site is copied to the other one."""
    topics: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", frozenset(log.topic for log in self.logs))

    def log(self, site: str, topic: str) -> Sequence[LoggedMessage]:
        """Return the first log of a topic-partition at a site; empty if there is none."""
        return next((log.messages for log in self.logs if (log.site, log.topic) == (site, topic)), ())

    def late_messages(self) -> set[MessageName]:
        """Return the messages in the tails of all incidents."""
        return {listed.message for incident in self.incidents for listed in incident.tail or ()}

    def other(self, site: str) -> str:
        """Return the other site of the pair."""
        first, second = self.sites
        return second if site == first else first

    def cursors_by_subscription(self) -> Iterator[tuple[CursorState, Sequence[LoggedMessage]]]:
        """Yield each cursor with the log of its topic."""
        logs = {(log.site, log.topic): log.messages for log in reversed(self.logs)}
        for cursor in self.cursors:
            yield cursor, logs.get((cursor.site, cursor.topic), ())


class Violation(NamedTuple):
    """Broken property, in one sentence that names messages and positions."""

    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.sentence}"
