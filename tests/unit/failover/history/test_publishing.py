from interpulse.failover.history.events import Cause, Outcome
from interpulse.failover.history.publishing import invented, kept, late, order
from interpulse.failover.history.record import Incident, Listed, LoggedMessage
from tests.unit.failover.history.histories import TOPIC, Pair, at, name


def test_kept_when_both_logs_have_each_message_once_then_clean() -> None:
    pair = Pair()
    pair.published(0, 1)
    pair.copied()
    assert not [*kept(pair.history())]


def test_kept_when_an_acknowledged_message_was_not_copied_then_named() -> None:
    pair = Pair()
    pair.published(0, 1)
    pair.copied(0)
    (violation,) = kept(pair.history())
    assert violation.sentence == f"message 1 of p on {TOPIC} was acknowledged at east and is not in the log of west"


def test_kept_when_the_lost_message_is_in_the_list_of_the_incident_then_clean() -> None:
    pair = Pair()
    pair.published(0, 1)
    pair.copied(0)
    assert not [*kept(pair.history(incidents=[Incident("east", 5, lost=frozenset({name(1)}))]))]


def test_kept_when_copied_twice_then_named_unless_it_was_sent_twice() -> None:
    pair = Pair()
    pair.published(0)
    pair.copied(0)
    pair.copied(0)
    (violation,) = kept(pair.history())
    assert violation.sentence == f"message 0 of p on {TOPIC} was sent once and is in the log of west 2 times"
    pair.sent(0, site="west", outcome=Outcome.UNKNOWN)
    assert not [*kept(pair.history())]


def test_kept_when_the_outcome_is_unknown_then_it_may_be_absent() -> None:
    pair = Pair()
    pair.sent(0, outcome=Outcome.UNKNOWN)
    assert not [*kept(pair.history())]


def test_kept_when_a_refused_message_is_stored_then_named() -> None:
    pair = Pair()
    pair.sent(0, outcome=Outcome.REFUSED)
    pair.stored(0)
    (violation,) = kept(pair.history())
    assert violation.sentence == f"message 0 of p on {TOPIC} was refused and is in the log of east once"


def test_kept_when_only_the_first_site_is_copied_then_messages_of_the_other_need_no_copy() -> None:
    pair = Pair()
    pair.published(0, site="west")
    assert [*kept(pair.history())]
    assert not [*kept(pair.history(both_ways=False))]


def test_invented_when_all_messages_were_sent_then_clean() -> None:
    pair = Pair()
    pair.published(0)
    pair.copied()
    assert not [*invented(pair.history())]


def test_invented_when_no_client_has_sent_it_then_named() -> None:
    pair = Pair()
    pair.stored(4)
    (violation,) = invented(pair.history())
    assert violation.sentence == f"message 4 of p on {TOPIC} at 3:0[0] of east was never sent"


def test_invented_when_a_copy_names_the_position_of_another_message_then_named() -> None:
    pair = Pair()
    pair.published(0, 1)
    pair.logs["west"] = [LoggedMessage(at("west", 0), 0, name(1), at("east", 0))]
    (violation,) = invented(pair.history())
    assert violation.sentence.endswith(f"is the copy of 3:0 of east, where message 0 of p on {TOPIC} is")


def test_order_when_copies_and_local_messages_rise_each_then_clean() -> None:
    pair = Pair()
    pair.published(0, 1, 2)
    pair.copied(0)
    pair.published(3, site="west")
    pair.copied(1, 2)
    assert not [*order(pair.history())]


def test_order_when_copies_change_places_then_named() -> None:
    pair = Pair()
    pair.published(0, 1)
    pair.copied(1)
    pair.copied(0)
    (violation,) = order(pair.history())
    assert violation.sentence == f"message 0 of p on {TOPIC} at 8:1[0] of west came from east behind message 1 at 8:0"


def test_order_when_a_message_is_sent_again_then_its_first_place_counts() -> None:
    pair = Pair()
    pair.published(0, 1, 0, 1, 2)
    assert not [*order(pair.history())]


def test_order_when_the_site_was_switched_back_to_then_the_ways_count_together() -> None:
    pair = Pair()
    pair.published(0, 1, site="west")
    pair.published(3, site="east")
    pair.copied(source="west")
    assert not [*order(pair.history())]
    pair.promoted("east", Cause.BACK)
    assert [violation.sentence for violation in order(pair.history())] == [
        f"message {number} of p on {TOPIC} at 3:{entry}[0] of east came behind message 3 at 3:0"
        for number, entry in ((0, 1), (1, 2))
    ]


def test_late_when_the_tail_of_the_incident_has_it_then_clean() -> None:
    pair = Pair()
    pair.published(0, 1)
    pair.copied(0)
    pair.published(2, site="west")
    pair.copied(1)
    pair.copied(source="west")
    incident = Incident("east", 5, tail=(Listed(at("east", 1), 0, name(1)),))
    assert not [*late(pair.history(incidents=[incident]))]
    (violation,) = late(pair.history(incidents=[Incident("east", 5, tail=())]))
    assert violation.sentence == (
        f"message 1 of p on {TOPIC} at 8:2[0] of west is behind message 2 at 8:1, and in the tail of no incident"
    )
