"""Brokers that fail as a test asked for, and what clients of the binary protocol see of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from interpulse import client as asynchronous
from interpulse import sync
from interpulse.model.errors import ServerError
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.waiting import until

TOPIC = "persistent://public/default/orders"
OTHER = "persistent://public/default/others"


def stored(broker: InProcessBroker, topic: str = TOPIC) -> list[bytes | None]:
    """The contents of all messages of a topic."""
    with sync.Client(broker.service_url) as client, client.create_reader(topic) as reader:
        return [reader.read_next(60_000).content for _ in iter(reader.has_message_available, False)]


ASKED: dict[str, tuple[Callable[[int], bytes], str]] = {
    "PRODUCER": (lambda number: commands.producer(number, number, TOPIC), "error"),
    "SUBSCRIBE": (lambda number: commands.subscribe(number, number, TOPIC, "s"), "error"),
    "PARTITIONED_METADATA": (lambda number: commands.partitioned_metadata(number, TOPIC), "partitionMetadataResponse"),
    "LOOKUP": (lambda number: commands.lookup(number, TOPIC), "lookupTopicResponse"),
    "GET_TOPICS_OF_NAMESPACE": (lambda number: commands.get_topics_of_namespace(number, "public/default"), "error"),
    "GET_SCHEMA": (lambda number: commands.get_schema(number, TOPIC), "getSchemaResponse"),
}


@pytest.mark.parametrize("command", ASKED)
def test_refuse_when_a_number_of_times_then_so_often_and_in_the_form_of_the_command(
    pulsar_broker: InProcessBroker, command: str
) -> None:
    ask, field = ASKED[command]
    fault = pulsar_broker.faults.refuse(command, "TooManyRequests", times=2, message="later")
    with RawClient(pulsar_broker.service_url) as client:
        for number in (1, 2):
            client.send(ask(number))
            answer = getattr(client.receive().command, field)
            code = answer.error_code if field == "getSchemaResponse" else answer.error
            text = answer.error_message if field == "getSchemaResponse" else answer.message
            assert (answer.request_id, code, text) == (number, ServerError.TooManyRequests, "later")
        assert client.ask(ask(3)).request_id == 3
    assert (fault.count, fault.active) == (2, False)


def test_refuse_when_connect_then_turned_away(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.refuse("CONNECT", "AuthenticationError", times=1)
    with RawClient(pulsar_broker.service_url, greet=False) as client:
        hello = commands.connect(client_version="raw", protocol_version=21, feature_flags=pb.FeatureFlags())
        answer = client.ask(hello)
        told = "CONNECT is refused by a fault of the test"
        assert (answer.error, answer.message) == (ServerError.AuthenticationError, told)
        assert client.closed_by_broker()
    RawClient(pulsar_broker.service_url).close()


def test_refuse_when_send_then_its_sequence_id_is_told_and_nothing_is_stored(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.refuse("SEND", "PersistenceError", times=1)
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.send(commands.send(1, 5, entry(b"lost")), commands.send(1, 6, entry(b"kept")))
        refused, taken = client.receive().command.send_error, client.receive().command.send_receipt
    assert (refused.producer_id, refused.sequence_id, refused.error) == (1, 5, ServerError.PersistenceError)
    assert taken.sequence_id == 6
    assert stored(pulsar_broker) == [b"kept"]


def test_refuse_when_one_of_many_acks_of_one_read_then_only_that_message_stays(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.ask(commands.subscribe(2, 1, TOPIC, "s"))
        ids = [client.ask(commands.send(1, number, entry())).message_id for number in range(3)]
        with pulsar_broker.faults.refuse("ACK", "MetadataError", times=1):
            acks = [commands.ack_one(1, each.ledgerId, each.entryId) for each in ids]
            client.send(*acks, commands.encode(pb.CommandConsumerStats(request_id=4, consumer_id=1)))
            assert client.receive().command.consumerStatsResponse.msgBacklog == 1


def test_refuse_when_ack_then_answered_if_asked_and_the_message_stays(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.refuse("ACK", "MetadataError")
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.ask(commands.subscribe(2, 1, TOPIC, "s"))
        message_id = client.ask(commands.send(1, 0, entry())).message_id
        ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=[message_id], request_id=3)
        refused = client.ask(commands.encode(ack))
        assert (refused.request_id, refused.error) == (3, ServerError.MetadataError)
        stats = client.ask(commands.encode(pb.CommandConsumerStats(request_id=4, consumer_id=1)))
        assert stats.msgBacklog == 1


def test_refuse_when_for_one_topic_then_others_are_served(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.refuse("PRODUCER", "ProducerBusy", topic="orders")
    pulsar_broker.faults.refuse("SEND", "TopicTerminatedError", topic="others")
    with RawClient(pulsar_broker.service_url) as client:
        assert client.ask(commands.producer(1, 1, TOPIC)).error == ServerError.ProducerBusy
        assert client.ask(commands.producer(2, 2, f"{TOPIC}-partition-0")).error == ServerError.ProducerBusy
        client.ask(commands.producer(3, 3, OTHER))
        client.ask(commands.producer(4, 4, f"{OTHER}-more"))
        assert client.ask(commands.send(3, 0, entry())).error == ServerError.TopicTerminatedError
        assert client.ask(commands.send(4, 0, entry())).sequence_id == 0


def test_delay_when_send_then_all_are_late_once_and_keep_their_order(pulsar_broker: InProcessBroker) -> None:
    fault = pulsar_broker.faults.delay("SEND", 0.5, times=20)
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        began = time.monotonic()
        client.send(*(commands.send(1, number, entry(b"%d" % number)) for number in range(40)))
        client.send(commands.close_producer(1, 2))
        numbers = [client.receive().command.send_receipt.sequence_id for _ in range(40)]
        assert 0.5 <= time.monotonic() - began < 10
        assert client.receive().command.success.request_id == 2
    assert (numbers, fault.count) == (list(range(40)), 20)
    assert stored(pulsar_broker) == [b"%d" % number for number in range(40)]


def test_delay_when_it_ends_then_what_it_held_goes_on_at_once(pulsar_broker: InProcessBroker) -> None:
    faults = pulsar_broker.faults
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        with faults.delay("SEND", 3600) as sending, faults.delay("LOOKUP", 3600) as looking:
            client.send(commands.lookup(2, TOPIC))
            client.send(*(commands.send(1, number, entry()) for number in range(3)), commands.close_producer(1, 3))
            looking.wait()
            sending.wait()
        answers = [client.receive().command for _ in range(5)]
    assert sorted(answer.type for answer in answers) == sorted(
        [pb.BaseCommand.LOOKUP_RESPONSE, pb.BaseCommand.SUCCESS] + [pb.BaseCommand.SEND_RECEIPT] * 3
    )
    assert stored(pulsar_broker) == [b"x"] * 3


def test_delay_when_its_client_goes_then_nothing_of_it_is_stored(pulsar_broker: InProcessBroker) -> None:
    fault = pulsar_broker.faults.delay("SEND", 0.2)
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.send(commands.send(1, 0, entry(b"never")))
        fault.wait()
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.ask(commands.send(1, 0, entry(b"here")))  # comes later than the other would have
    assert stored(pulsar_broker) == [b"here"]


def test_delay_and_refuse_when_both_are_on_then_refused_late(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.delay("LOOKUP", 0.3)
    pulsar_broker.faults.refuse("LOOKUP", "ServiceNotReady", times=1)
    with RawClient(pulsar_broker.service_url) as client:
        began = time.monotonic()
        assert client.ask(commands.lookup(1, TOPIC)).error == ServerError.ServiceNotReady
        assert time.monotonic() - began >= 0.3
        assert not client.ask(commands.lookup(2, TOPIC)).HasField("error")
        assert time.monotonic() - began >= 0.6


def test_lose_receipts_when_producer_comes_back_then_message_is_stored_twice(pulsar_broker: InProcessBroker) -> None:
    with sync.Client(pulsar_broker.service_url) as client:
        lost = pulsar_broker.faults.lose_receipts(1, topic=TOPIC)
        with client.create_producer(TOPIC) as producer:
            sending = producer.send_async(b"one")
            lost.wait()
            assert not sending.done()
            assert pulsar_broker.faults.drop_connections() == 1
            sending.result(60)
            producer.send(b"two")
    assert not lost.active
    assert stored(pulsar_broker) == [b"one", b"one", b"two"]


@pytest.mark.pulsar_settings(brokerDeduplicationEnabled=True)
def test_lose_receipts_when_deduplication_is_on_then_message_is_stored_once(pulsar_broker: InProcessBroker) -> None:
    with sync.Client(pulsar_broker.service_url) as client, client.create_producer(TOPIC, name="p") as producer:
        lost = pulsar_broker.faults.lose_receipts(1)
        sending = producer.send_async(b"one")
        lost.wait()
        pulsar_broker.faults.drop_connections()
        sending.result(60)
    assert stored(pulsar_broker) == [b"one"]


def test_lose_receipts_when_some_then_the_following_come(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.lose_receipts(2)
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.send(*(commands.send(1, number, entry()) for number in range(4)))
        assert [client.receive().command.send_receipt.sequence_id for _ in range(2)] == [2, 3]


def let_in(client: RawClient, topic: str) -> bool:
    """Whether a producer may publish to the topic, without waiting for room."""
    return bool(getattr(client.ask(commands.producer(9, 9, topic)), "producer_name", ""))


def test_disk_full_when_it_ends_then_writing_goes_on(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        client.ask(commands.send(1, 0, entry(b"before")))
        with pulsar_broker.faults.disk_full() as full:
            refused = client.ask(commands.send(1, 1, entry(b"none")))
            assert ServerError(refused.error) in (
                ServerError.PersistenceError,
                ServerError.ProducerBlockedQuotaExceededException,
            )
            assert stored(pulsar_broker) == [b"before"]
            with RawClient(pulsar_broker.service_url) as other:
                assert not let_in(other, OTHER)
        assert full.count >= 1
    with RawClient(pulsar_broker.service_url) as client:
        until(lambda: let_in(client, TOPIC))
        assert client.ask(commands.send(9, 0, entry(b"after"))).sequence_id == 0
    assert stored(pulsar_broker) == [b"before", b"after"]


def test_disk_full_when_once_then_one_group_is_refused(pulsar_broker: InProcessBroker) -> None:
    full = pulsar_broker.faults.disk_full(times=1)
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, OTHER))
        assert client.ask(commands.send(1, 0, entry())).HasField("error")
    assert (full.count, full.active) == (1, False)
    with RawClient(pulsar_broker.service_url) as client:
        until(lambda: let_in(client, OTHER))


async def test_faults_when_used_by_an_asynchronous_test_then_the_client_gets_over_them(
    pulsar_broker: InProcessBroker,
) -> None:
    refused = pulsar_broker.faults.refuse("PRODUCER", "ServiceNotReady", times=3)
    async with asynchronous.Client(pulsar_broker.service_url, backoff_max_ms=100) as client:
        producer = await client.create_producer(TOPIC)
        assert refused.count == 3
        await producer.send(b"one")
        await asyncio.to_thread(pulsar_broker.restart)
        pulsar_broker.faults.drop_connections()
        await producer.send(b"two")
    assert await asyncio.to_thread(stored, pulsar_broker) == [b"one", b"two"]


def test_faults_when_the_broker_is_restarted_then_stay(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.faults.refuse("PRODUCER", "PersistenceError", times=1)
    pulsar_broker.restart()
    with RawClient(pulsar_broker.service_url) as client:
        assert client.ask(commands.producer(1, 1, TOPIC)).error == ServerError.PersistenceError
        assert client.ask(commands.producer(2, 1, TOPIC)).request_id == 2


def test_handlers_when_no_fault_is_on_then_are_those_of_every_broker(pulsar_broker: InProcessBroker) -> None:
    from interpulse.broker.binary.handlers import INLINE

    faults = pulsar_broker.faults
    with faults.delay("SEND", 1), faults.refuse("ACK", "UnknownError"), faults.lose_receipts(1):
        assert faults._handlers.handlers.inline != INLINE
    assert faults._handlers.handlers.inline == INLINE
