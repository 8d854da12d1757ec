"""The command line of administration against our broker; tests/interop tells the same stories to a real one."""

import json
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.cli_cluster import (
    RECORD,
    CliCluster,
    cluster_story,
    compaction_story,
    message_story,
    non_persistent_story,
    policy_story,
    schema_story,
    subscription_story,
    topic_story,
    unload_story,
)


@pytest.fixture
def cluster(pulsar_broker: InProcessBroker) -> CliCluster:
    return CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)


def test_topics_when_created_grown_and_deleted_then_commands_agree(cluster: CliCluster) -> None:
    topic_story(cluster, "public/default")


def test_subscriptions_when_moved_then_backlog_follows(cluster: CliCluster) -> None:
    subscription_story(cluster, "public/default")


def test_messages_when_looked_at_then_stay_until_they_expire(cluster: CliCluster) -> None:
    message_story(cluster, "public/default")


def test_topics_when_unloaded_then_come_back(cluster: CliCluster) -> None:
    unload_story(cluster, "public/default")


def test_compaction_when_asked_for_then_is_awaited(cluster: CliCluster) -> None:
    compaction_story(cluster, "public/default")


def test_topics_that_are_not_stored_when_created_and_deleted_then_commands_agree(cluster: CliCluster) -> None:
    non_persistent_story(cluster, "public/default")


def test_policies_when_set_then_are_read_and_removed(cluster: CliCluster) -> None:
    policy_story(cluster, "public/default")


def test_schemas_when_uploaded_then_are_read_and_deleted(cluster: CliCluster, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"type": "AVRO", "schema": RECORD, "properties": {}}))
    schema_story(cluster, "public/default", str(file))


def test_clusters_tenants_and_brokers_when_administered_then_commands_agree(cluster: CliCluster) -> None:
    cluster_story(cluster)


def test_auto_creation_when_applied_is_wanted_then_broker_answers_it(cluster: CliCluster) -> None:
    cluster.run("brokers update-dynamic-config --config allowAutoTopicCreation --value false")
    applied = cluster.json("namespaces get-auto-topic-creation public/default -ap")
    assert applied["allowAutoTopicCreation"] is False
