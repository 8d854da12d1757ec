"""The official client publishes, in every way it can."""

from __future__ import annotations

from pathlib import Path

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.support.official_client import connected, receive, receive_all

pytestmark = pytest.mark.interop

EARLIEST = pulsar.InitialPosition.Earliest


def test_messages_when_sent_one_by_one_then_received_with_every_field(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("flights", "s", initial_position=EARLIEST)
        producer = client.create_producer("flights", producer_name="me", properties={"who": "test"})
        sent_id = producer.send(
            b"payload",
            properties={"a": "b", "umlaut": "ü"},
            partition_key="key",
            ordering_key="order",
            event_timestamp=1234,
            sequence_id=77,
        )
        message = consumer.receive(60_000)
        assert message.data() == b"payload"
        assert message.properties() == {"a": "b", "umlaut": "ü"}
        assert (message.partition_key(), message.ordering_key(), message.event_timestamp()) == ("key", "order", 1234)
        assert message.producer_name() == "me"
        assert message.topic_name() == "persistent://public/default/flights"
        assert (sent_id.ledger_id(), sent_id.entry_id()) == (
            message.message_id().ledger_id(),
            message.message_id().entry_id(),
        )
        assert producer.last_sequence_id() == 77


@pytest.mark.parametrize(
    "compression",
    [
        pulsar.CompressionType.NONE,
        pulsar.CompressionType.LZ4,
        pulsar.CompressionType.ZLib,
        pulsar.CompressionType.ZSTD,
        pulsar.CompressionType.SNAPPY,
    ],
    ids=str,
)
@pytest.mark.parametrize("batched", [False, True], ids=["unbatched", "batched"])
def test_messages_when_compressed_and_batched_then_all_come_in_order(
    pulsar_broker: InProcessBroker, compression: pulsar.CompressionType, batched: bool
) -> None:
    contents = [f"message {number} ".encode() * 20 for number in range(250)]
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer(
            "t", compression_type=compression, batching_enabled=batched, batching_max_publish_delay_ms=5
        )
        for content in contents:
            producer.send_async(content, None)
        producer.flush()
        received = receive(consumer, len(contents))
        assert [message.data() for message in received] == contents
        assert (received[1].message_id().batch_index() == 1) is batched


def test_messages_when_key_based_batching_then_each_key_in_order(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t", batching_enabled=True, batching_type=pulsar.BatchingType.KeyBased)
        for number in range(60):
            producer.send_async(b"%d" % number, None, partition_key=f"k{number % 3}")
        producer.flush()
        received = receive(consumer, 60)
    for key in range(3):
        numbers = [int(message.data()) for message in received if message.partition_key() == f"k{key}"]
        assert numbers == list(range(key, 60, 3))


def test_message_when_chunked_then_put_together_again(pulsar_broker: InProcessBroker) -> None:
    content = bytes(range(256)) * 48 * 1024  # 12 MiB, three chunks
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t", chunking_enabled=True)
        producer.send(content)
        assert consumer.receive(60_000).data() == content


def test_message_when_too_large_then_client_refuses_and_goes_on(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        with pytest.raises(pulsar.MessageTooBig):
            producer.send(bytes(6 * 1024 * 1024))
        producer.send(bytes(5 * 1024 * 1024 - 1000))
        assert len(consumer.receive(60_000).data()) == 5 * 1024 * 1024 - 1000


def test_producer_when_name_is_taken_then_busy_until_the_holder_closes(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as one, connected(pulsar_broker.service_url) as other:
        holder = one.create_producer("t", producer_name="only")
        with pytest.raises(pulsar.ProducerBusy):
            other.create_producer("t", producer_name="only")
        holder.close()
        other.create_producer("t", producer_name="only").send(b"x")


def test_producer_when_access_is_exclusive_then_others_are_fenced(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        client.create_producer("t", access_mode=pulsar.ProducerAccessMode.Exclusive)
        with pytest.raises(pulsar.ProducerFenced):
            client.create_producer("t", access_mode=pulsar.ProducerAccessMode.Exclusive)
        with pytest.raises(pulsar.ProducerBusy):
            client.create_producer("t")


def test_producer_when_unnamed_then_gets_a_unique_name_of_the_cluster(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        names = {client.create_producer("t").producer_name() for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("standalone-") for name in names)


@pytest.mark.pulsar_settings(allowAutoTopicCreation="false")
def test_topic_when_creation_is_off_then_not_found_at_once(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        with pytest.raises(pulsar.TopicNotFound):
            client.create_producer("nowhere")
        with pytest.raises(pulsar.TopicNotFound):
            client.subscribe("nowhere", "s")


def test_topic_when_it_is_a_partition_without_metadata_then_not_allowed(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        with pytest.raises(pulsar.NotAllowedError):
            client.create_producer("lonely-partition-0")
        with pytest.raises(pulsar.NotAllowedError):
            client.subscribe("lonely-partition-0", "s")


def test_topic_when_namespace_is_missing_then_not_found_at_once(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client, pytest.raises(pulsar.TopicNotFound):
        client.create_producer("no/such/topic")


@pytest.mark.pulsar_settings(allowAutoTopicCreationType="partitioned", defaultNumPartitions="4")
def test_topic_when_partitioned_then_keys_stay_in_order_over_all_partitions(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        assert client.get_topic_partitions("t") == [f"persistent://public/default/t-partition-{i}" for i in range(4)]
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t", batching_enabled=True)
        for number in range(400):
            producer.send_async(b"%d" % number, None, partition_key=f"k{number % 10}")
        producer.flush()
        received = receive(consumer, 400)
    assert {message.topic_name()[-1] for message in received} > {"0"}
    for key in range(10):
        numbers = [int(message.data()) for message in received if message.partition_key() == f"k{key}"]
        assert numbers == list(range(key, 400, 10))


def test_topic_when_not_persistent_then_live_messages_pass(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("non-persistent://public/default/t", "s")
        producer = client.create_producer("non-persistent://public/default/t")
        producer.send(b"now")
        assert consumer.receive(60_000).data() == b"now"


def test_messages_when_sequence_ids_repeat_then_stored_once(tmp_path: Path) -> None:
    settings = {"brokerDeduplicationEnabled": "true"}
    for life in range(3):
        with InProcessBroker(tmp_path, settings) as broker, connected(broker.service_url) as client:
            producer = client.create_producer("t", producer_name="fixed")
            assert producer.last_sequence_id() == (10 if life else -1)
            for number in range(1, 11):  # the client takes 0 for "none given"
                producer.send(b"%d" % number, sequence_id=number)
    with InProcessBroker(tmp_path, settings) as broker, connected(broker.service_url) as client:
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        assert [message.data() for message in receive_all(consumer, 10)] == [b"%d" % number for number in range(1, 11)]
