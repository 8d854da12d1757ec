"""The command line of administration against our broker; tests/interop tells the same stories to a real one."""

import json
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.scenarios.cli_replication import replication_story
from tests.support.cli_cluster import RECORD, STORIES, CliCluster, Story, cluster_story, schema_story


@pytest.fixture
def cluster(pulsar_broker: InProcessBroker) -> CliCluster:
    return CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)


@pytest.mark.parametrize("story", [*STORIES, replication_story], ids=lambda story: story.__name__)
def test_story_when_told_then_commands_agree(cluster: CliCluster, story: Story) -> None:
    story(cluster, "public/default")


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
