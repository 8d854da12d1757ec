"""Micro-batches as spans."""

from interpulse.spark.job.reports.batch_spans import BatchSpans
from tests.support.spans import Spans

PROGRESS = {
    "event": "progress",
    "cluster": "west",
    "batchId": 7,
    "batchMs": 250,
    "phasesMs": {"addBatch": 200, "walCommit": 5},
    "lagEntries": 12,
    "lagSeconds": 0.5,
    "written": {"messages": 3, "isReplayed": False, "healed": []},
}


def test_batch_when_over_then_is_a_span_of_its_duration() -> None:
    spans = Spans()
    report = BatchSpans(spans.provider)
    report.take({"event": "ready", "what": "Spark"})
    report.take(PROGRESS)
    (span,) = spans.ended()
    assert span.name == "replicate west"
    assert span.end_time - span.start_time == 250 * 1_000_000
    assert dict(span.attributes) == {
        "messaging.system": "pulsar",
        "pulsar.replication.remote.cluster.name": "west",
        "interpulse.replication.batch.id": 7,
        "interpulse.replication.lag.entries": 12,
        "interpulse.replication.lag.seconds": 0.5,
        "interpulse.replication.phase.addBatch.ms": 200,
        "interpulse.replication.phase.walCommit.ms": 5,
        "interpulse.replication.written.messages": 3,
    }


def test_topic_when_held_then_the_next_batch_of_its_cluster_says_so() -> None:
    spans = Spans()
    report = BatchSpans(spans.provider)
    report.take({"event": "held", "cluster": "west", "topic": "t", "reason": "no such tenant", "remedy": "make it"})
    report.take(PROGRESS | {"cluster": "east"})
    report.take(PROGRESS)
    east, west = spans.ended()
    assert [event.name for event in east.events] == []
    assert [(event.name, dict(event.attributes)) for event in west.events] == [
        ("held", {"topic": "t", "reason": "no such tenant"})
    ]
    report.close()
