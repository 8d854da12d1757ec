"""Histograms in the form of Pulsar."""

from __future__ import annotations

from interpulse.broker.rest.metrics.metrics_buckets import WriteFamilies
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
