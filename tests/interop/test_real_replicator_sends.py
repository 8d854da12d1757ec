"""A real Pulsar whose own replicator sends to us, while nothing appears here by being asked for."""

from __future__ import annotations

import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.client.messages import Message
from interpulse.model.errors import OperationTimeout
from interpulse.sync import Client, Consumer, Producer
from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.interop.replicated_pairs import Cluster, Pair, backlog, replicating, until
from tests.spark.replication_job import stored_entries
from tests.support.numbered_messages import publish_to

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]

SETTINGS = {"allowAutoTopicCreation": "false", "brokerDeleteInactiveTopicsEnabled": "false"}
FIRST = {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "b", "type": "int", "default": 7}]}


@pytest.fixture
def ours(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """With the replication job that the parameter names, none unless it does."""
    name, job = f"ours-{uuid.uuid4().hex[:6]}", getattr(request, "param", "external")
    options = {"clusterName": name, "replicationJob": job, "replicationJobDriverMemory": "600m", **SETTINGS}
    with InProcessBroker(tmp_path / "ours", options) as broker:
        yield Cluster(broker.web_url, broker.service_url, name)


@pytest.fixture
def pair(real_pulsar: Address, ours: Cluster) -> Pair:
    return Pair(Cluster(real_pulsar.web_url, real_pulsar.service_url, "standalone", is_ours=False), ours).begin()


def messages(cluster: Cluster, *topics: str) -> list[Message]:
    found = []
    with Client(cluster.service_url) as client:
        for topic in topics:
            with client.create_reader(topic) as reader:
                while reader.has_message_available():
                    found.append(reader.read_next(60_000))
    return found


def partitions(topic: str, count: int) -> list[str]:
    return [f"{topic}-partition-{index}" for index in range(count)]


def connect(pair: Pair, topic: str, count: int) -> None:
    """Load the partitions on the real one, and wait for their replicators."""
    with Client(pair.source.service_url) as client:
        client.create_producer(topic).close()
    for name in partitions(topic, count):
        until(replicating(pair, name), True)


def test_partitions_arrive_with_all_their_messages_grow_with_the_sender_and_outlive_it(pair: Pair) -> None:
    topic = pair.topic("flights")
    pair.enable()
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    connect(pair, topic, 2)
    stats = pair.target.json(f"topics stats {topic}-partition-1")
    assert (stats["publishers"], list(stats["replication"])) == ([], ["standalone"])
    assert stats["replication"]["standalone"]["inboundConnection"].startswith("/127.0.0.1:")
    publish_to(pair.source.service_url, topic, range(500), text="real {}", batching_enabled=False)
    pair.source.run(f"topics update-partitioned-topic {topic} -p 4")
    assert pair.target.partitions(topic) == 4
    connect(pair, topic, 4)
    publish_to(pair.source.service_url, topic, range(500, 1000), text="real {}", batching_enabled=False)
    until(lambda: stored_entries(pair.target, *partitions(topic, 4)), 1000)
    arrived = messages(pair.target, *partitions(topic, 4))
    assert Counter(each.content for each in arrived) == Counter(f"real {value}".encode() for value in range(1000))
    assert {each.replicated_from for each in arrived} == {"standalone"}
    for name in partitions(topic, 4):
        assert [each.content for each in messages(pair.target, name)] == [
            each.content for each in messages(pair.source, name)
        ]
    pair.source.run(f"topics delete-partitioned-topic {topic} -f")
    assert pair.target.partitions(topic) == 4, "deletion is never copied"
    assert len(messages(pair.target, *partitions(topic, 4))) == 1000


def test_schemas_arrive_before_the_messages_that_need_them(pair: Pair) -> None:
    topic = pair.topic("typed")
    pair.target.run(f"namespaces set-is-allow-auto-update-schema {pair.namespace} --disable")
    pair.source.run(f"topics create {topic}")
    pair.enable()
    client = pulsar.Client(pair.source.service_url)
    try:
        producer = client.create_producer(topic, schema=pulsar.schema.AvroSchema(None, FIRST))
        until(replicating(pair, topic), True)
        producer.send({"a": 1})
        # A replicator that meets a new schema reads again from what it has a receipt for, and sends that twice.
        until(lambda: (stored_entries(pair.target, topic), backlog(pair, topic)), (1, 0))
        client.create_producer(topic, schema=pulsar.schema.AvroSchema(None, SECOND)).send({"a": 2, "b": 3})
    finally:
        client.close()
    until(lambda: stored_entries(pair.target, topic), 2)
    stored = [pair.target.json(f"schemas get {topic} -v {version}")["schema"]["fields"] for version in range(2)]
    assert stored == [FIRST["fields"], SECOND["fields"]]
    assert [each.schema_version for each in messages(pair.target, topic)] == [bytes(8), bytes(7) + b"\x01"]


def test_topics_that_are_not_stored_appear_with_their_replicator_where_nothing_else_may_create_them(pair: Pair) -> None:
    """They are not provisioned: a replicator may ask for them although asking creates nothing."""
    topic = f"non-persistent://{pair.namespace}/fleeting"
    pair.enable("--skipCompareTopicPartitions")
    with Client(pair.source.service_url) as real, Client(pair.target.service_url) as ours:
        producer = real.create_producer(topic)
        until(lambda: pair.target.run(f"topics list {pair.namespace} -td non-persistent").split(), [topic])
        consumer = ours.subscribe(topic, "s")
        until(lambda: brings(producer, consumer), True)
    code, _, error = pair.target.attempt(f"topics create-subscription persistent://{pair.namespace}/other -s s")
    assert (code, "HTTP 412" in error) == (1, True), "others create nothing"


def brings(producer: Producer, consumer: Consumer) -> bool:
    """Whether a message arrives; of what is not stored any may be lost."""
    producer.send(b"hello")
    try:
        message = consumer.receive(1000)
    except OperationTimeout:
        return False
    return (message.content, message.replicated_from) == (b"hello", "standalone")


@pytest.mark.spark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("ours", ["embedded"], indirect=True)
def test_messages_do_not_circle_between_our_job_and_its_replicator(pair: Pair) -> None:
    topic = pair.topic("flights")
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    pair.enable()
    connect(pair, topic, 2)
    pair.target.run(f"namespaces set-clusters {pair.namespace} -c {pair.both} --skipCompareTopicPartitions")
    publish_to(pair.source.service_url, topic, range(300), text="real {}", batching_enabled=False)
    publish_to(pair.target.service_url, topic, range(300), text="ours {}", batching_enabled=False)
    names = partitions(topic, 2)

    def await_entries(cluster: Cluster, count: int) -> None:
        until(lambda: stored_entries(cluster, *names), count, seconds=240)

    for cluster in (pair.source, pair.target):
        await_entries(cluster, 600)
    publish_to(pair.source.service_url, topic, range(300, 310), text="real {}", batching_enabled=False)
    publish_to(pair.target.service_url, topic, range(300, 310), text="ours {}", batching_enabled=False)
    expected = Counter(f"{origin} {value}".encode() for origin in ("real", "ours") for value in range(310))
    for cluster in (pair.source, pair.target):
        await_entries(cluster, 620)
    for cluster, other in ((pair.source, pair.target), (pair.target, pair.source)):
        code, _, error = cluster.attempt(f"topics delete-partitioned-topic {topic}")
        assert (code, f"is replicated on clusters [{other.name}]" in error, "HTTP 422" in error) == (1, True, True)
        found = messages(cluster, *names)
        assert Counter(each.content for each in found) == expected
        at_home = "real" if cluster is pair.source else "ours"
        origins = {((each.content or b"").split()[0].decode(), each.replicated_from) for each in found}
        assert origins == {(at_home, None), ("ours" if at_home == "real" else "real", other.name)}


def markers(cluster: Cluster, topic: str) -> Counter[tuple[int, str]]:
    """The types of stored markers, each with the cluster that it came from, "" for those written here."""
    found: Counter[tuple[int, str]] = Counter()
    path = topic.replace("://", "/")
    for number in range(1, stored_entries(cluster, topic) + 1):
        query = f"initialPosition=earliest&messagePosition={number}"
        with urllib.request.urlopen(f"{cluster.web_url}/admin/v2/{path}/examinemessage?{query}") as answer:
            kind = answer.headers["X-Pulsar-marker-type"]
            if kind is not None:
                found[int(kind), answer.headers["X-Pulsar-replicated-from"] or ""] += 1
    return found


def rests(*clusters: Cluster, topic: str) -> bool:
    """Whether no log grows within five seconds."""
    before = [stored_entries(cluster, topic) for cluster in clusters]
    time.sleep(5)
    return [stored_entries(cluster, topic) for cluster in clusters] == before


@pytest.mark.spark
@pytest.mark.parametrize("ours", ["embedded"], indirect=True)
def test_marked_subscription_moves_here_with_the_one_there_and_markers_end(pair: Pair) -> None:
    topic = pair.topic("flights")
    pair.source.run(f"topics create {topic}")
    pair.enable()
    with Client(pair.source.service_url) as client:
        client.create_producer(topic).close()
        until(replicating(pair, topic), True)
        pair.target.run(f"namespaces set-clusters {pair.namespace} -c {pair.both} --skipCompareTopicPartitions")
        consumer = client.subscribe(topic, "s", subscription_type="shared", replicate_subscription_state=True)
        producer = client.create_producer(topic, batching_enabled=False)

        def subscription() -> dict[str, Any]:
            stats = pair.target.json(f"topics stats {topic}")
            return stats["subscriptions"].get("s", {"msgBacklog": -1, "isReplicated": False})

        published = 0
        deadline = time.monotonic() + 240
        while not subscription()["isReplicated"] or published < 30:
            assert time.monotonic() < deadline, markers(pair.target, topic)
            producer.send(b"%d" % published)
            consumer.acknowledge(consumer.receive(60_000))
            published += 1
            time.sleep(0.2)
        producer.close()
        until(lambda: rests(pair.source, pair.target, topic=topic), True)
    ours, real = pair.target.name, pair.source.name
    at_home, here = markers(pair.source, topic), markers(pair.target, topic)
    assert at_home[12, ""] >= 1
    assert here[11, ""] == at_home[11, ours] <= here[10, real]
    assert here[13, real] >= 1
    assert set(here) == {(10, real), (11, ""), (13, real)}
    assert subscription()["msgBacklog"] < published
