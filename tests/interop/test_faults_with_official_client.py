"""Faults of the testing kit, seen by the official client: what it bears by itself, and what it tells its user."""

from __future__ import annotations

import time

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.support.official_client import connected

pytestmark = pytest.mark.interop


def contents(client: pulsar.Client, topic: str) -> list[bytes]:
    """Everything that is stored in a topic."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    return [reader.read_next(60_000).data() for _ in iter(reader.has_message_available, False)]


def test_refuse_when_the_broker_is_not_ready_then_the_client_tries_again_by_itself(
    pulsar_broker: InProcessBroker,
) -> None:
    refused = pulsar_broker.faults.refuse("PRODUCER", "ServiceNotReady", times=3)
    with connected(pulsar_broker.service_url) as client:
        client.create_producer("orders").send(b"one")
    assert (refused.count, refused.active) == (3, False)


def test_refuse_when_the_error_is_final_then_the_client_raises_it(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.refuse("PRODUCER", "ProducerBusy", topic="orders")
    pulsar_broker.faults.refuse("SUBSCRIBE", "ConsumerBusy", topic="orders")
    with connected(pulsar_broker.service_url) as client:
        with pytest.raises(pulsar.ProducerBusy):
            client.create_producer("orders")
        with pytest.raises(pulsar.ConsumerBusy):
            client.subscribe("orders", "s")
        client.create_producer("others").send(b"one")


def test_refuse_when_a_send_then_the_client_sends_it_again(pulsar_broker: InProcessBroker) -> None:
    refused = pulsar_broker.faults.refuse("SEND", "PersistenceError", times=2)
    with connected(pulsar_broker.service_url) as client:
        client.create_producer("orders").send(b"one")
        assert contents(client, "orders") == [b"one"]
    assert refused.count == 2


def test_delay_when_sending_then_every_send_takes_so_long(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        producer = client.create_producer("orders")
        with pulsar_broker.faults.delay("SEND", 1):
            began = time.monotonic()
            producer.send(b"late")
            assert time.monotonic() - began >= 1


def test_delay_when_longer_than_the_clients_patience_then_it_times_out(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        producer = client.create_producer("orders", send_timeout_millis=300)
        with pulsar_broker.faults.delay("SEND", 30), pytest.raises(pulsar.Timeout):
            producer.send(b"too late")


def test_lose_receipts_when_connections_are_dropped_then_the_message_is_there_twice(
    pulsar_broker: InProcessBroker,
) -> None:
    with connected(pulsar_broker.service_url) as client:
        producer = client.create_producer("orders")
        lost = pulsar_broker.faults.lose_receipts(1)
        results: list[pulsar.Result] = []
        producer.send_async(b"one", lambda result, _: results.append(result))
        lost.wait()
        assert pulsar_broker.faults.drop_connections() == 1
        producer.send(b"two")
        assert results == [pulsar.Result.Ok]
        assert contents(client, "orders") == [b"one", b"one", b"two"]


def test_disk_full_when_the_client_sends_then_it_is_told_at_once_and_reading_goes_on(
    pulsar_broker: InProcessBroker,
) -> None:
    with connected(pulsar_broker.service_url) as client:
        producer = client.create_producer("orders")
        producer.send(b"before")
        with pulsar_broker.faults.disk_full():
            with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
                producer.send(b"meanwhile")
            assert client.create_reader("orders", pulsar.MessageId.earliest).read_next(60_000).data() == b"before"


def test_restart_when_the_client_is_connected_then_it_goes_on(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        producer = client.create_producer("orders")
        producer.send(b"before")
        pulsar_broker.restart()
        producer.send(b"after")
        assert contents(client, "orders") == [b"before", b"after"]
