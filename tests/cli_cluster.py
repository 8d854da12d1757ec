"""The command line pointed at one cluster, and the stories that must end the same on every cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner

from interpulse.cli.main import main

__all__ = [
    "RECORD",
    "CliCluster",
    "cluster_story",
    "policy_story",
    "schema_story",
    "subscription_story",
    "topic_story",
]

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
        """Exit code, standard output and standard error of an administration command."""
        return _invoke(["admin", "--admin-url", self.web_url, *line.split()])

    def json(self, line: str) -> Any:
        """The output of a command that prints JSON."""
        return json.loads(self.run(line))

    def produce(self, topic: str, *arguments: str) -> str:
        """Standard error of ``produce``, which must succeed."""
        code, _, error = _invoke(["produce", "--url", self.service_url, topic, *arguments])
        assert code == 0, error
        return error

    def consume(self, topic: str, *arguments: str) -> list[str]:
        """Contents printed by ``consume``, which must succeed."""
        code, output, error = _invoke(["consume", "--url", self.service_url, topic, *arguments])
        assert code == 0, error
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
    ):
        cluster.run(f"namespaces set-{name} {namespace} {given}")
        assert cluster.json(f"namespaces get-{name} {namespace}") == printed
        cluster.run(f"namespaces remove-{name} {namespace}")
        assert cluster.json(f"namespaces get-{name} {namespace}") is None
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
    clusters = cluster.run("clusters list").split()
    assert cluster.json("tenants get passing") == {"adminRoles": ["admin"], "allowedClusters": clusters}
    cluster.run("namespaces create passing/one -b 2")
    assert cluster.run("namespaces list passing") == "passing/one\n"
    assert cluster.run("namespaces get-clusters passing/one") == f"{local}\n"
    code, _, error = cluster.attempt("tenants delete passing")
    assert (code, "HTTP 409" in error) == (1, True)
    cluster.run("namespaces delete passing/one")
    cluster.run("tenants delete passing")
    assert cluster.run("brokers healthcheck") == "ok\n"
    assert len(cluster.run("brokers list").splitlines()) == 1
    cluster.run("brokers update-dynamic-config --config maxTopicsPerNamespace --value 1000")
    assert "maxTopicsPerNamespace    1000\n" in cluster.run("brokers get-all-dynamic-config")
    assert "maxTopicsPerNamespace    1000\n" in cluster.run("brokers get-runtime-config")
    cluster.run("brokers delete-dynamic-config --config maxTopicsPerNamespace")
    assert cluster.attempt("brokers update-dynamic-config --config nonsense --value 1")[0] == 1
