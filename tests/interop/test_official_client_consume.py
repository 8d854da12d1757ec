"""The official client consumes: subscription types, acknowledgement, positions, readers."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.support.official_client import connected, is_quiet, receive, receive_all
from tests.support.waiting import until

pytestmark = pytest.mark.interop

EARLIEST = pulsar.InitialPosition.Earliest


def publish_numbers(client: pulsar.Client, topic: str, count: int, *, batched: bool = False, first: int = 0) -> None:
    """Messages whose payloads are the numbers from ``first`` on."""
    producer = client.create_producer(topic, batching_enabled=batched, batching_max_messages=10)
    for number in range(first, first + count):
        producer.send_async(b"%d" % number, None, partition_key=f"k{number % 8}")
    producer.flush()
    producer.close()


def numbers(messages: list[pulsar.Message]) -> list[int]:
    return [int(message.data()) for message in messages]


@pytest.mark.parametrize("batched", [False, True], ids=["unbatched", "batched"])
def test_subscription_when_exclusive_then_second_consumer_is_refused_and_order_kept(
    pulsar_broker: InProcessBroker, batched: bool
) -> None:
    with connected(pulsar_broker.service_url) as client, connected(pulsar_broker.service_url) as other:
        consumer = client.subscribe("t", "s")
        with pytest.raises(pulsar.ConsumerBusy):
            other.subscribe("t", "s")
        publish_numbers(client, "t", 200, batched=batched)
        assert numbers(receive_all(consumer, 200)) == list(range(200))


def test_subscription_when_types_differ_then_refused(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared)
        with pytest.raises(pulsar.ConsumerBusy):
            client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Failover)


def test_subscription_when_shared_then_work_is_divided_and_nothing_comes_twice(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumers = [
            client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared, receiver_queue_size=10)
            for _ in range(3)
        ]
        publish_numbers(client, "t", 300)
        got: list[list[int]] = [[] for _ in consumers]
        while sum(map(len, got)) < 300:
            for consumer, mine in zip(consumers, got, strict=True):
                message = consumer.receive(60_000) if not sum(map(len, got)) else _receive_now(consumer)
                if message is not None:
                    mine.append(int(message.data()))
                    consumer.acknowledge(message)
        assert all(got)
        assert sorted(number for mine in got for number in mine) == list(range(300))


def test_subscription_when_shared_consumer_leaves_then_its_messages_go_to_the_other(
    pulsar_broker: InProcessBroker,
) -> None:
    with connected(pulsar_broker.service_url) as client:
        leaving = client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared)
        publish_numbers(client, "t", 20)
        assert len(receive(leaving, 20)) == 20
        staying = client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared)
        leaving.close()
        assert sorted(numbers(receive_all(staying, 20))) == list(range(20))


def test_subscription_when_failover_then_the_other_takes_over_without_loss(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumers = [
            client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Failover, consumer_name=name)
            for name in ("a", "b")
        ]
        publish_numbers(client, "t", 10)
        active = until(lambda: next((each for each in consumers if _receive_now(each) is not None), None))
        assert active is not None
        passive = consumers[1] if active is consumers[0] else consumers[0]
        assert is_quiet(passive)
        active.close()
        assert numbers(receive_all(passive, 10)) == list(range(10))


def test_subscription_when_key_shared_then_each_key_has_one_consumer(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumers = [client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.KeyShared) for _ in range(2)]
        publish_numbers(client, "t", 200)
        got: list[list[pulsar.Message]] = [[], []]

        def come() -> int:
            for consumer, mine in zip(consumers, got, strict=True):
                while (message := _receive_now(consumer)) is not None:
                    mine.append(message)
            return sum(map(len, got))

        until(lambda: come() >= 200)
    keys = [{message.partition_key() for message in messages} for messages in got]
    assert not keys[0] & keys[1]
    assert sorted(numbers(got[0]) + numbers(got[1])) == list(range(200))


@pytest.mark.parametrize("batched", [False, True], ids=["unbatched", "batched"])
def test_key_shared_when_consumers_come_and_go_then_each_key_stays_in_order(
    pulsar_broker: InProcessBroker, batched: bool
) -> None:
    count, keys = 600, 20
    got: dict[str, list[int]] = {}
    with connected(pulsar_broker.service_url) as client:

        def join() -> pulsar.Consumer:
            return client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.KeyShared, receiver_queue_size=50)

        consumers = [join(), join()]
        producer = client.create_producer(
            "t", batching_enabled=batched, batching_type=pulsar.BatchingType.KeyBased, batching_max_messages=10
        )
        for number in range(count):
            producer.send_async(b"%d" % number, None, partition_key=f"k{number % keys}")
        producer.flush()
        received = 0
        while received < count:
            for consumer in consumers:
                message = _receive_now(consumer, 10)
                if message is None:
                    continue
                got.setdefault(message.partition_key(), []).append(int(message.data()))
                consumer.acknowledge(message)
                received += 1
                if received % 100 == 0:
                    consumers.append(join())
                if received % 150 == 0:
                    consumers.pop(0).close()
                    break
    expected = {f"k{key}": list(range(key, count, keys)) for key in range(keys)}
    assert {key: list(dict.fromkeys(values)) for key, values in got.items()} == expected


def test_delayed_messages_when_shared_then_come_at_their_time_and_hold_up_no_other(
    pulsar_broker: InProcessBroker,
) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared)
        producer = client.create_producer("t")
        begin_ms = int(time.time() * 1000)
        producer.send(b"1", deliver_after=timedelta(milliseconds=4000))
        producer.send(b"2", deliver_at=begin_ms + 3000)
        producer.send(b"0")
        times = {}
        for _ in range(3):
            message = consumer.receive(60_000)
            times[int(message.data())] = time.time() * 1000 - begin_ms
    assert list(times) == [0, 2, 1]
    assert times[2] >= 3000
    assert times[1] >= 4000


def test_acknowledgement_when_broker_restarts_then_only_the_rest_comes(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker, connected(broker.service_url) as client:
        client.subscribe("t", "cumulative").close()
        client.subscribe("t", "individual", consumer_type=pulsar.ConsumerType.Shared).close()
        publish_numbers(client, "t", 100)
        consumer = client.subscribe("t", "cumulative")
        consumer.acknowledge_cumulative(receive(consumer, 40)[-1])
        shared = client.subscribe("t", "individual", consumer_type=pulsar.ConsumerType.Shared)
        for message in receive(shared, 100)[::2]:
            shared.acknowledge(message)
        consumer.close()
        shared.close()
    with InProcessBroker(tmp_path) as broker, connected(broker.service_url) as client:
        assert numbers(receive_all(client.subscribe("t", "cumulative"), 60)) == list(range(40, 100))
        shared = client.subscribe("t", "individual", consumer_type=pulsar.ConsumerType.Shared)
        assert sorted(numbers(receive_all(shared, 50))) == list(range(1, 100, 2))


def test_messages_when_broker_restarts_then_client_goes_on_by_itself(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        port = broker.service_url.rpartition(":")[2]
        with connected(broker.service_url) as client:
            consumer = client.subscribe("t", "s")
            producer = client.create_producer("t")
            producer.send(b"0")
            broker.stop()
            with InProcessBroker(tmp_path, {"brokerServicePort": port}):
                producer.send(b"1")
                assert numbers(receive_all(consumer, 2)) == [0, 1]
                producer.close()
                consumer.close()


def test_negative_acknowledgement_when_sent_then_message_comes_again_counted(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe(
            "t", "s", consumer_type=pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100
        )
        publish_numbers(client, "t", 3)
        first = receive(consumer, 3)
        consumer.negative_acknowledge(first[1])
        again = consumer.receive(60_000)
        assert (again.data(), again.redelivery_count()) == (b"1", 1)


def test_redelivery_when_asked_for_then_everything_unacknowledged_comes_again(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        publish_numbers(client, "t", 10)
        consumer.acknowledge_cumulative(receive(consumer, 10)[3])
        consumer.redeliver_unacknowledged_messages()
        assert numbers(receive_all(consumer, 6)) == list(range(4, 10))


def test_dead_letter_when_redelivered_too_often_then_moved(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        policy = pulsar.ConsumerDeadLetterPolicy(
            max_redeliver_count=2, dead_letter_topic="dead", initial_subscription_name="keep"
        )
        consumer = client.subscribe(
            "t",
            "s",
            consumer_type=pulsar.ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=50,
            dead_letter_policy=policy,
        )
        publish_numbers(client, "t", 1)
        for _ in range(3):
            consumer.negative_acknowledge(consumer.receive(60_000))
        assert is_quiet(consumer)
        assert client.subscribe("dead", "keep").receive(60_000).data() == b"0"


@pytest.mark.parametrize("batched", [False, True], ids=["unbatched", "batched"])
def test_seek_when_to_ids_and_times_then_continues_there(pulsar_broker: InProcessBroker, batched: bool) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        publish_numbers(client, "t", 50, batched=batched)
        messages = receive(consumer, 50)
        time.sleep(0.01)
        between_ms = time.time_ns() // 1_000_000
        time.sleep(0.01)
        publish_numbers(client, "t", 5, first=50)
        receive(consumer, 5)
        consumer.seek(messages[20].message_id())
        assert numbers(receive(consumer, 1)) == [21]
        consumer.seek(pulsar.MessageId.earliest)
        assert numbers(receive(consumer, 55)) == list(range(55))
        consumer.seek(between_ms)
        assert numbers(receive_all(consumer, 5)) == list(range(50, 55))
        consumer.seek(pulsar.MessageId.latest)
        assert is_quiet(consumer)


def test_unsubscribe_when_done_then_backlog_is_forgotten(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        publish_numbers(client, "t", 5)
        consumer.unsubscribe()
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        assert numbers(receive_all(consumer, 5)) == list(range(5))


def test_reader_when_started_anywhere_then_reads_from_there(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        publish_numbers(client, "t", 10, batched=True)
        reader = client.create_reader("t", pulsar.MessageId.earliest)
        messages = []
        while reader.has_message_available():
            messages.append(reader.read_next(60_000))
        assert numbers(messages) == list(range(10))
        after_six = client.create_reader("t", messages[6].message_id())
        assert int(after_six.read_next(60_000).data()) == 7
        from_six = client.create_reader("t", messages[6].message_id(), start_message_id_inclusive=True)
        assert int(from_six.read_next(60_000).data()) == 6
        latest = client.create_reader("t", pulsar.MessageId.latest)
        assert not latest.has_message_available()
        publish_numbers(client, "t", 1, first=10)
        assert int(latest.read_next(60_000).data()) == 10


def test_reader_when_seeking_then_continues_there(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        publish_numbers(client, "t", 10)
        reader = client.create_reader("t", pulsar.MessageId.latest)
        reader.seek(pulsar.MessageId.earliest)
        assert [int(reader.read_next(60_000).data()) for _ in range(10)] == list(range(10))


def test_table_view_when_keys_repeat_then_shows_the_latest_values(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        publish_numbers(client, "t", 20)
        view = client.create_table_view("t")
        assert len(view) == 8
        assert view.get("k3") == b"19"
        view.close()


def test_pattern_when_topics_match_then_all_are_consumed(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        for name in ("pat-a", "pat-b", "other"):
            publish_numbers(client, name, 2)
        pattern = re.compile("persistent://public/default/pat-.*")
        consumer = client.subscribe(pattern, "s", initial_position=EARLIEST)
        topics = {message.topic_name() for message in receive_all(consumer, 4)}
    assert topics == {"persistent://public/default/pat-a", "persistent://public/default/pat-b"}


def test_several_topics_when_subscribed_together_then_all_are_consumed(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe(["m1", "m2"], "s")
        for name in ("m1", "m2"):
            publish_numbers(client, name, 5)
        assert sorted(numbers(receive_all(consumer, 10))) == sorted([*range(5), *range(5)])


def _receive_now(consumer: pulsar.Consumer, timeout_ms: int = 100) -> pulsar.Message | None:
    try:
        return consumer.receive(timeout_ms)
    except pulsar.Timeout:
        return None
