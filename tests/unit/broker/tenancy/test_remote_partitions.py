"""Which answer of other clusters counts, and that a silent one is left alone for a while."""

from __future__ import annotations

import pytest

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.remote_partitions import AdminRemotePartitions
from interpulse.model.errors import RemoteClusterUnavailable, TopicNotFound
from interpulse.model.names import TopicName
from tests.support.fake_clock import FakeClock
from tests.support.memory_storage import MemoryMetadataStore

X = TopicName.parse("x")
PLAIN = 0
THREE = 3


class ScriptedPartitions(AdminRemotePartitions):
    """Answers from a table instead of asking; an error is raised."""

    def __init__(self, clock: FakeClock, answers: dict[str, int | Exception | None]) -> None:
        super().__init__(Clusters(MemoryMetadataStore()), clock, timeout_ms=1)
        self.answers = answers
        self.asked: list[str] = []

    async def _find(self, cluster: str, name: TopicName) -> int | None:
        self.asked.append(cluster)
        answer = self.answers[cluster]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param({"b": THREE}, THREE, id="partitioned"),
        pytest.param({"b": PLAIN}, PLAIN, id="plain"),
        pytest.param({"b": None}, None, id="no-address"),
        pytest.param({"b": TopicNotFound("no")}, None, id="absent"),
        pytest.param({"b": TopicNotFound("no"), "c": THREE}, THREE, id="absent-does-not-end-the-search"),
        pytest.param({"b": RemoteClusterUnavailable("away"), "c": THREE}, THREE, id="failure-does-not-either"),
        pytest.param({"c": THREE, "b": PLAIN}, PLAIN, id="first-in-name-order"),
    ],
)
async def test_answer_that_counts(answers: dict[str, int | Exception | None], expected: int | None) -> None:
    assert await ScriptedPartitions(FakeClock(), answers).find(X, list(answers)) == expected


async def test_cluster_that_failed_is_left_alone_for_some_seconds() -> None:
    clock = FakeClock()
    remotes = ScriptedPartitions(clock, {"b": RemoteClusterUnavailable("away")})
    for pause_ms in (0, 9_999, 1):
        clock.time_ms += pause_ms
        assert await remotes.find(X, ["b"]) is None
    assert remotes.asked == ["b", "b"]
