"""What may be expected when replication meets auto-creation, schemas and growth (PIP-370, PIP-433).

Each scenario is one test with three pairs of clusters: two of ours, ours to a real Pulsar, and a real Pulsar to ours;
in the last one its own replicator sends, and its provisioning calls our admin API. A broker of ours has no job beside
it here: its turns are taken one by one, and what a task of Spark would write is written without Spark.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import RealPulsarFactory
from tests.interop.real_pulsar import Address
from tests.interop.replicated_pairs import Cluster, Pair, replicate_as_job, until
from tests.support.pipeline_turns import is_ready

pytestmark = [pytest.mark.interop]

REAL = [pytest.mark.slow, pytest.mark.timeout(1200)]
PAIRS = [
    pytest.param("ours-ours"),
    pytest.param("ours-real", marks=REAL),
    pytest.param("real-ours", marks=REAL),
]
"""Source first."""
AVRO = {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]}


@contextmanager
def our_cluster(directory: Path, name: str, **settings: str) -> Iterator[Cluster]:
    options = {"clusterName": f"{name}-{uuid.uuid4().hex[:6]}", "replicationJob": "external", **settings}
    with InProcessBroker(directory, options) as broker:
        yield Cluster(broker.web_url, broker.service_url, options["clusterName"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with our_cluster(tmp_path_factory.mktemp("ours"), "ours") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with our_cluster(tmp_path_factory.mktemp("other"), "other") as cluster:
        yield cluster


def cluster_named(request: pytest.FixtureRequest, word: str, fixture: str) -> Cluster:
    """The cluster that one word of the parameter names; ``fixture`` makes it if it is ours."""
    if word == "ours":
        cluster: Cluster = request.getfixturevalue(fixture)
        return cluster
    address: Address = request.getfixturevalue("real_pulsar")
    return Cluster(address.web_url, address.service_url, "standalone", is_ours=False)


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Pair:
    """The two clusters that the parameter names."""
    source, target = request.param.split("-")
    return Pair(cluster_named(request, source, "ours"), cluster_named(request, target, "other")).begin()


@pytest.fixture
def careful_pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """The same, but the source creates nothing on other clusters. A real Pulsar reads that only when it starts."""
    source, target = request.param.split("-")
    settings = {"createTopicToRemoteClusterForReplication": "false"}
    with ExitStack() as stack:
        if source == "ours":
            cluster = stack.enter_context(our_cluster(tmp_path / "careful", "careful", **settings))
        else:
            start: RealPulsarFactory = request.getfixturevalue("start_real_pulsar")
            started = start("careful", settings)
            cluster = Cluster(started.web_url, started.service_url, "careful", is_ours=False)
        yield Pair(cluster, cluster_named(request, target, "other")).begin()


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


def arrives(pair: Pair, log: str, directory: Path, *, create: bool = True) -> None:
    """What is published from now on is replicated: by turns of our job, or by a real Pulsar's own replicator."""
    value = uuid.uuid4().hex.encode()
    if pair.source.is_ours:
        publish_with_official_client(pair.source, log, value)
        until(lambda: {is_ready(each) for each in replicate_as_job(pair, directory, create=create)}, {True})
    else:
        until(lambda: is_followed(pair, log), True)
        publish_with_official_client(pair.source, log, value)
    until_received(pair.target, log, value)


def is_followed(pair: Pair, log: str) -> bool:
    """Whether the source keeps for the target what is published there; asking also loads the topic."""
    code, output, _ = pair.source.attempt(f"topics stats {log}")
    return code == 0 and "replicationBacklog" in json.loads(output)["replication"].get(pair.target.name, {})


def publish_with_official_client(cluster: Cluster, topic: str, value: bytes) -> None:
    """With the official client."""
    client = pulsar.Client(cluster.service_url)
    try:
        client.create_producer(topic).send(value)
    finally:
        client.close()


def until_received(cluster: Cluster, topic: str, value: bytes) -> None:
    """With the official client, which fails if nothing comes any more, once the topic is there."""
    until(lambda: cluster.attempt(f"topics stats {topic}")[0], 0)
    client = pulsar.Client(cluster.service_url)
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        while reader.read_next(60_000).data() != value:
            continue
    finally:
        client.close()


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_a_partitioned_topic_exists_and_the_remote_would_auto_create_a_plain_one(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("flights")
    pair.source.run(f"topics create-partitioned-topic {topic} -p 3")
    for side in (pair.source, pair.target):
        side.run(f"namespaces set-auto-topic-creation {pair.namespace} -e -t non-partitioned")
    pair.enable()
    if pair.source.is_ours:
        until(lambda: pair.status(topic)["provisioned"], "flights created with 3 partitions: it was absent there")
        assert pair.status(topic)["state"] == "PROVISIONING"
    arrives(pair, f"{topic}-partition-1", tmp_path / "job")
    assert pair.target.partitions(topic) == 3
    assert sorted(pair.target.topics(pair.namespace)) == [f"flights-partition-{index}" for index in range(3)]


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_b_new_schema_while_auto_update_is_off_on_both_sides(pair: Pair, tmp_path: Path) -> None:
    """The switch for replicators is off at first, and then on."""
    topic, switch = pair.topic("typed"), f"namespaces set-is-allow-auto-update-schema {pair.namespace} --disable"
    pair.source.run(f"topics create {topic}")
    definition = tmp_path / "schema.json"
    definition.write_text(json.dumps({"type": "AVRO", "schema": json.dumps(AVRO), "properties": {}}))
    pair.source.run(f"schemas upload {topic} -f {definition}")  # operators may, whatever the switches say
    for side in (pair.source, pair.target):
        side.run(f"{switch} --enable-for-replicator=false")
    pair.enable()
    until(lambda: is_followed(pair, topic), True)
    publish_typed(pair.source, topic)
    if pair.source.is_ours:
        replicate_as_job(pair, tmp_path / "job")
        held = pair.status(topic)
        assert (held["state"], "schema auto updating is disabled" in held["reason"].lower()) == ("HELD", True), held
        assert held["remedy"] == f"let replicators register schemas there: {switch} --enable-for-replicator"
    else:
        until(lambda: pair.target.attempt(f"topics stats {topic}")[0], 0)
    assert pair.target.attempt(f"schemas get {topic}")[0] == 1
    assert pair.target.json(f"topics stats {topic}")["msgInCounter"] == 0
    pair.target.run(f"{switch} --enable-for-replicator")
    if pair.source.is_ours:
        until(lambda: {is_ready(each) for each in replicate_as_job(pair, tmp_path / "job")}, {True})
    else:
        pair.target.run(f"topics unload {topic}")  # its replicator tries again only when it comes back
    until_received(pair.target, topic, b"\x02")  # the number 1 in Avro
    assert pair.target.json(f"schemas get {topic}")["schemaInfo"]["type"] == "AVRO"


def publish_typed(cluster: Cluster, topic: str) -> None:
    client = pulsar.Client(cluster.service_url)
    try:
        schema = pulsar.schema.AvroSchema(None, AVRO)
        client.create_producer(topic, schema=schema).send({"a": 1})
    finally:
        client.close()


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
@pytest.mark.parametrize("remote", [None, 2, 5], ids=["absent", "equal", "different-count"])
def test_c_topic_level_replication(pair: Pair, remote: int | None, tmp_path: Path) -> None:
    topic = pair.topic("own")
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    if remote:
        pair.target.run(f"topics create-partitioned-topic {topic} -p {remote}")
    code, _, error = pair.source.attempt(f"topics set-replication-clusters {topic} -c {pair.both}")
    if remote == 5:
        assert (code, "with different partitions" in error, "HTTP 412" in error) == (1, True, True), error
        assert pair.source.json(f"topics get-replication-clusters {topic}") is None
        assert not is_followed(pair, f"{topic}-partition-1")
    else:
        assert code == 0, error
        assert pair.target.partitions(topic) == 2, "it is there when the command returns"
        arrives(pair, f"{topic}-partition-1", tmp_path / "job")
        assert sorted(pair.source.json(f"topics get-replication-clusters {topic}")) == sorted_both(pair)
    assert pair.target.partitions(topic) == (remote or 2)
    assert pair.source.clusters_of(pair.namespace) == [pair.source.name]
    pair.source.run(f"topics remove-replication-clusters {topic}")
    until(lambda: is_followed(pair, f"{topic}-partition-1"), False)


def sorted_both(pair: Pair) -> list[str]:
    return sorted((pair.source.name, pair.target.name))


@pytest.mark.parametrize("careful_pair", PAIRS, indirect=True)
def test_d_create_topic_to_remote_cluster_for_replication_is_false(careful_pair: Pair, tmp_path: Path) -> None:
    pair, topic = careful_pair, careful_pair.topic("flights")
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    pair.enable()
    until(lambda: is_followed(pair, f"{topic}-partition-0"), True)
    publish_with_official_client(pair.source, f"{topic}-partition-0", b"waits here")
    if pair.source.is_ours:
        until(lambda: pair.status(topic)["state"], "HELD")
        held = pair.status(topic)
        assert "createTopicToRemoteClusterForReplication is false" in held["reason"]
        assert held["remedy"] == "create it there as a partitioned topic of 2 partitions"
        assert held["nextRetryAt"] > held["since"] > 0
        status = pair.source.json(f"topics stats {topic}-partition-0")["replication"][pair.target.name]["status"]
        assert (status["state"], status["reason"]) == ("HELD", held["reason"])
        assert {each["state"] for each in replicate_as_job(pair, tmp_path / "job", create=False)} == {"HELD"}
    else:
        log = tmp_path / "careful" / "broker.log"
        asked_for = "Please create a partitioned topic with 2 partitions on the remote cluster"
        until(lambda: asked_for in log.read_text(), True)
    assert pair.target.topics(pair.namespace) == []
    pair.target.run(f"topics create-partitioned-topic {topic} -p 2")
    arrives(pair, f"{topic}-partition-0", tmp_path / "job", create=False)
    until_received(pair.target, f"{topic}-partition-0", b"waits here")
    pair.source.run(f"topics update-partitioned-topic {topic} -p 4")
    assert pair.target.partitions(topic) == 4, "growing what is there is no creation"


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_e_create_partitioned_topic_in_a_replicated_namespace(pair: Pair, tmp_path: Path) -> None:
    pair.enable()
    topic, plain = pair.topic("flights"), pair.topic("plain")
    pair.source.run(f"topics create-partitioned-topic {topic} -p 4")
    until(lambda: pair.target.partitions(topic), 4)
    until(lambda: len(pair.target.topics(pair.namespace)), 4)
    arrives(pair, f"{topic}-partition-3", tmp_path / "job")
    pair.source.run(f"topics create {plain}")
    arrives(pair, plain, tmp_path / "job")
    assert pair.target.partitions(plain) == 0
    pair.source.run(f"topics delete {plain} -f")
    assert pair.target.partitions(plain) == 0, "deletion is never copied"


DIFFERENCES = {
    "partitions": "/p': local cluster has 2 partitions, remote cluster '{target}' has 3 partitions",
    "change-events": "/__change_events': local cluster has 2 partitions, remote cluster '{target}' has 3 partitions",
    "namespace-auto-creation": "topicType: local=non-partitioned, remote=partitioned",
    "broker-auto-creation": "topicType: local=non-partitioned, remote=partitioned",
}
"""What a broker of ours answers to each."""


ONE_BY_ONE = {each: [each] for each in DIFFERENCES}
AT_ONCE = {"all": [*DIFFERENCES]}
DIFFERING = [
    pytest.param(clusters, differing, id=f"{clusters}-{name}", marks=REAL if "real" in clusters else [])
    for clusters, cases in (
        ("ours-ours", ONE_BY_ONE | AT_ONCE),
        ("ours-real", AT_ONCE),  # a broker of ours names each of them
        ("real-ours", ONE_BY_ONE),  # a real one says only that something differs
    )
    for name, differing in cases.items()
]


@pytest.mark.parametrize(("pair", "differing"), DIFFERING, indirect=["pair"])
def test_f_set_clusters_of_a_namespace_that_differs(pair: Pair, differing: Sequence[str]) -> None:
    with ExitStack() as differences:
        for each in differing:
            differences.enter_context(difference(pair, each))
        code, _, error = pair.source.attempt(f"namespaces set-clusters {pair.namespace} -c {pair.both}")
        told = {DIFFERENCES[each].format(target=pair.target.name) in error for each in differing}
        assert (code, "HTTP 409" in error) == (1, True), error
        if pair.source.is_ours:
            assert told == {True}, error
        else:
            assert "mismatch" in error.lower()
        assert pair.source.clusters_of(pair.namespace) == [pair.source.name]
    pair.enable()
    assert pair.source.clusters_of(pair.namespace) == sorted_both(pair)


@contextmanager
def difference(pair: Pair, what: str) -> Iterator[None]:
    """The two sides differ in one thing; afterwards they are equal again."""
    namespace = pair.namespace
    if what == "broker-auto-creation":
        with broker_setting(pair.target, "allowAutoTopicCreationType", "partitioned"):
            yield
    elif what == "namespace-auto-creation":
        pair.target.run(f"namespaces set-auto-topic-creation {namespace} -e -t partitioned -n 3")
        yield
        pair.target.run(f"namespaces remove-auto-topic-creation {namespace}")
    else:
        topic = f"{namespace}/{'__change_events' if what == 'change-events' else 'p'}"
        pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
        pair.target.run(f"topics create-partitioned-topic {topic} -p 3")
        yield
        pair.source.run(f"topics update-partitioned-topic {topic} -p 3 -ulo")


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_g_preview_adjust_and_preview_again_is_empty(pair: Pair, tmp_path: Path) -> None:
    namespace, command = pair.namespace, f"namespaces set-clusters {pair.namespace} -c {pair.both}"
    pair.source.run(f"topics create-partitioned-topic {namespace}/p -p 4")
    pair.target.run(f"topics create-partitioned-topic {namespace}/p -p 2")
    pair.source.run(f"namespaces set-auto-topic-creation {namespace} -d")
    pair.source.run(f"namespaces set-schema-compatibility-strategy {namespace} -c BACKWARD")
    code, output, _ = pair.source.attempt(f"{command} --preview -o json")
    changes = ["AUTO_TOPIC_CREATION", "SCHEMA_COMPATIBILITY_STRATEGY", "TOPIC_PARTITIONS"]
    assert (code, kinds(output)) == (1, changes)
    pair.source.run(f"{command} --adjust-namespace-level-policies-automatically")
    assert pair.source.clusters_of(namespace) == sorted_both(pair)
    assert pair.target.partitions(pair.topic("p")) == 4
    code, output, _ = pair.source.attempt(f"{command} --preview -o json")
    assert (code, kinds(output)) == (0, [])
    arrives(pair, pair.topic("p-partition-3"), tmp_path / "job")
    pair.source.run(f"namespaces set-clusters {namespace} -c {pair.source.name}")
    code, output, _ = pair.source.attempt(f"{command} --preview -o json")  # now the two are compared again
    assert (code, kinds(output)) == (0, [])


def kinds(plan: str) -> list[str]:
    clusters = json.loads(plan)["clusters"]
    return [each["kind"] for cluster in clusters for each in (*cluster["changes"], *cluster["conflicts"])]


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
@pytest.mark.parametrize("remote", ["smaller", "larger", "absent", "down"])
def test_h_growing_a_replicated_topic(pair: Pair, remote: str, tmp_path: Path) -> None:
    """A broker of ours asks the remote first. A real one has grown its own side already when the remote refuses."""
    topic = pair.topic("flights")
    there = {"smaller": 1, "larger": 8}.get(remote)
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    if there:
        pair.target.run(f"topics create-partitioned-topic {topic} -p {there}")
    if remote == "down":
        pair = pair.with_target_down()
    pair.enable("--skipCompareTopicPartitions")
    if remote == "absent" and pair.source.is_ours:
        until(lambda: pair.target.partitions(topic), 2)
        pair.target.run(f"topics delete-partitioned-topic {topic} -f")
    if remote == "absent":
        assert pair.target.partitions(topic) is None
    code, _, error = pair.source.attempt(f"topics update-partitioned-topic {topic} -p 4")
    if remote in ("smaller", "absent"):
        if pair.source.is_ours or remote == "smaller":  # a real one may refuse what is absent, and creates it later
            assert (code, pair.target.partitions(topic)) == (0, 4), error
        arrives(pair, f"{topic}-partition-3", tmp_path / "job")
        assert (pair.source.partitions(topic), pair.target.partitions(topic)) == (4, 4)
        return
    assert pair.source.partitions(topic) == (2 if pair.source.is_ours else 4)
    if remote == "larger":
        counted = "8 partitions" if pair.source.is_ours else "the current partitions 8"
        assert (code, counted in error, "HTTP 422" in error) == (1, True, True), error
        assert pair.target.partitions(topic) == 8
    else:
        told = f"Cluster {pair.target.name} at {pair.target.web_url}" if pair.source.is_ours else "HTTP 500"
        assert (code, told in error) == (1, True), error
    if pair.source.is_ours:
        until(lambda: pair.status(topic)["state"], "HELD" if remote == "larger" else "DISCONNECTED")
