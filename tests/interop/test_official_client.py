"""What the official Python client sees: the same tests against our broker and, where slow tests run, a real Pulsar."""

import re
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.interop.real_pulsar import Address

pytestmark = pytest.mark.interop

PATIENCE_MS = 60_000
OPERATION_SECONDS = 60
SHORT_MS = 300  # long enough for what must not come to show itself
COMPRESSIONS = (
    pulsar.CompressionType.NONE,
    pulsar.CompressionType.LZ4,
    pulsar.CompressionType.ZLib,
    pulsar.CompressionType.ZSTD,
    pulsar.CompressionType.SNAPPY,
)

OpenClient = Callable[[], pulsar.Client]


@pytest.fixture(scope="module")
def our_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """One broker of ours for the tests of this file."""
    from interpulse.testing import InProcessBroker

    with InProcessBroker(tmp_path_factory.mktemp("interpulse")) as broker:
        yield Address(broker.service_url, broker.web_url)


@pytest.fixture(params=["interpulse", pytest.param("pulsar", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest) -> Address:
    """Every test that asks for it runs against both."""
    address: Address = request.getfixturevalue("our_broker" if request.param == "interpulse" else "real_pulsar")
    return address


@pytest.fixture
def open_client(cluster: Address) -> Iterator[OpenClient]:
    """Makes clients that are closed at the end, also when the test closed them."""
    clients = []

    def open_one() -> pulsar.Client:
        client = pulsar.Client(
            cluster.service_url,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            operation_timeout_seconds=OPERATION_SECONDS,
        )
        clients.append(client)
        return client

    yield open_one
    for client in clients:
        try:
            client.close()
        except pulsar.AlreadyClosed:
            continue


@pytest.fixture
def client(open_client: OpenClient) -> pulsar.Client:
    """A client of this test."""
    return open_client()


@pytest.fixture
def topic() -> str:
    """A topic of its own."""
    return f"persistent://public/default/{uuid.uuid4()}"


def call_admin(cluster: Address, method: str, path: str, body: str = "") -> bytes:
    request = urllib.request.Request(
        f"{cluster.web_url}/admin/v2/{path}",
        method=method,
        data=body.encode() or None,
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: bytes = answer.read()
        return found


def rest_path(topic: str) -> str:
    return topic.replace("://", "/")


def receive(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    return [consumer.receive(PATIENCE_MS) for _ in range(count)]


def values(messages: list[pulsar.Message]) -> list[bytes]:
    return [message.data() for message in messages]


def assert_silent(consumer: pulsar.Consumer) -> None:
    with pytest.raises(pulsar.Timeout):
        consumer.receive(SHORT_MS)


def test_message_when_published_then_arrives_with_all_it_carries(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, producer_name="the-producer")
    sent_id = producer.send(b"value", properties={"a": "1"}, partition_key="k", ordering_key="o", event_timestamp=123)
    message = consumer.receive(PATIENCE_MS)
    assert message.data() == b"value"
    assert message.properties() == {"a": "1"}
    assert (message.partition_key(), message.ordering_key()) == ("k", "o")
    assert message.event_timestamp() == 123
    assert message.producer_name() == "the-producer"
    assert message.topic_name() == topic
    assert message.redelivery_count() == 0
    assert (message.message_id().ledger_id(), message.message_id().entry_id()) == (
        sent_id.ledger_id(),
        sent_id.entry_id(),
    )
    assert abs(message.publish_timestamp() / 1000 - time.time()) < 60


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_messages_when_batched_and_compressed_then_arrive_in_order(
    client: pulsar.Client, topic: str, compression: pulsar.CompressionType, batched: bool
) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, compression_type=compression, batching_enabled=batched, batching_max_publish_delay_ms=50
    )
    sent = [b"%d " % number * 50 for number in range(100)]
    for value in sent:
        producer.send_async(value, None)
    producer.flush()
    assert values(receive(consumer, 100)) == sent


def test_large_message_when_published_then_arrives_whole(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    value = bytes(range(256)) * 16_384  # 4 MiB, below the limit of 5
    client.create_producer(topic).send(value)
    assert consumer.receive(PATIENCE_MS).data() == value


def test_chunked_message_when_published_then_arrives_whole(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    value = bytes(range(256)) * 49_152  # 12 MiB
    producer.send(value)
    assert consumer.receive(PATIENCE_MS).data() == value


def test_too_large_message_when_published_then_is_refused(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(b"x" * 6_000_000)


def test_exclusive_subscription_when_taken_then_refuses_a_second(open_client: OpenClient, topic: str) -> None:
    open_client().subscribe(topic, "s")
    with pytest.raises(pulsar.ConsumerBusy):
        open_client().subscribe(topic, "s")


def test_subscription_type_when_another_is_connected_then_is_refused(open_client: OpenClient, topic: str) -> None:
    open_client().subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    with pytest.raises(pulsar.ConsumerBusy):
        open_client().subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Failover)


def test_failover_when_the_active_consumer_leaves_then_the_other_continues(open_client: OpenClient, topic: str) -> None:
    first, second = open_client(), open_client()
    consumers = [
        (owner, owner.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Failover)) for owner in (first, second)
    ]
    producer = open_client().create_producer(topic)
    for number in range(10):
        producer.send(b"%d" % number)
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not (active := [(owner, consumer) for owner, consumer in consumers if _receives(consumer)]):
        assert time.monotonic() < deadline, "no consumer receives"
    ((owner, consumer),) = active
    receive(consumer, 9)
    assert_silent(consumer)  # one that leaves within 10 ms of a delivery may leave a real Pulsar's subscription stuck
    owner.close()
    (waiting,) = [consumer for other, consumer in consumers if other is not owner]
    assert values(receive(waiting, 10)) == [b"%d" % number for number in range(10)]


def _receives(consumer: pulsar.Consumer) -> bool:
    try:
        consumer.receive(SHORT_MS)
    except pulsar.Timeout:
        return False
    return True


def test_shared_subscription_when_two_consume_then_each_message_goes_to_one(
    open_client: OpenClient, topic: str
) -> None:
    consumers = [
        open_client().subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared, receiver_queue_size=1)
        for _ in range(2)
    ]
    producer = open_client().create_producer(topic, batching_enabled=False)
    sent = {b"%d" % number for number in range(40)}
    for value in sent:
        producer.send(value)
    received: list[list[bytes]] = [[], []]
    while sum(map(len, received)) < 40:
        for consumer, got in zip(consumers, received, strict=True):
            try:
                message = consumer.receive(100)
            except pulsar.Timeout:
                continue
            got.append(message.data())
            consumer.acknowledge(message)
    assert sorted(received[0] + received[1]) == sorted(sent)
    assert all(received)


def test_unacknowledged_when_the_consumer_comes_back_then_are_delivered_again(
    open_client: OpenClient, topic: str
) -> None:
    first = open_client()
    consumer = first.subscribe(topic, "s")
    producer = open_client().create_producer(topic, batching_enabled=False)
    for number in range(6):
        producer.send(b"%d" % number)
    messages = receive(consumer, 6)
    consumer.acknowledge(messages[0])
    consumer.acknowledge(messages[1])
    consumer.acknowledge(messages[4])
    first.close()
    again = open_client().subscribe(topic, "s")
    assert values(receive(again, 3)) == [b"2", b"3", b"5"]
    assert_silent(again)


def test_cumulative_acknowledgement_when_inside_a_batch_then_the_rest_comes_again(
    open_client: OpenClient, topic: str
) -> None:
    first = open_client()
    consumer = first.subscribe(topic, "s")
    producer = open_client().create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=100)
    for number in range(10):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    consumer.acknowledge_cumulative(receive(consumer, 10)[9])
    for number in range(10, 13):
        producer.send(b"%d" % number)
    first.close()
    again = open_client().subscribe(topic, "s")
    assert values(receive(again, 3)) == [b"10", b"11", b"12"]


def test_negative_acknowledgement_when_sent_then_the_message_comes_again(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(
        topic, "s", consumer_type=pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100
    )
    client.create_producer(topic).send(b"again")
    message = consumer.receive(PATIENCE_MS)
    consumer.negative_acknowledge(message)
    repeated = consumer.receive(PATIENCE_MS)
    assert repeated.data() == b"again"
    assert repeated.redelivery_count() == 1


@pytest.mark.parametrize(
    ("position", "expected"),
    [(pulsar.InitialPosition.Earliest, [b"old", b"new"]), (pulsar.InitialPosition.Latest, [b"new"])],
    ids=["earliest", "latest"],
)
def test_new_subscription_when_it_begins_then_at_its_initial_position(
    client: pulsar.Client, topic: str, position: pulsar.InitialPosition, expected: list[bytes]
) -> None:
    client.subscribe(topic, "keeps-the-messages")
    producer = client.create_producer(topic)
    producer.send(b"old")
    consumer = client.subscribe(topic, "s", initial_position=position)
    producer.send(b"new")
    assert values(receive(consumer, len(expected))) == expected
    assert_silent(consumer)


def test_seek_when_to_a_message_id_then_goes_on_there(client: pulsar.Client, topic: str) -> None:
    client.subscribe(topic, "keeps-the-messages")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    ids = [producer.send(b"%d" % number) for number in range(5)]
    for message in receive(consumer, 5):
        consumer.acknowledge(message)
    consumer.seek(ids[2])
    assert values(receive(consumer, 2)) == [b"3", b"4"]  # this client goes on after the id
    consumer.seek(pulsar.MessageId.earliest)
    assert consumer.receive(PATIENCE_MS).data() == b"0"


def test_reader_when_it_starts_then_sees_what_comes_after_its_position(client: pulsar.Client, topic: str) -> None:
    client.subscribe(topic, "keeps-the-messages")
    producer = client.create_producer(topic, batching_enabled=False)
    ids = [producer.send(b"%d" % number) for number in range(4)]
    from_start = client.create_reader(topic, pulsar.MessageId.earliest)
    assert [from_start.read_next(PATIENCE_MS).data() for _ in range(4)] == [b"0", b"1", b"2", b"3"]
    assert not from_start.has_message_available()
    after_second = client.create_reader(topic, ids[1])
    assert after_second.has_message_available()
    assert after_second.read_next(PATIENCE_MS).data() == b"2"
    inclusive = client.create_reader(topic, ids[1], start_message_id_inclusive=True)
    assert inclusive.read_next(PATIENCE_MS).data() == b"1"


def test_reader_when_the_topic_is_empty_then_has_no_message(client: pulsar.Client, topic: str) -> None:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert not reader.has_message_available()
    client.create_producer(topic).send(b"first")
    assert reader.has_message_available()
    assert reader.read_next(PATIENCE_MS).data() == b"first"


def test_last_message_id_when_asked_then_is_the_one_of_the_last_message(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    ids = [producer.send(b"x") for _ in range(3)]
    last = consumer.get_last_message_id()
    assert (last.ledger_id(), last.entry_id()) == (ids[-1].ledger_id(), ids[-1].entry_id())


def test_partitioned_topic_when_produced_to_then_keys_stay_together(
    client: pulsar.Client, cluster: Address, topic: str
) -> None:
    call_admin(cluster, "PUT", f"{rest_path(topic)}/partitions", "3")
    partitions = [f"{topic}-partition-{number}" for number in range(3)]
    assert client.get_topic_partitions(topic) == partitions
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for number in range(60):
        producer.send(b"%d" % number, partition_key=f"key {number % 6}")
    homes: dict[str, set[str]] = {}
    order: dict[str, list[int]] = {}
    for message in receive(consumer, 60):
        homes.setdefault(message.partition_key(), set()).add(message.topic_name())
        order.setdefault(message.partition_key(), []).append(int(message.data()))
    assert all(len(found) == 1 for found in homes.values())
    assert all(numbers == sorted(numbers) for numbers in order.values())
    assert {home for found in homes.values() for home in found} <= set(partitions)


def test_producer_name_when_taken_then_is_refused(open_client: OpenClient, topic: str) -> None:
    open_client().create_producer(topic, producer_name="mine")
    with pytest.raises(pulsar.ProducerBusy):
        open_client().create_producer(topic, producer_name="mine")


def test_producer_names_when_not_given_then_differ(client: pulsar.Client, topic: str) -> None:
    assert client.create_producer(topic).producer_name() != client.create_producer(topic).producer_name()


@pytest.mark.parametrize("batched", [False, True])
def test_messages_when_encrypted_then_only_who_has_the_key_reads_them(
    open_client: OpenClient, topic: str, tmp_path: Path, *, batched: bool
) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.NoEncryption()
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, form)
    )
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    keys = pulsar.CryptoKeyReader(str(public), str(private))
    client = open_client()
    consumer = client.subscribe(topic, "s", crypto_key_reader=keys)
    stranger = client.subscribe(topic, "t", crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME)
    producer = client.create_producer(
        topic,
        encryption_key="mine",
        crypto_key_reader=keys,
        batching_enabled=batched,
        batching_max_publish_delay_ms=1000,
    )
    for number in range(3):
        producer.send_async(b"secret %d" % number, None, properties={"n": str(number)})
    producer.flush()
    assert values(receive(consumer, 3)) == [b"secret 0", b"secret 1", b"secret 2"]
    assert b"secret" not in stranger.receive(PATIENCE_MS).data()


def test_deduplication_when_on_then_a_repeated_sequence_id_is_stored_once(
    open_client: OpenClient, cluster: Address
) -> None:
    namespace = f"public/{uuid.uuid4()}"
    call_admin(cluster, "PUT", f"namespaces/{namespace}", "{}")
    call_admin(cluster, "POST", f"namespaces/{namespace}/deduplication", "true")
    topic = f"persistent://{namespace}/once"
    consumer = open_client().subscribe(topic, "s")
    first = open_client()
    producer = first.create_producer(topic, producer_name="fixed", batching_enabled=False)
    for sequence_id in (0, 1, 2):
        producer.send(b"%d" % sequence_id, sequence_id=sequence_id)
    first.close()
    producer = open_client().create_producer(topic, producer_name="fixed", batching_enabled=False)
    assert producer.last_sequence_id() == 2
    for sequence_id in (1, 2, 3):
        producer.send(b"%d" % sequence_id, sequence_id=sequence_id)
    assert values(receive(consumer, 4)) == [b"0", b"1", b"2", b"3"]
    assert_silent(consumer)


@pytest.mark.parametrize("batching", ["Default", "KeyBased"])
def test_batches_when_deduplicated_then_every_acknowledged_message_is_stored_once(
    open_client: OpenClient, cluster: Address, batching: str
) -> None:
    """Key-based batches interleave their ids; their number of messages says nothing of the last one."""
    namespace = f"public/{uuid.uuid4()}"
    call_admin(cluster, "PUT", f"namespaces/{namespace}", "{}")
    call_admin(cluster, "POST", f"namespaces/{namespace}/deduplication", "true")
    topic = f"persistent://{namespace}/batches"
    consumer = open_client().subscribe(topic, "s")
    options: dict[str, Any] = {"batching_enabled": True, "batching_max_publish_delay_ms": 1000}
    options |= {"batching_type": getattr(pulsar.BatchingType, batching), "producer_name": "fixed"}
    sent: list[bytes] = []
    results: list[pulsar.Result] = []
    ledgers: list[int] = []

    def on_answer(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
        results.append(result)
        ledgers.append(message_id.ledger_id())

    for keys in ("aaabaa", "ab", "bbbbbbbbbbbba", "c", "abcabcabc"):
        client = open_client()
        producer = client.create_producer(topic, **options)
        assert producer.last_sequence_id() < len(sent)
        for key in keys:
            sent.append(b"%d" % len(sent))
            producer.send_async(sent[-1], on_answer, partition_key=key, sequence_id=len(sent) - 1)
        producer.flush()
        client.close()
    assert results == [pulsar.Result.Ok] * len(sent)
    assert min(ledgers) >= 0, "none was taken for a duplicate"
    assert sorted(values(receive(consumer, len(sent))), key=int) == sent
    assert_silent(consumer)


def test_absent_topic_when_creation_is_off_then_is_not_found_at_once(client: pulsar.Client, cluster: Address) -> None:
    namespace = f"public/{uuid.uuid4()}"
    call_admin(cluster, "PUT", f"namespaces/{namespace}", "{}")
    call_admin(cluster, "POST", f"namespaces/{namespace}/autoTopicCreation", '{"allowAutoTopicCreation":false}')
    started = time.monotonic()
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(f"persistent://{namespace}/absent")
    with pytest.raises(pulsar.TopicNotFound):
        client.subscribe(f"persistent://{namespace}/absent", "s")
    assert time.monotonic() - started < OPERATION_SECONDS, "it is not tried again until the timeout"


def test_unsubscribe_when_done_then_a_new_subscription_begins_anew(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"before")
    assert consumer.receive(PATIENCE_MS).data() == b"before"
    consumer.unsubscribe()
    producer.send(b"between")
    consumer = client.subscribe(topic, "s")
    producer.send(b"after")
    assert consumer.receive(PATIENCE_MS).data() == b"after"


def test_schema_when_a_record_is_published_then_is_read_with_it(client: pulsar.Client, topic: str) -> None:
    class Flight(pulsar.schema.Record):
        carrier = pulsar.schema.String()
        number = pulsar.schema.Integer()

    consumer = client.subscribe(topic, "s", schema=pulsar.schema.AvroSchema(Flight))
    producer = client.create_producer(topic, schema=pulsar.schema.AvroSchema(Flight))
    producer.send(Flight(carrier="AA", number=1))
    message = consumer.receive(PATIENCE_MS)
    assert (message.value().carrier, message.value().number) == ("AA", 1)


def test_non_persistent_topic_when_a_consumer_waits_then_delivers(client: pulsar.Client) -> None:
    topic = f"non-persistent://public/default/{uuid.uuid4()}"
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"now")
    assert consumer.receive(PATIENCE_MS).data() == b"now"


def test_topics_of_a_namespace_when_a_pattern_is_given_then_are_all_consumed(
    client: pulsar.Client, cluster: Address
) -> None:
    namespace = f"public/{uuid.uuid4()}"
    call_admin(cluster, "PUT", f"namespaces/{namespace}", "{}")
    for name in ("a1", "a2", "b1"):
        call_admin(cluster, "PUT", f"persistent/{namespace}/{name}")
    consumer = client.subscribe(re.compile(f"persistent://{namespace}/a.*"), "s")
    for name in ("a1", "a2", "b1"):
        client.create_producer(f"persistent://{namespace}/{name}").send(name.encode())
    assert sorted(values(receive(consumer, 2))) == [b"a1", b"a2"]
    assert_silent(consumer)
