import pytest

from interpulse.failover.history.record import Incident, Listed, Rest, Stake
from interpulse.failover.history.stakes import growth, stake
from tests.unit.failover.history.histories import TOPIC, Pair, at, name


@pytest.fixture
def pair() -> Pair:
    """Five messages of east, of which west had two when it took over. The last report saw four."""
    pair = Pair()
    pair.published(0, 1, 2, 3, 4)
    pair.copied(0, 1)
    pair.published(5, site="west")
    pair.copied(2, 3, 4)
    pair.copied(source="west")
    return pair


def incident(known: int, *tail: int) -> Incident:
    at_stake = Stake(TOPIC, known, reported=at("east", 3), end=at("east", 4), closed=at("west", 1))
    return Incident("east", 5, (at_stake,), tuple(Listed(at("east", each), 0, name(each)) for each in tail))


@pytest.mark.parametrize(("known", "count"), [(1, 1), (2, 0), (3, 0), (4, 1)])
def test_stake_when_counted_then_within_the_report_and_what_came_after(pair: Pair, known: int, count: int) -> None:
    assert len([*stake(pair.history(incidents=[incident(known, 2, 3, 4)]))]) == count


def test_stake_when_the_list_is_wrong_then_each_message_is_named(pair: Pair) -> None:
    lacking, added = stake(pair.history(incidents=[incident(2, 1, 2, 3)]))
    assert lacking.sentence == (
        f"message 4 of p on {TOPIC} at 3:4[0] of east was not copied, and the list of the tail lacks it"
    )
    assert added.sentence.startswith(f"message 1 of p on {TOPIC} at 3:1[0] of east is in the list of the tail")


def test_growth_when_a_log_grows_without_clients_then_named() -> None:
    rests = [
        Rest("east", TOPIC, at("east", 4), at("east", 4), 6.0),
        Rest("west", TOPIC, at("west", 4), at("west", 5), 6.0),
        Rest("west", TOPIC, at("west", 4), at("west", 5), 2.0),
    ]
    (violation,) = growth(Pair().history(rests=rests))
    assert violation.sentence == f"{TOPIC} of west grew from 8:4 to 8:5 in 6 s without clients"
