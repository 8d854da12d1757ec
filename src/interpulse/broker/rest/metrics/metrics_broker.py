"""Metrics of the broker as a whole: lookups, loading, connections, inconsistencies, and how entries reach the disk.

No label here takes its values from clients, so the number of series is bounded by that of namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse import __version__
from interpulse.broker.instruments import (
    ConnectionCounts,
    Instruments,
    LatencyMeter,
    SchemaMeter,
    quantiles_of,
)
from interpulse.serving.exposition import Exposition, labelled
from interpulse.storage.meters import Histogram, MetadataMeter
from interpulse.storage.segments.disk_space import DiskSpace

_QUANTILES: Final = (0.5, 0.75, 0.95, 0.99, 0.999, 1.0)
_PUBLISH_QUANTILES: Final = (0.0, 0.5, 0.95, 0.99, 0.999, 0.9999, 1.0)


def write_broker(page: Exposition, instruments: Instruments, cluster: str, broker: str) -> None:
    """Add everything that belongs to no single topic. ``broker`` is the host under which clients know it."""
    labels = labelled(cluster=cluster)
    version = f"{labels},{labelled(version=__version__)}"
    page.add("pulsar_version_info", "gauge", "Always 1; the version is a label.", version, 1)
    _write_lookups(page, instruments, labels)
    _write_loads(page, instruments.topic_loads, labels)
    _write_connections(page, instruments.connections(), labels, broker)
    _write_inconsistencies(page, instruments, labels)
    _write_acknowledgements(page, instruments.synced_acknowledgements, cluster)
    if instruments.access is not None:
        instruments.access.write(page, labels)
    _write_publishes(page, instruments, labels)
    _write_journal(page, instruments, labels)
    _write_metadata(page, instruments.metadata, labels)
    _write_schemas(page, instruments.schemas, cluster)
    text = "Delay of the event loop; clients wait that long too."
    _add_histogram(page, "interpulse_event_loop_lag_seconds", text, labels, instruments.loop_lag)
    if instruments.disk_space is not None:
        _write_disk_space(page, instruments.disk_space, labels)


def _write_lookups(page: Exposition, instruments: Instruments, labels: str) -> None:
    lookups = instruments.lookups
    _write_summary(page, "pulsar_broker_lookup", "Time of a lookup, in milliseconds.", lookups, labels)
    redirected = instruments.lookups_redirected()
    answered = lookups.answered - redirected
    page.add("pulsar_broker_lookup_answers_total", "counter", "Lookups answered.", labels, answered)
    text = "Lookups answered with another broker to ask."
    page.add("pulsar_broker_lookup_redirects_total", "counter", text, labels, redirected)
    page.add("pulsar_broker_lookup_failures_total", "counter", "Lookups refused.", labels, lookups.failed)
    text = "Lookups and questions for partitions that hold a permit."
    page.add("pulsar_broker_lookup_pending_requests", "gauge", text, labels, instruments.lookups_pending())
    text = "Lookups and questions for partitions that got no permit (maxConcurrentLookupRequest)."
    page.add("interpulse_lookup_rejected_total", "counter", text, labels, instruments.lookups_rejected())


def _write_loads(page: Exposition, loads: LatencyMeter, labels: str) -> None:
    _write_summary(page, "pulsar_topic_load_times", "Time of loading a topic, in milliseconds.", loads, labels)
    page.add("topic_load_failed_total", "counter", "Topics that could not be loaded.", labels, loads.failed)
    text = "Topics being loaded."
    page.add("pulsar_broker_topic_load_pending_requests", "gauge", text, labels, loads.under_way)


def _write_summary(page: Exposition, name: str, text: str, meter: LatencyMeter, labels: str) -> None:
    _add_summary(page, name, text, labels, meter.quantiles(*_QUANTILES), meter.ended, meter.ms)


def _add_summary(
    page: Exposition, name: str, text: str, labels: str, quantiles: Mapping[float, float], count: int, total_ms: float
) -> None:
    """Write quantiles of the latest thousand values, and count and sum of all values since the start."""
    lines = page.family(name, "summary", text)
    for quantile, ms in quantiles.items():
        lines.append(f'{name}{{{labels},quantile="{quantile}"}} {ms:.3f}\n')
    lines.append(f"{name}_count{{{labels}}} {count}\n{name}_sum{{{labels}}} {total_ms:.3f}\n")


def _write_connections(page: Exposition, counts: ConnectionCounts, labels: str, broker: str) -> None:
    of_connections = f"{labels},{labelled(broker=broker, metric='broker_connection')}"
    for name, text, value in (
        ("pulsar_active_connections", "Connections of the binary protocol.", counts.active),
        ("pulsar_connection_created_total_count", "Connections made since the broker started.", counts.created),
        (
            "pulsar_connection_closed_total_count",
            "Connections ended since the broker started.",
            counts.created - counts.active,
        ),
        ("pulsar_connection_create_success_count", "Clients let in since the broker started.", counts.accepted),
        ("pulsar_connection_create_fail_count", "Clients refused since the broker started.", counts.refused),
    ):
        page.add(name, "gauge", text, of_connections, value)
    text = "Connections not read from now, because their clients publish faster than a policy or a limit allows."
    page.add("pulsar_broker_throttled_connections", "gauge", text, labels, counts.throttled)
    text = "Connections dropped: of clients that were refused, broke the protocol, or did not answer."
    page.add("interpulse_connections_dropped_total", "counter", text, labels, counts.dropped)


def _write_inconsistencies(page: Exposition, instruments: Instruments, labels: str) -> None:
    text = "Topics refused because they disagree with their partition metadata (PIP-414)."
    for kind, count in instruments.inconsistencies.counts.items():
        page.add("interpulse_topic_refusals_total", "counter", text, f"{labels},{labelled(kind=kind)}", count)


def _write_acknowledgements(page: Exposition, counts: Mapping[str, int], cluster: str) -> None:
    text = "Entries acknowledged because consumers of another cluster acknowledged them."
    for namespace, count in counts.items():
        labels = labelled(cluster=cluster, namespace=namespace)
        page.add("interpulse_synced_acknowledgements_total", "counter", text, labels, count)


def _write_publishes(page: Exposition, instruments: Instruments, labels: str) -> None:
    name, text = "pulsar_broker_publish_latency", "Time from an entry's arrival until it was durable, in milliseconds."
    writes = instruments.writes
    quantiles = quantiles_of(writes.latest_waits_ms, *_PUBLISH_QUANTILES)
    _add_summary(page, name, text, labels, quantiles, writes.entries, writes.waited_ms)
    page.add("pulsar_ml_count", "gauge", "Logs of topics that are open.", labels, instruments.logs_open())


def _write_metadata(page: Exposition, meter: MetadataMeter | None, labels: str) -> None:
    if meter is None:
        return
    of_store = f"{labels},{labelled(name='metadata-store')}"
    name, text = "pulsar_metadata_store_ops_latency_ms", "Keys read, set and removed, by duration in milliseconds."
    for status, counted in (("success", meter.succeeded), ("fail", meter.failed)):
        for operation, histogram in counted.items():
            which = labelled(type=operation, status=status)
            _add_histogram(page, name, text, f"{of_store},{which}", histogram)
    text = "Bytes of the values that were set."
    page.add("pulsar_metadata_store_put_bytes_total", "counter", text, of_store, meter.put_bytes)


def _write_schemas(page: Exposition, meters: Mapping[str, SchemaMeter], cluster: str) -> None:
    for namespace, meter in meters.items():
        labels = labelled(cluster=cluster, namespace=namespace)
        for name, text, latency in (
            ("get", "Time of reading the schemas of a topic, in milliseconds.", meter.gets),
            ("put", "Time of storing a schema, in milliseconds.", meter.puts),
            ("del", "Time of deleting the schemas of a topic, in milliseconds.", meter.deletions),
        ):
            _write_summary(page, f"pulsar_schema_{name}_ops_latency", text, latency, labels)
            text = "Failed operations on schemas."
            page.add(f"pulsar_schema_{name}_ops_failed_total", "counter", text, labels, latency.failed)
        text = "New schemas that are compatible with the earlier ones."
        page.add("pulsar_schema_compatible_total", "counter", text, labels, meter.compatible)
        text = "New schemas that are incompatible with the earlier ones."
        page.add("pulsar_schema_incompatible_total", "counter", text, labels, meter.incompatible)


def _write_journal(page: Exposition, instruments: Instruments, labels: str) -> None:
    counts = instruments.journal
    for name, text, value in (
        ("groups", "Group commits to the segment log: one write with one sync each.", counts.groups),
        ("bytes", "Bytes written by group commits.", counts.group_bytes),
        ("seconds", "Time they took.", round(counts.group_seconds.sum, 6)),
        ("failed_groups", "Group commits that failed; their topics were fenced.", counts.failed_groups),
    ):
        page.add(f"interpulse_log_{name}_total", "counter", text, labels, value)
    text = "Duration of group commits, mostly the disk's sync."
    _add_histogram(page, "interpulse_log_sync_seconds", text, labels, counts.group_seconds)


def _write_disk_space(page: Exposition, disk_space: DiskSpace, labels: str) -> None:
    for name, text, value in (
        ("free_bytes", "Free space on the file system of the data directory.", disk_space.free_bytes),
        ("size_bytes", "Size of the file system of the data directory.", disk_space.size_bytes),
        (
            "full",
            "1 while the disk is full and the broker refuses producers, else 0.",
            int(disk_space.problem is not None),
        ),
    ):
        page.add(f"interpulse_data_directory_{name}", "gauge", text, labels, value)


def _add_histogram(page: Exposition, name: str, text: str, labels: str, histogram: Histogram) -> None:
    page.add_histogram(name, text, labels, histogram.bounds, histogram.counts, histogram.sum)
