"""The judge: for each property a history that breaks it, and one beside it that does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interpulse.model.ids import MessageId
from tests.simulation.judge import Acknowledged, Delivery, History, Interval, Sent

FIRST, SECOND, THIRD = (Sent("p", number).payload for number in (1, 2, 3))


def _id(entry: int) -> MessageId:
    return MessageId(1, entry)


def _sound() -> History:
    """Three messages, confirmed, stored, delivered once and acknowledged, in their order."""
    history = History(subscriptions=("shared", "exclusive"), ordered={"exclusive"})
    for entry, number in enumerate((1, 2, 3)):
        message = Sent("p", number)
        history.sent.append(message)
        history.receipts[message.payload] = _id(entry)
        history.stored.append((_id(entry), message.payload))
        for subscription in history.subscriptions:
            history.deliveries.append(Delivery(number, subscription, _id(entry), message.payload))
            history.acknowledged.append(Acknowledged(number, subscription, message.payload))
    return history


def _deliver_again(history: History, at: float, payload: bytes = FIRST, subscription: str = "shared") -> None:
    history.deliveries.append(Delivery(at, subscription, _id(0), payload))


def _lost(history: History) -> None:
    history.stored.pop()


def _moved(history: History) -> None:
    history.stored[2] = (_id(7), THIRD)
    history.deliveries = [each._replace(id=_id(7)) if each.payload == THIRD else each for each in history.deliveries]


def _stored_twice(history: History) -> None:
    history.stored.append((_id(3), THIRD))


def _stored_out_of_order(history: History) -> None:
    history.stored[1], history.stored[2] = (_id(1), THIRD), (_id(2), SECOND)
    history.receipts |= {SECOND: _id(2), THIRD: _id(1)}
    ids = {SECOND: _id(2), THIRD: _id(1)}
    history.deliveries = [each._replace(id=ids.get(each.payload, each.id)) for each in history.deliveries]


def _confirmed_out_of_order(history: History) -> None:
    history.receipts = dict(reversed(history.receipts.items()))


def _never_sent(history: History) -> None:
    history.stored.append((_id(3), b"noise"))
    for subscription in history.subscriptions:
        history.deliveries.append(Delivery(9, subscription, _id(3), b"noise"))


def _position_changed(history: History) -> None:
    history.deliveries.append(Delivery(9, "shared", _id(0), SECOND))


def _never_delivered(history: History) -> None:
    history.deliveries = [each for each in history.deliveries if (each.subscription, each.payload) != ("shared", THIRD)]


def _came_again(history: History) -> None:
    _deliver_again(history, at=1 + 16)


def _delivered_out_of_order(history: History) -> None:
    history.deliveries.reverse()


@pytest.mark.parametrize(
    ("breaking", "letters"),
    [
        (_lost, {"L1", "L5"}),
        (_moved, {"L1"}),
        (_stored_twice, {"L2"}),
        (_stored_out_of_order, {"L3"}),
        (_confirmed_out_of_order, {"L3"}),
        (_never_sent, {"L4"}),
        (_position_changed, {"L5"}),
        (_never_delivered, {"S1"}),
        (_came_again, {"S2"}),
        (_delivered_out_of_order, {"S4"}),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else None,
)
def test_history_when_a_property_is_broken_then_it_is_found(
    breaking: Callable[[History], None], letters: set[str]
) -> None:
    history = _sound()
    breaking(history)
    assert {finding.property for finding in history.judge([])} == letters


def _unchanged(history: History) -> None: ...


def _not_confirmed_and_not_stored(history: History) -> None:
    history.sent.append(Sent("p", 4))


def _not_confirmed_and_stored(history: History) -> None:
    message = Sent("p", 4)
    history.sent.append(message)
    history.stored.append((_id(3), message.payload))
    for subscription in history.subscriptions:
        history.deliveries.append(Delivery(9, subscription, _id(3), message.payload))


def _confirmed_as_a_duplicate(history: History) -> None:
    history.receipts[SECOND] = MessageId(-1, -1)


def _mixed_with_another_producer(history: History) -> None:
    other = Sent("q", 1)
    history.sent.append(other)
    history.stored.append((_id(3), other.payload))
    history.receipts[other.payload] = _id(3)
    for subscription in history.subscriptions:
        history.deliveries.append(Delivery(9, subscription, _id(3), other.payload))


def _came_again_before_the_acknowledgement_was_taken(history: History) -> None:
    _deliver_again(history, at=1 + 14)


def _came_again_to_one_consumer_at_a_time(history: History) -> None:
    _deliver_again(history, at=4, subscription="exclusive")


def _shared_out_of_order(history: History) -> None:
    shared = [each for each in history.deliveries if each.subscription == "shared"]
    history.deliveries = [each for each in history.deliveries if each.subscription != "shared"] + shared[::-1]


@pytest.mark.parametrize(
    "changing",
    [
        _unchanged,
        _not_confirmed_and_not_stored,
        _not_confirmed_and_stored,
        _confirmed_as_a_duplicate,
        _mixed_with_another_producer,
        _came_again_before_the_acknowledgement_was_taken,
        _came_again_to_one_consumer_at_a_time,
        _shared_out_of_order,
    ],
    ids=lambda changing: changing.__name__.strip("_"),
)
def test_history_when_no_property_is_broken_then_nothing_is_found(changing: Callable[[History], None]) -> None:
    history = _sound()
    changing(history)
    assert history.judge([]) == []


@pytest.mark.parametrize(
    ("excuse", "letters"),
    [(Interval(0.5, 1.5), set()), (Interval(1.5, 30), {"S2"})],
    ids=["the acknowledgement", "the delivery alone"],
)
def test_delivery_when_it_comes_again_then_a_fault_excuses_the_acknowledgement(
    excuse: Interval, letters: set[str]
) -> None:
    history = _sound()
    _came_again(history)
    assert {finding.property for finding in history.judge([excuse])} == letters


def test_events_when_a_finding_names_a_message_then_they_are_those_of_it() -> None:
    history = _sound()
    _stored_twice(history)
    events = history.events_of(history.judge([]))
    assert events[0].startswith("receipt")
    assert [event for event in events if event.startswith("stored")] == [f"stored {_id(2)}", f"stored {_id(3)}"]
