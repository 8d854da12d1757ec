"""Dashboards for brokers, topics and replication."""

from __future__ import annotations

from typing import Final

from interpulse.cli.monitoring.panels import Dashboard, Panel, Query, Row, Variable

_BROKER: Final = 'cluster=~"$cluster",instance=~"$instance"'
_TOPIC: Final = 'cluster=~"$cluster",namespace=~"$namespace",topic=~"$topic"'
_REMOTE: Final = 'cluster=~"$cluster",remote=~"$remote"'


def _panel(title: str, unit: str, *queries: tuple[str, str], about: str = "", number: bool = False) -> Panel:
    return Panel(title, unit, tuple(Query(*query) for query in queries), about, number)


def _of_broker(title: str, unit: str, name: str, about: str = "", *, per_second: bool = False) -> Panel:
    """Return a panel with one line for each broker."""
    expression = f"{name}{{{_BROKER}}}"
    return _panel(title, unit, (f"rate({expression}[5m])" if per_second else expression, "{{instance}}"), about=about)


def _of_process(title: str, unit: str, expression: str) -> Panel:
    """Return a panel with one line for each broker, for a metric without a cluster label."""
    return _panel(title, unit, (expression.replace("{}", '{instance=~"$instance"}'), "{{instance}}"))


def _quantiles(title: str, name: str, about: str = "") -> Panel:
    """Return a panel with the median and the 99th percentile of a histogram in seconds."""
    buckets = f"sum by (instance, le) (rate({name}_bucket{{{_BROKER}}}[5m]))"
    lines = [(f"histogram_quantile({share}, {buckets})", f"{{{{instance}}}} p{share * 100:g}") for share in (0.5, 0.99)]
    return _panel(title, "s", *lines, about=about)


def _worst(title: str, unit: str, name: str, labels: str, legend: str, about: str = "") -> Panel:
    """Return a panel with the ten largest values."""
    return _panel(title, unit, (f"topk(10, {name}{{{labels}}})", legend), about=about)


_BROKERS: Final = Dashboard(
    "broker",
    "Interpulse: brokers",
    (
        Row(
            "At a glance",
            (
                _panel("Brokers", "short", (f"count(pulsar_version_info{{{_BROKER}}})", "brokers"), number=True),
                _panel("Topics", "short", (f"sum(pulsar_broker_topics_count{{{_BROKER}}})", "topics"), number=True),
                _panel("Clients", "short", (f"sum(pulsar_active_connections{{{_BROKER}}})", "clients"), number=True),
                _panel(
                    "Failed writes",
                    "short",
                    (f"sum(increase(interpulse_log_failed_groups_total{{{_BROKER}}}[1h]))", "last hour"),
                    about="Their messages were not acknowledged, and their topics were fenced. It has to be 0.",
                    number=True,
                ),
            ),
        ),
        Row(
            "Traffic",
            (
                _of_broker("Messages in", "ops", "pulsar_broker_rate_in"),
                _of_broker("Messages out", "ops", "pulsar_broker_rate_out"),
                _of_broker("Bytes in", "Bps", "pulsar_broker_throughput_in"),
                _of_broker("Bytes out", "Bps", "pulsar_broker_throughput_out"),
                _panel(
                    "Publish latency",
                    "ms",
                    (f'pulsar_broker_publish_latency{{{_BROKER},quantile=~"0.5|0.99"}}', "{{instance}} p{{quantile}}"),
                    about="From the arrival of an entry until it is durable.",
                ),
                _of_broker("Backlog", "short", "pulsar_broker_msg_backlog", "Entries that no subscription may lose."),
            ),
        ),
        Row(
            "Disk",
            (
                _quantiles("Sync", "interpulse_log_sync_seconds", "One write of all waiting entries, with its sync."),
                _of_broker("Syncs", "ops", "interpulse_log_groups_total", per_second=True),
                _of_broker("Written", "Bps", "interpulse_log_bytes_total", per_second=True),
                _of_broker("Free room", "bytes", "interpulse_data_directory_free_bytes"),
                _of_broker("Stored", "bytes", "pulsar_broker_storage_size"),
                _panel(
                    "Entries read and written",
                    "ops",
                    (f"pulsar_broker_storage_read_rate{{{_BROKER}}}", "{{instance}} read"),
                    (f"pulsar_broker_storage_write_rate{{{_BROKER}}}", "{{instance}} written"),
                ),
            ),
        ),
        Row(
            "Process",
            (
                _quantiles(
                    "Event loop lag",
                    "interpulse_event_loop_lag_seconds",
                    "How late the broker comes to what is due. All clients wait for as long.",
                ),
                _of_process("Processor", "percentunit", "rate(process_cpu_seconds_total{}[5m])"),
                _of_process("Memory", "bytes", "process_resident_memory_bytes{}"),
                _panel(
                    "Open files",
                    "short",
                    ('process_open_fds{instance=~"$instance"}', "{{instance}}"),
                    ('process_max_fds{instance=~"$instance"}', "{{instance}} at most"),
                ),
            ),
        ),
        Row(
            "Clients",
            (
                _panel(
                    "Connections",
                    "short",
                    (f"pulsar_active_connections{{{_BROKER}}}", "{{instance}}"),
                    (f"pulsar_broker_throttled_connections{{{_BROKER}}}", "{{instance}} throttled"),
                ),
                _panel(
                    "Lookups",
                    "ops",
                    (f"rate(pulsar_broker_lookup_answers_total{{{_BROKER}}}[5m])", "{{instance}} answered"),
                    (f"rate(pulsar_broker_lookup_redirects_total{{{_BROKER}}}[5m])", "{{instance}} redirected"),
                    (f"rate(pulsar_broker_lookup_failures_total{{{_BROKER}}}[5m])", "{{instance}} refused"),
                ),
                _panel(
                    "Topic loading",
                    "ms",
                    (f'pulsar_topic_load_times{{{_BROKER},quantile=~"0.5|0.99"}}', "{{instance}} p{{quantile}}"),
                ),
                _panel(
                    "Refusals",
                    "ops",
                    (f"rate(topic_load_failed_total{{{_BROKER}}}[5m])", "{{instance}} topics not loaded"),
                    (f"rate(interpulse_topic_refusals_total{{{_BROKER}}}[5m])", "{{instance}} {{kind}}"),
                    (f"rate(pulsar_authentication_failures_total{{{_BROKER}}}[5m])", "{{instance}} {{reason}}"),
                ),
                _panel(
                    "Metadata",
                    "ms",
                    (
                        "histogram_quantile(0.99, sum by (instance, type, le) "
                        f"(rate(pulsar_metadata_store_ops_latency_ms_bucket{{{_BROKER}}}[5m])))",
                        "{{instance}} {{type}} p99",
                    ),
                ),
            ),
        ),
    ),
    (Variable("cluster", "pulsar_version_info"), Variable("instance", "pulsar_version_info")),
)

_BY_TOPIC: Final = "{{topic}}"
_BY_SUBSCRIPTION: Final = "{{topic}} {{subscription}}"

_TOPICS: Final = Dashboard(
    "topics",
    "Interpulse: topics",
    (
        Row(
            "Sums",
            (
                _panel(
                    "Messages",
                    "ops",
                    (f"sum(pulsar_rate_in{{{_TOPIC}}})", "in"),
                    (f"sum(pulsar_rate_out{{{_TOPIC}}})", "out"),
                ),
                _panel(
                    "Bytes",
                    "Bps",
                    (f"sum(pulsar_throughput_in{{{_TOPIC}}})", "in"),
                    (f"sum(pulsar_throughput_out{{{_TOPIC}}})", "out"),
                ),
                _panel(
                    "Clients",
                    "short",
                    (f"sum(pulsar_producers_count{{{_TOPIC}}})", "producers"),
                    (f"sum(pulsar_subscriptions_count{{{_TOPIC}}})", "subscriptions"),
                    (f"sum(pulsar_consumers_count{{{_TOPIC}}})", "consumers"),
                ),
                _panel(
                    "Stored",
                    "bytes",
                    (f"sum(pulsar_storage_size{{{_TOPIC}}})", "stored"),
                    (f"sum(pulsar_storage_backlog_size{{{_TOPIC}}})", "not acknowledged"),
                ),
            ),
        ),
        Row(
            "Topics",
            (
                _worst("Messages in", "ops", "pulsar_rate_in", _TOPIC, _BY_TOPIC),
                _worst("Messages out", "ops", "pulsar_rate_out", _TOPIC, _BY_TOPIC),
                _worst("Largest", "bytes", "pulsar_storage_size", _TOPIC, _BY_TOPIC),
                _panel(
                    "Slow writes",
                    "short",
                    (f"topk(10, pulsar_storage_write_latency_le_1000{{{_TOPIC}}} > 0)", f"{_BY_TOPIC} up to 1 s"),
                    (f"topk(10, pulsar_storage_write_latency_overflow{{{_TOPIC}}} > 0)", f"{_BY_TOPIC} longer"),
                    about="Entries of the last minute that waited more than 200 ms to be durable. Empty is good.",
                ),
            ),
        ),
        Row(
            "Subscriptions",
            (
                _worst("Backlog", "short", "pulsar_subscription_back_log", _TOPIC, _BY_SUBSCRIPTION),
                _worst("Unacknowledged", "short", "pulsar_subscription_unacked_messages", _TOPIC, _BY_SUBSCRIPTION),
                _worst("Delayed", "short", "pulsar_subscription_delayed", _TOPIC, _BY_SUBSCRIPTION),
                _worst("Redelivered", "ops", "pulsar_subscription_msg_rate_redeliver", _TOPIC, _BY_SUBSCRIPTION),
                _worst("Expired", "ops", "pulsar_subscription_msg_rate_expired", _TOPIC, _BY_SUBSCRIPTION),
                _panel(
                    "Since the last acknowledgement",
                    "s",
                    (
                        f"topk(10, time() - (pulsar_subscription_last_acked_timestamp{{{_TOPIC}}} > 0) / 1000)",
                        _BY_SUBSCRIPTION,
                    ),
                ),
                _worst(
                    "Blocked",
                    "short",
                    "pulsar_subscription_blocked_on_unacked_messages",
                    _TOPIC,
                    _BY_SUBSCRIPTION,
                    "1 = consumers hold too much without acknowledging it, and get nothing.",
                ),
            ),
        ),
    ),
    (
        Variable("cluster", "pulsar_version_info"),
        Variable("namespace", "pulsar_subscriptions_count"),
        Variable("topic", "pulsar_subscriptions_count"),
    ),
)

_REPLICATION: Final = Dashboard(
    "replication",
    "Interpulse: replication",
    (
        Row(
            "State",
            (
                _panel(
                    "Held topics",
                    "short",
                    (f'max(interpulse_replication_topics{{{_REMOTE},state="HELD"}})', "held"),
                    about="Something stands in their way: replication status names it, and its remedy.",
                    number=True,
                ),
                _panel(
                    "Topics by state",
                    "short",
                    (f"max by (remote, state) (interpulse_replication_topics{{{_REMOTE}}})", "{{remote}} {{state}}"),
                ),
                _panel(
                    "Provisioning",
                    "ops",
                    (
                        f"sum by (remote, result) (rate(interpulse_replication_provisioning_total{{{_REMOTE}}}[5m]))",
                        "{{remote}} {{result}}",
                    ),
                ),
                _panel(
                    "Job", "short", ('interpulse_replication_job{cluster=~"$cluster"} == 1', "{{instance}} {{state}}")
                ),
            ),
        ),
        Row(
            "Lag",
            (
                _panel(
                    "Age of what waits",
                    "s",
                    (
                        f"max by (remote, namespace) (interpulse_replication_lag_seconds{{{_REMOTE}}})",
                        "{{namespace}} to {{remote}}",
                    ),
                ),
                _panel(
                    "Messages that wait",
                    "short",
                    (
                        f"max by (remote, namespace) (interpulse_replication_lag_messages{{{_REMOTE}}})",
                        "{{namespace}} to {{remote}}",
                    ),
                ),
                _panel(
                    "Topics most behind",
                    "s",
                    (
                        'topk(10, pulsar_replication_delay_in_seconds{cluster=~"$cluster",remote_cluster=~"$remote"})',
                        "{{topic}} to {{remote_cluster}}",
                    ),
                ),
            ),
        ),
        Row(
            "Traffic",
            (
                _panel(
                    "Messages",
                    "ops",
                    (
                        "sum by (remote_cluster) "
                        '(pulsar_replication_rate_out{cluster=~"$cluster",remote_cluster=~"$remote"})',
                        "to {{remote_cluster}}",
                    ),
                    (
                        "sum by (remote_cluster) "
                        '(pulsar_replication_rate_in{cluster=~"$cluster",remote_cluster=~"$remote"})',
                        "from {{remote_cluster}}",
                    ),
                ),
                _panel(
                    "Bytes",
                    "Bps",
                    (
                        "sum by (remote_cluster) "
                        '(pulsar_replication_throughput_out{cluster=~"$cluster",remote_cluster=~"$remote"})',
                        "to {{remote_cluster}}",
                    ),
                ),
                _panel(
                    "Micro-batch",
                    "s",
                    (f"interpulse_replication_batch_seconds{{{_REMOTE}}}", "{{remote}} {{phase}}"),
                    about="The newest one, by Spark's phases.",
                ),
            ),
        ),
    ),
    (Variable("cluster", "pulsar_version_info"), Variable("remote", "interpulse_replication_topics")),
)

DASHBOARDS: Final = {dashboard.name: dashboard for dashboard in (_BROKERS, _TOPICS, _REPLICATION)}
"""Dashboards by their names on the command line."""
