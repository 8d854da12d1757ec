"""Spark's progress events as lag."""

import json
import uuid
from types import SimpleNamespace
from typing import Any

from pyspark.sql.streaming.listener import QueryIdleEvent, QueryStartedEvent, QueryTerminatedEvent

from interpulse.model.ids import Position
from interpulse.spark.job.reports.progress import ProgressListener, _EventsOfJava, read_progress
from interpulse.spark.offsets import StreamOffset

TOPIC = "persistent://t/ns/a"
END = StreamOffset({TOPIC: Position(3, 4)}).to_json()
LAG = {"last": "3:9", "done": "3:0", "entries": 9, "ms": 1500}
REPORT = {"v": 1, "lag": {}, "topics": {TOPIC: LAG}}


def event(**source):
    return {
        "name": "west",
        "batchId": 7,
        "durationMs": {"triggerExecution": 120, "addBatch": 80},
        "sources": [source],
    }


def test_lag_is_what_lies_behind_the_batch():
    progress = read_progress(event(endOffset=END, latestOffset=REPORT))
    assert (progress.query, progress.batch_id, progress.duration_ms) == ("west", 7, 120)
    assert (progress.lag_entries, progress.lag_seconds) == (5, 1.5)
    assert progress.to_json()["positions"] == {TOPIC: "3:4"}


def test_progress_arrives_as_one_text_and_says_which_topics_wait_for_their_rate():
    topics = {TOPIC: {**LAG, "throttled": True}}
    taken: list[Any] = []
    java = SimpleNamespace(json=lambda: json.dumps(event(endOffset=END, latestOffset={**REPORT, "topics": topics})))
    _EventsOfJava(ProgressListener(taken.append, taken.append)).onQueryProgress(SimpleNamespace(progress=lambda: java))
    assert [(each.lag_entries, each.topics[TOPIC].throttled) for each in taken] == [(5, True)]


def test_progress_tells_what_the_cursor_was_moved_past_also_of_topics_that_are_not_behind():
    caught_up = {**LAG, "last": "3:4", "passed": 7}
    for reported in ({**LAG, "passed": 7}, caught_up):
        progress = read_progress(event(endOffset=END, latestOffset={**REPORT, "topics": {TOPIC: reported}}))
        assert progress.topics[TOPIC].passed == 7


def test_offsets_may_come_as_text():
    progress = read_progress(event(endOffset=json.dumps(END), latestOffset=json.dumps(REPORT)))
    assert progress.lag_entries == 5


def test_nothing_known_is_no_lag():
    progress = read_progress(event(endOffset=None, latestOffset=None))
    assert (progress.lag_entries, progress.lag_seconds) == (0, 0.0)
    assert read_progress(event(endOffset=END, latestOffset=None)).lag_entries == 0


def test_query_that_idles_is_told_by_its_name():
    run, another = ({"id": str(uuid.uuid4()), "runId": str(uuid.uuid4()), "timestamp": "now"} for _ in range(2))
    idle: list[Any] = []
    listener = ProgressListener(idle.append, idle.append)
    listener.onQueryStarted(QueryStartedEvent.fromJson({**run, "name": "west"}))
    for each in (run, another, run):
        listener.onQueryIdle(QueryIdleEvent.fromJson(each))
    assert idle == ["west", "west"]
    listener.onQueryTerminated(QueryTerminatedEvent.fromJson({**run, "exception": None, "errorClassOnException": None}))
    listener.onQueryIdle(QueryIdleEvent.fromJson(run))
    assert idle == ["west", "west"]
