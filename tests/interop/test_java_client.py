"""The Java client on our binary port."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interpulse.testing import InProcessBroker
from interpulse.wire.hashing import sticky_slot

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SUM_OF_500 = str(sum(range(500)))
TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")


def test_java_client_when_it_talks_to_us_then_everything_works(
    pulsar_broker_factory: Callable[..., InProcessBroker], java_check: Callable[..., str]
) -> None:
    """De-duplication is on: it drops nothing of batches, also of those by key, which Key_Shared has."""
    broker = pulsar_broker_factory(brokerDeduplicationEnabled=True)
    said = dict(
        line.split(": ", 1)
        for line in java_check("BrokerConversation.java", broker.service_url).splitlines()
        if ": " in line
    )
    expected = {
        "partitions without creation": "TopicDoesNotExistException",
        "partitions with creation": "[plain]",
        **{f"{kind} {name}": SUM_OF_500 for kind in ("batched", "unbatched") for name in TYPES},
        "avro": "UA -3",
        "auto consume": "UA",
        "type change": "IncompatibleSchemaException",
        "reader": "500",
        "seek": "10 0",
        "pattern": "2000",
        "exclusive": "in turn",
        "acknowledged with receipt": "yes",
    }
    assert {name: said.get(name) for name in expected} == expected


@pytest.mark.parametrize("broker", ["ours", "real"])
def test_java_client_when_it_consumes_then_subscriptions_keep_to_their_rules(
    broker: str, request: pytest.FixtureRequest, java_check: Callable[..., str]
) -> None:
    address = request.getfixturevalue("pulsar_broker" if broker == "ours" else "real_pulsar")
    lines = java_check("Consuming.java", address.service_url).splitlines()
    said = dict(line.split(": ", 1) for line in lines if ": " in line)
    expected = {
        "delay Shared": "[prompt, late] waited",
        "delay Exclusive": "[late, prompt] at once",
        "keys": "10 keys, in order",
        "sticky beside KeySharedPolicySticky": "ConsumerAssignException",
        "sticky beside KeySharedPolicyAutoSplit": "ConsumerBusyException",
        "failover": "true true",
        "batch index": "[0x1, 2x1]",
    }
    assert {name: said.get(name) for name in expected} == expected
    assert said["transactions"].startswith("refused at once: ")
    assert "The broker doesn't enable the transaction coordinator" in said["transactions"]


@pytest.mark.parametrize("broker", ["ours", "real"])
def test_java_client_when_it_gives_messages_up_then_they_arrive_as_dead_letters(
    broker: str, request: pytest.FixtureRequest, java_check: Callable[..., str]
) -> None:
    address = request.getfixturevalue("pulsar_broker" if broker == "ours" else "real_pulsar")
    lines = java_check("DeadLetters.java", address.service_url, address.web_url).splitlines()
    assert dict(line.split(": ", 1) for line in lines) == {
        "default name": "bad after 3 kept on 0",
        "own name": "bad after 3 kept on 0",
        "partitioned": "bad after 3 kept on 0",
        "text": "bad after 3 kept on 0",
        "retry": "[againx0, againx1, againx2] then again",
    }


@pytest.mark.parametrize("broker", ["ours", "real"])
def test_java_reader_when_it_names_ranges_of_keys_then_gets_these_alone(
    broker: str, request: pytest.FixtureRequest, java_check: Callable[..., str]
) -> None:
    address = request.getfixturevalue("pulsar_broker" if broker == "ours" else "real_pulsar")
    said = dict(line.split(": ", 1) for line in java_check("KeyRanges.java", address.service_url).splitlines())
    slots = {f"k{number}": sticky_slot(f"k{number}".encode()) for number in range(50)}
    low = [key for key, slot in slots.items() if slot <= 9999 or 20000 <= slot <= 32767]
    high = [key for key, slot in slots.items() if slot >= 32768]
    assert {name: keys.split() for name, keys in said.items()} == {"as they come": low, "from the log": high}
    assert low
    assert high
