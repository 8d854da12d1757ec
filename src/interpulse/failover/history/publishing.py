"""Properties of published messages in the logs: kept, invented, in order, late. Pure, one pass for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from interpulse.failover.history.events import Cause, MessageName, Outcome, Promotion, Publish
from interpulse.failover.history.record import History, Log, LoggedMessage, Violation
from interpulse.model.ids import Position


@dataclass(slots=True)
class _Attempts:
    sent: int = 0
    refused: int = 0
    sites: set[str] = field(default_factory=set)
    """Sites that acknowledged the message."""


def kept(history: History) -> Iterator[Violation]:
    """Yield acknowledged messages that a log lacks, and messages that it has more often than they were sent.

    A message that was sent again at the other site may be in a log once for each attempt. Messages that an incident
    lists as lost may be absent.
    """
    attempts = _attempts(history)
    lost = {message for incident in history.incidents for message in incident.lost}
    for site in history.sites:
        counts = Counter(logged.message for log in history.logs if log.site == site for logged in log.messages)
        for message, attempt in attempts.items():
            count, most = counts[message], attempt.sent - attempt.refused
            if not count and message not in lost and _is_due(history, site, attempt):
                where = " and ".join(sorted(attempt.sites))
                yield Violation("kept", f"{message} was acknowledged at {where} and is not in the log of {site}")
            elif count > most:
                how = "was refused" if not most else f"was sent {_times(most)}"
                yield Violation("kept", f"{message} {how} and is in the log of {site} {_times(count)}")


def _attempts(history: History) -> dict[MessageName, _Attempts]:
    attempts: dict[MessageName, _Attempts] = defaultdict(_Attempts)
    for event in history.events:
        if type(event) is not Publish:
            continue
        attempt = attempts[event.message]
        if event.outcome is Outcome.INVOKED:
            attempt.sent += 1
        elif event.outcome is Outcome.OK:
            attempt.sites.add(event.site)
        elif event.outcome is Outcome.REFUSED:
            attempt.refused += 1
    return attempts


def _is_due(history: History, site: str, attempt: _Attempts) -> bool:
    """Return True if a message was acknowledged at this site, or at one that is copied to it."""
    copied = history.both_ways or site != history.sites[0]
    return bool(attempt.sites) if copied else site in attempt.sites


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def invented(history: History) -> Iterator[Violation]:
    """Yield messages in a log that no client has sent, and copies that name another message as their original."""
    sent = {event.message for event in history.events if type(event) is Publish}
    for log in history.logs:
        other = history.other(log.site)
        originals = {(at, index): message for at, index, message, _ in history.log(other, log.topic)}
        for logged in log.messages:
            if logged.message not in sent:
                yield Violation("invented", f"{_located(log, logged)} was never sent")
            elif logged.source is not None:
                original = originals.get((logged.source, logged.batch_index))
                if original is not None and original != logged.message:
                    yield Violation(
                        "invented",
                        f"{_located(log, logged)} is the copy of {logged.source} of {other}, where {original} is",
                    )


def order(history: History) -> Iterator[Violation]:
    """Yield messages that are behind a later one of their producer although both came by the same way.

    The ways are the clients of the site and the copies of the other one. At a site that was switched back to, all
    messages of a producer are in the order of sending. A message that was sent again counts where it came first.
    """
    gone_back = {event.site for event in history.events if isinstance(event, Promotion) and event.cause is Cause.BACK}
    for log in history.logs:
        merged = log.site in gone_back
        for logged, newest, at in _behind(log, merged=merged):
            way = "" if merged else " by the same way" if logged.source is None else f" from {history.other(log.site)}"
            yield Violation("order", f"{_located(log, logged)} came{way} behind message {newest} at {at}")


def late(history: History) -> Iterator[Violation]:
    """Yield messages behind a newer one of their producer that are in the tail of no incident."""
    tails = history.late_messages()
    for log in history.logs:
        for logged, newest, at in _behind(log, merged=True):
            if logged.message not in tails:
                yield Violation(
                    "late",
                    f"{_located(log, logged)} is behind message {newest} at {at}, and in the tail of no incident",
                )


def _behind(log: Log, *, merged: bool) -> Iterator[tuple[LoggedMessage, int, Position]]:
    """Yield each message behind a later one of its producer, with the number and position of that one."""
    newest: dict[tuple[str, bool], tuple[int, Position]] = {}
    early: dict[tuple[str, bool], set[int]] = defaultdict(set)
    for logged in log.messages:
        _, producer, number = logged.message
        way = producer, not merged and logged.source is not None
        before = newest.get(way)
        if before is None or number > before[0]:
            early[way].update(range(before[0] + 1 if before else 0, number))
            newest[way] = number, logged.position
        elif number in early[way]:
            early[way].discard(number)
            yield logged, *before


def _located(log: Log, logged: LoggedMessage) -> str:
    return f"{logged.message} at {logged.place} of {log.site}"
