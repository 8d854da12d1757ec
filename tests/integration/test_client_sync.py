"""The blocking client against our broker."""

import re
import subprocess
import sys
import threading

import pytest

from interpulse.model.errors import AlreadyClosed, InvalidTopicName, OperationTimeout, TopicNotFound
from interpulse.model.ids import EARLIEST
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.sync import Client
from interpulse.testing.broker import InProcessBroker

TOPIC = "persistent://public/default/t"


def test_messages_when_sent_and_received_without_an_event_loop(pulsar_broker: InProcessBroker) -> None:
    with Client(pulsar_broker.service_url) as client:
        with pytest.raises(TopicNotFound):
            client.get_partitions_for_topic(TOPIC, create=False)
        with client.subscribe(TOPIC, "s") as consumer, client.create_producer(TOPIC) as producer:
            message_id = producer.send("hello", key="k")
            futures = [producer.send_async(b"%d" % number) for number in range(10)]
            producer.flush()
            first = consumer.receive(60_000)
            assert (first.content, first.key, first.id) == (b"hello", "k", message_id)
            rest = [consumer.receive(60_000) for _ in range(10)]
            assert [message.id for message in rest] == [future.result() for future in futures]
            consumer.acknowledge(first)
            consumer.acknowledge_cumulative(rest[-1])
            with pytest.raises(OperationTimeout):
                consumer.receive(50)
            consumer.seek(first.id)
            assert consumer.receive(60_000).content == b"hello"
            consumer.unsubscribe()
        with client.create_reader(TOPIC) as reader:
            assert reader.has_message_available()
            assert [reader.read_next(60_000).content for _ in range(2)] == [b"hello", b"0"]
        assert client.get_partitions_for_topic(TOPIC, create=False) == [TOPIC]
        assert client.get_topics_of_namespace("public/default") == [TOPIC]
        found = client.lookup_batch([TOPIC, "a/b"])
        assert (str(found[TOPIC]), type(found["a/b"])) == (pulsar_broker.service_url, InvalidTopicName)
        assert client.get_schema(TOPIC) is None
        version = client.register_schema(TOPIC, SchemaInfo(SchemaType.STRING, b"", {}, "String"))
        assert version == (0).to_bytes(8, "big")


def test_consumers_when_they_use_what_is_new_then_without_an_event_loop(pulsar_broker: InProcessBroker) -> None:
    with Client(pulsar_broker.service_url) as client, client.create_producer(TOPIC) as producer:
        pattern, retrying = re.compile("public/default/t"), {"subscription_type": "shared", "retry_enabled": True}
        with client.subscribe(pattern, "p") as matching, client.subscribe("u", "r", **retrying) as consumer:
            assert matching.topics == [TOPIC]
            consumer.add_topics([TOPIC])
            producer.send("hello")
            (message,) = consumer.receive_batch(messages_max=1, timeout_ms=60_000)
            consumer.reconsume_later(message, 0, {"why": "later"})
            again = consumer.receive(60_000)
            assert (again.content, again.properties["why"]) == (b"hello", "later")
            consumer.update_partitions()
            consumer.remove_topics([TOPIC])
            assert consumer.topics == ["persistent://public/default/u"]
            assert matching.receive(60_000).content == b"hello"
        with client.create_reader([TOPIC, "u"]) as reader:
            assert reader.topics == [TOPIC, "persistent://public/default/u"]
            assert reader.read_next(60_000).content == b"hello"
            reader.seek(lambda topic: message.id, included=False)
            assert not reader.has_message_available()


def test_table_view_when_a_topic_changes_then_follows(pulsar_broker: InProcessBroker) -> None:
    heard: list[tuple[str, bytes | None]] = []
    with Client(pulsar_broker.service_url) as client, client.create_producer(TOPIC) as producer:
        producer.send(b"1", key="a")
        with client.create_table_view(TOPIC) as view:
            assert view.topic == TOPIC
            end = view.for_each_and_listen(lambda key, value: heard.append((key, value)))
            producer.send(b"2", key="b")
            producer.send(None, key="a")
            view.refresh()
            assert (len(view), list(view), list(view.keys())) == (1, ["b"], ["b"])
            assert (dict(view.items()), list(view.values())) == ({"b": b"2"}, [b"2"])
            assert (view["b"], view.get("a", b"none"), "a" in view) == (b"2", b"none", False)
            end()
            producer.send(b"3", key="c")
            view.refresh()
            seen: list[str] = []
            view.for_each(lambda key, value: seen.append(key))
            assert seen == ["b", "c"]
        assert heard == [("a", b"1"), ("b", b"2"), ("a", None)]
        with pytest.raises(AlreadyClosed):
            view.get("b")


def test_client_when_closed_then_its_thread_ends_and_calls_are_refused(pulsar_broker: InProcessBroker) -> None:
    others = set(threading.enumerate())

    def own() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread not in others]

    client = Client(pulsar_broker.service_url)
    assert "interpulse" not in own()
    client.create_producer(TOPIC)
    assert "interpulse" in own()
    client.close()
    client.close()
    assert "interpulse" not in own()
    with pytest.raises(AlreadyClosed):
        client.create_producer(TOPIC)


def test_import_starts_no_thread_no_loop_and_loads_no_http_library() -> None:
    check = (
        "import threading, sys, asyncio, interpulse.sync\n"
        "assert threading.active_count() == 1\n"
        "assert 'aiohttp' not in sys.modules and 'pyspark' not in sys.modules\n"
        "assert asyncio._get_running_loop() is None\n"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_arguments_when_of_another_type_then_are_refused_by_name(pulsar_broker: InProcessBroker) -> None:
    with (
        Client(pulsar_broker.service_url) as client,
        client.subscribe(TOPIC, "s") as consumer,
        client.create_producer(TOPIC) as producer,
    ):
        producer.send("hello")
        message = consumer.receive(60_000)
        for call, said in (
            (lambda: consumer.acknowledge(message.id), "message=MessageId.* expected Message"),  # type: ignore[arg-type]
            (lambda: consumer.seek("earliest"), "target='earliest' is of type str"),  # type: ignore[arg-type]
            (lambda: producer.send({"a": 1}), "content is of type dict"),  # type: ignore[arg-type]
            (lambda: producer.send(b"", key=5), "key=5 must be str or bytes"),  # type: ignore[arg-type]
            (lambda: producer.send(b"", properties={"a": 1}), "must have names and values of type str"),
            (lambda: producer.send(b"", replication_clusters="west"), "replication_clusters='west'"),
            (lambda: client.create_producer(None), "topic=None"),  # type: ignore[arg-type]
            (lambda: client.subscribe(TOPIC, 5), "subscription=5"),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError, match=said):
                call()
        consumer.seek(EARLIEST)
        assert consumer.receive(60_000).content == b"hello"
        consumer.add_topics("other")
        assert consumer.topics == [TOPIC, TOPIC.replace("/t", "/other")]
        assert list(client.lookup_batch("other")) == ["other"]
