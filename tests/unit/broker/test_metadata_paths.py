"""Metadata keys are Pulsar's own paths."""

from __future__ import annotations

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import NamespaceName, TopicName

DEMO = NamespaceName("demo", "a")
PARTITION = TopicName.parse("persistent://demo/a/t x-partition-3")


def test_keys() -> None:
    assert keys.cluster("east") == "/admin/clusters/east"
    assert keys.tenant("demo") == "/admin/policies/demo"
    assert keys.namespace_policies(DEMO) == "/admin/policies/demo/a"
    assert keys.partitioned_topics(DEMO, "persistent") == "/admin/partitioned-topics/demo/a/persistent"
    assert keys.partitioned_topic(PARTITION.base) == "/admin/partitioned-topics/demo/a/persistent/t+x"
    assert keys.topic_records(DEMO, "persistent") == "/managed-ledgers/demo/a/persistent"
    assert keys.namespace_records(DEMO) == "/managed-ledgers/demo/a"
    assert keys.topic_record(PARTITION) == "/managed-ledgers/demo/a/persistent/t+x-partition-3"
    assert keys.schema(PARTITION) == "/schemas/demo/a/t+x"
    assert keys.topic_policies(PARTITION) == "/admin/topic-policies/demo/a/persistent/t+x"
    assert keys.topic_of_topic_policies(keys.topic_policies(PARTITION)) == PARTITION.base
    assert keys.all_topic_policies(DEMO, "persistent") == "/admin/topic-policies/demo/a/persistent"
    assert keys.replication_status(DEMO) == "/replication-status/demo/a"
    assert keys.CONFIGURATION == "/admin/configuration"


def test_namespace_of_policies_key() -> None:
    assert keys.namespace_of_policies_key("/admin/policies/demo/a") == DEMO
    for key in ("/admin/policies/demo", "/admin/policies/", "/admin/policies"):
        assert keys.namespace_of_policies_key(key) is None


def test_topic_of_a_key_above_topics_then_none() -> None:
    """Nodes of a tree, and the prefix of a watch."""
    for above in ("", "/", "/demo", "/demo/a", "/demo/a/persistent", "/demo/a/persistent/"):
        assert keys.topic_of_record(f"/managed-ledgers{above}") is None
        assert keys.topic_of_partitioned_topic(f"/admin/partitioned-topics{above}") is None
        assert keys.topic_of_topic_policies(f"/admin/topic-policies{above}") is None
