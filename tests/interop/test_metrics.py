"""The names of our metrics beside those of a real Pulsar: dashboards made for one have to work with the other."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Final, NamedTuple

import pytest

from interpulse.client import AdminClient, Client
from interpulse.testing.cluster_pair import ClusterPair
from tests.interop.conftest import RealPulsarFactory
from tests.interop.real_pulsar import Address
from tests.scenarios.client_compaction import compact
from tests.support.rest_client import call

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SETTINGS: Final = {"exposeConsumerLevelMetricsInPrometheus": "true"}
TOPIC: Final = "persistent://public/default/metrics"
REPLICATED: Final = "persistent://public/replicated/metrics"

OTHER_OVERFLOWS: Final = (
    ("pulsar_compaction_latency", "le_overflow"),
    ("pulsar_entry_size", "overflow"),
    ("pulsar_storage_write_latency", "le_overflow"),
)
"""Real Pulsar has one of two names for what is above all bounds; dashboards ask for the other one too."""

SHARED: Final = """
pulsar_broker_lookup_redirects_total
pulsar_broker_publish_latency
pulsar_broker_storage_backlog_quota_exceeded_evictions_total
pulsar_broker_storage_logical_size
pulsar_broker_storage_read_rate
pulsar_broker_storage_size
pulsar_broker_storage_write_rate
pulsar_broker_throttled_connections
pulsar_compaction_latency_le_0_5
pulsar_connection_create_fail_count
pulsar_connection_create_success_count
pulsar_consumer_available_permits
pulsar_consumer_blocked_on_unacked_messages
pulsar_consumer_msg_ack_rate
pulsar_consumer_msg_rate_out
pulsar_consumer_msg_rate_redeliver
pulsar_consumer_msg_throughput_out
pulsar_consumer_unacked_messages
pulsar_delayed_message_index_size_bytes
pulsar_entry_size_le_128
pulsar_entry_size_le_overflow
pulsar_metadata_store_ops_latency_ms_bucket
pulsar_metadata_store_put_bytes_total
pulsar_ml_count
pulsar_replication_backlog
pulsar_replication_connected_count
pulsar_replication_delay_in_seconds
pulsar_replication_disconnected_count
pulsar_replication_rate_expired
pulsar_replication_rate_in
pulsar_replication_rate_out
pulsar_replication_throughput_in
pulsar_replication_throughput_out
pulsar_schema_compatible_total
pulsar_schema_del_ops_latency
pulsar_schema_get_ops_latency
pulsar_schema_incompatible_total
pulsar_schema_put_ops_latency
pulsar_storage_logical_size
pulsar_storage_offloaded_size
pulsar_storage_read_cache_misses_rate
pulsar_storage_read_rate
pulsar_storage_write_latency_le_0_5
pulsar_storage_write_latency_overflow
pulsar_storage_write_rate
pulsar_subscription_back_log_no_delayed
pulsar_subscription_last_acked_timestamp
pulsar_subscription_last_consumed_flow_timestamp
pulsar_subscription_last_consumed_timestamp
pulsar_subscription_last_expire_timestamp
pulsar_subscription_last_mark_delete_advanced_timestamp
pulsar_subscription_msg_drop_rate
pulsar_subscription_msg_rate_expired
"""
"""What dashboards show, and both have."""

OURS_ALONE: Final = {
    **{f"{name}_{end}": "the other name of the two" for name, end in OTHER_OVERFLOWS},
    "pulsar_broker_in_messages_total": "per topic there",
    "pulsar_broker_out_messages_total": "per topic there",
    "pulsar_broker_storage_backlog_size": "per topic there",
    "pulsar_schema_del_ops_failed_total": "after the first one there",
    "pulsar_schema_get_ops_failed_total": "after the first one there",
    "pulsar_schema_put_ops_failed_total": "after the first one there",
}
OTHER_LABELS: Final = {
    "pulsar_broker_in_bytes_total": "system topics apart",
    "pulsar_broker_out_bytes_total": "system subscriptions apart",
    "pulsar_out_bytes_total": "consumers too there, which sums count twice",
    "pulsar_out_messages_total": "consumers too there, which sums count twice",
    "pulsar_version_info": "the commit there",
}
COUNTERS_THERE_CALLED_GAUGES: Final = {
    "pulsar_broker_in_bytes",
    "pulsar_broker_out_bytes",
    "pulsar_broker_storage_backlog_quota_exceeded_evictions",
    "pulsar_in_bytes",
    "pulsar_in_messages",
    "pulsar_out_bytes",
    "pulsar_out_messages",
}


class Page(NamedTuple):
    """One scrape."""

    labels: dict[str, set[frozenset[str]]]
    """The names of the labels of every name."""
    types: dict[str, str]


def scraped(web_url: str) -> Page:
    page = Page({}, {})
    with urllib.request.urlopen(f"{web_url}/metrics/", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            page.types[name.removesuffix("_total")] = kind
        elif line.startswith(("pulsar_", "topic_load")):
            name, _, rest = line.partition("{")
            names = (part.partition("=")[0].strip() for part in rest.rpartition("}")[0].split(",") if "=" in part)
            page.labels.setdefault(name, set()).add(frozenset(names))
    return page


async def change_schemas(web_url: str) -> None:
    """One after another: a first one, one that fits, one that does not, none."""
    path = "schemas/public/default/typed/schema"
    first = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
    fits = {**first, "fields": [*first["fields"], {"name": "b", "type": ["null", "string"], "default": None}]}
    other = {**first, "fields": [{"name": "c", "type": "int"}]}
    for definition, status in ((first, 200), (fits, 200), (other, 409)):
        body = {"type": "AVRO", "schema": json.dumps(definition), "properties": {}}
        assert (await call(web_url, "POST", path, body)).status == status
    assert (await call(web_url, "DELETE", path)).status == 200


async def use(address: Address, clusters: list[str]) -> Page:
    await call(address.web_url, "PUT", "namespaces/public/replicated", {"replication_clusters": clusters})
    await change_schemas(address.web_url)
    async with Client(address.service_url) as client, AdminClient(address.web_url) as admin:
        consumer = await client.subscribe(TOPIC, "s")
        async with await client.create_producer(TOPIC) as producer, await client.create_producer(REPLICATED) as other:
            await producer.send(b"x", key="k")
            await other.send(b"x")
            consumer.acknowledge(await consumer.receive(60_000))
            await compact(admin, TOPIC)
            return await asyncio.to_thread(scraped, address.web_url)


@pytest.mark.pulsar_settings(exposeConsumerLevelMetricsInPrometheus=True)
async def test_names_labels_and_types_are_those_of_a_real_pulsar(
    start_real_pulsar: RealPulsarFactory, pulsar_cluster_pair: ClusterPair
) -> None:
    pulsar, east = start_real_pulsar("east", SETTINGS), pulsar_cluster_pair.east
    replicated_to_itself = {"serviceUrl": pulsar.web_url, "brokerServiceUrl": pulsar.service_url}
    await call(pulsar.web_url, "PUT", "clusters/west", replicated_to_itself)
    await call(pulsar.web_url, "POST", "tenants/public", {"allowedClusters": ["east", "west"], "adminRoles": []})
    real = await use(pulsar.address, ["east", "west"])
    ours = await use(Address(east.service_url, east.web_url), ["east", "west"])

    shared = set(SHARED.split())
    assert shared <= real.labels.keys(), "the table names what a real Pulsar has not"
    assert shared <= ours.labels.keys()
    # No others than these: a real broker shows more, not less, after what other clients did on it.
    assert ours.labels.keys() - real.labels.keys() == OURS_ALONE.keys()
    both = ours.labels.keys() & real.labels.keys()
    assert {name for name in both if ours.labels[name] != real.labels[name]} == OTHER_LABELS.keys()
    types = {name for name in ours.types.keys() & real.types.keys() if ours.types[name] != real.types[name]}
    assert types == COUNTERS_THERE_CALLED_GAUGES
