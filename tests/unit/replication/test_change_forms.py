"""Changes as requests and commands, and the sentences with which enabling replication is refused (PIP-433)."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.adjustments import Difference, DifferenceKind, Severity
from interpulse.model.changes import (
    AdminChange,
    CreateMissedPartitions,
    CreateNamespace,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    DeleteTopic,
    SetNamespacePolicy,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.change_forms import (
    advice_of,
    command_of,
    hold_texts,
    remedy_of,
    request_of,
    sentence_of,
)
from interpulse.rules.inventory import as_override
from interpulse.rules.provisioning import Provisioning, ProvisioningStep
from tests.support.namespace_snapshots import NamespaceSnapshot, differences

PLAIN = AutoTopicCreation(True, NON_PARTITIONED)
X, Y = TopicName.parse("x"), TopicName.parse("y")


def snapshot(policy: AutoTopicCreation = PLAIN, **partitions: int) -> NamespaceSnapshot:
    return NamespaceSnapshot(policy, {TopicName.parse(name): count for name, count in partitions.items()})


@pytest.mark.parametrize(
    ("local", "remote"),
    [
        pytest.param(snapshot(x=2), snapshot(x=2), id="equal-counts"),
        pytest.param(snapshot(x=0), snapshot(x=0), id="both-plain"),
        pytest.param(snapshot(x=2), snapshot(), id="absent-remotely"),
        pytest.param(snapshot(), snapshot(x=2), id="only-remote"),
        pytest.param(snapshot(AutoTopicCreation(True)), snapshot(PLAIN), id="no-type-is-non-partitioned"),
        pytest.param(
            snapshot(AutoTopicCreation(True, NON_PARTITIONED, 1)),
            snapshot(AutoTopicCreation(True, NON_PARTITIONED, 9)),
            id="count-without-meaning",
        ),
        pytest.param(
            snapshot(AutoTopicCreation(False, PARTITIONED, 1)),
            snapshot(AutoTopicCreation(False, NON_PARTITIONED)),
            id="neither-creates",
        ),
    ],
)
def test_no_difference(local: NamespaceSnapshot, remote: NamespaceSnapshot) -> None:
    assert differences("west", local, remote) == []


@pytest.mark.parametrize(
    ("local", "remote", "difference"),
    [
        pytest.param(
            snapshot(x=2),
            snapshot(x=3),
            "Partition count mismatch for topic 'persistent://public/default/x': local cluster has 2 partitions, "
            "remote cluster 'west' has 3 partitions",
            id="counts",
        ),
        pytest.param(
            snapshot(__change_events=2),
            snapshot(__change_events=3),
            "Partition count mismatch for __change_events system topic 'persistent://public/default/__change_events': "
            "local cluster has 2 partitions, remote cluster 'west' has 3 partitions",
            id="counts-of-the-system-topic-of-policies",
        ),
        pytest.param(
            snapshot(x=0),
            snapshot(x=3),
            "Topic type mismatch for topic 'persistent://public/default/x': local cluster has a non-partitioned topic, "
            "but remote cluster 'west' has a partitioned topic with 3 partitions",
            id="plain-here",
        ),
        pytest.param(
            snapshot(x=2),
            snapshot(x=0),
            "Topic type mismatch for topic 'persistent://public/default/x': local cluster has a partitioned topic with "
            "2 partitions, but remote cluster 'west' has a non-partitioned topic",
            id="plain-there",
        ),
        pytest.param(
            snapshot(AutoTopicCreation(True, PARTITIONED, 2)),
            snapshot(AutoTopicCreation(False, PARTITIONED, 3)),
            "auto-topic creation policy mismatch with west: allowAutoTopicCreation: local=true, remote=false, "
            "defaultNumPartitions: local=2, remote=3",
            id="switch-and-count",
        ),
        pytest.param(
            snapshot(AutoTopicCreation(True, PARTITIONED, 2)),
            snapshot(PLAIN),
            "auto-topic creation policy mismatch with west: topicType: local=partitioned, remote=non-partitioned",
            id="type",
        ),
    ],
)
def test_difference(local: NamespaceSnapshot, remote: NamespaceSnapshot, difference: str) -> None:
    assert differences("west", local, remote) == [difference]


@pytest.mark.parametrize(
    ("policy", "override"),
    [
        (AutoTopicCreation(True, PARTITIONED, 3, True), AutoTopicCreation(True, PARTITIONED, 3, True)),
        (AutoTopicCreation(True, "Partitioned", 3, False), AutoTopicCreation(True, NON_PARTITIONED, None, False)),
    ],
)
def test_policy_as_an_override_says_what_it_means(policy: AutoTopicCreation, override: AutoTopicCreation) -> None:
    assert as_override(policy) == override


def test_all_differences_are_listed_topics_first() -> None:
    local = snapshot(AutoTopicCreation(True, PARTITIONED, 2), y=1, x=1)
    found = differences("west", local, snapshot(y=2, x=2))
    assert [each.split(":")[0].split(" for ")[0] for each in found] == [
        "Partition count mismatch",
        "Partition count mismatch",
        "auto-topic creation policy mismatch with west",
    ]
    assert "default/x" in found[0]


NAMESPACE = NamespaceName.parse("public/default")
TOPIC, SPACES = "/admin/v2/persistent/public/default/x", "/admin/v2/namespaces/public/default"


def policy(name: str, value: Any, key: str | None = None) -> SetNamespacePolicy:
    return SetNamespacePolicy(NAMESPACE, name, value, key)


@pytest.mark.parametrize(
    ("change", "method", "path", "body"),
    [
        (CreatePartitionedMetadata(X, 4), "PUT", f"{TOPIC}/partitions?createLocalTopicOnly=true", 4),
        (SetPartitionCount(X, 4), "POST", f"{TOPIC}/partitions?updateLocalTopicOnly=true", 4),
        (SetPartitionCount(X, 4, True), "POST", f"{TOPIC}/partitions?updateLocalTopicOnly=true&force=true", 4),
        (CreateTopicRecord(X), "PUT", TOPIC, {}),
        (CreateMissedPartitions(X), "POST", f"{TOPIC}/createMissedPartitions", None),
        (DeletePartitionedMetadata(X, True), "DELETE", f"{TOPIC}/partitions?force=true&deleteSchema=true", None),
        (DeleteTopic(X, False), "DELETE", f"{TOPIC}?force=false&deleteSchema=true", None),
        (CreateNamespace(NAMESPACE, ("west",)), "PUT", SPACES, {"replication_clusters": ["west"]}),
        (policy("retention", {"a": 1}), "POST", f"{SPACES}/retention", {"a": 1}),
        (policy("message_ttl_seconds", None), "DELETE", f"{SPACES}/messageTTL", None),
        (policy("schema_compatibility_strategy", "FULL"), "PUT", f"{SPACES}/schemaCompatibilityStrategy", "FULL"),
        (
            policy("allow_auto_update_schema", (True, False)),
            "POST",
            f"{SPACES}/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=false",
            True,
        ),
        (
            policy("backlog_quotas", {"limit": 1}, "message_age"),
            "POST",
            f"{SPACES}/backlogQuota?backlogQuotaType=message_age",
            {"limit": 1},
        ),
        (
            policy("backlog_quotas", None, "message_age"),
            "DELETE",
            f"{SPACES}/backlogQuota?backlogQuotaType=message_age",
            None,
        ),
    ],
)
def test_change_has_its_request(change: AdminChange, method: str, path: str, body: Any) -> None:
    request = request_of(change, local_only=True)
    assert (request.method, request.path, request.body) == (method, path, body)


@pytest.mark.parametrize(
    ("change", "command", "sentence"),
    [
        (CreatePartitionedMetadata(X, 4), "create-partitioned-topic {x} -p 4", "create a partitioned topic"),
        (SetPartitionCount(X, 4, True), "update-partitioned-topic {x} -p 4 -f", "expand it"),
        (CreateTopicRecord(X), "create {x}", "create a topic"),
        (CreateMissedPartitions(X), "create-missed-partitions {x}", "create the missing partitions"),
        (DeletePartitionedMetadata(X, False), "delete-partitioned-topic {x}", "delete it"),
        (DeleteTopic(X, True), "delete {x} -f", "delete it"),
    ],
)
def test_change_has_its_command_and_sentence(change: TopicAdminChange, command: str, sentence: str) -> None:
    assert command_of(change) == f"topics {command.format(x=X)}"
    assert sentence_of(change) == sentence


def difference_of(kind: DifferenceKind, **fields: Any) -> Difference:
    return Difference(Severity.ERROR, kind, NAMESPACE, **fields)


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (difference_of(DifferenceKind.CLUSTER_UNREACHABLE), "see that west is up, its address (clusters get west)"),
        (difference_of(DifferenceKind.METADATA_ONLY, fault="gone", target=1), "interpulse-admin topics doctor"),
        (difference_of(DifferenceKind.NAMESPACE_MISSING), "create it there (namespaces create public/default)"),
        (
            difference_of(DifferenceKind.TOPIC_MISSING, topic=X, source={"partitions": 2}),
            "create a partitioned topic, as audit apply and the replication job do",
        ),
        (difference_of(DifferenceKind.RETENTION, change=policy("retention", {})), "audit apply makes it equal"),
        (difference_of(DifferenceKind.SCHEMA_DIFFERENT), "the replication job registers the versions"),
        (
            difference_of(
                DifferenceKind.TOPIC_TYPE_MISMATCH,
                topic=X,
                choices=(DeleteTopic(X, False), DeletePartitionedMetadata(X, False)),
            ),
            f"delete it here (topics delete {X}), or delete it on west (topics delete-partitioned-topic {X}), with -f",
        ),
    ],
)
def test_difference_has_a_remedy(difference: Difference, words: str) -> None:
    assert remedy_of(difference, "west").startswith(words)


def test_advice_names_the_reason_that_a_row_does_not_show() -> None:
    missing = difference_of(DifferenceKind.NAMESPACE_MISSING)
    assert advice_of(missing, "west").startswith("Namespace public/default does not exist on cluster west; create it")
    assert advice_of(difference_of(DifferenceKind.PERMISSION), "west").startswith("compare namespaces permissions")


PLAIN_TOPIC, ABSENT = Existence(TopicKind.NON_PARTITIONED), Existence(TopicKind.ABSENT)


def partitioned(count: int) -> Existence:
    return Existence(TopicKind.PARTITIONED, count)


@pytest.mark.parametrize(
    ("local", "remote", "choices", "reason", "remedy"),
    [
        (ABSENT, PLAIN_TOPIC, (), f"{X} does not exist on the source", "delete or recreate the left-over partitions"),
        (
            partitioned(2),
            ABSENT,
            (),
            f"{X} does not exist on the remote",
            "create it there as a partitioned topic of 2",
        ),
        (
            partitioned(2),
            partitioned(3),
            (SetPartitionCount(X, 3),),
            f"{X} is a partitioned topic of 2 partitions on the source cluster and a partitioned topic of 3",
            f"make the partition counts equal: expand the smaller one (topics update-partitioned-topic {X} -p 3, here)",
        ),
        (
            partitioned(2),
            PLAIN_TOPIC,
            (DeletePartitionedMetadata(X, False), DeleteTopic(X, False)),
            f"{X} is a partitioned topic of 2 partitions on the source cluster and a topic that is not partitioned",
            "make the partition counts equal: delete the one that is wrong",
        ),
    ],
)
def test_held_topic_has_a_reason_and_a_remedy(
    local: Existence, remote: Existence, choices: tuple[TopicAdminChange, ...], reason: str, remedy: str
) -> None:
    texts = hold_texts(X, local, X, remote, Provisioning(ProvisioningStep.HOLD, choices=choices))
    assert [text.startswith(begin) for text, begin in zip(texts, (reason, remedy), strict=True)] == [True, True], texts
