"""The names of our metrics beside those of a real Pulsar: dashboards made for one have to work with the other."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from interpulse.client import AdminClient, Client
from interpulse.testing.broker import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.scenarios.client_compaction import compact

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# Ours alone: real Pulsar counts these per topic only, or shows them for clusters that replicate.
NOT_ON_A_LONE_REAL_BROKER = {"pulsar_broker_in_messages_total", "pulsar_broker_out_messages_total"}
OUR_SUMS = {"pulsar_broker_storage_backlog_size"}
BY_NAMESPACE = ("pulsar_storage_write_latency_", "pulsar_entry_size_")
"""Per topic on a real Pulsar; a dashboard that sums them gets the same."""
TIMES_OF_SINGLE_WRITES = "pulsar_compaction_latency_"
"""Of each entry that a compaction writes; ours writes many at once."""
LABELS_THAT_DIFFER = {
    "pulsar_active_connections",
    "pulsar_broker_in_bytes_total",
    "pulsar_broker_out_bytes_total",
    "pulsar_connection_closed_total_count",
    "pulsar_connection_created_total_count",
    "pulsar_version_info",
}


def series(web_url: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Name and label names of every sample."""
    with urllib.request.urlopen(f"{web_url}/metrics/", timeout=30) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(("pulsar_", "topic_load")):
                name, _, rest = line.partition("{")
                labels = rest.rpartition("}")[0]
                yield name, frozenset(part.partition("=")[0].strip() for part in labels.split(",") if "=" in part)


async def use(address: Address, topic: str) -> None:
    async with Client(address.service_url) as client, AdminClient(address.web_url) as admin:
        consumer = await client.subscribe(topic, "s")
        async with await client.create_producer(topic) as producer:
            await producer.send(b"x", key="k")
        await consumer.receive(60_000)
        await compact(admin, topic)


async def test_names_and_labels_are_those_of_a_real_pulsar(
    real_pulsar: Address, pulsar_broker: InProcessBroker
) -> None:
    topic = "persistent://public/default/metrics"
    ours_at = Address(pulsar_broker.service_url, pulsar_broker.web_url)
    await use(real_pulsar, topic)
    await use(ours_at, topic)
    real, ours = set(series(real_pulsar.web_url)), set(series(ours_at.web_url))
    real_names = {name for name, _ in real}
    compaction = {name for name in real_names if name.startswith("pulsar_compaction_")}
    assert {name for name in compaction if not name.startswith(TIMES_OF_SINGLE_WRITES)} <= {name for name, _ in ours}
    # No others than these: that broker shows more, not less, after what other tests did on it.
    assert {name for name, _ in ours} - real_names <= NOT_ON_A_LONE_REAL_BROKER | OUR_SUMS
    other_labels = {name for name, labels in ours if name in real_names and (name, labels) not in real}
    assert {name for name in other_labels if not name.startswith(BY_NAMESPACE)} <= LABELS_THAT_DIFFER
