"""Properties of consumed messages: nothing passed over, everything delivered, no repeats but those allowed. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from interpulse.failover.history.consumption import Confirmed, Consumption
from interpulse.failover.history.events import Cause, Deliver, MessageName, Promotion
from interpulse.failover.history.record import History, Violation


def passed(history: History) -> Iterator[Violation]:
    """Yield messages that a cursor holds and that no consumer has acknowledged since the last reset that covers them.

    An acknowledgement on either site counts, and so does one by a policy.
    """
    consumption = Consumption(history)
    consumption.take_all()
    for cursor, log in history.cursors_by_subscription():
        progress = consumption.of(cursor.topic, cursor.subscription)
        for logged in log:
            if logged.message not in progress.asked and logged.message not in progress.exempt and cursor.holds(logged):
                yield Violation(
                    "passed",
                    f"{logged.message} at {logged.place} is acknowledged for {cursor.subscription} at {cursor.site}, "
                    f"and no consumer has acknowledged it",
                )


def delivered(history: History) -> Iterator[Violation]:
    """Yield messages that were not delivered since the last reset that covers them, and do not wait any more.

    A message has to wait at each site that has both the message and the subscription.
    """
    consumption = Consumption(history)
    consumption.take_all()
    stored: set[tuple[str, str]] = set()
    for cursor, log in history.cursors_by_subscription():
        stored.add((cursor.topic, cursor.subscription))
        progress = consumption.of(cursor.topic, cursor.subscription)
        for logged in log:
            if logged.message in progress.delivered or logged.message in progress.exempt or not cursor.holds(logged):
                continue
            yield Violation(
                "delivered",
                f"{logged.message} at {logged.place} was never delivered to {cursor.subscription}, "
                f"and does not wait at {cursor.site}",
            )
    for (topic, subscription), _ in list(consumption.subscriptions()):
        if (topic, subscription) not in stored:
            yield Violation("delivered", f"{subscription} of {topic} is at no site any more")


def repeats(history: History) -> Iterator[Violation]:
    """Yield deliveries of messages that a broker had taken as acknowledged, but for those that a takeover allows.

    After a switch there are none. After a takeover a message may come again that was acknowledged in the last interval
    of the exchange, plus the lag of the copies, unless the list of the incident has it: then its acknowledgement comes
    with it. With consumers on both sites a message may reach both within one interval. A message that a client has
    sent again, and that a log has more than once, may come as often.
    """
    doubled = _doubled(history)
    consumption = Consumption(history)
    promotions: dict[str, list[Promotion]] = defaultdict(list)
    tails = history.late_messages()
    for event in history.events:
        if type(event) is Deliver:
            progress = consumption.of(event.message.topic, event.subscription)
            confirmed = progress.confirmed.get(event.message)
            if confirmed is not None and event.message not in doubled:
                cause = _cause(history, event, confirmed, promotions[event.site], is_late=event.message in tails)
                if cause:
                    yield Violation("repeats", _sentence(event, confirmed, cause))
        elif type(event) is Promotion:
            promotions[event.site].append(event)
        consumption.take(event)


def _doubled(history: History) -> set[MessageName]:
    """Return the messages that a log has more than once."""
    doubled: set[MessageName] = set()
    for log in history.logs:
        counts = Counter(logged.message for logged in log.messages)
        if len(counts) < len(log.messages):
            doubled.update(message for message, count in counts.items() if count > 1)
    return doubled


def _sentence(event: Deliver, confirmed: Confirmed, cause: str) -> str:
    return (
        f"{event.message} came again to {event.consumer} of {event.subscription} at {event.site} at {event.at_ms} ms, "
        f"acknowledged at {confirmed.site} at {confirmed.at_ms} ms{cause}"
    )


def _cause(
    history: History, event: Deliver, confirmed: Confirmed, promotions: list[Promotion], *, is_late: bool
) -> str | None:
    """Return the reason why a repeat is not allowed; None if it is."""
    if event.site == confirmed.site:
        return ", without a change of sites"
    if is_late:
        return ", although it was merged together with its acknowledgement"
    window_ms = history.interval_ms + history.lag_ms
    between = [promotion for promotion in promotions if promotion.at_ms >= confirmed.at_ms]
    if not between:
        return None if event.at_ms - confirmed.at_ms <= window_ms else f", more than {window_ms} ms earlier"
    first = between[0]
    if first.cause is not Cause.TAKEOVER:
        return f", before the {first.cause} at {first.at_ms} ms"
    earliest_ms = first.at_ms - window_ms
    return None if confirmed.at_ms >= earliest_ms else f", before {earliest_ms} ms"
