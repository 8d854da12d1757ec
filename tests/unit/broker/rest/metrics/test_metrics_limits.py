"""What is shown of a topic that policies limit."""

from __future__ import annotations

from interpulse.broker.live.dispatch.dispatch_limits import NOT_THROTTLED
from interpulse.broker.live.metrics import LimitMeasure
from interpulse.broker.rest.metrics.metrics_limits import write_limits
from interpulse.serving.exposition import Exposition


def test_every_figure_has_the_name_and_the_labels_of_pulsar() -> None:
    page = Exposition()
    events = {
        **NOT_THROTTLED,
        "dispatchThrottledMsgEventsByTopicLimit": 7,
        "dispatchThrottledBytesEventsBySubscriptionLimit": 8,
    }
    write_limits(page, 'topic="t"', LimitMeasure(1, 2, 3, 4, {"message_age": 5}, {"s": events}))
    shown = [line for line in page.render().decode().splitlines() if not line.startswith("#")]
    assert shown == [
        'pulsar_publish_rate_limit_times{topic="t"} 1',
        'pulsar_storage_backlog_quota_limit{topic="t"} 2',
        'pulsar_storage_backlog_quota_limit_time{topic="t"} 3',
        'pulsar_storage_backlog_age_seconds{topic="t"} 4',
        'pulsar_storage_backlog_quota_exceeded_evictions_total{topic="t",quota_type="size"} 0',
        'pulsar_storage_backlog_quota_exceeded_evictions_total{topic="t",quota_type="time"} 5',
        'pulsar_subscription_dispatch_throttled_msg_events{topic="t",subscription="s",reason="subscription"} 0',
        'pulsar_subscription_dispatch_throttled_msg_events{topic="t",subscription="s",reason="topic"} 7',
        'pulsar_subscription_dispatch_throttled_bytes_events{topic="t",subscription="s",reason="subscription"} 8',
        'pulsar_subscription_dispatch_throttled_bytes_events{topic="t",subscription="s",reason="topic"} 0',
    ]
