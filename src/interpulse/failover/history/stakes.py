"""Properties of lost sites, and of logs at rest: stakes are right, logs stop growing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from interpulse.failover.history.record import History, Incident, Listed, Stake, Violation

REST_SECONDS = 5
"""Time in which logs stop growing once all clients are idle."""


def stake(history: History) -> Iterator[Violation]:
    """Yield counts of messages at stake that are wrong, and messages that the list of an incident lacks or invents.

    The tail is what the lost site had and the other one did not when it took over. Its size is at least the number
    known from the last report, and at most that number and what was published after the report.
    """
    for incident in history.incidents:
        listed = None if incident.tail is None else set(incident.tail)
        for at_stake in incident.stakes:
            tail = _tail(history, incident, at_stake)
            yield from _counted(history, incident, at_stake, tail)
            if listed is not None:
                of_topic = {each for each in listed if each.message.topic == at_stake.topic}
                yield from _compared(incident, tail, of_topic)


def _tail(history: History, incident: Incident, at_stake: Stake) -> set[Listed]:
    """Return the messages of a lost site that were not copied when the other site took over."""
    copied = {
        (source, index)
        for position, index, _, source in history.log(history.other(incident.site), at_stake.topic)
        if source is not None and position <= at_stake.closed
    }
    return {
        Listed(position, index, message)
        for position, index, message, source in history.log(incident.site, at_stake.topic)
        if source is None and position <= at_stake.end and (position, index) not in copied
    }


def _counted(history: History, incident: Incident, at_stake: Stake, tail: set[Listed]) -> Iterator[Violation]:
    later = sum(
        source is None and at_stake.reported < position <= at_stake.end
        for position, _, _, source in history.log(incident.site, at_stake.topic)
    )
    if not at_stake.known <= len(tail) <= at_stake.known + later:
        yield Violation(
            "stake",
            f"{at_stake.known} messages of {at_stake.topic} were known at stake at {incident.site} in epoch "
            f"{incident.epoch}, {later} were published after the report, and the tail has {len(tail)}",
        )


def _compared(incident: Incident, tail: set[Listed], listed: set[Listed]) -> Iterator[Violation]:
    for each in sorted(tail - listed):
        yield Violation("stake", f"{_located(incident, each)} was not copied, and the list of the tail lacks it")
    for each in sorted(listed - tail):
        yield Violation("stake", f"{_located(incident, each)} is in the list of the tail, and is no part of it")


def _located(incident: Incident, listed: Listed) -> str:
    return f"{listed.message} at {listed.position}[{listed.batch_index}] of {incident.site}"


def growth(history: History) -> Iterator[Violation]:
    """Yield logs that grow although all clients are idle."""
    for rest in history.rests:
        if rest.seconds >= REST_SECONDS and rest.last > rest.first:
            yield Violation(
                "growth",
                f"{rest.topic} of {rest.site} grew from {rest.first} to {rest.last} in {rest.seconds:g} s "
                f"without clients",
            )
