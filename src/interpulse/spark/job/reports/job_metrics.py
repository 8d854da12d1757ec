"""Metrics of the job for Prometheus, on a port of their own."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from interpulse.clock import now_ms
from interpulse.model.names import TopicName
from interpulse.spark.job.reports.report import Records, Written

_PREFIX: Final = "interpulse_spark"
_WORST: Final = 50
_PHASES_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class JobMetrics:
    """HTTP endpoint of the metrics, served until it is closed. Raises OSError if the port is taken."""

    wants_records = True

    def __init__(self, port: int, host: str) -> None:
        self.registry = CollectorRegistry()
        self._written = {
            key: self._counter(f"{key}_total", f"{key.capitalize()} written to the target.") for key in Written._fields
        }
        self._replays = self._counter("replays_total", "Replays written to the target.")
        self._skipped = self._counter("skipped_total", "Entries that are not for the target.", "reason")
        self._errors = self._counter("errors_total", "Failures of a cluster's query or topics.")
        self._healed = self._counter("healed_total", "Failures that healed within a task.", "place")
        self._batch = self._gauge("batch_id", "The newest micro-batch that is over.")
        self._succeeded = self._gauge(
            "last_success_timestamp", "When entries were last copied, in seconds since the epoch."
        )
        self._heartbeat = self._gauge("heartbeat_seconds", "How long the last heartbeat took to the target.")
        self._heard = self._gauge("heartbeat_timestamp", "When it arrived, in seconds since the epoch.")
        self._seconds = Histogram(
            f"{_PREFIX}_batch_seconds",
            "Time of a micro-batch by Spark's phases.",
            ("cluster", "phase"),
            buckets=_PHASES_S,
            registry=self.registry,
        )
        self._lag = {
            key: self._gauge(f"lag_{name}", f"{text}, by namespace.", "namespace")
            for key, (name, text) in _LAGS.items()
        }
        self._worst = {
            key: self._gauge(f"topic_lag_{name}", f"{text}, of the {_WORST} topic-partitions most behind.", "topic")
            for key, (name, text) in _LAGS.items()
        }
        self._states = self._gauge("topics", "Topic-partitions by state, such as HELD.", "state")
        self._subscriptions = self._gauge(
            "subscriptions", "Topic-partitions with carried subscriptions by state, such as BEHIND.", "state"
        )
        self._subscription_age = self._gauge(
            "subscription_age_seconds", "How long the oldest acknowledgement has waited for the copy of its entry."
        )
        self._subscription_pending = self._gauge(
            "subscription_pending", "Acknowledged entries of the source that are not copied yet."
        )
        self._server, self._thread = start_http_server(port, addr=host, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", text, ("cluster", *labels), registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, ("cluster", *labels), registry=self.registry)

    @property
    def port(self) -> int:
        """Port of the endpoint."""
        return int(self._server.server_port)

    def take(self, event: Mapping[str, Any]) -> None:
        cluster, kind = str(event.get("cluster")), event.get("event")
        if kind == "error":
            self._errors.labels(cluster).inc()
        elif kind == "healed":
            self._healed.labels(cluster, event["place"]).inc(event["count"])
        elif kind == "heartbeat":
            self._heartbeat.labels(cluster).set(event["delayMs"] / 1000)
            self._heard.labels(cluster).set(now_ms() / 1000)
        elif kind == "progress":
            self._note_batch(cluster, event)

    def _note_batch(self, cluster: str, event: Mapping[str, Any]) -> None:
        self._batch.labels(cluster).set(event["batchId"])
        self._succeeded.labels(cluster).set(now_ms() / 1000)
        for phase, milliseconds in event["phasesMs"].items():
            self._seconds.labels(cluster, phase).observe(milliseconds / 1000)
        written = event.get("written", {})
        self._replays.labels(cluster).inc(written.get("replays", 0))
        for reason, count in written.get("skipped", {}).items():
            self._skipped.labels(cluster, reason).inc(count)

    def show(self, records: Records, written: Mapping[str, Written]) -> None:
        """Update the metrics. Unknown values are left out instead of shown as 0."""
        for cluster, counts in written.items():
            for key, counter in self._written.items():
                counter.labels(cluster).inc(getattr(counts, key))
            if counts.entries:
                self._succeeded.labels(cluster).set(now_ms() / 1000)
        states = Counted((record["cluster"], record["state"]) for record in records)
        self._states.clear()
        for labels, count in states.items():
            self._states.labels(*labels).set(count)
        self._show_subscriptions(records)
        for key in _LAGS:
            self._show_lag(key, [record for record in records if record.get(key) is not None])

    def _show_subscriptions(self, records: Records) -> None:
        carried = [record for record in records if record.get("subscriptionState")]
        for gauge in (self._subscriptions, self._subscription_age, self._subscription_pending):
            gauge.clear()
        states = Counted((record["cluster"], record["subscriptionState"]) for record in carried)
        for labels, count in states.items():
            self._subscriptions.labels(*labels).set(count)
        for cluster in {record["cluster"] for record in carried}:
            there = [record for record in carried if record["cluster"] == cluster]
            self._subscription_age.labels(cluster).set(max(record["subscriptionAgeMs"] for record in there) / 1000)
            self._subscription_pending.labels(cluster).set(sum(record["subscriptionPending"] for record in there))

    def _show_lag(self, key: str, records: Records) -> None:
        namespaces: dict[tuple[str, str], float] = {}
        for record in records:
            labels = record["cluster"], str(TopicName.parse(record["topic"]).namespace_name)
            before = namespaces.get(labels, 0.0)
            namespaces[labels] = max(before, record[key]) if key == "lagSeconds" else before + record[key]
        self._lag[key].clear()
        for labels, value in namespaces.items():
            self._lag[key].labels(*labels).set(value)
        self._worst[key].clear()
        for record in sorted(records, key=lambda record: -float(record[key]))[:_WORST]:
            if record[key]:
                self._worst[key].labels(record["cluster"], record["topic"]).set(record[key])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_LAGS: Final = {
    "lagEntries": ("entries", "Entries that wait on the source"),
    "lagMessages": ("messages", "About how many messages they hold"),
    "lagSeconds": ("seconds", "The age of the oldest entry that waits"),
}
