"""The sentences with which enabling replication is refused (PIP-433)."""

from __future__ import annotations

import pytest

from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.rules.inventory import as_override
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
