"""Topics on remote clusters: created once, for as long as policies ask, spared when there are many, with a reason."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.replication.remote_topics import RemoteTopics, ThrottledLog
from interpulse.broker.tenancy.cluster_links import QUESTIONS_MAX, ClusterLinks, Connect
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.client.admin.admin_client import AdminClient
from interpulse.clock import SystemClock
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import AlreadyExists, NotConnected, OperationTimeout, TopicNotFound
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.connect import connect
from interpulse.replication.provision import ReplicationProblem
from interpulse.storage.api import Delete, Put
from tests.support.fake_clock import FakeTimers
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.waiting import eventually

AWAY = ReplicationProblem("DISCONNECTED", "Cannot reach http://west:8080", "see that west is up")
HELD = ReplicationProblem("HELD", "counts differ", "make them equal")

X = TopicName.parse("x")
P = TopicName.parse("p")


@pytest.fixture
def timers() -> FakeTimers:
    return FakeTimers()


def topic(number: int) -> TopicName:
    return TopicName.parse(f"t{number}")


def test_cluster_that_is_away_is_one_line_with_count_and_remedy(
    timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    told = ThrottledLog(later=timers.later)
    for number in range(1000):
        told.note("west", topic(number), AWAY)
    assert caplog.messages == []
    assert timers.run() == [1.0]
    assert caplog.messages == [
        "topics cannot be replicated cluster=west state=DISCONNECTED topics=1000 first=persistent://public/default/t0 "
        "reason=Cannot reach http://west:8080 remedy=see that west is up"
    ]


def test_what_comes_soon_after_waits_and_silence_ends_the_pause(
    timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    told = ThrottledLog(later=timers.later)
    told.note("west", topic(0), AWAY)
    timers.run()
    for number in (1, 2, 2):
        told.note("west", topic(number), AWAY)
    assert len(caplog.messages) == 1
    assert timers.run() == [60.0]
    assert "topics=2 first=persistent://public/default/t1" in caplog.messages[1]
    assert (timers.run(), timers.run(), len(caplog.messages)) == ([60.0], [], 2)
    told.note("west", topic(3), AWAY)
    assert timers.run() == [1.0]
    assert len(caplog.messages) == 3


def test_clusters_and_kinds_are_told_by_themselves(timers: FakeTimers, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=timers.later)
    told.note("west", topic(0), AWAY)
    told.note("north", topic(0), AWAY)
    told.note("west", topic(1), HELD)
    timers.run()
    assert len(caplog.messages) == 3


def test_nothing_is_told_after_the_end(timers: FakeTimers, caplog: pytest.LogCaptureFixture) -> None:
    told = ThrottledLog(later=timers.later)
    told.note("west", topic(0), AWAY)
    told.close()
    timers.run()
    assert caplog.messages == []


class Remote:
    """Another cluster's admin API in memory; a ``failure`` answers everything, nothing while it is not ``awake``."""

    def __init__(self) -> None:
        self.topics_there: dict[TopicName, int] = {}
        self.created: list[tuple[TopicName, int]] = []
        self.failure: Exception | None = None
        self.awake = asyncio.Event()
        self.awake.set()
        self.asking_about: Counter[TopicName] = Counter()
        self.asking = self.asking_most = self.asked = 0
        self.web_url = "http://remote"
        self.closed = False
        self.topics = self

    async def partitioned_metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
        await self._answer(topic)
        if topic not in self.topics_there:
            raise TopicNotFound(f"Topic {topic} not found")
        return PartitionedTopicMetadata(self.topics_there[topic])

    async def create(self, topic: TopicName) -> None:
        await self.create_partitioned(topic, 0, local_only=True)

    async def create_partitioned(self, topic: TopicName, partitions: int, *, local_only: bool) -> None:
        await self._answer(topic)
        assert local_only
        if topic in self.topics_there:
            raise AlreadyExists("This topic already exists")
        self.topics_there[topic] = partitions
        self.created.append((topic, partitions))

    async def _answer(self, topic: TopicName) -> None:
        assert not self.asking_about[topic], "one question at a time about the same topic"
        self.asked += 1
        self.asking += 1
        self.asking_about[topic] += 1
        self.asking_most = max(self.asking_most, self.asking)
        await asyncio.sleep(0)
        try:
            await self.awake.wait()
        finally:
            self.asking -= 1
            self.asking_about[topic] -= 1
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self.closed = True


class RemoteTopicsBench:
    """What a broker knows of topics, over a store in memory, and the remote clusters ``north`` and ``west``."""

    def __init__(self) -> None:
        self.store = MemoryMetadataStore()
        self.clusters = Clusters(self.store)
        self.namespaces = Namespaces(self.store, local_cluster="east")
        self.lifecycle = TopicLifecycle(self.store, self.namespaces, BrokerConfig)
        self.policies = TopicPolicyRecords(self.store, self.lifecycle)
        self.remotes = {"north": Remote(), "west": Remote()}
        self.connected: list[tuple[str, str | None]] = []
        self.connect: Connect = self._remote
        self.links = ClusterLinks(self.clusters, connect=lambda cluster, data: self.connect(cluster, data))
        self.creation_allowed = True
        self.topics = RemoteTopics(
            self.store,
            self.namespaces,
            self.lifecycle,
            self.policies,
            self.links,
            SystemClock(),
            creation_allowed=lambda: self.creation_allowed,
        )

    def _remote(self, cluster: str, data: ClusterData) -> AdminClient:
        self.connected.append((cluster, data.service_url))
        return cast(AdminClient, self.remotes[cluster])

    async def replicate(self, *clusters: str) -> None:
        await self.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(replication_clusters=clusters))

    def reason(self, topic: TopicName, cluster: str = "west") -> str | None:
        """What stands in the way, None if nothing does or nothing is known."""
        state = self.topics.state(topic, cluster)
        return state.reason if state else None

    def is_ready(self, topic: TopicName) -> bool:
        state = self.topics.state(topic, "west")
        return state is not None and state.ready


@pytest.fixture
async def bench() -> AsyncIterator[RemoteTopicsBench]:
    bench = RemoteTopicsBench()
    await bootstrap(bench.store, local_cluster="east", cluster=ClusterData())
    for name in bench.remotes:
        await bench.clusters.create(name, ClusterData(service_url=f"http://{name}:8080"))
    yield bench
    await bench.topics.stop()
    await bench.links.close()


async def test_topics_when_replication_is_enabled_then_exist_there_with_their_counts(bench: RemoteTopicsBench) -> None:
    await bench.lifecycle.create_plain(X)
    await bench.lifecycle.create_partitioned(P, 3)
    await bench.topics.start()
    await bench.replicate("east", "west")
    await eventually(lambda: len(bench.remotes["west"].created) == 2)
    assert dict(bench.remotes["west"].created) == {X: 0, P: 3}
    assert bench.remotes["north"].asked == 0
    await eventually(lambda: bench.is_ready(P))
    assert bench.topics.state(P.partition(1), "west") == bench.topics.state(P, "west")
    assert (set(bench.topics.topics()), bench.topics.clusters_of(P)) == ({X, P}, ("west",))
    await eventually(lambda: bench.topics.results == {("west", "created"): 2})


async def test_topics_when_created_later_then_exist_there_too(bench: RemoteTopicsBench) -> None:
    await bench.replicate("east", "west")
    await bench.topics.start()
    await bench.lifecycle.create_plain(X)
    await bench.lifecycle.create_partitioned(P, 2)
    await eventually(lambda: dict(bench.remotes["west"].created) == {P: 2, X: 0})


async def test_topics_when_the_store_lost_sight_of_its_server_then_followed_all_the_same(
    bench: RemoteTopicsBench,
) -> None:
    await bench.topics.start()
    with bench.store.out_of_sight():
        await bench.replicate("east", "west")
        await bench.lifecycle.create_plain(X)
    await eventually(lambda: bench.is_ready(X))
    with bench.store.out_of_sight():
        await bench.replicate("east")
    await eventually(lambda: bench.topics.state(X, "west") is None)


async def test_system_topic_is_made_equal_there_as_it_is_compared(bench: RemoteTopicsBench) -> None:
    """The ``__change_events`` that another cluster brought; what transactions keep for themselves stays here."""
    events = TopicName.parse("__change_events")
    await bench.lifecycle.create_partitioned(events, 2)
    await bench.store.commit([Put(keys.topic_record(TopicName.parse("x-s__transaction_pending_ack")), b"{}")])
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.is_ready(events) and bench.is_ready(X))
    assert dict(bench.remotes["west"].created) == {events: 2, X: 0}


async def test_topic_with_clusters_of_its_own_exists_on_those_alone(bench: RemoteTopicsBench) -> None:
    await bench.lifecycle.create_plain(X)
    await bench.lifecycle.create_plain(P)
    await bench.topics.start()
    await bench.policies.update(X, lambda old: old.changed(replication_clusters=("east", "north")))
    await eventually(lambda: bench.remotes["north"].created)
    await bench.replicate("east", "west")
    await eventually(lambda: bench.remotes["west"].created)
    assert (bench.remotes["north"].created, bench.remotes["west"].created) == ([(X, 0)], [(P, 0)])
    assert bench.topics.state(X, "west") is None


async def test_topic_when_policies_stop_asking_then_is_left_alone(bench: RemoteTopicsBench) -> None:
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.remotes["west"].created)
    await bench.replicate("east")
    await eventually(lambda: bench.topics.state(X, "west") is None)
    assert bench.remotes["west"].topics_there == {X: 0}


async def test_topic_that_exists_there_differently_is_held_and_nothing_is_changed(bench: RemoteTopicsBench) -> None:
    bench.remotes["west"].topics_there[P] = 5
    await bench.lifecycle.create_partitioned(P, 2)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.reason(P))
    state = bench.topics.state(P, "west")
    assert state is not None
    assert (state.state, state.ready) == ("HELD", False)
    assert "2 partitions on the source cluster and a partitioned topic of 5 partitions" in str(state.reason)
    assert state.remedy
    assert state.retry_at_ms is not None
    assert (bench.remotes["west"].topics_there, await bench.lifecycle.partitions(P, create=False)) == ({P: 5}, 2)
    assert bench.topics.results["west", "held"] >= 1
    bench.remotes["west"].topics_there[P] = 2
    await eventually(lambda: bench.is_ready(P))
    assert bench.topics.results["west", "unchanged"] == 1


async def test_partitions_left_over_from_a_topic_are_held_and_not_created_there(bench: RemoteTopicsBench) -> None:
    await bench.store.commit([Put(keys.topic_record(P.partition(1)), b"{}")])
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.reason(P))
    state = bench.topics.state(P.partition(1), "west")
    assert state is not None
    assert (state.state, state.reason) == ("HELD", f"{P} does not exist on the source cluster")
    assert "left-over partitions" in str(state.remedy)
    await bench.store.commit([Delete(keys.topic_record(P.partition(1)))])
    await eventually(lambda: bench.topics.state(P, "west") is None)
    assert bench.remotes["west"].created == []


async def test_topic_when_creation_is_switched_off_then_waits_for_an_operator(bench: RemoteTopicsBench) -> None:
    bench.creation_allowed = False
    await bench.lifecycle.create_partitioned(P, 2)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.reason(P))
    assert "createTopicToRemoteClusterForReplication is false" in str(bench.reason(P))
    assert bench.remotes["west"].created == []
    bench.remotes["west"].topics_there[P] = 2
    await eventually(lambda: bench.is_ready(P))


async def test_cluster_that_is_away_is_tried_again_and_at_once_when_its_address_changes(
    bench: RemoteTopicsBench,
) -> None:
    bench.remotes["west"].failure = NotConnected("Cannot reach http://west:8080")
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "north", "west")
    await bench.topics.start()
    await eventually(lambda: bench.remotes["west"].asked >= 2)
    state = bench.topics.state(X, "west")
    assert state is not None
    assert (state.state, state.reason) == ("DISCONNECTED", "Cannot reach http://west:8080")
    assert bench.remotes["north"].created == [(X, 0)], "no cluster waits for another"
    await bench.clusters.update("west", ClusterData(service_url="http://moved:8080"))
    await eventually(lambda: bench.connected[-1] == ("west", "http://moved:8080"))
    bench.remotes["west"].failure = None
    await eventually(lambda: bench.remotes["west"].created)


async def test_cluster_that_cannot_be_connected_to_is_shown_and_tried_again_when_it_changes(
    bench: RemoteTopicsBench,
) -> None:
    bench.connect = connect
    await bench.clusters.update("west", ClusterData(service_url=f"http://{'w' * 64}.example:8080"))
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.reason(X))
    assert str(bench.reason(X)).startswith("Cannot connect to http://www"), bench.reason(X)
    bench.connect = bench._remote
    await bench.clusters.update("west", ClusterData(service_url="http://west:8080"))
    await eventually(lambda: bench.is_ready(X))


async def test_fault_of_ours_with_one_topic_is_shown_and_ends_nothing(
    bench: RemoteTopicsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, faults = bench.policies.find, [ValueError("a damaged record")]

    async def failing(name: TopicName) -> Any:
        if faults:
            raise faults.pop()
        return await find(name)

    monkeypatch.setattr(bench.policies, "find", failing)
    monkeypatch.setattr("interpulse.broker.replication.remote_topics._STORE_RETRY_SECONDS", 0.01)
    bench.remotes["west"].failure = RecursionError("a damaged answer")
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.reason(X))
    assert bench.reason(X) == "RecursionError: a damaged answer"
    bench.remotes["west"].failure = None
    await bench.clusters.update("west", ClusterData(service_url="http://moved:8080"))
    await eventually(lambda: bench.is_ready(X))


async def test_cluster_that_never_answers_is_given_up_after_a_while(bench: RemoteTopicsBench) -> None:
    gone = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        bench.connect = partial(connect, timeout_ms=50)
        await bench.clusters.update("west", ClusterData(service_url=url))
        await bench.lifecycle.create_plain(X)
        await bench.replicate("east", "west")
        await bench.topics.start()
        await eventually(lambda: bench.reason(X))
        state = bench.topics.state(X, "west")
        assert state is not None
        assert (state.state, "did not answer within 50 ms" in str(state.reason)) == ("DISCONNECTED", True)
        await bench.topics.stop()
        await bench.links.close()
        await gone.wait()


async def test_topics_that_wait_for_their_turn_with_a_silent_cluster_say_what_it_is_like(
    bench: RemoteTopicsBench,
) -> None:
    """Each question may take its time until its caller gives up, and few are asked at a time."""
    west = bench.remotes["west"]
    west.failure = OperationTimeout("http://west did not answer within 10 ms")
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.reason(X))
    west.failure = None
    west.awake.clear()
    many = [TopicName.parse(f"t{index}") for index in range(3 * QUESTIONS_MAX)]
    for topic in many:
        await bench.lifecycle.create_plain(topic)
    await eventually(lambda: west.asking == QUESTIONS_MAX)
    await eventually(lambda: all(bench.topics.state(topic, "west") for topic in many))
    assert {bench.reason(topic) for topic in many} == {"http://west did not answer within 10 ms"}
    west.awake.set()
    await eventually(lambda: all(bench.is_ready(topic) for topic in (X, *many)))
    await bench.lifecycle.create_plain(P)
    await eventually(lambda: bench.topics.state(P, "west"))
    assert bench.reason(P) is None, "the cluster is there again"


async def test_topic_about_which_much_is_told_at_once_is_asked_for_by_one_alone(bench: RemoteTopicsBench) -> None:
    west = bench.remotes["west"]
    west.awake.clear()
    await bench.lifecycle.create_partitioned(P, 1)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: west.asking)
    for partitions in (2, 3):
        await bench.lifecycle.expand(P, partitions)
        await bench.clusters.update("west", ClusterData(service_url=f"http://moved{partitions}:8080"))
        await bench.replicate("east", "north" if partitions == 2 else "east", "west")
        await eventually(lambda: not bench.topics._changed_namespaces)
    west.awake.set()
    await eventually(lambda: bench.is_ready(P))
    assert west.created == [(P, 3)]


async def test_pauses_grow_are_shortened_at_random_and_begin_anew_after_a_success(
    bench: RemoteTopicsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: 0)  # so that a time is how far away it is
    west = bench.remotes["west"]
    pauses: list[int] = []
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "west")
    await bench.topics.start()
    for _ in range(2):
        west.failure = NotConnected("away")
        await bench.clusters.update("west", ClusterData(service_url=f"http://moved{len(pauses)}:8080"))
        for _ in range(3):
            before = bench.topics.state(X, "west")
            await eventually(lambda: bench.reason(X) and bench.topics.state(X, "west") is not before)  # noqa: B023
            state = bench.topics.state(X, "west")
            assert state is not None
            pauses.append(state.retry_at_ms or 0)
        west.failure = None
        await eventually(lambda: bench.is_ready(X))
    for pause, longest in zip(pauses, (100, 200, 400) * 2, strict=True):
        assert 0.89 * longest <= pause <= longest, pauses
    assert any(pause % 100 for pause in pauses), pauses


async def test_topic_that_is_there_is_looked_at_again_now_and_then(bench: RemoteTopicsBench) -> None:
    bench.topics._recheck_seconds = 0.01
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.is_ready(X))
    del bench.remotes["west"].topics_there[X]
    await eventually(lambda: bench.remotes["west"].created == [(X, 0), (X, 0)])


async def test_cluster_that_is_not_registered_is_named(bench: RemoteTopicsBench) -> None:
    await bench.lifecycle.create_plain(X)
    await bench.replicate("east", "south")
    await bench.topics.start()
    await eventually(lambda: bench.reason(X, "south"))
    assert bench.reason(X, "south") == "Cluster does not exist: south; register it with clusters create"


async def test_topic_that_is_deleted_is_forgotten_and_not_deleted_there(bench: RemoteTopicsBench) -> None:
    await bench.lifecycle.create_partitioned(P, 1)
    await bench.replicate("east", "west")
    await bench.topics.start()
    await eventually(lambda: bench.remotes["west"].created)
    deletion = await bench.lifecycle.plan_delete_partitioned(P)
    await bench.store.commit([*deletion.changes, Delete(keys.topic_record(P.partition(0)))])
    await eventually(lambda: bench.topics.state(P, "west") is None)
    assert bench.remotes["west"].topics_there == {P: 1}


async def test_broker_that_starts_with_many_topics_is_no_thundering_herd(
    bench: RemoteTopicsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted on the clock of the event loop: who begins within which second, and how many ask at once."""
    for index in range(400):
        await bench.lifecycle.create_plain(TopicName.parse(f"t{index}"))
    await bench.replicate("east", "north", "west")
    begins: dict[str, list[float]] = {"north": [], "west": []}
    delay = bench.links.delay

    def noted(cluster: str) -> float:
        pause = delay(cluster)
        begins[cluster].append(time.monotonic() + pause)
        return pause / 100  # the test does not wait that long

    monkeypatch.setattr(bench.links, "delay", noted)
    await bench.topics.start()
    await eventually(lambda: all(len(remote.created) == 400 for remote in bench.remotes.values()))
    for cluster, remote in bench.remotes.items():
        per_second = Counter(int(begin - begins[cluster][0]) for begin in begins[cluster])
        assert sum(per_second.values()) == 400
        assert max(per_second.values()) <= 201, per_second
        assert remote.asking_most <= QUESTIONS_MAX
        assert remote.asked == 1200, "look, create, verify"
