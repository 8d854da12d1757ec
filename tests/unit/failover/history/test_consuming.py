import pytest

from interpulse.failover.history.consuming import delivered, passed, repeats
from interpulse.failover.history.events import Acknowledge, Cause, Outcome, PassedByPolicy, Reset, Subscribe
from interpulse.failover.history.record import CursorState, Incident, Listed, LoggedMessage
from interpulse.model.ids import MessageId, Position
from interpulse.replication.acknowledgements import Acknowledgements
from tests.unit.failover.history.histories import TOPIC, Pair, at, name


@pytest.fixture
def pair() -> Pair:
    """Three messages of east, copied behind a message of west."""
    pair = Pair()
    pair.published(9, site="west")
    pair.published(0, 1, 2)
    pair.copied()
    pair.copied(source="west")
    return pair


def test_passed_when_a_consumer_of_the_other_site_has_acknowledged_it_then_clean(pair: Pair) -> None:
    pair.taken(0, 1)
    pair.held(0, 1, site="east")
    pair.held(1, 2, site="west")
    assert not [*passed(pair.history())]


def test_passed_when_the_cursor_went_over_a_local_entry_then_named(pair: Pair) -> None:
    pair.taken(0)
    pair.held(0, 1, site="west")
    (violation,) = passed(pair.history())
    assert violation.sentence == (
        f"message 9 of p on {TOPIC} at 8:0[0] is acknowledged for s at west, and no consumer has acknowledged it"
    )


def test_passed_when_one_index_of_a_batch_was_not_acknowledged_then_only_it_is_named(pair: Pair) -> None:
    pair.logs["east"] = [LoggedMessage(at("east", 0), index, name(index)) for index in range(3)]
    pair.taken(0)
    mask = {at("east", 0): 0b100}
    cursors = [CursorState("east", TOPIC, "s", Acknowledgements(masks=mask))]
    (violation,) = passed(pair.history(cursors=cursors))
    assert violation.sentence.startswith(f"message 1 of p on {TOPIC} at 3:0[1] is acknowledged")
    pair.confirmed(1)
    assert not [*passed(pair.history(cursors=cursors))]


def test_passed_when_a_policy_or_the_start_of_the_subscription_has_passed_it_then_clean(pair: Pair) -> None:
    pair.held(0, 1, site="east")
    assert len([*passed(pair.history())]) == 2
    pair.note(Subscribe, "east", TOPIC, "s", at("east", 0))
    assert len([*passed(pair.history())]) == 1
    pair.note(PassedByPolicy, "east", TOPIC, "s", at("east", 1))
    assert not [*passed(pair.history())]


def test_passed_when_acknowledged_cumulatively_then_everything_before_counts(pair: Pair) -> None:
    pair.delivered(0, 1)
    pair.confirmed(1, up_to=MessageId(*at("east", 1)))
    pair.held(0, 1, site="east")
    assert not [*passed(pair.history())]
    pair.held(2, site="east")
    assert [violation.sentence[:9] for violation in passed(pair.history())] == ["message 2"]


def test_passed_when_a_reset_was_forgotten_on_one_site_then_named(pair: Pair) -> None:
    pair.taken(0, 1)
    pair.note(Reset, "east", TOPIC, "s", at("east", 0))
    pair.held(0, site="east")
    pair.held(1, site="west")
    assert not [*passed(pair.history())]
    pair.held(2, site="west")
    (violation,) = passed(pair.history())
    assert violation.sentence.startswith(f"message 1 of p on {TOPIC} at 8:2[0] is acknowledged for s at west")


def test_delivered_when_the_rest_waits_then_clean(pair: Pair) -> None:
    pair.taken(0)
    pair.held(0, site="east")
    pair.held(1, site="west")
    assert not [*delivered(pair.history())]


def test_delivered_when_it_neither_came_nor_waits_then_named(pair: Pair) -> None:
    pair.held(2, site="west")
    (violation,) = delivered(pair.history())
    assert (
        violation.sentence == f"message 1 of p on {TOPIC} at 8:2[0] was never delivered to s, and does not wait at west"
    )


def test_delivered_when_it_came_only_before_a_reset_then_named(pair: Pair) -> None:
    pair.taken(0, 1)
    pair.note(Reset, "east", TOPIC, "s", at("east", 0))
    pair.held(0, 1, site="east")
    assert [violation.sentence[:9] for violation in delivered(pair.history())] == ["message 1"]
    pair.delivered(1, site="west")
    assert not [*delivered(pair.history())]


def test_delivered_when_no_site_has_the_subscription_any_more_then_named(pair: Pair) -> None:
    pair.delivered(0)
    (violation,) = delivered(pair.history(cursors=[]))
    assert violation.sentence == f"s of {TOPIC} is at no site any more"


def test_repeats_when_unacknowledged_messages_come_again_then_clean(pair: Pair) -> None:
    pair.delivered(0)
    pair.promoted("west", Cause.SWITCH)
    pair.delivered(0, site="west")
    assert not [*repeats(pair.history())]


def test_repeats_when_the_broker_had_not_taken_the_acknowledgement_then_clean(pair: Pair) -> None:
    pair.delivered(0)
    pair.note(Acknowledge, "east", name(0), "s", "c", Outcome.INVOKED)
    pair.delivered(0)
    assert not [*repeats(pair.history())]


def test_repeats_when_the_same_site_delivers_again_then_named(pair: Pair) -> None:
    pair.taken(0)
    pair.delivered(0)
    (violation,) = repeats(pair.history())
    assert violation.sentence.endswith("at east at 12 ms, acknowledged at east at 11 ms, without a change of sites")


def test_repeats_when_the_cursor_was_reset_then_clean(pair: Pair) -> None:
    pair.taken(0)
    pair.note(Reset, "east", TOPIC, "s", Position(3, -1))
    pair.delivered(0)
    assert not [*repeats(pair.history())]


def test_repeats_when_a_switch_is_in_between_then_named(pair: Pair) -> None:
    pair.taken(0)
    pair.promoted("west", Cause.SWITCH)
    pair.delivered(0, site="west")
    (violation,) = repeats(pair.history())
    assert violation.sentence.endswith("acknowledged at east at 11 ms, before the switch at 12 ms")


@pytest.mark.parametrize(("ms", "count"), [(1000 + 200 - 1, 0), (1000 + 200, 1)])
def test_repeats_when_a_takeover_is_in_between_then_the_last_interval_and_the_lag_are_allowed(
    pair: Pair, ms: int, count: int
) -> None:
    pair.taken(0)
    pair.promoted("west", Cause.TAKEOVER, ms)
    pair.delivered(0, site="west")
    assert len([*repeats(pair.history(lag_ms=200))]) == count


def test_repeats_when_the_message_is_in_the_tail_then_named(pair: Pair) -> None:
    pair.taken(0)
    pair.promoted("west", Cause.TAKEOVER)
    pair.delivered(0, site="west")
    assert not [*repeats(pair.history())]
    tail = (Listed(at("east", 0), 0, name(0)),)
    (violation,) = repeats(pair.history(incidents=[Incident("east", 5, tail=tail)]))
    assert violation.sentence.endswith("although it was merged together with its acknowledgement")


@pytest.mark.parametrize(("ms", "count"), [(999, 0), (1000, 1)])
def test_repeats_when_both_sites_have_consumers_then_one_interval_is_allowed(pair: Pair, ms: int, count: int) -> None:
    pair.taken(0)
    pair.now_ms += ms
    pair.delivered(0, site="west")
    assert len([*repeats(pair.history())]) == count


def test_repeats_when_a_message_was_sent_and_stored_twice_then_clean(pair: Pair) -> None:
    pair.taken(0)
    pair.stored(0)
    pair.delivered(0)
    assert not [*repeats(pair.history())]
