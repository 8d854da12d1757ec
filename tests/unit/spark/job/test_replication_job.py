"""What the job concludes from the source's answers before it begins, and that no cluster waits for another one."""

import asyncio
import contextlib
import itertools
import json
import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.listener import QueryIdleEvent, QueryStartedEvent

from interpulse.model.errors import AuthorizationError, NotConnected, PulsarError
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline_config import Limits, PipelineConfig, PipelineConfigError, Selection
from interpulse.spark.job.replication_job import ReplicationJob
from interpulse.spark.job.routes.route_topics import JobEnds
from interpulse.spark.job.selection import RemoteSelection, is_interpulse
from interpulse.spark.job.start import Start, parse_start

CHANGES = itertools.count(1)
"""Numbers of changes on the source."""


@pytest.fixture(autouse=True)
def source_that_changes(monkeypatch):
    async def number(changes):
        return next(CHANGES)

    monkeypatch.setattr("interpulse.spark.job.replication_job.SourceChanges.number", number)


@pytest.fixture(autouse=True)
def clusters_are_called_what_the_file_says(monkeypatch):
    async def misnamed(admin, given, address):
        return None

    monkeypatch.setattr("interpulse.spark.job.pipeline_config.misnamed", misnamed)


class Admin:
    """An admin API that only knows its runtime configuration."""

    def __init__(self, answer):
        self.answer = answer
        self.brokers = self

    async def runtime_configuration(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "ours"), [({"replicationJob": "embedded"}, True), ({}, False), (AuthorizationError("no"), False)]
)
async def test_kind_of_cluster_is_read_from_its_configuration(answer, ours):
    assert await is_interpulse(Admin(answer)) is ours  # type: ignore[arg-type]


async def test_cluster_without_answer_is_not_taken_for_another_kind():
    with pytest.raises(NotConnected):
        await is_interpulse(Admin(NotConnected("no route")))  # type: ignore[arg-type]


class FakePipeline:
    """Takes note of its updates; those of the cluster ``silent`` do not end before it is awake."""

    def __init__(self, remote, awake):
        self.remote, self.awake, self.updates, self.ends = remote, awake, [], []

    async def update(self, topics, changes):
        self.updates.append(set(topics))
        if self.remote == "silent":
            await self.awake.wait()

    async def retire(self):
        self.ends.append("retired")

    async def stop(self):
        self.ends.append("stopped")


async def test_cluster_that_does_not_answer_is_waited_for_by_no_other(tmp_path, monkeypatch):
    def at(remote, port=1):
        url = f"127.0.0.1:{port}"
        return ClusterAddress(cluster=remote, service_url=f"pulsar://{url}", admin_url=f"http://{url}")

    awake, made, selected = asyncio.Event(), list[Any](), dict[Any, Any]()
    config = PipelineConfig(
        name="t", state=tmp_path, source=at("east"), target=None, select=Selection(from_policies=True)
    )
    job = ReplicationJob(config, supervised=False)

    async def select(config, admin):
        return selected

    async def new_pipeline(admin, target):
        made.append(FakePipeline(target.cluster, awake))
        made[-1].route = SimpleNamespace(target=target)
        return made[-1]

    monkeypatch.setattr("interpulse.spark.job.replication_job.select", select)
    monkeypatch.setattr("interpulse.spark.job.replication_job._TURN_S", 0.01)
    monkeypatch.setattr(job, "_new_pipeline", new_pipeline)

    async def turn(topics, *addresses):
        selected.clear()
        selected.update({each.cluster: RemoteSelection(each, dict.fromkeys(topics, 0)) for each in addresses})
        await job._turn(None, next(CHANGES))  # type: ignore[arg-type]

    await turn("a", at("silent"), at("well"))
    await turn("ab", at("silent"), at("well"))
    await turn("ab", at("silent", 2), at("well"))
    await turn("ab", at("well"))
    silent, well = made
    assert (silent.updates, silent.ends) == ([{"a"}], []), "one at a time, and nothing is taken away under it"
    assert well.updates == [{"a"}, {"a", "b"}, {"a", "b"}, {"a", "b"}]
    awake.set()
    await turn("ab", at("well"))
    await turn("ab", at("well"))
    assert silent.ends == ["retired"]


async def test_update_that_fails_concerns_its_own_cluster_and_is_tried_again(tmp_path, monkeypatch, capsys):
    at = {
        name: ClusterAddress(cluster=name, service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
        for name in ("east", "north", "south", "west")
    }
    config = PipelineConfig(
        name="t", state=tmp_path, source=at.pop("east"), target=None, select=Selection(from_policies=True)
    )
    job = ReplicationJob(config, supervised=False)
    failures = {"north": ValueError("no such port"), "south": NotConnected("south is away")}
    updated, source_failures = [], [None, NotConnected("east is away"), None]

    class Failing(FakePipeline):
        async def update(self, topics, changes):
            updated.append(self.remote)
            if self.remote in failures:
                raise failures[self.remote]

    async def select(config, admin):
        failure = source_failures.pop(0)
        if failure is not None:
            raise failure
        return {remote: RemoteSelection(address) for remote, address in at.items()}

    async def new_pipeline(admin, target):
        if target.cluster == "west" and not updated:
            await asyncio.sleep(0)  # the updates of the others fail meanwhile
            raise AuthorizationError("east says no")
        pipeline = Failing(target.cluster, asyncio.Event())
        pipeline.route = SimpleNamespace(target=target)  # type: ignore[attr-defined]
        return pipeline

    monkeypatch.setattr("interpulse.spark.job.replication_job.select", select)
    monkeypatch.setattr(job, "_new_pipeline", new_pipeline)
    for _ in range(2):
        with contextlib.suppress(PulsarError):
            await job._turn(None, next(CHANGES))  # type: ignore[arg-type]
    await job._turn(None, next(CHANGES))  # type: ignore[arg-type]
    assert sorted(updated) == ["north", "north", "south", "south", "west"]
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["cluster"], each["error"]) for each in events] == [
        ("north", "ValueError: no such port"),
        ("south", "NotConnected: south is away"),
    ]


@pytest.mark.parametrize("failure", [None, KeyError("lost")], ids=["another-kind-of-source", "failure"])
async def test_end_of_the_status_reports_ends_the_job_only_when_it_is_a_failure(tmp_path, monkeypatch, failure):
    at = ClusterAddress(cluster="west", service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    config = PipelineConfig(
        name="t",
        state=tmp_path,
        source=at,
        target=None,
        select=Selection(from_policies=True),
        limits=Limits(discovery_ms=1),
    )
    job = ReplicationJob(config, supervised=False)
    selections = []

    async def select(config, admin):
        selections.append(config)
        if len(selections) == 3 and failure is None:
            job._stopping.set()
        return {}

    async def report(admin):
        if failure is not None:
            raise failure

    async def start_spark():
        await asyncio.Event().wait()

    monkeypatch.setattr("interpulse.spark.job.replication_job.select", select)
    monkeypatch.setattr(job, "_report_status", report)
    monkeypatch.setattr(job, "_start_spark", start_spark)
    monkeypatch.setattr(
        "interpulse.spark.job.replication_job.end_java", lambda: None
    )  # other tests share one with this process
    async with asyncio.timeout(60):
        if failure is None:
            assert await job.run() == 0
            assert len(selections) == 3
        else:
            with pytest.raises(KeyError, match="lost"):
                await job.run()


async def test_job_ends_with_code_1_and_says_why_when_java_has_died(tmp_path, monkeypatch, capsys):
    """Every call to Spark fails then: what supervises the job has to start it again."""
    at = ClusterAddress(cluster="west", service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    config = PipelineConfig(
        name="t",
        state=tmp_path,
        source=at,
        target=None,
        select=Selection(from_policies=True),
        limits=Limits(discovery_ms=1),
    )
    job = ReplicationJob(config, supervised=False)
    java = SimpleNamespace(poll=lambda: None)

    async def select(config, admin):
        java.poll = lambda: -9
        return {}

    async def start_spark():
        monkeypatch.setattr("pyspark.SparkContext._gateway", SimpleNamespace(proc=java))

    monkeypatch.setattr("interpulse.spark.job.replication_job.select", select)
    monkeypatch.setattr(job, "_start_spark", start_spark)
    async with asyncio.timeout(60):
        assert await job.run() == 1
    assert "Java, in which Spark runs, has ended" in json.loads(capsys.readouterr().out.splitlines()[-1])["error"]


async def test_idle_query_is_told_to_its_pipeline(tmp_path):
    at = ClusterAddress(cluster="west", service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    config = PipelineConfig(name="t", state=tmp_path, source=at, target=None, select=Selection(from_policies=True))
    job, listeners, told = ReplicationJob(config, supervised=False), list[Any](), asyncio.Event()
    job._pipelines["west"] = SimpleNamespace(take_idle=told.set)  # type: ignore[assignment]
    job._listen(SimpleNamespace(streams=SimpleNamespace(addListener=listeners.append)))  # type: ignore[arg-type]
    run = {"id": str(uuid.uuid4()), "runId": str(uuid.uuid4()), "timestamp": "now"}

    def as_spark_does():
        listeners[0].onQueryStarted(QueryStartedEvent.fromJson({**run, "name": "west"}))
        listeners[0].onQueryIdle(QueryIdleEvent.fromJson(run))

    await asyncio.to_thread(as_spark_does)
    async with asyncio.timeout(60):
        await told.wait()


@pytest.mark.parametrize("side", ["source", "target"])
async def test_job_ends_when_a_cluster_calls_itself_by_another_name(tmp_path, monkeypatch, side):
    at = {
        name: ClusterAddress(cluster=name, service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
        for name in ("source", "target")
    }
    config = PipelineConfig(
        name="t", state=tmp_path, source=at["source"], target=at["target"], select=Selection(topics=("x",))
    )
    job = ReplicationJob(config, supervised=False)

    async def misnamed(admin, given, address):
        return "the cluster there calls itself beast" if given == side else None

    async def start_spark():
        await asyncio.Event().wait()

    monkeypatch.setattr("interpulse.spark.job.pipeline_config.misnamed", misnamed)
    monkeypatch.setattr(job, "_start_spark", start_spark)
    monkeypatch.setattr(
        "interpulse.spark.job.replication_job.end_java", lambda: None
    )  # other tests share one with this process
    async with asyncio.timeout(60):
        with pytest.raises(PipelineConfigError, match=rf"\[{side}\] cluster: the cluster there calls itself beast"):
            await job.run()


async def test_cluster_whose_record_cannot_be_used_is_told_once_and_its_topics_are_held(tmp_path, monkeypatch, capsys):
    at = ClusterAddress(cluster="west", service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    config = PipelineConfig(name="t", state=tmp_path, source=at, target=None, select=Selection(from_policies=True))
    job = ReplicationJob(config, supervised=False)
    west = FakePipeline("west", asyncio.Event())
    west.route = SimpleNamespace(target=at)  # type: ignore[attr-defined]
    job._pipelines["west"] = west  # type: ignore[assignment]
    found = RemoteSelection(None, {TopicName.parse("x"): 2}, problem="west wants basic")

    async def select(config, admin):
        return {"west": found}

    monkeypatch.setattr("interpulse.spark.job.replication_job.select", select)
    for _ in range(2):
        await job._turn(None, next(CHANGES))  # type: ignore[arg-type]
    assert west.ends == ["stopped"]  # and not retired: when the record is mended it goes on where it was
    assert capsys.readouterr().out.count("west wants basic") == 1
    ((first, second),) = job._unusable_remotes["west"].records().values()
    assert [first["topic"][-3:], second["topic"][-3:]] == ["n-0", "n-1"]
    assert (first["state"], first["reason"]) == ("HELD", "west wants basic")
    assert "clusters update west" in first["remedy"]


async def test_target_that_is_silent_does_not_keep_the_job_from_its_turn(tmp_path, monkeypatch):
    at = ClusterAddress(cluster="west", service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    source = replace(at, cluster="east")
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=at, select=Selection(topics=("x",)))
    job = ReplicationJob(config, supervised=False)
    west = FakePipeline("west", asyncio.Event())
    west.route = SimpleNamespace(target=at)  # type: ignore[attr-defined]
    job._pipelines["west"] = west  # type: ignore[assignment]

    async def misnamed(admin, given, address):
        if given == "west":
            await asyncio.Event().wait()

    async def select(config, admin):
        return {"west": RemoteSelection(at, {"x": 0})}  # type: ignore[dict-item]

    monkeypatch.setattr("interpulse.spark.job.pipeline_config.misnamed", misnamed)
    monkeypatch.setattr("interpulse.spark.job.replication_job.select", select)
    monkeypatch.setattr("interpulse.spark.job.replication_job._TURN_S", 0.01)
    async with asyncio.timeout(60):
        await job._turn(None, next(CHANGES))  # type: ignore[arg-type]
    assert west.updates == [{"x"}]


async def test_job_ends_with_code_1_and_says_why_where_its_file_asks_for_it(tmp_path, monkeypatch, capsys):
    job = job_that_selects(tmp_path, monkeypatch, Start())
    problem = "[provision] on_mismatch = fail: x is a partitioned topic of 2 partitions"

    async def update(topics, changes):
        raise JobEnds(problem)

    async def new_pipeline(admin, target):
        return SimpleNamespace(update=update, stop=nothing_to_stop, note_source=lambda problem: None)

    monkeypatch.setattr(job, "_new_pipeline", new_pipeline)
    async with asyncio.timeout(60):
        assert await job.run() == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"] == problem


async def test_new_pipeline_that_begins_at_a_topic_that_is_not_selected_is_refused(tmp_path, monkeypatch):
    job = job_that_selects(tmp_path, monkeypatch, parse_start({"z": "1:2"}))
    async with asyncio.timeout(60):
        with pytest.raises(PipelineConfigError, match=r"start names what is not selected: .*/z; see \[select\]"):
            await job.run()


async def test_pipeline_under_way_begins_nowhere_any_more(tmp_path, monkeypatch):
    job = job_that_selects(tmp_path, monkeypatch, parse_start({"z": "1:2"}))
    (tmp_path / "west" / "checkpoint").mkdir(parents=True)
    updated = asyncio.Event()

    async def update(topics, changes):
        job._stopping.set()
        updated.set()

    async def new_pipeline(admin, target):
        return SimpleNamespace(update=update, stop=nothing_to_stop, note_source=lambda problem: None)

    monkeypatch.setattr(job, "_new_pipeline", new_pipeline)
    async with asyncio.timeout(60):
        assert await job.run() == 0
    assert updated.is_set()


async def nothing_to_stop():
    """Of a pipeline that has no query."""


def job_that_selects(tmp_path, monkeypatch, start):
    """One topic from east to west; neither Spark nor a cluster is there."""
    at = {
        name: ClusterAddress(cluster=name, service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
        for name in ("east", "west")
    }
    select = Selection(from_policies=True)
    config = PipelineConfig(name="t", state=tmp_path, source=at["east"], target=None, select=select, start=start)
    job = ReplicationJob(config, supervised=False)

    async def selected(config, admin):
        return {"west": RemoteSelection(at["west"], {TopicName.parse("x"): 0})}

    async def start_spark():
        await asyncio.Event().wait()

    async def report(admin):
        return None

    monkeypatch.setattr("interpulse.spark.job.replication_job.select", selected)
    monkeypatch.setattr(job, "_start_spark", start_spark)
    monkeypatch.setattr(job, "_report_status", report)
    monkeypatch.setattr("interpulse.spark.job.replication_job.end_java", lambda: None)
    return job
