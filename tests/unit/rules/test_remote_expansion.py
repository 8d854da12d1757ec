"""What other clusters do when a topic grows, row by row."""

from __future__ import annotations

import pytest

from interpulse.model.changes import CreatePartitionedMetadata, SetPartitionCount
from interpulse.model.errors import Conflict, PulsarError, Unprocessable
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.provisioning import RemoteExpansion, plan_remote_expansion

X = TopicName.parse("x")
ABSENT = Existence(TopicKind.ABSENT)
PLAIN = Existence(TopicKind.NON_PARTITIONED)


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
