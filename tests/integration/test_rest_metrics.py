"""What ``/metrics`` shows, read as Prometheus reads it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from prometheus_client.parser import text_string_to_metric_families

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.replication.replication_status import STATES
from interpulse.broker.rest.metrics import metrics_topics
from interpulse.client import AdminClient, Client
from interpulse.testing.broker import InProcessBroker
from interpulse.testing.cluster_pair import ClusterPair
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call
from tests.support.waiting import SECONDS_MAX, eventually

DEFAULT = {"namespace": "public/default"}
X = {**DEFAULT, "topic": "persistent://public/default/x"}


class Page:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"{key} stands there twice"
                self.samples[key] = sample.value

    def value(self, name: str, /, **labels: str) -> float:
        return self.samples[name, frozenset({**labels, "cluster": "standalone"}.items())]

    def labels_of(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for found, labels in self.samples if found == name]


async def scrape(web_url: str, path: str = "/metrics") -> Page:
    reply = await call(web_url, "GET", path)
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return Page(reply.body.decode())


async def test_topics_and_subscriptions_are_shown_one_by_one_with_their_sums(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/public/default/x/subscription/s")
    await call(broker.web_url, "PUT", "non-persistent/public/default/n")
    page = await scrape(broker.web_url)
    assert page.value("pulsar_subscriptions_count", **X) == 1
    assert page.value("pulsar_rate_in", **X) == page.value("pulsar_in_messages_total", **X) == 0
    assert page.value("pulsar_subscription_back_log", **X, subscription="s") == 0
    assert page.value("pulsar_topics_count", **DEFAULT) == page.value("pulsar_broker_topics_count") == 2
    assert page.value("pulsar_broker_subscriptions_count") == 1
    assert page.value("pulsar_topic_load_times_count") == 2
    assert len(page.labels_of("pulsar_rate_in")) == 2
    assert page.value("interpulse_metrics_topics_left_out") == 0
    assert ("process_cpu_seconds_total", frozenset()) in page.samples
    assert (await scrape(broker.web_url, "/metrics/")).samples.keys() == page.samples.keys()


async def test_names_with_quotes_and_backslashes_are_read_back_as_they_are(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/public/default/a%22b%5C%0Ac")
    await call(broker.web_url, "GET", "persistent/public/default/a%22b%5C%0Ac/stats")  # loads it
    assert {"cluster": "standalone", **DEFAULT, "topic": 'persistent://public/default/a"b\\\nc'} in (
        await scrape(broker.web_url)
    ).labels_of("pulsar_storage_size")


async def test_namespaces_are_shown_in_place_of_topics_when_so_configured() -> None:
    async with rest_broker(BrokerConfig(expose_topic_level_metrics_in_prometheus=False)) as broker:
        for name in ("x", "y"):
            await call(broker.web_url, "PUT", f"persistent/public/default/{name}/subscription/s")
        page = await scrape(broker.web_url)
    assert page.labels_of("pulsar_subscriptions_count") == [{"cluster": "standalone", **DEFAULT}]
    assert page.value("pulsar_subscriptions_count", **DEFAULT) == 2
    assert page.labels_of("pulsar_subscription_back_log") == []
    assert page.value("interpulse_metrics_topics_left_out") == 0


async def test_namespaces_are_shown_in_place_of_too_many_topics(
    broker: RestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_topics, "SERIES_OWNERS_MAX", 3)
    for name in ("x", "y"):
        await call(broker.web_url, "PUT", f"persistent/public/default/{name}/subscription/s")
    page = await scrape(broker.web_url)
    assert page.value("pulsar_subscriptions_count", **DEFAULT) == 2
    assert page.value("interpulse_metrics_topics_left_out") == 2
    await call(broker.web_url, "DELETE", "persistent/public/default/y/subscription/s")
    assert page.value("pulsar_broker_subscriptions_count") == 2
    page = await scrape(broker.web_url)
    assert page.value("pulsar_subscriptions_count", **X) == 1
    assert page.value("interpulse_metrics_topics_left_out") == 0


async def test_traffic_lookups_connections_and_writes_are_counted(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client:
        consumer = await client.subscribe("x", "s")
        async with await client.create_producer("x", batching_enabled=False) as producer:
            for _ in range(3):
                await producer.send(b"hello")
            await consumer.receive(60_000)
            page = await scrape(pulsar_broker.web_url)
    assert page.value("pulsar_producers_count", **X) == page.value("pulsar_consumers_count", **X) == 1
    assert page.value("pulsar_in_messages_total", **X) == 3
    assert page.value("pulsar_out_messages_total", **X, subscription="s") == 3
    assert page.value("pulsar_msg_backlog", **X) == page.value("pulsar_broker_msg_backlog") == 3
    assert page.value("pulsar_broker_lookup_count") == page.value("pulsar_broker_lookup_answers_total") == 2
    assert page.value("pulsar_broker_lookup", quantile="1.0") > 0
    assert page.value("pulsar_broker_lookup_pending_requests") == page.value("interpulse_lookup_rejected_total") == 0
    connections = {"broker": "127.0.0.1", "metric": "broker_connection"}
    for name in ("pulsar_active_connections", "pulsar_connection_created_total_count"):
        assert (
            page.value(name, **connections) == page.value("pulsar_connection_create_success_count", **connections) == 1
        )
    assert page.value("pulsar_connection_create_fail_count", **connections) == 0
    assert page.value("pulsar_broker_throttled_connections") == page.value("pulsar_broker_lookup_redirects_total") == 0
    assert page.value("pulsar_broker_publish_latency_count") == 3
    assert page.value("pulsar_broker_publish_latency", quantile="1.0") > 0
    assert page.value("interpulse_log_sync_seconds_count") == page.value("interpulse_log_groups_total")
    assert page.value("interpulse_log_sync_seconds_bucket", le="+Inf") == page.value("interpulse_log_groups_total")
    assert page.value("interpulse_event_loop_lag_seconds_count") > 0
    store = {"name": "metadata-store"}
    assert page.value("pulsar_metadata_store_ops_latency_ms_count", **store, type="put", status="success") > 0
    assert page.value("pulsar_metadata_store_put_bytes_total", **store) > 0
    assert page.value("pulsar_ml_count") == 1
    assert page.value("pulsar_storage_logical_size", **X) == page.value("pulsar_storage_size", **X) > 0
    assert page.value("pulsar_storage_offloaded_size", **X) == 0
    assert page.value("pulsar_subscription_last_consumed_timestamp", **X, subscription="s") > 1_700_000_000_000
    assert page.value("pulsar_subscription_last_acked_timestamp", **X, subscription="s") == 0
    assert page.value("interpulse_log_groups_total") >= 3
    assert page.value("interpulse_log_failed_groups_total") == 0
    assert page.value("pulsar_entry_size_overflow", **X) == page.value("pulsar_entry_size_le_overflow", **X) == 0
    assert page.value("pulsar_storage_write_latency_overflow", **X) == 0
    assert page.value("pulsar_storage_write_latency_le_overflow", **X) == 0
    assert page.labels_of("pulsar_consumer_available_permits") == []


@pytest.mark.pulsar_settings(exposeConsumerLevelMetricsInPrometheus=True)
async def test_consumers_are_shown_when_so_configured(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client:
        await client.subscribe("x", "s", name="me", receiver_queue_size=7)
        page = await scrape(pulsar_broker.web_url)
    (labels,) = page.labels_of("pulsar_consumer_available_permits")
    assert labels == {"cluster": "standalone", **X, "subscription": "s", "consumer_name": "me", "consumer_id": "0"}
    labels.pop("cluster")
    assert page.value("pulsar_consumer_available_permits", **labels) == 7
    assert page.value("pulsar_consumer_unacked_messages", **labels) == 0
    assert len(page.labels_of("pulsar_out_messages_total")) == 1, "a sum over it counts everything once"


@pytest.mark.pulsar_settings(exposeSubscriptionBacklogAgeInPrometheus=True, backlogQuotaCheckIntervalInSeconds=1)
async def test_backlog_ages_when_configured_then_are_shown_for_each_subscription_that_waits(
    pulsar_broker: InProcessBroker,
) -> None:
    name = "pulsar_subscription_storage_backlog_age_seconds"
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        for subscription in ("waits", "idle"):
            await admin.topics.create_subscription(X["topic"], subscription)
        async with await client.create_producer("x") as producer:
            await producer.send(b"hello")
        await admin.topics.skip_all(X["topic"], "idle")
        page = await scrape(pulsar_broker.web_url)
        async with asyncio.timeout(SECONDS_MAX):
            while not page.labels_of(name):
                await asyncio.sleep(0.05)
                page = await scrape(pulsar_broker.web_url)
        stats = (await admin.topics.stats(X["topic"]))["subscriptions"]
    assert page.labels_of(name) == [{"cluster": "standalone", **X, "subscription": "waits"}]
    ages = {subscription: figures["oldestBacklogMessageAgeSeconds"] for subscription, figures in stats.items()}
    assert ages["waits"] >= page.value(name, **X, subscription="waits") >= 0
    assert ages["idle"] == -1


@pytest.mark.pulsar_settings(exposeTopicLevelMetricsInPrometheus=False)
async def test_entries_are_shown_by_namespace_where_topics_are_not(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client:
        for topic in ("x", "y"):
            async with await client.create_producer(topic) as producer:
                await producer.send(b"hello")
        page = await scrape(pulsar_broker.web_url)
    assert page.labels_of("pulsar_entry_size_count") == [{"cluster": "standalone", **DEFAULT}]
    assert page.value("pulsar_storage_offloaded_size", **DEFAULT) == 0
    assert page.value("pulsar_broker_storage_backlog_quota_exceeded_evictions_total", quota_type="size") == 0


async def test_schemas_and_their_conflicts_are_counted_by_namespace(broker: RestBroker) -> None:
    path, schema = "schemas/public/default/x/schema", {"type": "STRING", "schema": "", "properties": {}}
    assert (await call(broker.web_url, "POST", path, schema)).status == 200
    assert (await call(broker.web_url, "POST", path, {**schema, "type": "INT32"})).status == 409
    assert (await call(broker.web_url, "DELETE", path)).status == 200
    page = await scrape(broker.web_url)
    assert page.value("pulsar_schema_put_ops_latency_count", **DEFAULT) == 1
    assert page.value("pulsar_schema_del_ops_latency_count", **DEFAULT) == 1
    assert page.value("pulsar_schema_get_ops_latency_count", **DEFAULT) >= 3
    assert page.value("pulsar_schema_get_ops_failed_total", **DEFAULT) == 0
    assert page.value("pulsar_schema_compatible_total", **DEFAULT) == 1
    assert page.value("pulsar_schema_incompatible_total", **DEFAULT) == 1


def test_lookups_that_are_refused_are_counted_apart(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        assert client.ask(commands.lookup(1, "persistent://public/nope/t")).error == pb.TopicNotFound
        client.ask(commands.lookup(2, "persistent://public/default/t"))
        client.ask(commands.partitioned_metadata(3, "persistent://public/default/t", create=False))
    page = asyncio.run(scrape(pulsar_broker.web_url))
    assert page.value("pulsar_broker_lookup_failures_total") == page.value("pulsar_broker_lookup_answers_total") == 1


def test_consistency_refusals_of_both_front_ends_are_counted_by_kind_and_warned_about_once(
    pulsar_broker: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    web_url, base = pulsar_broker.web_url, "persistent://public/default"
    with RawClient(pulsar_broker.service_url) as client, caplog.at_level(logging.WARNING):
        asyncio.run(call(web_url, "PUT", "persistent/public/default/p/partitions", 2))
        asyncio.run(call(web_url, "PUT", "non-persistent/public/default/p/partitions", 2))
        for number in range(3):
            refused = client.ask(commands.producer(number, number, f"{base}/x-partition-0", name="me"))
            assert refused.error == pb.NotAllowedError
        client.ask(commands.producer(3, 3, f"{base}/p"))
        client.ask(commands.subscribe(4, 4, f"non-{base}/p-partition-2", "sub"))
        reply = asyncio.run(call(web_url, "PUT", "persistent/public/default/x-partition-0/subscription/s"))
        assert reply.status == 409
    page = asyncio.run(scrape(web_url))
    assert page.value("interpulse_topic_refusals_total", kind="metadata_missing") == 4
    assert page.value("interpulse_topic_refusals_total", kind="partitioned_metadata_found") == 1
    assert page.value("interpulse_topic_refusals_total", kind="partition_beyond_metadata") == 1
    missing, found, beyond = [line for line in caplog.messages if line.startswith("topic refused")]
    assert f"topic={base}/x-partition-0 client=producer me at /127.0.0.1:" in missing
    assert f"topic={base}/p client=producer without name at" in found
    assert f"topic=non-{base}/p-partition-2 client=consumer of subscription sub at" in beyond


async def test_topics_are_counted_by_the_state_of_their_replication(pulsar_cluster_pair: ClusterPair) -> None:
    east = pulsar_cluster_pair.east
    path = "public/default"
    await call(east.web_url, "PUT", f"persistent/{path}/t/subscription/s")
    record = {"topic": f"persistent://{path}/t", "cluster": "west", "state": "HELD", "reason": "no", "remedy": "yes"}
    lag = {"since": 9_999_999_999_999, "lagEntries": 3, "lagMessages": 5, "lagSeconds": 7.5}
    assert (await call(east.web_url, "POST", f"namespaces/{path}/replication", ["east", "west"])).status == 204
    await eventually(lambda: east.app.parts.replication.remote_topics.topics())
    reported = await call(east.web_url, "POST", f"namespaces/{path}/replication/status", [{**record, **lag}])
    assert reported.status == 204, reported.body
    page = await scrape(east.web_url)
    states = {
        dict(labels)["state"]: value
        for (name, labels), value in page.samples.items()
        if name == "interpulse_replication_topics"
    }
    assert states == dict.fromkeys(STATES, 0) | {"HELD": 1}
    lags = {
        name: value for (name, labels), value in page.samples.items() if name.startswith("interpulse_replication_lag_")
    }
    assert lags == {
        "interpulse_replication_lag_entries": 3,
        "interpulse_replication_lag_messages": 5,
        "interpulse_replication_lag_seconds": 7.5,
    }
    of_topic = [
        value
        for (name, labels), value in page.samples.items()
        if name == "pulsar_replication_delay_in_seconds" and ("remote_cluster", "west") in labels
    ]
    assert of_topic == [7.5]
