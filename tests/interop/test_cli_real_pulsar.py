"""Our command line against a real Pulsar: the stories that our own broker passes, and the printed forms."""

import json
import uuid
from pathlib import Path

import pytest

from tests.cli_cluster import (
    RECORD,
    CliCluster,
    cluster_story,
    policy_story,
    schema_story,
    subscription_story,
    topic_story,
)
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture
def cluster(real_pulsar: Address) -> CliCluster:
    return CliCluster(real_pulsar.web_url, real_pulsar.service_url)


@pytest.fixture
def namespace(cluster: CliCluster) -> str:
    """A namespace of the test's own; it stays behind, a real broker does not delete namespaces by force."""
    name = f"public/cli-{uuid.uuid4()}"
    cluster.run(f"namespaces create {name}")
    return name


def test_topics_when_created_grown_and_deleted_then_commands_agree(cluster: CliCluster, namespace: str) -> None:
    topic_story(cluster, namespace)


def test_subscriptions_when_moved_then_backlog_follows(cluster: CliCluster, namespace: str) -> None:
    subscription_story(cluster, namespace)


def test_policies_when_set_then_are_read_and_removed(cluster: CliCluster, namespace: str) -> None:
    policy_story(cluster, namespace)


def test_schemas_when_uploaded_then_are_read_and_deleted(cluster: CliCluster, namespace: str, tmp_path: Path) -> None:
    schema_story(cluster, namespace, str(schema_file(tmp_path)))


def test_clusters_tenants_and_brokers_when_administered_then_commands_agree(cluster: CliCluster) -> None:
    cluster_story(cluster)


def test_output_when_compared_with_pulsars_own_then_is_equal(
    cluster: CliCluster, namespace: str, java_check: JavaCheck, tmp_path: Path
) -> None:
    name = next(row for row in cluster.run("clusters list -c").split() if row.endswith("(*)")).removesuffix("(*)")
    topic = f"persistent://{namespace}/typed"
    cluster.run(f"topics create {topic}")
    cluster.run(f"topics create-subscription {topic} -s s")
    cluster.run(f"schemas upload {topic} -f {schema_file(tmp_path)}")
    output = java_check("PrintedForms.java", cluster.web_url, name, namespace)
    forms = dict(part.split("\n", 1) for part in f"\n{output}\n".split("\n# ")[1:])
    assert len(forms) == 12
    assert {command: layout(cluster.run(command)) for command in forms} == {
        command: layout(form) for command, form in forms.items()
    }


def layout(printed: str) -> list[str]:
    """The lines in an order of our own: Java gives the fields of some objects in another order in every process."""
    return sorted(line.rstrip(",") for line in printed.rstrip("\n").split("\n"))


def schema_file(directory: Path) -> Path:
    file = directory / "schema.json"
    file.write_text(json.dumps({"type": "JSON", "schema": RECORD, "properties": {"a": "b"}}))
    return file
