"""Under load brokers of Apache Pulsar are replaced by ours, one after the other, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.interop.mixed_cluster import (
    Broker,
    OurBroker,
    Traffic,
    ask,
    check_stored,
    create_namespace,
    known_owner,
    running,
    service_url,
)
from tests.interop.real_pulsar.bookkeeper import RealBookKeeper, real_bookkeeper
from tests.interop.real_pulsar.broker import START_SECONDS_MAX, RealBroker
from tests.support.soak import only_soaking

pytestmark = [pytest.mark.interop, pytest.mark.slow, only_soaking]

BROKERS = 3
ROUNDS = 3
REPLACEMENTS = 2 * BROKERS * ROUNDS
TOPICS = [f"persistent://public/rolling/t-{number}" for number in range(6)]
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'
SCHEMA = {"type": "AVRO", "schema": RECORD, "properties": {"p": "q"}}


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[RealBookKeeper]:
    with real_bookkeeper(tmp_path, 3) as running_engines:
        yield running_engines


@pytest.mark.timeout(600 + START_SECONDS_MAX * REPLACEMENTS)
def test_brokers_when_replaced_and_back_under_load_then_nothing_is_lost_doubled_or_reordered(
    engines: RealBookKeeper, tmp_path: Path
) -> None:
    zookeeper = engines.zookeeper.address
    with ExitStack() as ends:
        seats = [
            (RealBroker(tmp_path / f"real-{number}", zookeeper), OurBroker(tmp_path / f"ours-{number}", zookeeper))
            for number in range(BROKERS)
        ]
        for each in (broker for seat in seats for broker in seat):
            ends.callback(each.kill)
        for real, _ in seats:
            real.begin()
        for real, _ in seats:
            real.wait()
        serving: list[Broker] = [real for real, _ in seats]
        everywhere: list[Broker] = [broker for seat in seats for broker in seat]
        url = service_url(everywhere)
        settings = prepare(serving)
        traffic = Traffic(
            TOPICS, producers=("a", "b", "c"), subscriptions=(pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover)
        )
        with running(traffic, url):
            for _ in range(ROUNDS):
                for kind in (1, 0):  # ours, then real ones
                    for number, seat in enumerate(seats):
                        replace(serving, number, seat[kind])
                        traffic.goes_on()
                        for broker in serving:
                            assert shown(broker) == settings
                    assert {known_owner(topic, serving) for topic in TOPICS} <= {seat[kind] for seat in seats}
        check_stored(traffic, url)


def replace(serving: list[Broker], number: int, by: Broker) -> None:
    """The new one is there before the old one leaves."""
    by.start()
    old, serving[number] = serving[number], by
    old.stop()


def prepare(serving: list[Broker]) -> dict[str, Any]:
    """A namespace with a topic that has a schema and a policy; what is set there."""
    broker = serving[0]
    create_namespace(broker, "public/rolling")
    ask(broker, "POST", "namespaces/public/rolling/messageTTL", 100_000)
    at = known_owner("persistent://public/rolling/with-schema", serving)
    ask(at, "PUT", "persistent/public/rolling/with-schema")
    ask(at, "POST", "persistent/public/rolling/with-schema/maxConsumers", 5)
    ask(at, "POST", "schemas/public/rolling/with-schema/schema", SCHEMA)
    return shown(broker)


def shown(broker: Broker) -> dict[str, Any]:
    """Policies of the namespace and of a topic, and its schema, as a broker tells them."""
    namespace = ask(broker, "GET", "namespaces/public/rolling")
    consumers = ask(broker, "GET", "persistent/public/rolling/with-schema/maxConsumers")
    schema = ask(broker, "GET", "schemas/public/rolling/with-schema/schema")
    names = ("deduplicationEnabled", "retention_policies", "message_ttl_in_seconds", "bundles", "replication_clusters")
    return {name: namespace[name] for name in names} | {
        "maxConsumers": consumers,
        "schema": [schema[name] for name in ("version", "type", "data", "properties")],
    }
