"""Metrics of policies with limits. Only topics with such policies have these series."""

from __future__ import annotations

from typing import Final

from interpulse.broker.live.metrics import LimitMeasure
from interpulse.model.policies.policy_records import DESTINATION_STORAGE, MESSAGE_AGE
from interpulse.serving.exposition import Exposition, Kind, labelled

Row = tuple[str, Kind, str]

_OF_TOPIC: Final[tuple[Row, ...]] = (
    ("pulsar_publish_rate_limit_times", "gauge", "Pauses in reading from clients because of the publish rate."),
    ("pulsar_storage_backlog_quota_limit", "gauge", "Bytes that may be unacknowledged; -1 = no limit."),
    ("pulsar_storage_backlog_quota_limit_time", "gauge", "Age in seconds that a backlog may have; -1 = no limit."),
    ("pulsar_storage_backlog_age_seconds", "gauge", "Age of the oldest unacknowledged message; -1 = none."),
)
_EVICTIONS: Final[Row] = (
    "pulsar_storage_backlog_quota_exceeded_evictions_total",
    "counter",
    "Evictions of messages by a backlog quota.",
)
QUOTA_TYPES: Final = ((DESTINATION_STORAGE, "size"), (MESSAGE_AGE, "time"))
"""The types of quotas, and the words of metrics for them."""
_THROTTLED: Final[tuple[tuple[str, Row], ...]] = (
    (
        "Msg",
        (
            "pulsar_subscription_dispatch_throttled_msg_events",
            "gauge",
            "Pauses in sending because of a dispatch rate in messages.",
        ),
    ),
    (
        "Bytes",
        (
            "pulsar_subscription_dispatch_throttled_bytes_events",
            "gauge",
            "Pauses in sending because of a dispatch rate in bytes.",
        ),
    ),
)


def write_limits(page: Exposition, labels: str, limits: LimitMeasure) -> None:
    """Add the limits of one topic; ``labels`` name it."""
    for row, figure in zip(_OF_TOPIC, limits[:4], strict=True):
        page.add(*row, labels, figure)
    for quota_type, label in QUOTA_TYPES:
        page.add(*_EVICTIONS, f"{labels},{labelled(quota_type=label)}", limits.evictions.get(quota_type, 0))
    for subscription, events in limits.throttled.items():
        for kind, row in _THROTTLED:
            for owner in ("Subscription", "Topic"):
                reason = labelled(subscription=subscription, reason=owner.lower())
                page.add(*row, f"{labels},{reason}", events[f"dispatchThrottled{kind}EventsBy{owner}Limit"])
