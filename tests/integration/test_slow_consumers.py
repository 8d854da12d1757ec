"""A client that does not read its socket: what the broker keeps for it is bounded, and no other client waits for it."""

from __future__ import annotations

import pytest

from interpulse.testing.broker import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.scenarios.subscriptions import EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED, Addresses, Member, bench
from tests.support import commands
from tests.support.raw_client import RawClient, entry

pytestmark = pytest.mark.slow

ENTRIES, ENTRY_BYTES = 160, 512 * 1024
LARGE_ENTRIES, LARGE_ENTRY_BYTES = 20, 4 * 1024 * 1024
KEPT_BYTES_MAX = 28 * 1024 * 1024
"""Output above its mark (4 MiB), one more piece of the log (5 MiB), and what the sockets of both ends take."""


def overfill(producer: RawClient, topic: str) -> None:
    """More than the broker may keep for one client."""
    producer.ask(commands.lookup(1, topic))
    producer.ask(commands.producer(2, 1, topic))
    for number in range(ENTRIES):
        producer.send(commands.send(1, number, entry(bytes(ENTRY_BYTES), partition_key=f"k{number}")))
        assert producer.receive().command.type == pb.BaseCommand.SEND_RECEIPT


def bytes_out(addresses: Addresses, topic: str) -> dict[str, int]:
    """By subscription and consumer."""
    stats = addresses.call("GET", f"{topic.replace('://', '/')}/stats")
    return {
        f"{name} {consumer['consumerName']}": consumer["bytesOutCounter"]
        for name, subscription in stats["subscriptions"].items()
        for consumer in subscription["consumers"]
    }


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
def test_consumer_that_stops_reading_is_bounded_and_holds_up_no_other(
    pulsar_broker: InProcessBroker, kind: int
) -> None:
    addresses = Addresses(pulsar_broker.service_url, pulsar_broker.web_url)
    with bench(addresses) as made, RawClient(addresses.service_url) as producer:
        deaf, other = Member(addresses, made.topic), Member(addresses, made.topic)
        made.members += [deaf, other]
        assert not deaf.subscribe("deaf", kind, permits=1_000_000)
        request = pb.CommandSubscribe(topic=made.topic, subscription="of another", subType=kind, consumer_id=1)  # type: ignore[arg-type]
        assert other.ask(request).type == pb.BaseCommand.SUCCESS
        other._raw.send(commands.flow(1, 1_000_000))
        overfill(producer, made.topic)
        assert len(other.take(ENTRIES)) == ENTRIES
        sent = bytes_out(addresses, made.topic)
        assert 0 < sent["s deaf"] < KEPT_BYTES_MAX < ENTRIES * ENTRY_BYTES < sum(sent.values()) - sent["s deaf"]


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_consumer_that_stops_reading_leaves_the_rest_to_its_neighbours(
    pulsar_broker: InProcessBroker, kind: int
) -> None:
    addresses = Addresses(pulsar_broker.service_url, pulsar_broker.web_url)
    with bench(addresses) as made, RawClient(addresses.service_url) as producer:
        deaf, reading = made.member(), made.member()
        ranges = {"keySharedMeta": pb.KeySharedMeta(keySharedMode=pb.AUTO_SPLIT)} if kind == KEY_SHARED else {}
        assert not deaf.subscribe("deaf", kind, permits=1_000_000, **ranges)
        assert not reading.subscribe("reading", kind, permits=1_000_000, **ranges)
        overfill(producer, made.topic)
        sent = bytes_out(addresses, made.topic)
        assert sent["s deaf"] < KEPT_BYTES_MAX
        # the keys of the other one stay with it
        received = reading.take(ENTRIES - KEPT_BYTES_MAX // ENTRY_BYTES if kind == SHARED else ENTRIES // 4)
        deaf.close()
        made.members.remove(deaf)
        rest = reading.take(ENTRIES - len(received))
        assert len([*received, *rest]) == len({each.id for each in [*received, *rest]}) == ENTRIES


def test_many_consumers_that_stop_reading_are_bounded_together(pulsar_broker: InProcessBroker) -> None:
    """Large messages, on subscriptions of one topic and of others; none of them waits for the next."""
    addresses = Addresses(pulsar_broker.service_url, pulsar_broker.web_url)
    with bench(addresses) as shared, bench(addresses) as own, RawClient(addresses.service_url) as producer:
        for number in range(8):
            topic = shared if number < 6 else own
            deaf = topic.member()
            request = pb.CommandSubscribe(topic=topic.topic, subscription=f"s{number}", subType=SHARED, consumer_id=1)
            assert deaf.ask(request).type == pb.BaseCommand.SUCCESS
            deaf._raw.send(commands.flow(1, 1_000_000))
        reading = shared.member()
        assert not reading.subscribe("reading", permits=1_000_000)
        for number, name in enumerate((shared.topic, own.topic), start=1):
            producer.ask(commands.lookup(number, name))
            producer.ask(commands.producer(number + 2, number, name))
            for sequence_id in range(LARGE_ENTRIES):
                producer.send(commands.send(number, sequence_id, entry(bytes(LARGE_ENTRY_BYTES))))
                assert producer.receive().command.type == pb.BaseCommand.SEND_RECEIPT
        assert len(reading.take(LARGE_ENTRIES)) == LARGE_ENTRIES
        sent = bytes_out(addresses, shared.topic) | bytes_out(addresses, own.topic)
        assert sent.pop("s reading") > LARGE_ENTRIES * LARGE_ENTRY_BYTES
        assert len(sent) == 8
        assert 0 < min(sent.values()) <= max(sent.values()) < KEPT_BYTES_MAX
