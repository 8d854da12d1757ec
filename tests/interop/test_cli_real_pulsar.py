"""Our command line against a real Pulsar: the stories that our own broker passes, and the printed forms."""

import json
import uuid
from pathlib import Path

import pytest

from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address
from tests.scenarios.cli_replication import replication_story
from tests.support.cli_cluster import RECORD, STORIES, CliCluster, Story, cluster_story, schema_story

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


@pytest.mark.parametrize("story", [*STORIES, replication_story], ids=lambda story: story.__name__)
def test_story_when_told_then_commands_agree(cluster: CliCluster, namespace: str, story: Story) -> None:
    story(cluster, namespace)


def test_schemas_when_uploaded_then_are_read_and_deleted(cluster: CliCluster, namespace: str, tmp_path: Path) -> None:
    schema_story(cluster, namespace, str(schema_file(tmp_path)))


def test_clusters_tenants_and_brokers_when_administered_then_commands_agree(cluster: CliCluster) -> None:
    cluster_story(cluster)


def test_topics_when_listed_by_properties_then_a_real_broker_without_a_plug_in_lists_all(
    cluster: CliCluster, namespace: str
) -> None:
    """It takes the question (PIP-452); our broker answers it, see `test_rest_topic_info`."""
    cluster.run(f"topics create {namespace}/a -m env=prod")
    cluster.run(f"topics create {namespace}/b -m env=test")
    listed = cluster.run(f"topics list {namespace} -p env=prod").split()
    assert listed == [f"persistent://{namespace}/{name}" for name in "ab"]


def test_output_when_compared_with_pulsars_own_then_is_equal(
    cluster: CliCluster, namespace: str, java_check: JavaCheck, tmp_path: Path
) -> None:
    name = next(row for row in cluster.run("clusters list -c").split() if row.endswith("(*)")).removesuffix("(*)")
    topic = f"persistent://{namespace}/typed"
    cluster.run(f"topics create {topic}")
    cluster.run(f"topics create-subscription {topic} -s s")
    cluster.run(f"schemas upload {topic} -f {schema_file(tmp_path)}")
    _fill_talk(cluster, f"{namespace}/talk")
    output = java_check("PrintedForms.java", cluster.web_url, name, namespace)
    forms = dict(part.split("\n", 1) for part in f"\n{output}\n".split("\n# ")[1:])
    assert len(forms) == 19
    assert {command: layout(cluster.run(command)) for command in forms} == {
        command: layout(form) for command, form in forms.items()
    }


def _fill_talk(cluster: CliCluster, topic: str) -> None:
    """The messages that PrintedForms.java looks at: one by itself, and a batch."""
    cluster.run(f"topics create {topic} -m owner=ops")
    cluster.run(f"topics create-subscription {topic} -s s -m earliest -p team=a")
    cluster.produce(topic, "-m", "longer than a row of the dump", "-k", "key", "-p", "x=y,b=c", "-db")
    cluster.produce(topic, "-m", "two,three,ünf", "-p", "k=v")


def layout(printed: str) -> list[str]:
    """The lines in an order of our own: Java gives the fields of some objects in another order in every process.

    Java's client makes properties of a batch's size and count, which its producer never set; we do not.
    """
    lines = (line.rstrip(",") for line in printed.rstrip("\n").split("\n"))
    return sorted(
        line for line in lines if not line.startswith(("X-Pulsar-batch-size ", "X-Pulsar-num-batch-message "))
    )


def schema_file(directory: Path) -> Path:
    file = directory / "schema.json"
    file.write_text(json.dumps({"type": "JSON", "schema": RECORD, "properties": {"a": "b"}}))
    return file
