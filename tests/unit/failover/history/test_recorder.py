import pytest

from interpulse.failover.history.events import (
    Acknowledge,
    Cause,
    Fence,
    Outcome,
    Promotion,
    Publish,
    Release,
    Subscribe,
)
from interpulse.failover.history.recorder import HistoryRecorder, name_property, named_message
from interpulse.model.ids import Position
from tests.unit.failover.history.histories import TOPIC, name


def recorder(*seconds: float) -> HistoryRecorder:
    """A recorder that was created at 0 s, and whose clock then shows these times."""
    times = iter((0.0, *seconds))
    return HistoryRecorder({"east": ["pulsar://e1", "pulsar://e2"], "west": ["pulsar://w"]}, clock=lambda: next(times))


def test_name_when_stored_as_a_property_then_read_back() -> None:
    named = name(12, "a producer")
    assert named_message(TOPIC, name_property(named)) == named


@pytest.mark.parametrize("text", ["", "12", "x p", "-1 p"])
def test_name_when_the_property_is_of_another_program_then_none(text: str) -> None:
    assert named_message(TOPIC, {"interpulse.failover.history": text}) is None


def test_numbers_when_producers_send_then_each_counts_by_itself() -> None:
    seen = recorder()
    assert [seen.next_name(TOPIC, producer) for producer in "pqp"] == [name(0, "p"), name(0, "q"), name(1, "p")]


def test_site_when_an_address_is_known_then_named_and_otherwise_refused() -> None:
    seen = recorder()
    assert [seen.site_of(url) for url in ("pulsar://e2", "pulsar://w")] == ["east", "west"]
    with pytest.raises(ValueError, match="pulsar://n is the address of no site: add it to the addresses"):
        seen.site_of("pulsar://n")


def test_events_when_recorded_then_in_order_with_milliseconds() -> None:
    seen = recorder(0.001, 0.5, 0.5, 2)
    seen.publish("east", name(0), Outcome.INVOKED, key="k")
    seen.acknowledge(Acknowledge(0, "east", name(0), "s", "c", Outcome.OK))
    seen.fence("east", {TOPIC: Position(3, 7)})
    seen.promote("west", Cause.SWITCH)
    assert seen.events == [
        Publish(1, "east", name(0), Outcome.INVOKED, key="k"),
        Acknowledge(500, "east", name(0), "s", "c", Outcome.OK),
        Fence(500, "east", TOPIC, Position(3, 7)),
        Promotion(2000, "west", Cause.SWITCH),
    ]


def test_subscription_when_opened_again_then_its_start_stays() -> None:
    seen = recorder(1, 2, 3)
    seen.subscribe("east", TOPIC, "s", Position(3, 1))
    seen.subscribe("west", TOPIC, "s", Position(8, 9))
    seen.release("east", {TOPIC: Position(3, 4)})
    assert seen.events == [
        Subscribe(1000, "east", TOPIC, "s", Position(3, 1)),
        Release(2000, "east", TOPIC, Position(3, 4)),
    ]
