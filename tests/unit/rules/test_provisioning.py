"""Provisioning before replication, row by row (PIP-433)."""

from __future__ import annotations

from itertools import product

import pytest

from interpulse.model.changes import CreatePartitionedMetadata, CreateTopicRecord, SetPartitionCount
from interpulse.model.errors import Conflict, PulsarError, Unprocessable
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.change_forms import hold_texts
from interpulse.rules.provisioning import (
    Provisioning,
    ProvisioningStep,
    RemoteExpansion,
    plan_remote_expansion,
    plan_topic,
)

X = TopicName.parse("x")
ABSENT = Existence(TopicKind.ABSENT)
PLAIN = Existence(TopicKind.NON_PARTITIONED)
TWO = Existence(TopicKind.PARTITIONED, 2)
THREE = Existence(TopicKind.PARTITIONED, 3)


@pytest.mark.parametrize(
    ("local", "remote", "may_create", "expected"),
    [
        pytest.param(
            PLAIN, ABSENT, True, Provisioning(ProvisioningStep.CREATE, CreateTopicRecord(X)), id="pip433-row1"
        ),
        pytest.param(
            TWO, ABSENT, True, Provisioning(ProvisioningStep.CREATE, CreatePartitionedMetadata(X, 2)), id="pip433-row2"
        ),
        pytest.param(TWO, TWO, True, Provisioning(ProvisioningStep.CONNECT), id="pip433-row4"),
        pytest.param(TWO, TWO, False, Provisioning(ProvisioningStep.CONNECT), id="pip433-row4-creation-off"),
        pytest.param(PLAIN, PLAIN, False, Provisioning(ProvisioningStep.CONNECT), id="pip433-row4-plain"),
    ],
)
def test_plan(local: Existence, remote: Existence, may_create: bool, expected: Provisioning) -> None:
    assert plan_topic(X, local, remote, may_create=may_create) == expected


_OF_2, _OF_3 = "a partitioned topic of 2 partitions", "a partitioned topic of 3 partitions"
_LEFT_OVER = (f"{X} does not exist on the source cluster", "delete or recreate the left-over partitions there")


@pytest.mark.parametrize(
    ("local", "remote", "may_create", "reason", "remedy"),
    [
        pytest.param(
            TWO, ABSENT, False, f"{X} does not exist on the remote", f"create it there as {_OF_2}", id="pip433-row3"
        ),
        pytest.param(TWO, THREE, True, f"{_OF_2} on the source", f"topic {X} -p 3, here", id="pip433-row5"),
        pytest.param(THREE, TWO, True, f"{_OF_3} on the source", f"topic {X} -p 3, there", id="pip433-row5-larger"),
        pytest.param(
            PLAIN,
            TWO,
            True,
            "not partitioned on the source cluster",
            f"(topics delete {X} -f, here; topics delete-partitioned-topic {X} -f, there)",
            id="pip433-row5-type",
        ),
        pytest.param(
            TWO,
            PLAIN,
            True,
            "not partitioned on the remote cluster",
            f"(topics delete-partitioned-topic {X} -f, here; topics delete {X} -f, there)",
            id="pip433-row5-other-type",
        ),
        pytest.param(ABSENT, ABSENT, True, *_LEFT_OVER, id="orphan-partition"),
        pytest.param(ABSENT, TWO, True, *_LEFT_OVER, id="orphan-partition-known-remotely"),
    ],
)
def test_hold_says_why_and_what_to_do(
    local: Existence, remote: Existence, may_create: bool, reason: str, remedy: str
) -> None:
    plan = plan_topic(X, local, remote, may_create=may_create)
    assert plan.step is ProvisioningStep.HOLD
    texts = hold_texts(X, local, X, remote, plan)
    assert reason in texts[0]
    assert remedy in texts[1]


def test_remedy_when_the_name_means_something_to_a_shell_then_can_be_copied() -> None:
    odd = TopicName.parse("a&b")
    quoted = f"'{odd}'"
    assert f"topics delete {quoted} -f, here" in remedy(odd, PLAIN, TWO)
    assert f"update-partitioned-topic {quoted} -p 3, here" in remedy(odd, TWO, THREE)


def remedy(topic: TopicName, local: Existence, remote: Existence) -> str:
    return hold_texts(topic, local, topic, remote, plan_topic(topic, local, remote, may_create=True))[1]


def test_after_creating_what_was_planned_the_next_plan_connects() -> None:
    for local, remote in product((PLAIN, TWO, THREE), (ABSENT, PLAIN, TWO, THREE)):
        plan = plan_topic(X, local, remote, may_create=True)
        if plan.change is not None:
            created = PLAIN
            if isinstance(plan.change, CreatePartitionedMetadata):
                created = Existence(TopicKind.PARTITIONED, plan.change.partitions)
            assert plan_topic(X, local, created, may_create=True).step is ProvisioningStep.CONNECT


def partitioned(partitions: int) -> Existence:
    return Existence(TopicKind.PARTITIONED, partitions)


@pytest.mark.parametrize(
    ("found", "step"),
    [
        pytest.param(partitioned(2), SetPartitionCount(X, 4), id="smaller"),
        pytest.param(partitioned(4), None, id="equal"),
        pytest.param(ABSENT, CreatePartitionedMetadata(X, 4), id="absent"),
    ],
)
def test_remote_when_it_can_follow_then_it_gets_as_many(found: Existence, step: RemoteExpansion | None) -> None:
    plan = plan_remote_expansion(X, 4, {"west": found}, creation_allowed=True)
    assert plan == ({"west": step} if step else {})


@pytest.mark.parametrize(
    ("found", "allowed", "refusal"),
    [
        pytest.param(partitioned(5), True, Unprocessable, id="larger"),
        pytest.param(PLAIN, True, Conflict, id="not-partitioned"),
        pytest.param(ABSENT, False, Conflict, id="absent-and-not-to-be-created"),
    ],
)
def test_remote_when_it_cannot_follow_then_nothing_is_planned_anywhere(
    found: Existence, allowed: bool, refusal: type[PulsarError]
) -> None:
    remotes = {"north": partitioned(2), "west": found}
    with pytest.raises(refusal, match="west"):
        plan_remote_expansion(X, 4, remotes, creation_allowed=allowed)


def test_remote_when_there_is_none_then_nothing_is_to_do() -> None:
    assert plan_remote_expansion(X, 4, {}, creation_allowed=True) == {}
