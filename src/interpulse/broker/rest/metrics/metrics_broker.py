"""Metrics of the broker as a whole: lookups, loading, connections, inconsistencies, and how entries reach the disk.

No label here takes its values from clients, so the number of series is bounded by that of namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse import __version__
from interpulse.broker.instruments import AccessMeter, Instruments, LatencyMeter
from interpulse.serving.exposition import Exposition, labelled
from interpulse.storage.disk_space import DiskSpace
from interpulse.storage.write_meter import Histogram, WrittenEntries

__all__ = ["write_broker"]

_QUANTILES: Final = (0.5, 0.75, 0.95, 0.99, 0.999, 1.0)
_WAITS: Final = ("le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000", "overflow")
_SIZES: Final = ("le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb", "le_overflow")


def write_broker(page: Exposition, instruments: Instruments, cluster: str) -> None:
    """Add everything that belongs to no single topic."""
    labels = labelled(cluster=cluster)
    version = f"{labels},{labelled(version=__version__)}"
    page.add("pulsar_version_info", "gauge", "Always 1; the version is a label.", version, 1)
    _write_lookups(page, instruments, labels)
    _write_loads(page, instruments.topic_loads, labels)
    _write_connections(page, instruments, labels)
    _write_inconsistencies(page, instruments, labels)
    if instruments.access is not None:
        _write_access(page, instruments.access, labels)
    _write_writes(page, instruments.written(), cluster)
    _write_journal(page, instruments, labels)
    if instruments.disk_space is not None:
        _write_disk_space(page, instruments.disk_space, labels)


def _write_lookups(page: Exposition, instruments: Instruments, labels: str) -> None:
    lookups = instruments.lookups
    _write_summary(page, "pulsar_broker_lookup", "Time of a lookup, in milliseconds.", lookups, labels)
    page.add("pulsar_broker_lookup_answers_total", "counter", "Lookups answered.", labels, lookups.answered)
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
    """Quantiles are of the latest thousand; count and sum of everything since the start."""
    lines = page.family(name, "summary", text)
    for quantile, ms in meter.quantiles(*_QUANTILES).items():
        lines.append(f'{name}{{{labels},quantile="{quantile}"}} {ms:.3f}\n')
    lines.append(f"{name}_count{{{labels}}} {meter.ended}\n{name}_sum{{{labels}}} {meter.ms:.3f}\n")


def _write_connections(page: Exposition, instruments: Instruments, labels: str) -> None:
    counts = instruments.connections()
    page.add("pulsar_active_connections", "gauge", "Connections of the binary protocol.", labels, counts.active)
    text = "Connections made since the broker started."
    page.add("pulsar_connection_created_total_count", "gauge", text, labels, counts.created)
    text = "Connections ended since the broker started."
    page.add("pulsar_connection_closed_total_count", "gauge", text, labels, counts.created - counts.active)


def _write_inconsistencies(page: Exposition, instruments: Instruments, labels: str) -> None:
    text = "Topics refused because they disagree with their partition metadata (PIP-414)."
    for kind, count in instruments.inconsistencies.counts.items():
        page.add("interpulse_topic_refusals_total", "counter", text, f"{labels},{labelled(kind=kind)}", count)


def _write_access(page: Exposition, access: AccessMeter, labels: str) -> None:
    text = "Clients and calls whose credentials were good."
    for (provider, method), count in access.successes.items():
        who = labelled(provider_name=provider, auth_method=method)
        page.add("pulsar_authentication_success_total", "counter", text, f"{labels},{who}", count)
    text = "Clients and calls whose credentials were not good."
    for (provider, method, reason), count in access.failures.items():
        who = labelled(provider_name=provider, auth_method=method, reason=reason)
        page.add("pulsar_authentication_failures_total", "counter", text, f"{labels},{who}", count)
    text = "Tokens that were not accepted because they had expired."
    page.add("pulsar_expired_token_total", "counter", text, labels, access.expired_tokens)


def _write_writes(page: Exposition, written: Mapping[str, WrittenEntries], cluster: str) -> None:
    for namespace, entries in written.items():
        labels = labelled(cluster=cluster, namespace=namespace)
        text = "Entries made durable in the last minute, by their wait in milliseconds."
        _write_buckets(page, "pulsar_storage_write_latency", text, _WAITS, entries.waits_ms, labels)
        text = "Entries made durable in the last minute, by their size in bytes."
        _write_buckets(page, "pulsar_entry_size", text, _SIZES, entries.sizes, labels)


def _write_buckets(
    page: Exposition, name: str, text: str, buckets: tuple[str, ...], histogram: Histogram, labels: str
) -> None:
    """A family for each bucket, not adding up; count and sum belong to the same period."""
    for bucket, count in zip(buckets, histogram.counts, strict=True):
        page.add(f"{name}_{bucket}", "gauge", text, labels, count)
    page.add(f"{name}_count", "gauge", text, labels, histogram.count)
    page.add(f"{name}_sum", "gauge", text, labels, round(histogram.sum, 3))


def _write_journal(page: Exposition, instruments: Instruments, labels: str) -> None:
    counts = instruments.journal
    for name, text, value in (
        ("groups", "Group commits to the segment log: one write with one sync each.", counts.groups),
        ("bytes", "Bytes written by them.", counts.group_bytes),
        ("seconds", "Time they took.", round(counts.group_seconds, 6)),
        ("failed_groups", "Group commits that failed; their topics were fenced.", counts.failed_groups),
    ):
        page.add(f"interpulse_log_{name}_total", "counter", text, labels, value)


def _write_disk_space(page: Exposition, disk_space: DiskSpace, labels: str) -> None:
    for name, text, value in (
        ("free_bytes", "Room left on the file system of the data directory.", disk_space.free_bytes),
        ("size_bytes", "Size of the file system of the data directory.", disk_space.size_bytes),
        (
            "full",
            "1 while the broker is out of room and refuses producers, else 0.",
            int(disk_space.problem is not None),
        ),
    ):
        page.add(f"interpulse_data_directory_{name}", "gauge", text, labels, value)
