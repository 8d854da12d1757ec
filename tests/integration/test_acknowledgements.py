"""Acknowledgements that tools carry between clusters: the calls that report and apply them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.topic.topic import Topic
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.errors import Conflict, NotAllowed, SubscriptionNotFound, TopicNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from tests.support.rest_broker import RestBroker, rest_broker

TOPIC = "persistent://public/default/t"
ONE = TOPIC.replace("://", "/")


@dataclass
class Bench:
    """A broker with ten messages in the topic, and the marked subscription ``s`` from the first on."""

    broker: RestBroker
    admin: AdminClient
    client: Client
    http: aiohttp.ClientSession
    ledger: int = 0

    async def publish(self, count: int, topic: str = TOPIC) -> None:
        async with await self.client.create_producer(topic, batching_enabled=False) as producer:
            for number in range(count):
                self.ledger = (await producer.send(b"%d" % number)).ledger

    async def post(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        path = f"/admin/v2/{ONE}/subscription/s/acknowledgements"
        async with self.http.post(path, json=body) as response:
            return response.status, await response.json()

    async def cursor(self) -> tuple[str, str]:
        found = (await self.admin.topics.internal_stats(TOPIC))["cursors"]["s"]
        return found["markDeletePosition"], found["individuallyDeletedMessages"]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with new_bench() as bench:
        yield bench


@asynccontextmanager
async def new_bench(config: BrokerConfig | None = None) -> AsyncIterator[Bench]:
    async with (
        rest_broker(config) as broker,
        AdminClient(broker.web_url) as admin,
        Client(broker.app.service_url) as client,
        aiohttp.ClientSession(broker.web_url) as http,
    ):
        bench = Bench(broker, admin, client, http)
        await admin.topics.create_subscription(TOPIC, "s", MessageId(*EARLIEST), replicated=True)
        await bench.publish(10)
        yield bench


async def test_applied_then_the_number_of_new_ones_is_returned_and_they_are_stored(bench: Bench) -> None:
    ledger, acknowledge = bench.ledger, bench.admin.topics.acknowledge
    ranges = [(ledger, 4, 5), (ledger, 8, 8)]
    assert await acknowledge(TOPIC, "s", resets=0, mark_delete=Position(ledger, 1), ranges=ranges) == 5
    assert await acknowledge(TOPIC, "s", mark_delete=Position(ledger, 1), ranges=ranges) == 0
    assert await acknowledge(TOPIC, "s", ranges=[(ledger, 2, 4)], masks=[(ledger, 9, [6]), (ledger, 8, [6])]) == 3
    stored = json.loads(bench.broker.store.tree.values["/managed-ledgers/public/default/persistent/t/s"].value)
    assert stored["markDeletePosition"] == f"{ledger}:5"
    assert stored["individuallyDeletedMessages"] == [[ledger, 8, 8]]
    assert stored["batchedEntryDeletionIndexInfo"] == {f"{ledger}:9": [6]}


async def test_applied_then_the_metric_counts_and_no_rate_does(bench: Bench) -> None:
    async with await bench.client.subscribe(TOPIC, "s") as consumer:
        assert await consumer.receive() is not None
        await bench.admin.topics.acknowledge(TOPIC, "s", mark_delete=Position(bench.ledger, 4))
        async with bench.http.get("/metrics") as response:
            page = await response.text()
        labels = 'cluster="standalone",namespace="public/default"'
        assert f"interpulse_synced_acknowledgements_total{{{labels}}} 5\n" in page
        (live,) = bench.broker.context.registry.topics()[0].subscriptions["s"].consumers
        assert live.acknowledged.messages == 0


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"markDelete": "LEDGER:10"}, "Position LEDGER:10 is not in the log of .*, whose last entry is LEDGER:9"),
        ({"ranges": [["LEDGER", 8, 12]]}, "Position LEDGER:12 is not in the log"),
        ({"masks": [["LEDGER", 11, [1]]]}, "Position LEDGER:11 is not in the log"),
        ({"markDelete": "7"}, 'markDelete must be a position "ledger:entry", not "7"'),
        ({"markDelete": "7:-2"}, 'markDelete must be a position "ledger:entry"'),
        ({"ranges": [[1, 5, 4]]}, r"A range must be \[ledger, first entry, last entry\], not \[1, 5, 4\]"),
        ({"ranges": [[1, 5]]}, "A range must be"),
        ({"ranges": [[1, -1, 4]]}, "A range must be"),
        ({"ranges": 5}, "ranges must be an array, not 5"),
        ({"masks": [[1, 5, []]]}, r"A mask must be \[ledger, entry, \[words\]\] with words of 64 bits"),
        ({"masks": [[1, 5, [2**64]]]}, "A mask must be"),
        ({"resets": "x"}, "resets must be an integer"),
    ],
)
async def test_applied_when_a_part_is_wrong_then_nothing_is_acknowledged(
    bench: Bench, sent: dict[str, Any], reason: str
) -> None:
    ledger = bench.ledger
    before = await bench.cursor()
    body = json.dumps({"markDelete": "LEDGER:2"} | sent).replace('"LEDGER"', str(ledger)).replace("LEDGER", str(ledger))
    status, answer = await bench.post(json.loads(body))
    assert (status, await bench.cursor()) == (400, before)
    assert re.match(reason.replace("LEDGER", str(ledger)), answer["reason"])


async def test_applied_when_the_cursor_was_reset_meanwhile_then_nothing_is_acknowledged(bench: Bench) -> None:
    await bench.admin.topics.reset_cursor_to_message(TOPIC, "s", MessageId(bench.ledger, 0))
    status, answer = await bench.post({"resets": 0, "markDelete": f"{bench.ledger}:5"})
    assert (status, answer["resets"]) == (409, 1)
    assert answer["reason"] == (
        f"Subscription s of topic {TOPIC} has been reset 1 times, not 0; nothing was acknowledged"
    )
    with pytest.raises(Conflict, match="has been reset 1 times, not 2"):
        await bench.admin.topics.acknowledge(TOPIC, "s", resets=2)
    assert await bench.post({"resets": 1, "markDelete": f"{bench.ledger}:5"}) == (200, {"new": 6})


async def test_applied_to_something_else_then_refused(bench: Bench) -> None:
    acknowledge = bench.admin.topics.acknowledge
    await bench.admin.topics.create_subscription(TOPIC, "pulsar.repl.west")
    await bench.admin.topics.create_partitioned("public/default/p", 2)
    with pytest.raises(TopicNotFound):
        await acknowledge("public/default/missing", "s")
    with pytest.raises(SubscriptionNotFound, match="Subscription missing not found"):
        await acknowledge(TOPIC, "missing")
    with pytest.raises(SubscriptionNotFound, match=r"pulsar.repl.west of topic .* is no subscription of clients"):
        await acknowledge(TOPIC, "pulsar.repl.west")
    with pytest.raises(NotAllowed, match="on a partitioned topic is not allowed, ask one of its partitions"):
        await acknowledge("public/default/p", "s")
    async with await bench.client.create_reader(TOPIC, MessageId(*EARLIEST), name="r"):
        topic = bench.broker.context.registry.get(TopicName.parse(TOPIC))
        assert isinstance(topic, Topic)
        (reader,) = (name for name, subscription in topic.subscriptions.items() if not subscription.durable)
        with pytest.raises(NotAllowed, match=rf"Subscription {reader} of topic .* is not durable: it is a reader"):
            await acknowledge(TOPIC, reader)


async def test_setting_that_is_off_then_applying_is_refused() -> None:
    config = BrokerConfig(enable_replicated_subscriptions=False)
    async with rest_broker(config) as broker, AdminClient(broker.web_url) as admin:
        await admin.topics.create_subscription(TOPIC, "s")
        with pytest.raises(Conflict, match="enableReplicatedSubscriptions=false"):
            await admin.topics.acknowledge(TOPIC, "s")
