"""What a target refuses while the replication job copies, without a JVM: told with its reason and its remedy, and
copied once the target takes it again."""

import json

import pytest

from interpulse.client.outages import remedy_for
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.front_ends.access import settings, token
from tests.spark.test_copying import Copy
from tests.support.cli_cluster import CliCluster
from tests.support.tokens import signed
from tests.support.waiting import until

TOPIC = "persistent://public/default/refused"
PARTITION = f"{TOPIC}-partition-0"
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false", "brokerDeduplicationEnabled": "true"}


@pytest.fixture
def east(tmp_path):
    settings = {"clusterName": "east", "replicationJob": "external", **KEPT}
    with InProcessBroker(tmp_path / "east", settings) as east:
        begin(east)
        yield east


@pytest.fixture
def west(tmp_path):
    with InProcessBroker(tmp_path / "west", {"clusterName": "west", **KEPT}) as west:
        begin(west)
        yield west


def begin(cluster):
    cluster.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(TOPIC), 1))


def publish(cluster, *values, schema=None):
    with (
        Client(cluster.service_url) as client,
        client.create_producer(TOPIC, batching_enabled=False, schema=schema) as producer,
    ):
        for value in values:
            producer.send(value)


def begun(east, west, state):
    """A query that takes up again what is held: its list of topics lies beside what is held."""
    state.mkdir()
    listed = state / "topics.json"
    listed.write_text(json.dumps({"topics": [PARTITION], "held": []}))
    return Copy(east, west, state, topicsFile=str(listed))


def arrived(cluster):
    with Client(cluster.service_url) as client, client.create_reader(PARTITION) as reader:
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).content)
    return found


def held(copy):
    """What the status says of the one topic-partition; None when it is not held."""
    found = copy.files.held()
    return found[PARTITION].reason if found else None


def full_disk(west):
    fault = west.faults.disk_full()
    return fault.end


def full_backlog(west):
    cli = CliCluster(west.web_url, west.service_url)
    cli.run(f"topics create-subscription {TOPIC} -s slow")
    cli.run("namespaces set-backlog-quota public/default -l 1 -p producer_exception")
    publish(west, b"own")
    until(lambda: "quota" in refusal(west))
    return lambda: cli.run("namespaces remove-backlog-quota public/default")


def refusal(west):
    """Why a producer is refused at the moment."""
    try:
        publish(west)
    except Exception as error:  # noqa: BLE001 - any
        return str(error)
    return ""


def small_messages(west):
    cli = CliCluster(west.web_url, west.service_url)
    cli.run(f"topics set-max-message-size {TOPIC} -m 1")
    return lambda: cli.run(f"topics remove-max-message-size {TOPIC}")


def terminated(west):
    CliCluster(west.web_url, west.service_url).run(f"topics terminate {PARTITION}")


@pytest.mark.parametrize(
    ("refuse", "reason", "remedy"),
    [
        (full_disk, "no room left", "free disk space on the broker"),
        (full_backlog, "backlog quota exceeded", "consume or clear the backlog"),
        (small_messages, "Exceed maximum message size", "raise the limit for the topic"),
        (terminated, "already terminated", "the topic is terminated"),
    ],
)
def test_refusal_is_told_with_its_remedy_and_the_entries_come_when_it_ends(
    east, west, tmp_path, refuse, reason, remedy
):
    publish(east, b"0", b"1", b"2")
    copy = begun(east, west, tmp_path / "state")
    end = refuse(west)
    copy.drain()
    assert reason in held(copy)
    assert remedy_for(held(copy)).startswith(remedy)
    if end is not None:
        end()
        until(lambda: (copy.drain(), held(copy) is None)[1])
        assert [value for value in arrived(west) if value != b"own"] == [b"0", b"1", b"2"]


def test_schema_that_the_target_refuses_is_told_with_its_remedy(east, west, tmp_path):
    publish(east, b"text", schema=SchemaInfo(SchemaType.STRING))
    publish(west, b"\0\0\0\1", schema=SchemaInfo(SchemaType.INT32))
    copy = begun(east, west, tmp_path / "state")
    copy.options["target.schemaSourceUrl"] = east.service_url
    copy.drain()
    assert "exists schema type INT32, new schema type STRING" in held(copy)
    assert remedy_for(held(copy)).startswith("allow the schema on the topic")


def test_token_that_has_expired_is_told_and_one_that_is_renewed_is_taken(east, tmp_path):
    (tmp_path / "guarded").mkdir()
    secured = settings(tmp_path / "guarded")
    with InProcessBroker(tmp_path / "data", {**secured, **KEPT, "clusterName": "west"}) as west:
        begin(west)
        publish(east, b"0", b"1")
        path = tmp_path / "token"
        path.write_text(signed(sub="admin", exp=1))
        copy = begun(east, west, tmp_path / "state")
        copy.options |= {"target.authTokenFile": str(path), "target.outageTimeoutMs": "1000"}
        copy.drain()
        assert "expired" in held(copy).lower() or "authenticat" in held(copy).lower(), held(copy)
        assert remedy_for(held(copy)).startswith("renew the credentials")
        path.write_text(token("admin"))
        until(lambda: (copy.drain(), held(copy) is None)[1])
