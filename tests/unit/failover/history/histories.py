"""Short histories of two clusters, written by hand."""

from dataclasses import dataclass, field
from typing import Any

from interpulse.failover.history.events import (
    Acknowledge,
    Cause,
    Deliver,
    Event,
    MessageName,
    Outcome,
    Promotion,
    Publish,
)
from interpulse.failover.history.record import CursorState, History, Log, LoggedMessage
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.replication.acknowledgements import Acknowledgements, Span

TOPIC = "persistent://public/default/orders"
LEDGERS = {"east": 3, "west": 8}


def name(number: int, producer: str = "p") -> MessageName:
    return MessageName(TOPIC, producer, number)


def at(site: str, entry: int) -> Position:
    """Return the position of an entry of a site."""
    return Position(LEDGERS[site], entry)


@dataclass
class Pair:
    """The clusters east and west, which clients use and a job copies. Every event takes a millisecond."""

    now_ms: int = 0
    events: list[Event] = field(default_factory=list)
    logs: dict[str, list[LoggedMessage]] = field(default_factory=lambda: {"east": [], "west": []})
    acknowledged: dict[str, set[Position]] = field(default_factory=lambda: {"east": set(), "west": set()})

    def note(self, kind: Any, site: str, *arguments: Any, **fields: Any) -> None:
        self.now_ms += 1
        self.events.append(kind(self.now_ms, site, *arguments, **fields))

    def sent(self, *numbers: int, site: str = "east", outcome: Outcome = Outcome.OK, producer: str = "p") -> None:
        """Send messages without a trace in the log."""
        for number in numbers:
            self.note(Publish, site, name(number, producer), Outcome.INVOKED)
            self.note(Publish, site, name(number, producer), outcome)

    def stored(self, *numbers: int, site: str = "east", producer: str = "p") -> None:
        """Put messages of clients into the log of a site."""
        log = self.logs[site]
        for number in numbers:
            log.append(LoggedMessage(at(site, len(log)), 0, name(number, producer)))

    def published(self, *numbers: int, site: str = "east", producer: str = "p") -> None:
        self.sent(*numbers, site=site, producer=producer)
        self.stored(*numbers, site=site, producer=producer)

    def copied(self, *entries: int, source: str = "east") -> None:
        """Copy these entries, all that are not copied yet if there are none."""
        target = "west" if source == "east" else "east"
        log = self.logs[target]
        there = {logged.source for logged in log}
        for logged in list(self.logs[source]):
            wanted = logged.position.entry in entries if entries else logged.position not in there
            if wanted and logged.source is None:
                log.append(LoggedMessage(at(target, len(log)), 0, logged.message, logged.position))

    def delivered(self, *numbers: int, site: str = "east", consumer: str = "c") -> None:
        for number in numbers:
            self.note(Deliver, site, name(number), "s", consumer)

    def confirmed(self, *numbers: int, site: str = "east", up_to: MessageId | None = None) -> None:
        """Acknowledge messages. Brokers take it."""
        for number in numbers:
            for outcome in (Outcome.INVOKED, Outcome.OK):
                self.note(Acknowledge, site, name(number), "s", "c", outcome, up_to)

    def taken(self, *numbers: int, site: str = "east") -> None:
        """Deliver messages and acknowledge them, on this site alone."""
        self.delivered(*numbers, site=site)
        self.confirmed(*numbers, site=site)

    def held(self, *entries: int, site: str) -> None:
        """Let the cursor of a site hold these entries."""
        self.acknowledged[site].update(at(site, entry) for entry in entries)

    def promoted(self, site: str, cause: Cause, ms: int = 0) -> None:
        self.now_ms += ms
        self.note(Promotion, site, cause)

    def history(self, **fields: Any) -> History:
        cursors = [
            CursorState(site, TOPIC, "s", Acknowledgements(EARLIEST, tuple(Span(each, each) for each in sorted(held))))
            for site, held in self.acknowledged.items()
        ]
        logs = [Log(site, TOPIC, messages) for site, messages in self.logs.items()]
        given = {"cursors": cursors, "interval_ms": 1000, **fields}
        return History(sites=("east", "west"), events=self.events, logs=logs, **given)
