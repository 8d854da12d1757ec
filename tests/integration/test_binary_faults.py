"""What a broken client does to itself, and what it does not do to others."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from interpulse.model.errors import ServerError
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient, entry

TOPIC = "persistent://public/default/faults"


@pytest.fixture
def bystander(pulsar_broker: InProcessBroker) -> Iterator[RawClient]:
    """A well-behaved client; after the test it must still be served."""
    with RawClient(pulsar_broker.service_url) as client:
        assert client.ask(commands.producer(1, 1, TOPIC)).request_id == 1
        yield client
        client.send(commands.send(1, 5, entry()))
        assert client.receive().command.send_receipt.sequence_id == 5


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "random": bytes(range(255, -1, -1)) * 16,
    "2^31": struct.pack(">II", 2**31 - 1, 5),
    "2^32": struct.pack(">II", 2**32 - 1, 5),
    "sizes": struct.pack(">II", 8, 100) + b"x" * 4,
    "no-protobuf": struct.pack(">II", 8, 4) + b"\xff" * 4,
    "unknown-type": bytes.fromhex("0000000700000003" + "08ff01"),
}
TOO_EARLY = {"ping": commands.PING, "lookup": commands.lookup(1, TOPIC), "producer": commands.producer(1, 1, TOPIC)}


@pytest.mark.parametrize("greeted", [False, True], ids=["before-connect", "connected"])
@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.usefixtures("bystander")
def test_connection_when_garbage_comes_then_only_it_is_closed(
    pulsar_broker: InProcessBroker, name: str, greeted: bool
) -> None:
    with RawClient(pulsar_broker.service_url, greet=greeted) as client:
        client.send(GARBAGE[name])
        assert client.closed_by_broker()


@pytest.mark.parametrize("name", TOO_EARLY)
@pytest.mark.usefixtures("bystander")
def test_connection_when_a_command_comes_before_connect_then_only_it_is_closed(
    pulsar_broker: InProcessBroker, name: str
) -> None:
    with RawClient(pulsar_broker.service_url, greet=False) as client:
        client.send(TOO_EARLY[name])
        assert client.closed_by_broker()


@pytest.mark.usefixtures("bystander")
def test_connection_when_it_ends_inside_a_frame_then_nothing_is_published(pulsar_broker: InProcessBroker) -> None:
    topic = "persistent://public/default/cut"
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, topic))
        client.send(commands.send(1, 0, entry(b"y" * 1000))[:-10])
        client._socket.shutdown(socket.SHUT_WR)
        assert client.closed_by_broker()
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.subscribe(1, 1, topic, "s", durable=False))
        last = client.ask(commands.get_last_message_id(2, 1))
        assert last.last_message_id.entryId == 2**64 - 1


def test_send_when_checksum_is_wrong_then_checksum_error_and_producer_goes_on(bystander: RawClient) -> None:
    damaged = entry(b"payload")[:-1] + b"?"
    error = bystander.ask(commands.send(1, 3, damaged))
    assert (error.sequence_id, error.error) == (3, ServerError.ChecksumError)


def test_send_when_checksum_is_missing_then_consumers_get_one(
    pulsar_broker: InProcessBroker, bystander: RawClient
) -> None:
    with RawClient(pulsar_broker.service_url) as consumer:
        consumer.ask(commands.subscribe(1, 1, TOPIC, "s"))
        consumer.send(commands.flow(1, 10))
        bystander.send(commands.send(1, 1, entry(b"bare")[6:]))
        assert bystander.receive().command.send_receipt.sequence_id == 1
        assert bytes(consumer.receive().entry or b"") == entry(b"bare")


@pytest.mark.usefixtures("bystander")
def test_send_when_producer_was_never_opened_then_connection_is_closed(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        client.send(commands.send(77, 1, entry()))
        assert client.closed_by_broker()


def test_requests_when_not_supported_then_answered_and_connection_stays(bystander: RawClient) -> None:
    refused = bystander.ask(commands.encode(pb.CommandNewTxn(request_id=7)))
    assert (refused.request_id, refused.error) == (7, ServerError.NotAllowedError)
    refused = bystander.ask(commands.encode(pb.CommandWatchScalableTopics(watch_id=8, namespace="public/default")))
    assert refused.error == ServerError.UnsupportedVersionError


def test_client_when_it_never_reads_then_broker_stops_reading_and_serves_others(
    pulsar_broker: InProcessBroker, bystander: RawClient
) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        client._socket.settimeout(1.0)
        requests = commands.get_topics_of_namespace(1, "public/default") * 1_000_000
        with pytest.raises(TimeoutError):  # both directions are full: nothing piles up in the broker without bound
            client._socket.sendall(requests)
        assert bystander.ask(commands.lookup(9, TOPIC)).request_id == 9


def test_requests_when_thousands_come_at_once_then_each_is_answered_and_others_wait_for_few(
    pulsar_broker: InProcessBroker, bystander: RawClient
) -> None:
    count = 3000
    with RawClient(pulsar_broker.service_url) as client:
        client.send(*(commands.get_topics_of_namespace(number, "public/default") for number in range(count)))
        first = client.receive()
        assert bystander.ask(commands.lookup(9, TOPIC)).request_id == 9
        answers = [first, *(client.receive() for _ in range(count - 1))]
    assert {each.command.getTopicsOfNamespaceResponse.request_id for each in answers} == set(range(count))
