"""The command line pointed at one cluster, and the stories that must end the same on every cluster."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.model.policies.policy_records import DispatchRate
from tests.support.waiting import until

_KEPT_BY_SUBSCRIPTIONS = "delete_when_no_subscriptions"
RECORD = '{"type":"record","name":"P","fields":[]}'


@dataclass(frozen=True)
class CliCluster:
    """Runs commands against one cluster."""

    web_url: str
    service_url: str

    def run(self, line: str) -> str:
        """Run one administration command that must succeed; its output."""
        code, output, error = self.attempt(line)
        assert code == 0, f"{line}: {error}"
        return output

    def attempt(self, line: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of an administration command, quoted as in a shell."""
        return _invoke(["admin", "--admin-url", self.web_url, *shlex.split(line)])

    def json(self, line: str) -> Any:
        """The output of a command that prints JSON."""
        return json.loads(self.run(line))

    def produce(self, topic: str, *arguments: str) -> str:
        """Standard error of ``produce``, which must succeed."""
        code, _, error = _invoke(["produce", "--url", self.service_url, topic, *arguments])
        assert code == 0, error
        return error

    def consume_raw(self, topic: str, *arguments: str) -> str:
        """Standard output of ``consume``, which must succeed."""
        code, output, error = _invoke(["consume", "--url", self.service_url, topic, *arguments])
        assert code == 0, error
        return output

    def rows(self, command: str, topic: str, *arguments: str) -> list[str]:
        """Lines of standard output of ``consume`` or ``read``, which must succeed."""
        code, output, error = _invoke([command, "--url", self.service_url, topic, *arguments])
        assert code == 0, error
        return output.splitlines()

    def consume(self, topic: str, *arguments: str) -> list[str]:
        """Contents printed by ``consume``, which must succeed."""
        output = self.consume_raw(topic, *arguments)
        rows = [row for row in output.splitlines() if row != "----- got message -----"]
        return [row.partition("key:")[2] for row in rows]


def _invoke(arguments: list[str]) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def topic_story(cluster: CliCluster, namespace: str) -> None:
    """A partitioned topic is created, seen, grown and deleted; a plain one likewise."""
    name = f"persistent://{namespace}/flights"
    cluster.run(f"topics create-partitioned-topic {name} -p 2 -m owner=ops")
    assert cluster.json(f"topics get-partitioned-topic-metadata {name}") == {
        "partitions": 2,
        "deleted": False,
        "properties": {"owner": "ops"},
    }
    assert cluster.run(f"topics list-partitioned-topics {namespace}") == f"{name}\n"
    assert cluster.run(f"topics list {namespace}") == f"{name}-partition-0\n{name}-partition-1\n"
    code, _, error = cluster.attempt(f"topics create-partitioned-topic {name} -p 2")
    assert (code, "HTTP 409" in error) == (1, True)
    cluster.run(f"topics update-partitioned-topic {name} -p 3")
    lookup = cluster.run(f"topics partitioned-lookup {name}").splitlines()
    assert [row.split("    ")[0] for row in lookup] == [f"{name}-partition-{index}" for index in range(3)]
    assert {row.split("    ")[1] for row in lookup} == {cluster.run(f"topics lookup {name}-partition-0").strip()}
    assert cluster.attempt(f"topics update-partitioned-topic {name} -p 1")[0] == 1
    cluster.run(f"topics delete-partitioned-topic {name}")
    assert cluster.run(f"topics list {namespace}") == ""
    cluster.run(f"topics create {namespace}/plain")
    assert cluster.json(f"topics get-partitioned-topic-metadata {namespace}/plain")["partitions"] == 0
    assert cluster.run(f"topics bundle-range {namespace}/plain").startswith("0x")
    cluster.run(f"topics delete {namespace}/plain")
    code, _, error = cluster.attempt(f"topics stats {namespace}/plain")
    assert code == 1
    assert error == f"Error: Topic persistent://{namespace}/plain not found (HTTP 404 Not Found)\n"


def non_persistent_story(cluster: CliCluster, namespace: str) -> None:
    """Topics that are not stored are created, listed apart, looked into and deleted."""
    plain, partitioned = f"non-persistent://{namespace}/plain", f"non-persistent://{namespace}/parted"
    cluster.run(f"topics create {plain}")
    cluster.run(f"topics create-partitioned-topic {partitioned} -p 2")
    assert cluster.run(f"topics list {namespace} -td non-persistent") == f"{plain}\n"
    assert cluster.run(f"topics list {namespace} -td persistent") == ""
    assert cluster.run(f"topics list-partitioned-topics {namespace}") == f"{partitioned}\n"
    assert cluster.run(f"namespaces topics {namespace}") == ""
    assert cluster.run(f"namespaces topics {namespace} -m all") == f"{plain}\n"
    assert cluster.json(f"topics get-partitioned-topic-metadata {partitioned}") == {"partitions": 2, "deleted": False}
    stats = cluster.json(f"topics stats {plain}")
    assert (stats["msgInCounter"], stats["storageSize"], stats["subscriptions"]) == (0, 0, {})
    assert cluster.json(f"topics stats-internal {plain}")["numberOfEntries"] == 0
    assert cluster.json(f"topics partitioned-stats {partitioned}")["metadata"]["partitions"] == 2
    code, _, error = cluster.attempt(f"topics create-subscription {plain} -s s")
    assert (code, "can only be done through client" in error) == (1, True)
    assert cluster.produce(plain, "-m", "lost") == "1 messages successfully produced\n"
    cluster.run(f"topics update-partitioned-topic {partitioned} -p 3")
    cluster.run(f"topics delete-partitioned-topic {partitioned}")
    cluster.run(f"topics delete {plain}")
    assert cluster.run(f"topics list {namespace} -td non-persistent") == ""


def subscription_story(cluster: CliCluster, namespace: str) -> None:
    """Messages are produced, counted, skipped, consumed and consumed again."""
    topic = f"{namespace}/story"
    cluster.run(f"topics create {topic}")
    cluster.run(f"topics create-subscription {topic} -s late -m earliest")
    error = cluster.produce(topic, "-m", "a,b", "-m", "c", "-k", "key", "-p", "x=y")
    assert error == "3 messages successfully produced\n"

    def backlog() -> int:
        return int(cluster.json(f"topics stats {topic} -gpb")["subscriptions"]["late"]["msgBacklog"])

    assert cluster.run(f"topics subscriptions {topic}") == "late\n"
    assert backlog() >= 1
    contents = cluster.consume(topic, "-s", "late", "-n", "3")
    assert contents == [f"[key], properties:[x=y], content:{text}" for text in "abc"]
    assert backlog() == 0
    cluster.run(f"topics reset-cursor {topic} -s late -m earliest")
    assert len(cluster.consume(topic, "-s", "late", "-n", "2", "-t", "Shared")) == 2
    cluster.run(f"topics clear-backlog {topic} -s late")
    assert backlog() == 0
    assert cluster.json(f"topics last-message-id {topic}")["ledgerId"] >= 0
    cluster.run(f"topics unload {topic}")
    cluster.run(f"topics unsubscribe {topic} -s late")
    assert cluster.attempt(f"topics unsubscribe {topic} -s late")[0] == 1
    assert cluster.run(f"topics terminate {topic}").startswith("Topic successfully terminated at ")
    cluster.run(f"topics delete {topic}")


def message_story(cluster: CliCluster, namespace: str) -> None:
    """Messages are looked at where they are, and expire by position and by time."""
    topic = f"{namespace}/looked-at"
    cluster.run(f"topics create {topic} -m owner=ops")
    cluster.run(f"topics create-subscription {topic} -s s -m earliest -p team=a")
    cluster.produce(topic, "-m", "one", "-k", "key", "-p", "x=y", "-db")
    cluster.produce(topic, "-m", "two,three", "-p", "x=z")

    def peeked() -> list[str]:
        return [each["content"] for each in cluster.json(f"topics peek-messages {topic} -s s -n 9 -o json")]

    assert peeked() == peeked() == ["one", "two", "three"]
    first = cluster.run(f"topics peek-messages {topic} -s s")
    assert cluster.run(f"topics examine-messages {topic} -i earliest") == first
    assert cluster.json(f"topics examine-messages {topic} -o json")[0]["content"] == "two"
    start = cluster.json(f"topics get-message-id {topic} -d 2001-01-01T00:00:00Z")
    ledger, entry = start["ledgerId"], start["entryId"]
    by_id = cluster.run(f"topics get-message-by-id {topic} -l {ledger} -e {entry}")
    assert by_id.replace("Redelivery count: 0\n", "") == first
    assert first.startswith(f"Message ID: {ledger}:{entry}\nPublish time: ")
    assert "\nProperties:\nx    y\n" in first
    code, _, error = cluster.attempt(f"topics get-message-by-id {topic} -l 987654321 -e 0")
    assert (code, "HTTP 404" in error) == (1, True)
    cluster.run(f"topics expire-messages {topic} -s s -p {ledger}:{entry}")
    until(lambda: peeked() == ["two", "three"])  # a real broker answers before it has done it
    # It also answers 409 until it has ended the expiry that was seen above.
    until(lambda: cluster.attempt(f"topics expire-messages {topic} -s s -t 1h")[0] == 0)
    cluster.run(f"topics trim-topic {topic}")
    cluster.run(f"topics truncate {topic}")
    assert peeked() == []
    for command in (f"expire-messages {topic} -s s -t 1h", f"expire-messages-all-subscriptions {topic} -t 1h"):
        code, _, error = cluster.attempt(f"topics {command}")
        assert (code, "HTTP 409" in error) == (1, True)
    _properties_story(cluster, topic)


def _properties_story(cluster: CliCluster, topic: str) -> None:
    cluster.run(f"topics update-properties {topic} -p team=b")
    pairs = cluster.run(f"topics get-properties {topic}").splitlines()
    assert sorted(pairs) == ["owner    ops", "team    b"]
    cluster.run(f"topics remove-properties {topic} -k owner")
    assert cluster.run(f"topics get-properties {topic}") == "team    b\n"
    assert cluster.run(f"topics get-subscription-properties {topic} -s s") == '{"team":"a"}\n'
    cluster.run(f"topics update-subscription-properties {topic} -s s -c")
    assert cluster.run(f"topics get-subscription-properties {topic} -s s") == "{}\n"


def compaction_story(cluster: CliCluster, namespace: str) -> None:
    """A topic is compacted and the end awaited; all partitions of one are, and each has a status of its own."""
    topic, partitioned = f"persistent://{namespace}/compacted", f"persistent://{namespace}/compacted-parts"
    cluster.run(f"topics create {topic}")
    assert cluster.run(f"topics compaction-status {topic}").startswith("Compaction has not been run for")
    assert cluster.run(f"topics compact {topic}") == f"Topic compaction requested for {topic}\n"
    assert cluster.run(f"topics compaction-status {topic} -w") == "Compaction was a success\n"
    cluster.run(f"topics create-partitioned-topic {partitioned} -p 2")
    cluster.run(f"topics compact {partitioned}")
    for index in range(2):
        awaited = cluster.run(f"topics compaction-status {partitioned}-partition-{index} -w")
        assert awaited == "Compaction was a success\n"
    for refused in (f"compaction-status {partitioned}", f"compact {topic}-missing"):
        code, _, error = cluster.attempt(f"topics {refused}")
        assert (code, "HTTP 404" in error) == (1, True)


def unload_story(cluster: CliCluster, namespace: str) -> None:
    """Topics are closed with their bundle and with their namespace, and come back; partitions end together."""
    topic = f"persistent://{namespace}/many"
    cluster.run(f"topics create-partitioned-topic {topic} -p 2")
    bundle = cluster.run(f"topics bundle-range {topic}-partition-0").strip()
    cluster.run(f"namespaces unload {namespace} -b {bundle}")
    cluster.run(f"namespaces unload {namespace}")
    code, _, error = cluster.attempt(f"namespaces unload {namespace} -b 0x00000000_0x12345678")
    assert (code, "HTTP 412" in error) == (1, True)
    assert sorted(cluster.json(f"topics partitioned-stats-internal {topic}")["partitions"]) == [
        f"{topic}-partition-0",
        f"{topic}-partition-1",
    ]
    rows = cluster.run(f"topics partitioned-terminate {topic}").splitlines()
    assert [row.split(" successfully terminated at ")[0] for row in sorted(rows)] == [
        f"Topic {topic}-partition-0",
        f"Topic {topic}-partition-1",
    ]
    cluster.run(f"topics delete-partitioned-topic {topic} -f")


def policy_story(cluster: CliCluster, namespace: str) -> None:
    """Each policy is set, read, removed and read again."""
    for name, given, printed in (
        ("retention", "-t 3h -s 10M", {"retentionTimeInMinutes": 180, "retentionSizeInMB": 10}),
        (
            "auto-topic-creation",
            "-e -t partitioned -n 3",
            {
                "allowAutoTopicCreation": True,
                "topicType": "partitioned",
                "defaultNumPartitions": 3,
            },
        ),
        ("auto-subscription-creation", "-e", {"allowAutoSubscriptionCreation": True}),
        ("deduplication", "-e", True),
        ("message-ttl", "-ttl 2m", 120),
        ("subscription-expiration-time", "-t 7", 7),
        ("replicator-dispatch-rate", "-md 5 -bd 6 -dt 2", DispatchRate(5, 6, False, 2).to_json()),
        ("inactive-topic-policies", f"-e -t 1h -m {_KEPT_BY_SUBSCRIPTIONS}", _inactive_topics(3600)),
    ):
        cluster.run(f"namespaces set-{name} {namespace} {given}")
        assert cluster.json(f"namespaces get-{name} {namespace}") == printed
        cluster.run(f"namespaces remove-{name} {namespace}")
        assert cluster.json(f"namespaces get-{name} {namespace}") is None
    _inactive_topic_story(cluster, namespace)
    _topic_limit_story(cluster, namespace)
    applied = cluster.json(f"namespaces get-auto-topic-creation {namespace} --applied")
    assert applied == {"allowAutoTopicCreation": True, "topicType": "non-partitioned"}
    cluster.run(f"namespaces set-schema-compatibility-strategy {namespace} -c BACKWARD")
    assert cluster.run(f"namespaces get-schema-compatibility-strategy {namespace}") == "BACKWARD\n"
    cluster.run(f"namespaces set-is-allow-auto-update-schema {namespace} -d --enable-for-replicator=false")
    assert cluster.run(f"namespaces get-is-allow-auto-update-schema {namespace}") == "false\n"
    policies = cluster.json(f"namespaces policies {namespace}")
    assert policies["schema_compatibility_strategy"] == "BACKWARD"
    assert policies["is_allow_auto_update_schema_with_replicator"] is False
    code, _, error = cluster.attempt(f"namespaces set-clusters {namespace} -c nowhere")
    assert (code, "nowhere" in error, "HTTP 403" in error) == (1, True, True)


def resource_story(cluster: CliCluster, namespace: str) -> None:
    """Properties of the namespace, what waits on a topic, and who serves it."""
    cluster.run(f"namespaces set-properties {namespace} -p team=air,room=7")
    cluster.run(f"namespaces set-property {namespace} -k floor -v 2/3")
    assert cluster.run(f"namespaces get-property {namespace} -k floor") == "2/3\n"
    assert cluster.run(f"namespaces remove-property {namespace} -k floor") == "2/3\n"
    printed = cluster.run(f"namespaces get-properties {namespace}")
    assert sorted(printed.splitlines()) == ["room    7", "team    air"]
    cluster.run(f"namespaces clear-properties {namespace}")
    assert cluster.run(f"namespaces get-properties {namespace}") == ""
    topic = f"{namespace}/waiting"
    cluster.run(f"topics create {topic}")
    cluster.run(f"topics create-subscription {topic} -s s -m earliest")
    cluster.produce(topic, "-m", "one,two,three", "-db")
    found = cluster.json(f"topics analyze-backlog {topic} -s s")
    assert (found["entries"], found["messages"], found["aborted"]) == (3, 3, False)
    first, size = found["firstMessageId"], cluster.json(f"topics get-backlog-size {topic}")
    assert cluster.json(f"topics analyze-backlog {topic} -s s -p {found['lastMessageId']}")["entries"] == 1
    assert 0 < cluster.json(f"topics get-backlog-size {topic} -m {first}") < size
    cluster.run(f"topicPolicies set-replicator-dispatch-rate {topic} -md 5")
    until(lambda: '"dispatchThrottlingRateInMsg" : 5' in cluster.run(f"topics get-replicator-dispatch-rate {topic}"))
    leader = cluster.json("brokers leader-broker")["brokerId"]
    name = next(row for row in cluster.run("clusters list -c").split() if row.endswith("(*)")).removesuffix("(*)")
    bundle = cluster.run(f"topics bundle-range {topic}").strip()
    owned = cluster.run(f"brokers namespaces {name} --url {leader}").splitlines()
    assert f"{namespace}/{bundle}    [broker_assignment=shared is_controlled=false is_active=true]" in owned
    assert cluster.run("brokers version").startswith("5.0.0")
    assert cluster.run("brokers backlog-quota-check") == "ok\n"


def _inactive_topics(seconds: int) -> dict[str, Any]:
    return {
        "inactiveTopicDeleteMode": _KEPT_BY_SUBSCRIPTIONS,
        "maxInactiveDurationSeconds": seconds,
        "deleteWhileInactive": True,
    }


def _inactive_topic_story(cluster: CliCluster, namespace: str) -> None:
    topic, command = f"{namespace}/lonely", "inactive-topic-policies"
    cluster.run(f"namespaces set-{command} {namespace} -e -t 1h -m {_KEPT_BY_SUBSCRIPTIONS}")
    cluster.run(f"topics create {topic}")
    assert cluster.run(f"topics get-{command} {topic}") == "null\n"
    assert cluster.json(f"topics get-{command} {topic} -ap") == _inactive_topics(3600)
    cluster.run(f"topics set-{command} {topic} --enable-delete-while-inactive -t 5h -m {_KEPT_BY_SUBSCRIPTIONS}")
    assert cluster.json(f"topics get-{command} {topic}") == _inactive_topics(18_000)
    cluster.run(f"topics remove-{command} {topic}")
    assert cluster.json(f"topics get-{command} {topic}") is None
    code, _, error = cluster.attempt(f"topics get-{command} {topic}-partition-0")
    assert (code, "HTTP 412" in error) == (1, True)
    cluster.run(f"topics delete {topic}")
    cluster.run(f"namespaces remove-{command} {namespace}")


def _topic_limit_story(cluster: CliCluster, namespace: str) -> None:
    cluster.run(f"namespaces set-max-topics-per-namespace {namespace} -t 2")
    assert cluster.run(f"namespaces get-max-topics-per-namespace {namespace}") == "2\n"
    cluster.run(f"topics create {namespace}/one")
    for line in (f"create-partitioned-topic {namespace}/many -p 2", f"create-partitioned-topic {namespace}/many -p 9"):
        code, _, error = cluster.attempt(f"topics {line}")
        assert (code, "Exceed maximum number of topics in namespace" in error) == (1, True)
    cluster.run(f"topics create {namespace}/two")
    code, _, error = cluster.attempt(f"topics create {namespace}/three")
    assert (code, "Exceed maximum number of topics in namespace" in error) == (1, True)
    for name in ("one", "two"):
        cluster.run(f"topics delete {namespace}/{name}")
    cluster.run(f"namespaces remove-max-topics-per-namespace {namespace}")
    assert cluster.run(f"namespaces get-max-topics-per-namespace {namespace}") == "0\n"


def schema_story(cluster: CliCluster, namespace: str, schema_file: str) -> None:
    """A schema is uploaded, read, and deleted."""
    topic = f"{namespace}/typed"
    cluster.run(f"schemas upload {topic} -f {schema_file}")
    found = cluster.json(f"schemas get {topic}")
    assert found["version"] == 0
    assert found["schemaInfo"]["schema"] == json.loads(RECORD)
    assert cluster.json(f"schemas get {topic} -v 0") == found["schemaInfo"]
    cluster.run(f"schemas delete {topic}")
    code, _, error = cluster.attempt(f"schemas get {topic}")
    assert (code, error) == (1, "Error: Schema not found (HTTP 404 Not Found)\n")


def cluster_story(cluster: CliCluster) -> None:
    """Clusters, tenants and namespaces come and go; the broker says how it is."""
    local = next(row for row in cluster.run("clusters list -c").split() if row.endswith("(*)")).removesuffix("(*)")
    cluster.run("clusters create far --url http://far:8080 --broker-url pulsar://far:6650")
    assert cluster.json("clusters get far")["serviceUrl"] == "http://far:8080"
    cluster.run("clusters delete far")
    cluster.run("tenants create passing -r admin")
    tenant, clusters = cluster.json("tenants get passing"), cluster.run("clusters list").split()
    assert (tenant["adminRoles"], sorted(tenant["allowedClusters"])) == (["admin"], sorted(clusters))
    cluster.run("namespaces create passing/one -b 2")
    assert cluster.run("namespaces list passing") == "passing/one\n"
    assert cluster.run("namespaces get-clusters passing/one") == f"{local}\n"
    code, _, error = cluster.attempt("tenants delete passing")
    assert (code, "HTTP 409" in error) == (1, True)
    cluster.run("namespaces delete passing/one")
    cluster.run("tenants delete passing")
    assert cluster.run("brokers healthcheck") == "ok\n"
    assert len(cluster.run("brokers list").splitlines()) == 1
    # A real broker answers before a change counts.
    cluster.run("brokers update-dynamic-config --config maxTopicsPerNamespace --value 1000")
    until(lambda: "maxTopicsPerNamespace    1000\n" in cluster.run("brokers get-all-dynamic-config"))
    until(lambda: "maxTopicsPerNamespace    1000\n" in cluster.run("brokers get-runtime-config"))
    cluster.run("brokers delete-dynamic-config --config maxTopicsPerNamespace")
    until(lambda: "maxTopicsPerNamespace    0\n" in cluster.run("brokers get-runtime-config"))
    assert cluster.attempt("brokers update-dynamic-config --config nonsense --value 1")[0] == 1


Story = Callable[[CliCluster, str], None]
"""Told of a cluster in a namespace."""

STORIES: tuple[Story, ...] = (
    topic_story,
    subscription_story,
    message_story,
    unload_story,
    compaction_story,
    non_persistent_story,
    policy_story,
    resource_story,
)
"""Those that begin in an empty namespace."""
