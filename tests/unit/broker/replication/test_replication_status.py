"""Of what the job says, what is seen on the other cluster, and whether the job runs, the newest problem is shown."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.replication.remote_topics import RemoteState, RemoteTopics
from interpulse.broker.replication.replication_status import ReplicationStatus, ReplicationSurvey, Survey
from interpulse.broker.replication.replication_supervisor import ReplicationJobView
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from interpulse.storage.api import Delete, Put
from tests.support.counting_store import CountingStore
from tests.support.memory_storage import MemoryMetadataStore

X = TopicName.parse("x")
P = TopicName.parse("p")
READY = RemoteState(100, ready=True, change="x created with no partitions: it was absent there")
HELD = RemoteState(100, state="HELD", reason="counts differ", remedy="make them equal", retry_at_ms=200)
LOOKING = RemoteState(100)
STOPPED = {"state": "DISCONNECTED", "since": 7, "reason": "the replication job is UNAVAILABLE", "remedy": "Java"}


class Pairs:
    """So many topics, replicated to ``west``."""

    def __init__(self, count: int) -> None:
        self._topics = [TopicName.parse(f"t-{number}") for number in range(count)]

    def topics(self) -> list[TopicName]:
        return self._topics

    def clusters_of(self, topic: TopicName) -> tuple[str, ...]:
        return ("west",)

    def state(self, topic: TopicName, cluster: str) -> None:
        """Nothing is known."""


async def test_reports_are_read_once_for_all_topics_of_a_namespace() -> None:
    store, pairs = CountingStore(), Pairs(1234)
    namespaces = Namespaces(store, local_cluster="east")
    status = ReplicationStatus(
        store,
        namespaces,
        cast(TopicLifecycle, None),  # nobody asks for topics here
        cast(TopicPolicyRecords, None),
        remote_topics=cast(RemoteTopics, pairs),
    )
    survey = await ReplicationSurvey(status, cast(RemoteTopics, pairs), ReplicationJobView).look()
    assert survey.states == {("west", "PROVISIONING"): 1234}
    assert survey.remotes == {"west"}
    assert len(store.gets) == 1


def test_longest_delay_of_a_namespace_counts_and_the_rest_adds_up() -> None:
    survey, lag = Survey(), {"lagEntries": 2, "lagMessages": 5}
    for topic, cluster, seconds in (("a", "west", 7.5), ("b", "west", 3), ("a", "north", None)):
        record = {"topic": topic, "cluster": cluster, "state": "HELD", "lagSeconds": seconds, **lag}
        survey.add(str(PUBLIC_DEFAULT), record)
    west = "west", str(PUBLIC_DEFAULT)
    assert (survey.states["west", "HELD"], survey.lag_entries[west], survey.lag_messages[west]) == (2, 4, 10)
    assert survey.lag_seconds[west] == 7.5
    assert survey.delays == {("a", "west"): 7.5, ("b", "west"): 3}


class StatusBench:
    """A broker that replicates its default namespace to ``west``."""

    def __init__(self) -> None:
        self.store = MemoryMetadataStore()
        self.namespaces = Namespaces(self.store, local_cluster="east")
        self.lifecycle = TopicLifecycle(self.store, self.namespaces, BrokerConfig)
        self.policies = TopicPolicyRecords(self.store, self.lifecycle)
        self.remote: RemoteState | None = None
        self.job_stopped = False
        self.status = ReplicationStatus(
            self.store,
            self.namespaces,
            self.lifecycle,
            self.policies,
            remote_topics=cast(RemoteTopics, self),
            without_job=self._stopped,
        )

    def state(self, topic: TopicName, cluster: str) -> RemoteState | None:
        return self.remote

    def _stopped(self, topics: Any) -> list[dict[str, Any]]:
        return [STOPPED | {"topic": topic, "cluster": "west"} for topic in topics] if self.job_stopped else []

    async def report(self, topic: TopicName, state: str, since: int, reason: str | None = None) -> None:
        record = {"topic": str(topic), "cluster": "west", "state": state, "since": since, "reason": reason}
        record["remedy"] = reason and "do something"
        await self.status.report(PUBLIC_DEFAULT, [record])


@pytest.fixture
async def bench() -> StatusBench:
    bench = StatusBench()
    await bootstrap(bench.store, local_cluster="east", cluster=ClusterData())
    both = ("east", "west")
    await bench.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(replication_clusters=both))
    await bench.lifecycle.create_plain(X)
    return bench


@pytest.mark.parametrize(
    ("remote", "reported", "stopped", "expected"),
    [
        pytest.param(None, None, False, ("PROVISIONING", "the topic is being checked there"), id="nothing-known"),
        pytest.param(
            LOOKING, None, False, ("PROVISIONING", "the topic is being checked there"), id="not-looked-at-yet"
        ),
        pytest.param(
            READY, None, False, ("PROVISIONING", "the topic exists there; the replication job has not"), id="job-silent"
        ),
        pytest.param(READY, ("REPLICATING", 50), False, ("REPLICATING", None), id="job-goes"),
        pytest.param(READY, ("HELD", 50), False, ("HELD", "said by the job"), id="job-holds"),
        pytest.param(HELD, None, False, ("HELD", "counts differ"), id="problem-seen-first"),
        pytest.param(HELD, ("REPLICATING", 50), False, ("HELD", "counts differ"), id="problem-newer-than-the-job"),
        pytest.param(HELD, ("REPLICATING", 150), False, ("REPLICATING", None), id="job-newer-than-the-problem"),
        pytest.param(HELD, None, True, ("HELD", "counts differ"), id="problem-before-a-job-that-does-not-run"),
        pytest.param(READY, ("REPLICATING", 50), True, ("DISCONNECTED", "job is UNAVAILABLE"), id="job-does-not-run"),
    ],
)
async def test_state_of_a_topic(
    bench: StatusBench,
    remote: RemoteState | None,
    reported: tuple[str, int] | None,
    stopped: bool,
    expected: tuple[str, str | None],
) -> None:
    bench.remote, bench.job_stopped = remote, stopped
    if reported:
        await bench.report(X, *reported, reason="said by the job" if reported[0] == "HELD" else None)
    (record,) = await bench.status.of_topic(X)
    assert (record["topic"], record["cluster"], record["state"]) == (str(X), "west", expected[0])
    assert record["reason"] == expected[1] or str(expected[1]) in record["reason"]
    assert bool(record["remedy"]) == (record["state"] != "REPLICATING")
    assert record["provisioned"] == (READY.change if remote is READY else None)
    assert await bench.status.of_namespace(PUBLIC_DEFAULT) == [record]
    shown = await bench.status.in_stats(X)
    status = {name: record[name] for name in ("state", "since", "reason", "remedy", "nextRetryAt")}
    rates = {"msgRateOut": 0.0, "msgThroughputOut": 0.0}
    assert shown == {"west": rates | {"replicationDelayInSeconds": 0, "status": status}}


async def test_stats_show_the_rates_of_all_partitions_and_the_delay_of_the_slowest(bench: StatusBench) -> None:
    await bench.lifecycle.create_partitioned(P, 2)
    known: list[dict[str, Any]] = [
        {"msgRateOut": 5, "msgThroughputOut": 700.5, "lagSeconds": 3.9},
        {"msgRateOut": 2.5, "lagSeconds": None},
    ]
    for index, figures in enumerate(known):
        record = {"topic": str(P.partition(index)), "cluster": "west", "state": "REPLICATING", **figures}
        await bench.status.report(PUBLIC_DEFAULT, [record])
    shown = (await bench.status.in_stats(P))["west"]
    names = ("msgRateOut", "msgThroughputOut", "replicationDelayInSeconds")
    assert [shown[name] for name in names] == [7.5, 700.5, 3]
    shown = (await bench.status.in_stats(P.partition(1)))["west"]
    assert [shown[name] for name in names] == [2.5, 0, 0]


@pytest.mark.parametrize(
    "wrong", [{"since": "x"}, {"since": True}, {"lagEntries": [1]}, {"nextRetryAt": {}}, {"reason": 5}, {"remedy": []}]
)
async def test_report_with_values_of_another_kind_is_refused_and_nothing_of_it_kept(
    bench: StatusBench, wrong: dict[str, Any]
) -> None:
    good = {"topic": str(X), "cluster": "west", "state": "HELD", "since": 5, "lagSeconds": 0.5, "reason": "because"}
    with pytest.raises(InvalidRequest, match=next(iter(wrong))):
        await bench.status.report(PUBLIC_DEFAULT, [good, good | wrong])
    bench.remote = HELD
    assert (await bench.status.of_topic(X))[0]["reason"] == "counts differ"


async def test_problem_has_its_remedy_and_next_retry(bench: StatusBench) -> None:
    bench.remote = HELD
    (record,) = await bench.status.of_topic(X)
    assert (record["since"], record["remedy"], record["nextRetryAt"]) == (100, "make them equal", 200)


async def test_partition_in_trouble_is_what_stats_of_the_whole_topic_show(bench: StatusBench) -> None:
    await bench.lifecycle.create_partitioned(P, 3)
    for index, state in enumerate(("REPLICATING", "HELD", "REPLICATING")):
        await bench.report(P.partition(index), state, 5)
    assert (await bench.status.in_stats(P))["west"]["status"]["state"] == "HELD"
    assert (await bench.status.in_stats(P.partition(0)))["west"]["status"]["state"] == "REPLICATING"
    assert [record["topic"] for record in await bench.status.of_topic(P)] == [str(P.partition(n)) for n in range(3)]
    assert len(await bench.status.of_topic(P.partition(1))) == 1


async def test_topic_with_clusters_of_its_own_is_shown_by_those(bench: StatusBench) -> None:
    await bench.report(X, "REPLICATING", 5)
    await bench.policies.update(X, lambda old: old.changed(replication_clusters=("east",)))
    (record,) = await bench.status.of_topic(X)
    assert (record["state"], record["reason"]) == ("DISABLED", "west is not in the replication clusters")
    assert await bench.status.in_stats(X) == {}
    past = (
        "since",
        "remedy",
        "nextRetryAt",
        "lagEntries",
        "lagMessages",
        "lagSeconds",
        "msgRateOut",
        "msgThroughputOut",
    )
    assert {record[field] for field in past} == {None}, "of the time before"
    await bench.policies.update(X, lambda old: old.changed(replication_clusters=("east", "north")))
    assert {(each["cluster"], each["state"]) for each in await bench.status.of_topic(X)} == {
        ("north", "PROVISIONING"),
        ("west", "DISABLED"),
    }


async def test_topic_that_is_gone_has_no_status_any_more(bench: StatusBench) -> None:
    await bench.report(X, "REPLICATING", 5)
    await bench.store.commit([Delete(keys.topic_record(X))])
    assert await bench.status.of_namespace(PUBLIC_DEFAULT) == []


async def test_records_of_topics_that_are_gone_do_not_gather_and_are_not_those_of_the_next_of_their_name(
    bench: StatusBench,
) -> None:
    await bench.lifecycle.create_partitioned(P, 1)
    await bench.report(X, "REPLICATING", 5)
    await bench.report(P.partition(0), "REPLICATING", 5)
    await bench.store.commit([Delete(keys.topic_record(X))])
    await bench.report(P.partition(0), "REPLICATING", 6)
    stored = await bench.store.get(keys.replication_status(PUBLIC_DEFAULT))
    assert stored is not None
    assert [record["topic"] for record in json.loads(stored.value)] == [str(P.partition(0))]
    await bench.lifecycle.create_plain(X)
    assert (await bench.status.of_topic(X))[0]["state"] == "PROVISIONING"


async def test_partitions_left_over_from_a_topic_are_shown_under_its_name(bench: StatusBench) -> None:
    await bench.store.commit([Put(keys.topic_record(P.partition(1)), b"{}")])
    bench.remote = HELD
    assert str(P) in [record["topic"] for record in await bench.status.of_namespace(PUBLIC_DEFAULT)]
    (record,) = await bench.status.of_topic(P.partition(1))
    assert (record["topic"], record["reason"]) == (str(P), "counts differ")


async def test_topic_that_is_not_persistent_is_told_apart(bench: StatusBench) -> None:
    name = TopicName.parse("non-persistent://public/default/n")
    await bench.lifecycle.create_partitioned(name, 2)
    (record,) = await bench.status.of_topic(name)
    assert (record["state"], "no log" in record["reason"]) == ("NOT_APPLICABLE", True)


async def test_system_topic_is_shown_for_what_it_is_even_without_a_job(bench: StatusBench) -> None:
    events = TopicName.parse("__change_events")
    await bench.lifecycle.create_partitioned(events, 2)
    bench.remote, bench.job_stopped = READY, True
    shown = {record["topic"]: record for record in await bench.status.of_namespace(PUBLIC_DEFAULT)}
    assert shown[str(X)]["state"] == "DISCONNECTED"
    assert shown[str(events)]["state"] == "NOT_APPLICABLE"
    assert "include_system_topics" in shown[str(events)]["reason"]
    bench.remote = HELD
    (held,) = await bench.status.of_topic(events)
    assert (held["state"], held["reason"]) == ("HELD", "counts differ")
    bench.job_stopped = False
    await bench.report(events, "REPLICATING", since=300)
    (copied,) = await bench.status.of_topic(events)
    assert copied["state"] == "REPLICATING"


async def test_status_when_topics_are_many_then_comes_in_pages_and_others_get_their_turn(
    bench: StatusBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.in_turns._TURN_SECONDS", 0.0)
    for number in range(250):
        await bench.lifecycle.create_plain(TopicName.parse(f"t-{number:03}"))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(other())
    sizes, turns_at_pages = [], []
    async for page in bench.status.in_pages(PUBLIC_DEFAULT):
        sizes.append(len(page))
        turns_at_pages.append(turns)
    task.cancel()
    assert sizes == [100, 100, 51]  # and x
    assert turns_at_pages == sorted(set(turns_at_pages))  # one at least between any two
    records = await bench.status.of_namespace(PUBLIC_DEFAULT)
    assert [record["topic"] for record in records] == sorted(record["topic"] for record in records)
