"""The brokers that a proxy knows."""

from __future__ import annotations

import pytest

from interpulse.client.config import BrokerAddress
from interpulse.model.errors import ServiceNotReady
from interpulse.proxy.brokers import Brokers, RegisteredBroker, endpoint_of


def address(host: str, port: int = 6650) -> BrokerAddress:
    return BrokerAddress(host, port)


def test_brokers_when_configured_registered_or_named_then_accepted() -> None:
    brokers = Brokers([address("Configured")], [])
    brokers.register({"r:8080": RegisteredBroker(address("registered"), "http://r:8080")})
    brokers.note_named(address("named", 6651))
    known = ["configured:6650", "CONFIGURED:6650", "registered:6650", "named:6651"]
    assert [place for place in [*known, "named:6650", "other:6650", "configured"] if brokers.knows(place)] == known


def test_broker_when_it_is_registered_no_longer_then_forgotten() -> None:
    brokers = Brokers([], [])
    brokers.register({"a": RegisteredBroker(address("a"), ""), "b": RegisteredBroker(address("b"), "http://b:8080")})
    assert brokers.count == 2
    assert brokers.web_urls() == ["http://b:8080"]
    brokers.register({})
    assert not brokers.knows("a:6650")
    with pytest.raises(ServiceNotReady):
        brokers.to_ask()


def test_named_brokers_when_there_are_very_many_then_the_oldest_are_forgotten() -> None:
    brokers = Brokers([address("configured")], [])
    for number in range(10_000):
        brokers.note_named(address("named", number + 1))
    brokers.note_named(address("named", 1))
    brokers.note_named(address("one-more"))
    assert brokers.knows("named:1")
    assert not brokers.knows("named:2")
    assert brokers.knows("one-more:6650")


def test_brokers_when_asked_in_turn_then_each_is_the_first_once() -> None:
    brokers = Brokers([address("a"), address("b"), address("c")], ["http://a", "http://b"])
    assert sorted(brokers.to_ask()[0].host for _ in range(3)) == ["a", "b", "c"]
    assert all(len(brokers.to_ask()) == 3 for _ in range(3))
    assert sorted(brokers.web_urls()[0] for _ in range(2)) == ["http://a", "http://b"]


@pytest.mark.parametrize(
    ("host", "place"), [("Broker", "broker:6650"), ("::1", "[::1]:6650"), ("10.0.0.1", "10.0.0.1:6650")]
)
def test_endpoint_when_written_then_in_the_form_of_clients(host: str, place: str) -> None:
    assert endpoint_of(address(host)) == place
