"""Advertised listeners: which texts are some, and what they say."""

from __future__ import annotations

import pytest

from interpulse.model.brokers import ListenerAddresses
from interpulse.rules.listeners import Listeners, plan_listeners

TWO = (
    "inside:pulsar://10.0.0.1:6650, inside:pulsar+ssl://10.0.0.1:6651,"
    "outside:pulsar+ssl://pulsar.example.com:6651,outside:https://pulsar.example.com:443"
)


def test_listeners_when_named_then_have_their_addresses_and_the_first_is_internal() -> None:
    found = plan_listeners(TWO, "")
    assert (found.internal, found.host) == ("inside", "10.0.0.1")
    assert found.hosts == {"10.0.0.1", "pulsar.example.com"}
    assert found.by_name == {
        "inside": ListenerAddresses("pulsar://10.0.0.1:6650", "pulsar+ssl://10.0.0.1:6651"),
        "outside": ListenerAddresses(
            "", "pulsar+ssl://pulsar.example.com:6651", "", "https://pulsar.example.com:443"
        ),
    }  # fmt: skip
    assert plan_listeners(TWO, "outside").host == "pulsar.example.com"


def test_listeners_when_there_are_none_then_nothing_is_said() -> None:
    assert plan_listeners("", "") == Listeners()
    assert plan_listeners(" , ", "").host == ""
    assert plan_listeners("six:pulsar://[::1]:6650", "").host == "[::1]"


@pytest.mark.parametrize(
    ("text", "internal", "why"),
    [
        ("pulsar://a:6650", "", "is not name:scheme://host:port"),
        (":pulsar://a:6650", "", "is not name:scheme://host:port"),
        ("a:pulsar://a", "", "is not name:scheme://host:port"),
        ("a:pulsar://a:0", "", "is not name:scheme://host:port"),
        ("a:pulsar://a:99999", "", "is not name:scheme://host:port"),
        ("a:kafka://a:9092", "", "is not name:scheme://host:port"),
        ("a:pulsar://me@a:6650", "", "is not name:scheme://host:port"),
        ("a:pulsar://a:6650,a:pulsar://b:6650", "", "the listener a has two addresses of pulsar"),
        ("a:pulsar://a:6650,b:pulsar://a:6650", "", "a:6650 is an address of two listeners, a and b"),
        ("a:pulsar://a:6650", "b", "internalListenerName=b is none of the listeners a"),
        ("", "b", r"internalListenerName=b is none of the listeners \(none\)"),
        ("a:https://a:8443", "", "the listener a has no address of pulsar"),
    ],
)
def test_listeners_when_they_cannot_be_meant_then_are_refused(text: str, internal: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plan_listeners(text, internal)
