"""Clients of other clusters: as many as there are clusters, whatever becomes of their records."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from interpulse.broker.tenancy.cluster_links import ClusterLinks, RemotePartitions
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import RemoteClusterUnavailable, TopicNotFound
from interpulse.model.names import TopicName
from tests.support.fake_clock import FakeClock
from tests.support.memory_storage import MemoryMetadataStore

X = TopicName.parse("x")
PLAIN = 0
THREE = 3


class ScriptedPartitions(RemotePartitions):
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


class Client:
    """Of one address; knows whether it was closed."""

    made: list[Client]

    def __init__(self, address: str) -> None:
        self.address = address
        self.closed = False
        self.made.append(self)

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def clusters() -> Clusters:
    Client.made = []
    return Clusters(MemoryMetadataStore())


@pytest.fixture
def links(clusters: Clusters) -> ClusterLinks:
    return ClusterLinks(clusters, connect=lambda cluster, data: cast(AdminClient, Client(str(data.service_url))))


def at(number: int) -> ClusterData:
    return ClusterData(service_url=f"http://127.0.0.1:{number}")


async def address(admin: AdminClient) -> str:
    return cast(Client, admin).address


async def test_client_whose_record_changed_is_closed_when_its_last_question_has_its_answer(
    clusters: Clusters, links: ClusterLinks
) -> None:
    answered = asyncio.Event()

    async def slowly(admin: AdminClient) -> str:
        await answered.wait()
        return await address(admin)

    await clusters.create("west", at(1))
    asked = [asyncio.create_task(links.use("west", slowly)) for _ in range(2)]
    await asyncio.sleep(0)
    await clusters.update("west", at(2))
    assert await links.use("west", address) == "http://127.0.0.1:2"
    asked[0].cancel()
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert [each.closed for each in Client.made] == [False, False]
    answered.set()
    assert await asked[1] == "http://127.0.0.1:1"
    assert [each.closed for each in Client.made] == [True, False]
    await links.close()
    assert all(each.closed for each in Client.made)


async def test_records_that_change_often_leave_one_client(clusters: Clusters, links: ClusterLinks) -> None:
    await clusters.create("west", at(1))
    for number in range(2, 20):
        await links.use("west", address)
        await clusters.update("west", at(number))
    await asyncio.gather(*(links.use("west", address) for _ in range(5)))
    assert [each.address for each in Client.made if not each.closed] == ["http://127.0.0.1:19"]


async def test_client_of_a_cluster_that_was_forgotten_is_closed(clusters: Clusters, links: ClusterLinks) -> None:
    await clusters.create("west", at(1))
    await links.use("west", address)
    await clusters.delete("west")
    with pytest.raises(RemoteClusterUnavailable, match="register it with clusters create"):
        await links.use("west", address)
    assert [each.closed for each in Client.made] == [True]
