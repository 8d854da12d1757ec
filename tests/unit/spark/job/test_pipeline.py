"""What the job tells Spark's workers, and about a query that ends."""

import time
from typing import Any

import pytest

from interpulse.model.errors import NotConnected
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.job.replication_job import ReplicationJob
from interpulse.spark.job.reports.progress import BatchProgress, TopicLag
from interpulse.spark.job.routes.route_query import RouteQuery, sink_options, source_options
from interpulse.spark.job.routes.route_topics import TopicState
from interpulse.spark.job.source_backlog import Backlog
from interpulse.spark.options.connection_options import Access
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.writing.write_options import parse_write_options


class StoppedQuery:
    """One of Spark's, as far as its end goes."""

    def __init__(self):
        self.status = {"isTriggerActive": False, "isDataAvailable": False}

    def stop(self):
        """It has."""


def query_of(pipeline):
    """Return the side of a pipeline that runs Spark's query."""
    assert isinstance(pipeline._query, RouteQuery)
    return pipeline._query


def address(cluster, access):
    return ClusterAddress(
        cluster=cluster,
        service_url=f"pulsar+ssl://{cluster}:6651",
        admin_url=f"https://{cluster}:8443",
        token=access.token,
        trust_certs_file=access.trust_certs_file,
        tls_allow_insecure_connection=access.insecure_allowed,
        certificate_file=access.certificate_file,
        key_file=access.key_file,
        listener_name=access.listener_name,
    )


@pytest.mark.parametrize(
    ("east", "west"),
    [
        pytest.param(Access(), Access("file:///west.jwt", "/west.pem"), id="target"),
        pytest.param(Access("file:///east.jwt", "/east.pem"), Access(), id="source"),
        pytest.param(Access(), Access(insecure_allowed=True), id="target-insecure"),
        pytest.param(Access(insecure_allowed=True), Access(), id="source-insecure"),
        pytest.param(Access(), Access(None, "/ca.pem", False, "/c.pem", "/k.pem", "outside"), id="target-certificate"),
        pytest.param(Access(None, "/ca.pem", False, "/c.pem", "/k.pem", "outside"), Access(), id="source-certificate"),
    ],
)
async def test_workers_reach_both_clusters_as_the_control_side_does(tmp_path, east, west):
    source, target = address("east", east), address("west", west)
    select = Selection(from_policies=True)
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=None, select=select)
    async with source.admin() as admin:
        pipeline = Pipeline(config, admin, target, None, print, "pulsar.repl.west")
        reading = parse_read_options(source_options(pipeline.route), Purpose.STREAM_READ)
        writing = parse_write_options(sink_options(pipeline.route), Purpose.STREAM_WRITE)
        assert pipeline.topics.session.config.listener_name == west.listener_name
        await pipeline.stop()
    assert (reading.access, writing.access, writing.schema_source_access) == (east, west, east)


@pytest.mark.parametrize(("error", "is_tried_again"), [("NotConnected: away", True), ("LaneInUse: by another", False)])
async def test_query_that_ends_is_told_with_since_when_why_what_to_do_and_when_it_is_tried_again(
    tmp_path, error, is_tried_again
):
    topic, west, source = TopicName.parse("x"), address("west", Access()), address("east", Access())
    failed_ms = 0
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=None, select=Selection(from_policies=True))
    async with source.admin() as admin:
        pipeline = Pipeline(config, admin, west, None, print, "pulsar.repl.west")
        pipeline.topics.states[topic] = TopicState("REPLICATING", since_ms=5)
        begun_ms = time.time_ns() // 1_000_000
        for _ in range(2):
            query_of(pipeline)._note_failure(error)
            failed_ms = failed_ms or time.time_ns() // 1_000_000
            (record,) = pipeline.records()[topic.namespace_name]
            assert (record["state"], record["reason"]) == ("DISCONNECTED", error)
            assert begun_ms <= record["since"] <= failed_ms
            assert ("by itself it does not" in record["remedy"]) != is_tried_again
            assert (record["nextRetryAt"] is not None) == is_tried_again
        pipeline.take_idle()
        (late,) = pipeline.records()[topic.namespace_name]
        assert (late["state"], late["reason"]) == ("DISCONNECTED", error), "told late, of the query that failed"
        query_of(pipeline)._query = StoppedQuery()
        pipeline.take_idle()
        (record,) = pipeline.records()[topic.namespace_name]
        assert (record["state"], record["since"], record["reason"], record["remedy"]) == ("REPLICATING", 5, None, None)
        await pipeline.stop()


async def test_query_without_anything_to_copy_is_not_starting_for_ever(tmp_path):
    topic, west, source = TopicName.parse("x"), address("west", Access()), address("east", Access())
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=None, select=Selection(from_policies=True))
    async with source.admin() as admin:
        pipeline = Pipeline(config, admin, west, None, print, "pulsar.repl.west")
        pipeline.topics.states[topic] = TopicState("REPLICATING", since_ms=5)
        query_of(pipeline)._query = StoppedQuery()
        (before,) = pipeline.records()[topic.namespace_name]
        pipeline.take_idle()
        (after,) = pipeline.records()[topic.namespace_name]
        await pipeline.stop()
    assert [(each["state"], each["reason"]) for each in (before, after)] == [
        ("PROVISIONING", "Spark is starting"),
        ("REPLICATING", None),
    ]


async def test_hold_is_shown_until_its_cursor_was_moved_behind_what_is_held(tmp_path):
    topic, west, source = TopicName.parse("x"), address("west", Access()), address("east", Access())
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=None, select=Selection(from_policies=True))
    async with source.admin() as admin:
        pipeline = Pipeline(config, admin, west, None, print, "pulsar.repl.west")
        pipeline.topics.states[topic] = TopicState("REPLICATING", since_ms=5)
        pipeline.route.files.hold({str(topic): (Position(3, 1), "over quota")}, released=(), now_ms=7)
        for waiting, shown in ((None, "HELD"), (2, "HELD"), (0, "PROVISIONING")):
            if waiting is not None:
                pipeline._lag._backlogs[str(topic)] = Backlog(waiting)
            (record,) = pipeline.records()[topic.namespace_name]
            assert record["state"] == shown
        await pipeline.stop()


async def test_topic_that_is_behind_for_its_rate_is_told_with_the_rate_and_what_to_do(tmp_path, monkeypatch):
    topic, west, source = TopicName.parse("x"), address("west", Access()), address("east", Access())
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=None, select=Selection(from_policies=True))
    async with source.admin() as admin:
        pipeline = Pipeline(config, admin, west, None, print, "pulsar.repl.west")
        pipeline.topics.states[topic] = TopicState("REPLICATING", since_ms=5)
        query_of(pipeline)._query = StoppedQuery()
        told = []
        for rate, lag in (
            (Rate(2000, 1_000_000), TopicLag(Position(3, 1), 9, 1.0, throttled=True)),
            (Rate(10, 0, 5, relative=True), TopicLag(Position(3, 1), 9, 1.0, throttled=True)),
            (Rate(10, 0), TopicLag(Position(3, 1), 9, 1.0)),
            (None, TopicLag(Position(3, 1), 9, 1.0, throttled=True)),
            (Rate(10, 0), TopicLag(Position(3, 10))),
        ):
            monkeypatch.setattr(pipeline.topics, "rate_of", {topic: rate}.get)
            pipeline.take_progress(BatchProgress("west", 1, 100, topics={str(topic): lag}))
            (record,) = pipeline.records()[topic.namespace_name]
            told.append((record["state"], record["reason"], bool(record["remedy"])))
        await pipeline.stop()
    throttled = "throttled by replicatorDispatchRate: "
    assert told == [
        ("REPLICATING", f"{throttled}2,000 messages and 1,000,000 bytes per second", True),
        ("REPLICATING", f"{throttled}10 messages per 5 s beside what is published", True),
        *[("REPLICATING", None, False)] * 3,
    ]


async def test_source_that_is_away_is_told_of_every_topic_until_it_answers(tmp_path):
    topic, west, source = TopicName.parse("x"), address("west", Access()), address("east", Access())
    config = PipelineConfig(
        name="t", state=tmp_path, source=source, target=west, select=Selection(topics=(str(topic),))
    )
    job = ReplicationJob(config, supervised=False)
    async with source.admin() as admin:
        pipeline = job._pipelines["west"] = Pipeline(config, admin, west, None, print, "interpulse.t")
        pipeline.topics.states[topic] = TopicState("REPLICATING", since_ms=5)
        query_of(pipeline)._query = StoppedQuery()
        pipeline.take_idle()
        job._note_source(NotConnected("no route"))
        (away,) = pipeline.records()[topic.namespace_name]
        job._note_source(NotConnected("no route"))
        (still,) = pipeline.records()[topic.namespace_name]
        job._note_source(None)
        (back,) = pipeline.records()[topic.namespace_name]
        await pipeline.stop()
    assert (away["state"], away["since"]) == (still["state"], still["since"]) == ("DISCONNECTED", still["since"])
    assert away["reason"] == "the source east at pulsar+ssl://east:6651 does not answer: no route"
    assert away["remedy"].startswith("see that east is up")
    assert (back["state"], back["reason"]) == ("REPLICATING", None)


async def test_topic_that_the_target_refuses_in_a_batch_is_told_once_and_when_it_goes_on(tmp_path):
    topic, west, source = TopicName.parse("x"), address("west", Access()), address("east", Access())
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=west, select=Selection(namespaces=("a/b",)))
    told: list[Any] = []
    async with source.admin() as admin:
        pipeline = Pipeline(config, admin, west, None, told.append, "interpulse.t")
        held = {str(topic): (Position(3, 1), "backlog quota exceeded")}
        for refused, released in ((held, ()), (held, ()), ({}, (str(topic),)), ({}, ())):
            pipeline.route.files.hold(refused, released=released, now_ms=7)
            pipeline.take_progress(BatchProgress("west", 1, 1))
        await pipeline.stop()
    events = [each for each in told if each["event"] != "progress"]
    assert [(each["event"], each["topic"]) for each in events] == [("held", str(topic)), ("released", str(topic))]
    assert events[0]["reason"] == "backlog quota exceeded"
    assert events[0]["remedy"].startswith("consume or clear the backlog")


async def test_what_healed_within_a_batch_is_an_event_and_counted_in_the_status(tmp_path):
    topic, west, source = TopicName.parse("x"), address("west", Access()), address("east", Access())
    config = PipelineConfig(name="t", state=tmp_path, source=source, target=west, select=Selection(namespaces=("a/b",)))
    told: list[Any] = []
    async with source.admin() as admin:
        pipeline = Pipeline(config, admin, west, None, told.append, "interpulse.t")
        pipeline.topics.states[topic] = TopicState("REPLICATING", since_ms=5)
        (before,) = pipeline.records()[topic.namespace_name]
        for batch, count in ((1, 2), (2, 0), (3, 1)):
            each = {"place": "p", "reason": f"why {batch}", "remedy": "none", "count": count, "seconds": 1.0}
            nothing = {"entries": 0, "messages": 0, "bytes": 0, "topics": {}}
            pipeline.route.files.write_summary({"batchId": batch, "healed": [each] if count else [], **nothing})
        for batch in (1, 2, 3):  # told late, as Spark does under load
            pipeline.take_progress(BatchProgress("west", batch, 1))
        pipeline.take_progress(BatchProgress("west", 4, 1))
        (after,) = pipeline.records()[topic.namespace_name]
        await pipeline.stop()
    assert [(each["reason"], each["count"]) for each in told if each["event"] == "healed"] == [
        ("why 1", 2),
        ("why 3", 1),
    ]
    assert (before["healedCount"], before["healedReason"]) == (0, None)
    assert (after["healedCount"], after["healedReason"], after["healedRemedy"]) == (3, "why 3", "none")
