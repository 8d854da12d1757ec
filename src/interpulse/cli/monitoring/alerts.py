"""Alert rules for Prometheus."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Alert(NamedTuple):
    """One alert: fires when the expression has had a result for the given time. ``{{ $labels.x }}`` inserts a label."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    remedy: str


def _page(name: str, expression: str, lasts: str, summary: str, remedy: str) -> Alert:
    return Alert(name, expression, lasts, "critical", summary, remedy)


def _ticket(name: str, expression: str, lasts: str, summary: str, remedy: str) -> Alert:
    return Alert(name, expression, lasts, "warning", summary, remedy)


def _slowest(histogram: str) -> str:
    return f"histogram_quantile(0.99, sum by (cluster, instance, le) (rate({histogram}_bucket[5m])))"


ALERTS: Final = (
    _page(
        "InterpulseBrokerDown",
        'up{job="broker"} == 0',
        "2m",
        "The broker {{ $labels.instance }} does not answer.",
        "Look at its process and its log; curl /readyz tells what it waits for.",
    ),
    _page(
        "InterpulseJournalFailed",
        "increase(interpulse_log_failed_groups_total[10m]) > 0",
        "0m",
        "Writes to the disk of {{ $labels.instance }} failed; what was not acknowledged is not stored.",
        "Look at the disk and at the broker's log; the topics were fenced and are loaded again.",
    ),
    _page(
        "InterpulseDiskFull",
        "interpulse_data_directory_full == 1",
        "0m",
        "The disk of {{ $labels.instance }} is full, and producers are refused.",
        "Free room on the file system, or acknowledge or delete messages that are not needed.",
    ),
    _ticket(
        "InterpulseDiskFillsUp",
        "interpulse_data_directory_free_bytes / interpulse_data_directory_size_bytes < 0.1",
        "10m",
        "Less than a tenth of the disk of {{ $labels.instance }} is free.",
        "Look for large backlogs and long retention; the dashboard of topics has the largest.",
    ),
    _ticket(
        "InterpulseSlowSync",
        f"{_slowest('interpulse_log_sync_seconds')} > 0.5",
        "10m",
        "A hundredth of the syncs of {{ $labels.instance }} take longer than half a second; publishing waits for them.",
        "Look at what else uses the disk, and at its health.",
    ),
    _ticket(
        "InterpulseEventLoopLag",
        f"{_slowest('interpulse_event_loop_lag_seconds')} > 0.1",
        "10m",
        "The broker {{ $labels.instance }} comes late to its clients by more than 0.1 s, now and then.",
        "Look at its processor and at what clients ask by the thousand; move bundles to another broker.",
    ),
    _ticket(
        "InterpulseBacklogAge",
        "pulsar_storage_backlog_age_seconds > 3600",
        "10m",
        "A message of {{ $labels.topic }} waits for longer than an hour. Topics with a backlog quota are watched.",
        "Look whether its consumers run and acknowledge; topics stats names the subscription.",
    ),
    _ticket(
        "InterpulseBacklogNotConsumed",
        "(pulsar_subscription_back_log_no_delayed > 0) and (pulsar_subscription_msg_ack_rate == 0)",
        "1h",
        "Messages of {{ $labels.topic }} wait, and {{ $labels.subscription }} acknowledged nothing for an hour.",
        "Look whether its consumers run, or delete the subscription if it is no longer needed.",
    ),
    _ticket(
        "InterpulseConsumersBlocked",
        "pulsar_subscription_blocked_on_unacked_messages == 1",
        "15m",
        "Consumers of {{ $labels.subscription }} on {{ $labels.topic }} get nothing: they hold too much already.",
        "Look why they do not acknowledge.",
    ),
    _page(
        "InterpulseTopicsHeld",
        'max by (cluster, remote) (interpulse_replication_topics{state="HELD"}) > 0',
        "10m",
        "Something keeps {{ $value }} topics of {{ $labels.cluster }} from being replicated to {{ $labels.remote }}.",
        "interpulse-admin namespaces replication-status names the reason and the remedy of each topic.",
    ),
    _ticket(
        "InterpulseReplicationLag",
        "max by (cluster, remote, namespace) (interpulse_replication_lag_seconds) > 300",
        "10m",
        "{{ $labels.remote }} is more than five minutes behind in {{ $labels.namespace }}.",
        "Look at the phases of micro-batches, and whether the remote cluster answers.",
    ),
    _page(
        "InterpulseReplicationJobDown",
        'interpulse_replication_job{state=~"UNAVAILABLE|RESTARTING"} == 1',
        "10m",
        "The replication job of {{ $labels.instance }} does not run.",
        "The broker's log says what is missing, or with which error it ended.",
    ),
    _ticket(
        "InterpulseTopicsNotLoaded",
        "increase(topic_load_failed_total[10m]) > 0",
        "0m",
        "Topics could not be loaded on {{ $labels.instance }}.",
        "The broker's log names them.",
    ),
    _ticket(
        "InterpulseTopicsInconsistent",
        "increase(interpulse_topic_refusals_total[1h]) > 0",
        "0m",
        "Clients of {{ $labels.instance }} ask for topics that disagree with their metadata ({{ $labels.kind }}).",
        "interpulse-admin topics doctor finds and repairs them.",
    ),
    _ticket(
        "InterpulseTokensRunningOut",
        'sum by (cluster) (increase(pulsar_expiring_token_minutes_bucket{le="60.0"}[1h])) > 0',
        "0m",
        "Clients of {{ $labels.cluster }} came with tokens that end within an hour.",
        "Give them new ones; interpulse tokens validate tells when one ends.",
    ),
    _ticket(
        "InterpulseTokensExpired",
        "increase(pulsar_expired_token_total[10m]) > 0",
        "0m",
        "Clients of {{ $labels.cluster }} came with tokens that have ended, and were not let in.",
        "Give them new ones; the broker's log has their addresses.",
    ),
)


def rules() -> dict[str, Any]:
    """Return the content of a rule file."""
    rules_of_alerts = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": alert.remedy},
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "interpulse", "rules": rules_of_alerts}]}
