"""Our client and the official one understand each other's messages, through our broker."""

import pulsar
import pytest

from interpulse.client import deserialize_message_id, serialize_message_id
from interpulse.sync import Client
from interpulse.testing.broker import InProcessBroker

pytestmark = pytest.mark.interop
TOPIC = "persistent://public/default/t"
CODECS = {
    "none": pulsar.CompressionType.NONE,
    "lz4": pulsar.CompressionType.LZ4,
    "zlib": pulsar.CompressionType.ZLib,
    "zstd": pulsar.CompressionType.ZSTD,
    "snappy": pulsar.CompressionType.SNAPPY,
}


@pytest.fixture
def clients(pulsar_broker: InProcessBroker):
    official = pulsar.Client(pulsar_broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    with Client(pulsar_broker.service_url) as ours:
        yield ours, official
    official.close()


@pytest.mark.parametrize("batching", [True, False])
def test_messages_of_ours_when_read_by_the_official_client_then_are_the_same(clients, batching: bool) -> None:
    ours, official = clients
    consumer = official.subscribe(TOPIC, "s")
    for codec in CODECS:
        with ours.create_producer(TOPIC, compression=codec, batching_enabled=batching) as producer:
            futures = [
                producer.send_async(
                    f"{codec} {number}", key=f"k{number}", properties={"n": str(number)}, event_time_ms=7
                )
                for number in range(10)
            ]
            producer.flush()
        for number in range(10):
            message = consumer.receive(60_000)
            assert message.data() == f"{codec} {number}".encode()
            assert (message.partition_key(), message.properties(), message.event_timestamp()) == (
                f"k{number}",
                {"n": str(number)},
                7,
            )
            sent = futures[number].result()
            assert (message.message_id().ledger_id(), message.message_id().entry_id()) == (sent.ledger, sent.entry)
            assert message.message_id().batch_index() == sent.batch_index
            consumer.acknowledge(message)


@pytest.mark.parametrize("batching", [True, False])
def test_messages_of_the_official_client_when_read_by_ours_then_are_the_same(clients, batching: bool) -> None:
    ours, official = clients
    with ours.subscribe(TOPIC, "s") as consumer:
        for codec, official_codec in CODECS.items():
            producer = official.create_producer(TOPIC, compression_type=official_codec, batching_enabled=batching)
            for number in range(10):
                producer.send_async(
                    f"{codec} {number}".encode(), None, partition_key=f"k{number}", properties={"n": str(number)}
                )
            producer.flush()
            for number in range(10):
                message = consumer.receive(60_000)
                assert message.content == f"{codec} {number}".encode()
                assert (message.key, message.properties) == (f"k{number}", {"n": str(number)})
                consumer.acknowledge(message)
            producer.close()


def test_chunked_messages_go_both_ways(clients) -> None:
    ours, official = clients
    content = bytes(range(256)) * 48_000
    their_consumer = official.subscribe(TOPIC, "theirs")
    with ours.subscribe(TOPIC, "ours") as our_consumer:
        their_producer = official.create_producer(TOPIC, chunking_enabled=True, batching_enabled=False)
        their_producer.send(content)
        with ours.create_producer(TOPIC, chunking_enabled=True, batching_enabled=False) as our_producer:
            our_producer.send(content)
        for _ in range(2):
            assert our_consumer.receive(60_000).content == content
            assert their_consumer.receive(60_000).data() == content
        their_producer.close()


def test_serialized_message_ids_go_both_ways(clients) -> None:
    """Of single messages, of a batch, and of a message in chunks, which each client finds by the other's id."""
    ours, official = clients
    large = bytes(6 * 1024 * 1024)
    their_consumer = official.subscribe(TOPIC, "theirs")
    their_reader = official.create_reader(TOPIC, pulsar.MessageId.earliest, start_message_id_inclusive=True)
    with ours.subscribe(TOPIC, "ours") as our_consumer:
        with ours.create_producer(TOPIC, batch_delay_ms=200) as producer:
            futures = [producer.send_async(b"in a batch") for _ in range(2)]
            sent = [future.result() for future in futures]
        with ours.create_producer(TOPIC, chunking_enabled=True, batching_enabled=False) as producer:
            sent += [producer.send(content) for content in (b"single", large, b"last")]
        received = [their_consumer.receive(60_000).message_id() for _ in sent]
        for our_id, their_id in zip(sent, received, strict=True):
            assert pulsar.MessageId.deserialize(serialize_message_id(our_id)) == their_id
            read = deserialize_message_id(their_id.serialize())
            assert (read, read.first_chunk) == (our_id, our_id.first_chunk)
        our_consumer.seek(deserialize_message_id(received[3].serialize()))
        assert [our_consumer.receive(60_000).content for _ in range(2)] == [large, b"last"]
        their_reader.seek(pulsar.MessageId.deserialize(serialize_message_id(sent[3])))
        assert [their_reader.read_next(60_000).data() for _ in range(2)] == [large, b"last"]
