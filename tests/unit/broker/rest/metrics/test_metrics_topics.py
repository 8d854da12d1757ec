"""Histograms in the form of Pulsar, and the metrics of policies with limits."""

from __future__ import annotations

from interpulse.broker.live.dispatch.dispatch_limits import NOT_THROTTLED
from interpulse.broker.live.metrics import LimitMeasure
from interpulse.broker.rest.metrics.metrics_topics import WriteFamilies, write_limits
from interpulse.serving.exposition import Exposition
from interpulse.storage.meters import WrittenEntries


def test_buckets_do_not_add_up_and_the_last_one_has_both_names() -> None:
    page, written = Exposition(), WrittenEntries()
    written.waits_ms.add(0.4, 2)
    written.waits_ms.add(2500.25)
    written.sizes.add(600, 3)
    WriteFamilies(page).add('topic="t"', written)
    shown = dict(line.split(" ") for line in page.render().decode().splitlines() if not line.startswith("#"))
    assert {name: value for name, value in shown.items() if value != "0"} == {
        'pulsar_storage_write_latency_le_0_5{topic="t"}': "2",
        'pulsar_storage_write_latency_overflow{topic="t"}': "1",
        'pulsar_storage_write_latency_le_overflow{topic="t"}': "1",
        'pulsar_storage_write_latency_count{topic="t"}': "3",
        'pulsar_storage_write_latency_sum{topic="t"}': "2501050",
        'pulsar_entry_size_le_1_kb{topic="t"}': "3",
        'pulsar_entry_size_count{topic="t"}': "3",
        'pulsar_entry_size_sum{topic="t"}': "1800",
    }
    assert {f'pulsar_entry_size_{each}{{topic="t"}}' for each in ("overflow", "le_overflow")} <= shown.keys()


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
