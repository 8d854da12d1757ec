"""What ``/metrics`` shows, read as Prometheus reads it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from prometheus_client.parser import text_string_to_metric_families

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.rest.metrics import metrics_topics
from interpulse.client import Client
from interpulse.testing.broker import InProcessBroker
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.raw_client import RawClient
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call

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

    def value(self, name: str, **labels: str) -> float:
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
            await consumer.receive(5000)
            page = await scrape(pulsar_broker.web_url)
    assert page.value("pulsar_producers_count", **X) == page.value("pulsar_consumers_count", **X) == 1
    assert page.value("pulsar_in_messages_total", **X) == 3
    assert page.value("pulsar_out_messages_total", **X, subscription="s") == 3
    assert page.value("pulsar_msg_backlog", **X) == page.value("pulsar_broker_msg_backlog") == 3
    assert page.value("pulsar_broker_lookup_count") == page.value("pulsar_broker_lookup_answers_total") == 2
    assert page.value("pulsar_broker_lookup", quantile="1.0") > 0
    assert page.value("pulsar_broker_lookup_pending_requests") == page.value("interpulse_lookup_rejected_total") == 0
    assert page.value("pulsar_active_connections") == page.value("pulsar_connection_created_total_count") == 1
    assert page.value("interpulse_log_groups_total") >= 3
    assert page.value("interpulse_log_failed_groups_total") == 0
    assert sum(value for (name, _), value in page.samples.items() if name.startswith("pulsar_entry_size_le_")) == 0


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
