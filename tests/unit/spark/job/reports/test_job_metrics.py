"""The figures of the job as Prometheus reads them."""

import urllib.request

import pytest

from interpulse.spark.job.reports.job_metrics import JobMetrics
from interpulse.spark.job.reports.report import Written

PROGRESS = {
    "event": "progress",
    "cluster": "west",
    "batchId": 7,
    "phasesMs": {"triggerExecution": 120, "addBatch": 80},
    "written": {"entries": 3, "messages": 30, "bytes": 900, "replays": 1, "skipped": {"replicated": 2}},
}


@pytest.fixture
def metrics():
    metrics = JobMetrics(0, "127.0.0.1")
    yield metrics
    metrics.close()


def read(metrics):
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def record(topic, entries, seconds, state="REPLICATING"):
    return {"topic": topic, "cluster": "west", "state": state, "lagEntries": entries, "lagSeconds": seconds}


def test_batches_are_counted(metrics):
    for _ in range(2):
        metrics.take(PROGRESS)
    metrics.take({"event": "error", "cluster": "west", "error": "away"})
    found = read(metrics)
    assert found['interpulse_spark_replays_total{cluster="west"}'] == "2.0"
    assert found['interpulse_spark_skipped_total{cluster="west",reason="replicated"}'] == "4.0"
    assert found['interpulse_spark_errors_total{cluster="west"}'] == "1.0"
    assert found['interpulse_spark_batch_id{cluster="west"}'] == "7.0"
    assert found['interpulse_spark_batch_seconds_count{cluster="west",phase="addBatch"}'] == "2.0"
    assert float(found['interpulse_spark_last_success_timestamp{cluster="west"}']) > 1.7e9


def test_entries_are_counted_also_while_a_batch_runs(metrics):
    for _ in range(2):
        metrics.show([], {"west": Written(3, 30, 900)})
    found = read(metrics)
    assert found['interpulse_spark_entries_total{cluster="west"}'] == "6.0"
    assert found['interpulse_spark_messages_total{cluster="west"}'] == "60.0"
    assert found['interpulse_spark_bytes_total{cluster="west"}'] == "1800.0"
    copied_at = found['interpulse_spark_last_success_timestamp{cluster="west"}']
    assert float(copied_at) > 1.7e9
    metrics.show([], {"west": Written(0, 0, 0)})
    assert read(metrics)['interpulse_spark_last_success_timestamp{cluster="west"}'] == copied_at


def test_lag_is_shown_by_namespace_and_of_the_worst_topics_and_what_is_not_known_is_not(metrics):
    topics = [record(f"persistent://a/b/t{number}", number, float(number)) for number in range(60)]
    held = {**record("persistent://a/c/x", None, None, "HELD"), "lagMessages": None}
    for shown in ([held], [*topics, held]):
        metrics.show(shown, {})
    found = read(metrics)
    assert found['interpulse_spark_lag_entries{cluster="west",namespace="a/b"}'] == str(float(sum(range(60))))
    assert found['interpulse_spark_lag_seconds{cluster="west",namespace="a/b"}'] == "59.0"
    assert not any('namespace="a/c"' in name for name in found)
    worst = [name for name in found if name.startswith("interpulse_spark_topic_lag_entries")]
    assert len(worst) == 50
    assert found['interpulse_spark_topics{cluster="west",state="HELD"}'] == "1.0"
    metrics.show([], {})
    assert not any("_lag_" in name or "_topics{" in name for name in read(metrics))
