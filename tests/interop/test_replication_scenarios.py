"""What may be expected when replication meets auto-creation, schemas and growth (PIP-370, PIP-433).

Each scenario is one test, played between two clusters of ours, from ours to a real Pulsar, and, where the receiving
side has a part in it, from a real Pulsar to ours: then its own replicator sends, and its provisioning calls our admin
API.
"""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.interop.replicated_pairs import Cluster, Pair, provision_as_job, until

pytestmark = [pytest.mark.interop]

REAL = [pytest.mark.slow, pytest.mark.timeout(300)]
SENDING = [pytest.param("ours-ours"), pytest.param("ours-real", marks=REAL)]
"""From a broker of ours."""
RECEIVING = [pytest.param("real-ours", marks=REAL)]
"""From a real Pulsar to ours: what a sender decides by itself is looked at from our side alone."""
ALL = [*SENDING, *RECEIVING]
AVRO = {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]}


@contextmanager
def our_cluster(directory: Path, name: str, **settings: str) -> Iterator[Cluster]:
    options = {"clusterName": name, "replicationJob": "external", **settings}
    with InProcessBroker(directory, options) as broker:
        yield Cluster(broker.web_url, broker.service_url, name)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with our_cluster(tmp_path_factory.mktemp("ours"), f"ours-{uuid.uuid4().hex[:6]}") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with our_cluster(tmp_path_factory.mktemp("other"), f"other-{uuid.uuid4().hex[:6]}") as cluster:
        yield cluster


@pytest.fixture
def pair(request: pytest.FixtureRequest, ours: Cluster) -> Pair:
    """The two clusters that the parameter names, source first."""
    if request.param == "ours-ours":
        return Pair(ours, request.getfixturevalue("other")).begin()
    address: Address = request.getfixturevalue("real_pulsar")
    real = Cluster(address.web_url, address.service_url, "standalone", is_ours=False)
    return (Pair(ours, real) if request.param == "ours-real" else Pair(real, ours)).begin()


@contextmanager
def broker_setting(cluster: Cluster, key: str, value: str) -> Iterator[None]:
    """Another value for a while: a real Pulsar answers before it counts, and other tests use that Pulsar afterwards."""

    def counts() -> str:
        lines = cluster.run("brokers get-runtime-config").splitlines()
        return next(line for line in lines if line.startswith(f"{key} "))

    before = counts()
    cluster.run(f"brokers update-dynamic-config --config {key} --value {value}")
    try:
        until(lambda: counts() != before, True)
        yield
    finally:
        cluster.run(f"brokers delete-dynamic-config --config {key}")
        until(counts, before)


def publish(cluster: Cluster, topic: str, value: bytes = b"hello") -> None:
    """With the official client; loads the topic, so that a real Pulsar begins to replicate it."""
    client = pulsar.Client(cluster.service_url)
    try:
        client.create_producer(topic).send(value)
    finally:
        client.close()


def received(cluster: Cluster, topic: str) -> bytes:
    client = pulsar.Client(cluster.service_url)
    try:
        return bytes(client.create_reader(topic, pulsar.MessageId.earliest).read_next(20_000).data())
    finally:
        client.close()


@pytest.mark.parametrize("pair", ALL, indirect=True)
def test_a_partitioned_topic_where_the_remote_would_auto_create_a_plain_one(pair: Pair) -> None:
    topic = pair.topic("flights")
    pair.source.run(f"topics create-partitioned-topic {topic} -p 3")
    pair.target.run(f"namespaces set-auto-topic-creation {pair.namespace} -e -t non-partitioned")
    pair.source.run(f"namespaces set-auto-topic-creation {pair.namespace} -e -t non-partitioned")
    publish(pair.source, f"{topic}-partition-1")
    pair.enable()
    until(lambda: pair.target.partitions(topic), 3)
    assert sorted(pair.target.topics(pair.namespace)) == [f"flights-partition-{index}" for index in range(3)]
    if pair.source.is_ours:
        until(lambda: pair.status(topic)["provisioned"], "flights created with 3 partitions: it was absent there")
        assert pair.status(topic)["state"] == "PROVISIONING"
    else:
        publish(pair.source, f"{topic}-partition-1", b"later")  # a real Pulsar keeps what comes from now on
        assert received(pair.target, f"{topic}-partition-1") == b"later"


@pytest.mark.parametrize("pair", ALL, indirect=True)
def test_b_new_schema_while_auto_update_is_off_on_both_sides(pair: Pair, tmp_path: Path) -> None:
    topic, switch = pair.topic("typed"), f"namespaces set-is-allow-auto-update-schema {pair.namespace} --disable"
    pair.source.run(f"topics create {topic}")
    definition = tmp_path / "schema.json"
    definition.write_text(json.dumps({"type": "AVRO", "schema": json.dumps(AVRO), "properties": {}}))
    pair.source.run(f"schemas upload {topic} -f {definition}")  # operators may, whatever the switches say
    for side in (pair.source, pair.target):
        side.run(f"{switch} --enable-for-replicator=false")
    pair.enable()
    if pair.source.is_ours:
        (held,) = provision_as_job(pair, tmp_path / "job", topic)
        assert (held["state"], "schema auto updating is disabled" in held["reason"].lower()) == ("HELD", True), held
        assert "set-is-allow-auto-update-schema" in held["remedy"]
    else:
        publish_typed(pair.source, topic)
        until(lambda: pair.target.attempt(f"topics stats {topic}")[0], 0)
    assert pair.target.attempt(f"schemas get {topic}")[0] == 1
    pair.target.run(f"{switch} --enable-for-replicator=true")
    if pair.source.is_ours:
        (record,) = provision_as_job(pair, tmp_path / "job", topic)
        assert record["state"] == "PROVISIONING", record
    else:
        pair.target.run(f"topics unload {topic}")  # its replicator tries again only when it comes back
    until(lambda: pair.target.attempt(f"schemas get {topic}")[0], 0)
    assert pair.target.json(f"schemas get {topic}")["schemaInfo"]["type"] == "AVRO"


def publish_typed(cluster: Cluster, topic: str) -> None:
    client = pulsar.Client(cluster.service_url)
    try:
        schema = pulsar.schema.AvroSchema(None, AVRO)
        client.create_producer(topic, schema=schema).send({"a": 1})
    finally:
        client.close()


@pytest.mark.parametrize("pair", ALL, indirect=True)
@pytest.mark.parametrize("remote", [None, 2, 5], ids=["absent", "equal", "different"])
def test_c_topic_level_replication(pair: Pair, remote: int | None) -> None:
    topic = pair.topic("own")
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    if remote:
        pair.target.run(f"topics create-partitioned-topic {topic} -p {remote}")
    code, _, error = pair.source.attempt(f"topics set-replication-clusters {topic} -c {pair.both}")
    if remote == 5:
        assert (code, "with different partitions" in error, "HTTP 412" in error) == (1, True, True), error
        assert pair.source.json(f"topics get-replication-clusters {topic}") is None
    else:
        assert code == 0, error
        until(lambda: sorted(pair.source.json(f"topics get-replication-clusters {topic}") or []), sorted_both(pair))
    assert pair.target.partitions(topic) == (remote or 2)
    assert pair.source.clusters_of(pair.namespace) == [pair.source.name]
    if pair.source.is_ours:
        stats = pair.source.json(f"topics stats {topic}-partition-1")
        assert list(stats["replication"]) == ([] if remote == 5 else [pair.target.name])
        pair.source.run(f"topics remove-replication-clusters {topic}")
        assert pair.source.json(f"topics stats {topic}-partition-1")["replication"] == {}


def sorted_both(pair: Pair) -> list[str]:
    return sorted((pair.source.name, pair.target.name))


@pytest.mark.parametrize("pair", SENDING, indirect=True)
def test_d_creation_on_remote_clusters_is_switched_off(pair: Pair, tmp_path: Path) -> None:
    """Nothing of it is seen by who receives, so there is no variant from a real Pulsar: its setting, which it reads
    only when it starts, leaves one question to us that creates nothing, and the tables of the doors ask that one.
    """
    settings = {"createTopicToRemoteClusterForReplication": "false"}
    with our_cluster(tmp_path, f"careful-{uuid.uuid4().hex[:6]}", **settings) as source:
        careful = Pair(source, pair.target).begin()
        topic, plain = careful.topic("flights"), careful.topic("plain")
        source.run(f"topics create-partitioned-topic {topic} -p 2")
        source.run(f"topics create {plain}")
        careful.enable()
        until(lambda: careful.status(topic)["state"], "HELD")
        held = careful.status(topic)
        assert "createTopicToRemoteClusterForReplication is false" in held["reason"]
        assert held["remedy"] == "create it there as a partitioned topic of 2 partitions"
        assert held["nextRetryAt"] > held["since"] > 0
        status = source.json(f"topics stats {topic}-partition-0")["replication"][careful.target.name]["status"]
        assert (status["state"], status["reason"]) == ("HELD", held["reason"])
        assert careful.target.topics(careful.namespace) == []
        careful.target.run(f"topics create-partitioned-topic {topic} -p 2")
        until(lambda: careful.status(topic)["state"], "PROVISIONING")
        until(lambda: careful.status(plain)["state"], "HELD")
        code, _, error = source.attempt(f"topics update-partitioned-topic {careful.topic('flights')} -p 4")
        assert code == 0, error
        assert careful.target.partitions(topic) == 4, "growing what is there is no creation"


@pytest.mark.parametrize("pair", ALL, indirect=True)
def test_e_create_partitioned_topic_in_a_replicated_namespace(pair: Pair) -> None:
    pair.enable()
    pair.source.run(f"topics create-partitioned-topic {pair.topic('flights')} -p 4")
    until(lambda: pair.target.partitions(pair.topic("flights")), 4)
    until(lambda: len(pair.target.topics(pair.namespace)), 4)
    if pair.source.is_ours:
        pair.source.run(f"topics create {pair.topic('plain')}")
        until(lambda: pair.target.partitions(pair.topic("plain")), 0)
        pair.source.run(f"topics delete {pair.topic('plain')}")
        assert pair.target.partitions(pair.topic("plain")) == 0, "deletion is never copied"


@pytest.mark.parametrize("pair", ALL, indirect=True)
def test_f_set_clusters_of_namespaces_that_differ(pair: Pair) -> None:
    namespace, command = pair.namespace, f"namespaces set-clusters {pair.namespace} -c {pair.both}"
    for name in ("p", "__change_events"):
        pair.source.run(f"topics create-partitioned-topic {namespace}/{name} -p 2")
        pair.target.run(f"topics create-partitioned-topic {namespace}/{name} -p 3")
    pair.target.run(f"namespaces set-auto-topic-creation {namespace} -e -t partitioned -n 3")
    code, _, error = pair.source.attempt(command)
    assert (code, "HTTP 409" in error) == (1, True), error
    if pair.source.is_ours:
        expected = [f"{pair.topic(name)}: local=2, {pair.target.name}=3" for name in ("p", "__change_events")]
        expected.append("topicType: local=non-partitioned, remote=partitioned")
        assert [words for words in expected if words not in error] == []
    assert pair.source.clusters_of(namespace) == [pair.source.name]
    for name in ("p", "__change_events"):
        pair.source.run(f"topics update-partitioned-topic {namespace}/{name} -p 3 -ulo")
    code, _, error = pair.source.attempt(command)
    assert (code, "auto-topic creation policy mismatch" in error.lower()) == (1, True), error
    pair.target.run(f"namespaces remove-auto-topic-creation {namespace}")
    with broker_setting(pair.target, "allowAutoTopicCreationType", "partitioned"):
        code, _, error = pair.source.attempt(command)
        assert (code, "topicType" in error) == (1, True), error
    pair.enable()
    assert pair.source.clusters_of(namespace) == sorted_both(pair)


@pytest.mark.parametrize("pair", ALL, indirect=True)
def test_g_preview_adjust_and_preview_again_is_empty(pair: Pair) -> None:
    namespace, command = pair.namespace, f"namespaces set-clusters {pair.namespace} -c {pair.both}"
    pair.source.run(f"topics create-partitioned-topic {namespace}/p -p 4")
    pair.target.run(f"topics create-partitioned-topic {namespace}/p -p 2")
    pair.source.run(f"namespaces set-auto-topic-creation {namespace} -d")
    pair.source.run(f"namespaces set-schema-compatibility-strategy {namespace} -c BACKWARD")
    code, output, _ = pair.source.attempt(f"{command} --preview -o json")
    assert (code, kinds(output)) == (
        1,
        ["AUTO_TOPIC_CREATION", "SCHEMA_COMPATIBILITY_STRATEGY", "TOPIC_PARTITIONS"],
    )
    pair.source.run(f"{command} --adjust-namespace-level-policies-automatically")
    assert pair.source.clusters_of(namespace) == sorted_both(pair)
    assert pair.target.partitions(pair.topic("p")) == 4
    pair.source.run(f"namespaces set-clusters {namespace} -c {pair.source.name}")
    code, output, _ = pair.source.attempt(f"{command} --preview -o json")
    assert (code, kinds(output)) == (0, [])


def kinds(plan: str) -> list[str]:
    (cluster,) = json.loads(plan)["clusters"]
    return [each["kind"] for each in cluster["changes"]]


@pytest.mark.parametrize("pair", SENDING, indirect=True)
def test_h_growing_a_replicated_topic(pair: Pair) -> None:
    def grow(name: str, count: int) -> tuple[int, str]:
        code, _, error = pair.source.attempt(f"topics update-partitioned-topic {pair.topic(name)} -p {count}")
        return code, error

    def counts(name: str) -> tuple[int | None, int | None]:
        return pair.source.partitions(pair.topic(name)), pair.target.partitions(pair.topic(name))

    for name, remote in (("smaller", 2), ("larger", 8)):
        pair.source.run(f"topics create-partitioned-topic {pair.topic(name)} -p 2")
        pair.target.run(f"topics create-partitioned-topic {pair.topic(name)} -p {remote}")
    pair.source.run(f"namespaces set-clusters {pair.namespace} -c {pair.both} --skipCompareTopicPartitions")
    assert (grow("smaller", 4)[0], counts("smaller")) == (0, (4, 4))
    code, error = grow("larger", 4)
    assert (code, f"8 partitions on cluster {pair.target.name}" in error, "HTTP 422" in error) == (1, True, True), error
    assert counts("larger") == (2, 8)
    until(lambda: pair.status(pair.topic("larger"))["state"], "HELD")
    pair.source.run(f"topics create-partitioned-topic {pair.topic('absent')} -p 2")
    until(lambda: counts("absent"), (2, 2))
    pair.target.run(f"topics delete-partitioned-topic {pair.topic('absent')} -f")
    assert (grow("absent", 3)[0], counts("absent")) == (0, (3, 3))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}"
    pair.with_target_at(gone)
    code, error = grow("smaller", 6)
    pair.source.know(pair.target)
    assert (code, f"Cluster {pair.target.name} at {gone}" in error, "HTTP 503" in error) == (1, True, True), error
    assert counts("smaller") == (4, 4)


@pytest.mark.parametrize("pair", RECEIVING, indirect=True)
def test_h_a_sender_that_grows_its_topic_grows_ours_and_never_shrinks_it(pair: Pair) -> None:
    """An absent topic and a cluster that is down are matters of the sender alone: nothing of it reaches us."""
    for name, here in (("smaller", 2), ("larger", 8)):
        pair.source.run(f"topics create-partitioned-topic {pair.topic(name)} -p 2")
        pair.target.run(f"topics create-partitioned-topic {pair.topic(name)} -p {here}")
    pair.source.run(f"namespaces set-clusters {pair.namespace} -c {pair.both} --skipCompareTopicPartitions")
    pair.source.run(f"topics update-partitioned-topic {pair.topic('smaller')} -p 4")
    assert pair.target.partitions(pair.topic("smaller")) == 4
    assert pair.source.attempt(f"topics update-partitioned-topic {pair.topic('larger')} -p 4")[0] == 1
    assert pair.target.partitions(pair.topic("larger")) == 8
