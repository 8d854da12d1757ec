"""Dashboards for brokers, topics and replication.

In an expression, ``{}`` stands for the labels that a dashboard selects by, and ``{,`` for these and further ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from interpulse.cli.monitoring.grafana import Dashboard, Panel, Query

_BY_TOPIC: Final = "{{topic}}"
_BY_SUBSCRIPTION: Final = "{{topic}} {{subscription}}"
_REMOTE_CLUSTER: Final = 'cluster=~"$cluster",remote_cluster=~"$remote"'


def _panel(title: str, unit: str, *queries: tuple[str, str], about: str = "") -> Panel:
    return Panel(title, unit, tuple(Query(*query) for query in queries), about)


def _number(title: str, expression: str, legend: str, about: str = "") -> Panel:
    return Panel(title, "short", (Query(expression, legend),), about, number=True)


def _line(title: str, unit: str, expression: str, legend: str, about: str = "") -> Panel:
    return Panel(title, unit, (Query(expression, legend),), about)


def _by_broker(title: str, unit: str, expression: str, about: str = "") -> Panel:
    return _line(title, unit, expression, "{{instance}}", about)


def _quantiles(title: str, name: str, about: str) -> Panel:
    buckets = f"sum by (instance, le) (rate({name}_bucket{{}}[5m]))"
    lines = [(f"histogram_quantile({share}, {buckets})", f"{{{{instance}}}} p{share * 100:g}") for share in (0.5, 0.99)]
    return _panel(title, "s", *lines, about=about)


def _worst(title: str, unit: str, name: str, legend: str, about: str = "") -> Panel:
    return _line(title, unit, f"topk(10, {name}{{}})", legend, about)


_BROKER_ROWS: Final = {
    "At a glance": (
        _number("Brokers", "count(pulsar_version_info{})", "brokers"),
        _number("Topics", "sum(pulsar_broker_topics_count{})", "topics"),
        _number("Clients", "sum(pulsar_active_connections{})", "clients"),
        _number(
            "Failed writes",
            "sum(increase(interpulse_log_failed_groups_total{}[1h]))",
            "last hour",
            "Their messages were not acknowledged, and their topics were fenced. It has to be 0.",
        ),
    ),
    "Traffic": (
        _by_broker("Messages in", "ops", "pulsar_broker_rate_in{}"),
        _by_broker("Messages out", "ops", "pulsar_broker_rate_out{}"),
        _by_broker("Bytes in", "Bps", "pulsar_broker_throughput_in{}"),
        _by_broker("Bytes out", "Bps", "pulsar_broker_throughput_out{}"),
        _line(
            "Publish latency",
            "ms",
            'pulsar_broker_publish_latency{,quantile=~"0.5|0.99"}',
            "{{instance}} p{{quantile}}",
            "From the arrival of an entry until it is durable.",
        ),
        _by_broker("Backlog", "short", "pulsar_broker_msg_backlog{}", "Entries that no subscription may lose."),
    ),
    "Disk": (
        _quantiles("Sync", "interpulse_log_sync_seconds", "One write of all waiting entries, with its sync."),
        _by_broker("Syncs", "ops", "rate(interpulse_log_groups_total{}[5m])"),
        _by_broker("Written", "Bps", "rate(interpulse_log_bytes_total{}[5m])"),
        _by_broker("Free room", "bytes", "interpulse_data_directory_free_bytes{}"),
        _by_broker("Stored", "bytes", "pulsar_broker_storage_size{}"),
        _panel(
            "Entries read and written",
            "ops",
            ("pulsar_broker_storage_read_rate{}", "{{instance}} read"),
            ("pulsar_broker_storage_write_rate{}", "{{instance}} written"),
        ),
    ),
    "Process": (
        _quantiles(
            "Event loop lag",
            "interpulse_event_loop_lag_seconds",
            "How late the broker comes to what is due. All clients wait for as long.",
        ),
        _by_broker("Processor", "percentunit", 'rate(process_cpu_seconds_total{instance=~"$instance"}[5m])'),
        _by_broker("Memory", "bytes", 'process_resident_memory_bytes{instance=~"$instance"}'),
        _panel(
            "Open files",
            "short",
            ('process_open_fds{instance=~"$instance"}', "{{instance}}"),
            ('process_max_fds{instance=~"$instance"}', "{{instance}} at most"),
        ),
    ),
    "Clients": (
        _panel(
            "Connections",
            "short",
            ("pulsar_active_connections{}", "{{instance}}"),
            ("pulsar_broker_throttled_connections{}", "{{instance}} throttled"),
        ),
        _panel(
            "Lookups",
            "ops",
            ("rate(pulsar_broker_lookup_answers_total{}[5m])", "{{instance}} answered"),
            ("rate(pulsar_broker_lookup_redirects_total{}[5m])", "{{instance}} redirected"),
            ("rate(pulsar_broker_lookup_failures_total{}[5m])", "{{instance}} refused"),
        ),
        _line("Topic loading", "ms", 'pulsar_topic_load_times{,quantile=~"0.5|0.99"}', "{{instance}} p{{quantile}}"),
        _panel(
            "Refusals",
            "ops",
            ("rate(topic_load_failed_total{}[5m])", "{{instance}} topics not loaded"),
            ("rate(interpulse_topic_refusals_total{}[5m])", "{{instance}} {{kind}}"),
            ("rate(pulsar_authentication_failures_total{}[5m])", "{{instance}} {{reason}}"),
        ),
        _line(
            "Metadata",
            "ms",
            "histogram_quantile(0.99, sum by (instance, type, le) "
            "(rate(pulsar_metadata_store_ops_latency_ms_bucket{}[5m])))",
            "{{instance}} {{type}} p99",
        ),
    ),
}

_TOPIC_ROWS: Final = {
    "Sums": (
        _panel("Messages", "ops", ("sum(pulsar_rate_in{})", "in"), ("sum(pulsar_rate_out{})", "out")),
        _panel("Bytes", "Bps", ("sum(pulsar_throughput_in{})", "in"), ("sum(pulsar_throughput_out{})", "out")),
        _panel(
            "Clients",
            "short",
            ("sum(pulsar_producers_count{})", "producers"),
            ("sum(pulsar_subscriptions_count{})", "subscriptions"),
            ("sum(pulsar_consumers_count{})", "consumers"),
        ),
        _panel(
            "Stored",
            "bytes",
            ("sum(pulsar_storage_size{})", "stored"),
            ("sum(pulsar_storage_backlog_size{})", "not acknowledged"),
        ),
    ),
    "Topics": (
        _worst("Messages in", "ops", "pulsar_rate_in", _BY_TOPIC),
        _worst("Messages out", "ops", "pulsar_rate_out", _BY_TOPIC),
        _worst("Largest", "bytes", "pulsar_storage_size", _BY_TOPIC),
        _panel(
            "Slow writes",
            "short",
            ("topk(10, pulsar_storage_write_latency_le_1000{} > 0)", f"{_BY_TOPIC} up to 1 s"),
            ("topk(10, pulsar_storage_write_latency_overflow{} > 0)", f"{_BY_TOPIC} longer"),
            about="Entries of the last minute that waited more than 200 ms to be durable. Empty is good.",
        ),
    ),
    "Subscriptions": (
        _worst("Backlog", "short", "pulsar_subscription_back_log", _BY_SUBSCRIPTION),
        _worst("Unacknowledged", "short", "pulsar_subscription_unacked_messages", _BY_SUBSCRIPTION),
        _worst("Delayed", "short", "pulsar_subscription_delayed", _BY_SUBSCRIPTION),
        _worst("Redelivered", "ops", "pulsar_subscription_msg_rate_redeliver", _BY_SUBSCRIPTION),
        _worst("Expired", "ops", "pulsar_subscription_msg_rate_expired", _BY_SUBSCRIPTION),
        _line(
            "Since the last acknowledgement",
            "s",
            "topk(10, time() - (pulsar_subscription_last_acked_timestamp{} > 0) / 1000)",
            _BY_SUBSCRIPTION,
        ),
        _worst(
            "Blocked",
            "short",
            "pulsar_subscription_blocked_on_unacked_messages",
            _BY_SUBSCRIPTION,
            "1 = consumers hold too much without acknowledging it, and get nothing.",
        ),
    ),
}

_REPLICATION_ROWS: Final = {
    "State": (
        _number(
            "Held topics",
            'max(interpulse_replication_topics{,state="HELD"})',
            "held",
            "Something stands in their way: replication status names it, and its remedy.",
        ),
        _line(
            "Topics by state",
            "short",
            "max by (remote, state) (interpulse_replication_topics{})",
            "{{remote}} {{state}}",
        ),
        _line(
            "Provisioning",
            "ops",
            "sum by (remote, result) (rate(interpulse_replication_provisioning_total{}[5m]))",
            "{{remote}} {{result}}",
        ),
        _line("Job", "short", 'interpulse_replication_job{cluster=~"$cluster"} == 1', "{{instance}} {{state}}"),
    ),
    "Lag": (
        _line(
            "Age of what waits",
            "s",
            "max by (remote, namespace) (interpulse_replication_lag_seconds{})",
            "{{namespace}} to {{remote}}",
        ),
        _line(
            "Messages that wait",
            "short",
            "max by (remote, namespace) (interpulse_replication_lag_messages{})",
            "{{namespace}} to {{remote}}",
        ),
        _line(
            "Topics most behind",
            "s",
            f"topk(10, pulsar_replication_delay_in_seconds{{{_REMOTE_CLUSTER}}})",
            "{{topic}} to {{remote_cluster}}",
        ),
    ),
    "Traffic": (
        _panel(
            "Messages",
            "ops",
            (
                f"sum by (remote_cluster) (pulsar_replication_rate_out{{{_REMOTE_CLUSTER}}})",
                "to {{remote_cluster}}",
            ),
            (
                f"sum by (remote_cluster) (pulsar_replication_rate_in{{{_REMOTE_CLUSTER}}})",
                "from {{remote_cluster}}",
            ),
        ),
        _line(
            "Bytes",
            "Bps",
            f"sum by (remote_cluster) (pulsar_replication_throughput_out{{{_REMOTE_CLUSTER}}})",
            "to {{remote_cluster}}",
        ),
        _line(
            "Micro-batch",
            "s",
            "interpulse_replication_batch_seconds{}",
            "{{remote}} {{phase}}",
            "The newest one, by Spark's phases.",
        ),
    ),
}


def _dashboard(name: str, title: str, rows: Mapping[str, tuple[Panel, ...]], **variables: str) -> Dashboard:
    """Return a dashboard that selects by labels. ``variables`` has a metric for each label."""
    labels = ",".join(f'{label}=~"${label}"' for label in variables)

    def selected(query: Query) -> Query:
        expression = query.expression.replace("{}", f"{{{labels}}}").replace("{,", f"{{{labels},")
        return Query(expression, query.legend)

    filled = {
        heading: tuple(replace(panel, queries=tuple(map(selected, panel.queries))) for panel in panels)
        for heading, panels in rows.items()
    }
    return Dashboard(name, title, filled, variables)


_VERSION: Final = "pulsar_version_info"
_COUNT: Final = "pulsar_subscriptions_count"

_DASHBOARDS: Final = (
    _dashboard("broker", "Interpulse: brokers", _BROKER_ROWS, cluster=_VERSION, instance=_VERSION),
    _dashboard("topics", "Interpulse: topics", _TOPIC_ROWS, cluster=_VERSION, namespace=_COUNT, topic=_COUNT),
    _dashboard(
        "replication",
        "Interpulse: replication",
        _REPLICATION_ROWS,
        cluster=_VERSION,
        remote="interpulse_replication_topics",
    ),
)
DASHBOARDS: Final = {dashboard.name: dashboard for dashboard in _DASHBOARDS}
"""Dashboards by their names on the command line."""
