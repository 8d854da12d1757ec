"""Acknowledgements that tools carry between clusters: the calls that report and apply them."""

from __future__ import annotations

import asyncio
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
from interpulse.broker.replication import acknowledgement_feed
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.errors import (
    Conflict,
    InvalidRequest,
    NamespaceNotFound,
    NotAllowed,
    SubscriptionNotFound,
    TopicNotFound,
)
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from tests.support.proxies import proxy_in_thread
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

    async def page(self, since: str | None = None, **options: Any) -> dict[str, Any]:
        return await self.admin.namespaces.acknowledgements("public/default", since=since, **options)

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


async def test_reset_that_is_carried_then_takes_back_what_is_behind_it_and_has_the_number_of_the_other_cluster(
    bench: Bench,
) -> None:
    ledger = bench.ledger
    consumer = await bench.client.subscribe(TOPIC, "s", subscription_type="shared")
    await bench.post({"markDelete": f"{ledger}:6", "ranges": [[ledger, 8, 8]]})
    status, answer = await bench.post({"resets": 1, "resetAs": 4, "markDelete": f"{ledger}:2"})
    assert (status, answer["resets"]) == (409, 0)
    assert await bench.post({"resets": 0, "resetAs": 4, "markDelete": f"{ledger}:2"}) == (200, {"new": 0})
    assert await bench.cursor() == (f"{ledger}:2", "[]")
    page = await bench.admin.namespaces.acknowledgements("public/default")
    assert page["subscriptions"][0]["resets"] == 4
    expected = set(range(3, 10))
    while expected:  # what was delivered before may come first
        expected.discard(int((await consumer.receive()).content or b""))
    for body in ({"resetAs": 1}, {"resetAs": 1, "markDelete": f"{ledger}:2", "ranges": [[ledger, 4, 4]]}):
        status, answer = await bench.post(body)
        assert (status, answer["reason"]) == (400, "A reset (resetAs) has a markDelete and neither ranges nor masks")


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


def names_of(page: dict[str, Any]) -> list[str]:
    return [state["subscription"] for state in page["subscriptions"]]


async def test_asked_then_returns_the_state_of_marked_subscriptions_that_changed(bench: Bench) -> None:
    await bench.admin.topics.create_subscription(TOPIC, "unmarked")
    first = await bench.page()
    (state,) = first["subscriptions"]
    assert state == {
        "topic": TOPIC,
        "subscription": "s",
        "resets": 0,
        "markDelete": state["markDelete"],
        "ranges": [],
        "masks": [],
        "consumers": 0,
        "replicated": True,
        "properties": {},
    }
    again = await bench.page(first["token"])
    assert (again["subscriptions"], again["more"]) == ([], False)
    ledger = bench.ledger
    await bench.admin.topics.acknowledge(TOPIC, "s", ranges=[(ledger, 3, 4)], masks=[(ledger, 6, [5])])
    (state,) = (await bench.page(again["token"]))["subscriptions"]
    assert (state["ranges"], state["masks"]) == ([[ledger, 3, 4]], [[ledger, 6, [5]]])


async def test_asked_for_all_then_reports_unmarked_ones_and_none_of_the_broker(bench: Bench) -> None:
    for name in ("unmarked", "interpulse.own", "pulsar.repl.west"):
        await bench.admin.topics.create_subscription(TOPIC, name)
    await bench.admin.topics.compact(TOPIC)
    async with await bench.client.create_reader(TOPIC, MessageId(*EARLIEST)):
        assert sorted(names_of(await bench.page(every=True))) == ["s", "unmarked"]
        assert names_of(await bench.page()) == ["s"]


@pytest.mark.parametrize("token", ["", "nonsense", "e30", "eyJhIjogMX0", "W10", "ß", "0.0"])
async def test_token_that_is_foreign_gives_everything_even_of_topics_that_are_not_loaded(
    bench: Bench, token: str
) -> None:
    await bench.page()
    await bench.admin.topics.unload(TOPIC)
    page = await bench.page(token)
    assert names_of(page) == ["s"]
    assert names_of(await bench.page(page["token"])) == []


async def test_token_of_another_list_is_foreign(bench: Bench) -> None:
    page = await bench.page(every=True)
    assert names_of(await bench.page(page["token"])) == ["s"]


async def test_topic_that_is_unloaded_then_comes_again_with_what_changed_last(bench: Bench) -> None:
    page = await bench.page()
    await bench.admin.topics.acknowledge(TOPIC, "s", mark_delete=Position(bench.ledger, 3))
    await bench.admin.topics.unload(TOPIC)
    (state,) = (await bench.page(page["token"]))["subscriptions"]
    assert state["markDelete"] == f"{bench.ledger}:3"


async def test_subscription_that_is_created_marked_reset_or_deleted(bench: Bench) -> None:
    topics, page = bench.admin.topics, await bench.page()

    async def changed() -> list[str]:
        nonlocal page
        page = await bench.page(page["token"])
        return names_of(page)

    await topics.create_subscription(TOPIC, "new", replicated=True)
    assert await changed() == ["new"]
    await topics.reset_cursor_to_message(TOPIC, "new", MessageId(bench.ledger, 0))
    assert (await changed(), page["subscriptions"][0]["resets"]) == (["new"], 1)
    await topics.set_subscription_properties(TOPIC, "new", {"a": "b"})
    assert (await changed(), page["subscriptions"][0]["properties"]) == (["new"], {"a": "b"})
    await topics.set_subscription_replicated(TOPIC, "new", False)
    assert (await changed(), page["subscriptions"][0]["replicated"]) == (["new"], False)
    await topics.set_subscription_replicated(TOPIC, "new", True)
    assert await changed() == ["new"]
    await topics.delete_subscription(TOPIC, "new")
    assert await changed() == ["new"]
    assert page["subscriptions"] == [{"topic": TOPIC, "subscription": "new", "deleted": True}]


async def test_wait_then_returns_as_soon_as_a_consumer_acknowledges(bench: Bench) -> None:
    page = await bench.page()
    waiting = asyncio.create_task(bench.page(page["token"], wait_s=20))
    async with await bench.client.subscribe(TOPIC, "s") as consumer:
        message = await consumer.receive()
        consumer.acknowledge(message)
        async with asyncio.timeout(5):
            (state,) = (await waiting)["subscriptions"]
    assert state["markDelete"] == f"{bench.ledger}:0"


async def test_wait_when_nothing_changes_then_the_token_goes_on(bench: Bench) -> None:
    page = await bench.page()
    later = await bench.page(page["token"], wait_s=0.3)
    assert later == {"token": page["token"], "subscriptions": [], "more": False}


@pytest.mark.parametrize("wait", ["20", "-1s", "61s", "s", "1m", "1e1s"])
async def test_wait_that_is_no_time_is_refused(bench: Bench, wait: str) -> None:
    path = "/admin/v2/namespaces/public/default/acknowledgements"
    async with bench.http.get(path, params={"wait": wait}) as response:
        assert response.status == 400
        assert (await response.json())["reason"] == f"wait must be seconds such as 20s, at most 60s, not '{wait}'"


async def test_wait_as_long_as_the_time_out_of_the_client_is_refused_before_it_is_sent() -> None:
    async with AdminClient("http://127.0.0.1:1", timeout_ms=5000) as admin:
        with pytest.raises(InvalidRequest, match="wait_s=5 must be less than the admin client's time-out"):
            await admin.namespaces.acknowledgements("public/default", wait_s=5)


async def test_many_subscriptions_then_come_in_pages(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acknowledgement_feed, "SUBSCRIPTIONS_MAX", 2)
    for number in range(4):
        await bench.admin.topics.create_subscription(f"public/default/t{number}", "s", replicated=True)
    page, found = await bench.page(), []
    while page["subscriptions"]:
        assert len(page["subscriptions"]) <= 2
        found += [state["topic"] for state in page["subscriptions"]]
        assert page["more"] == (len(found) < 5)
        page = await bench.page(page["token"])
    assert sorted(found) == [TOPIC, *(f"{TOPIC}{number}" for number in range(4))]


async def test_namespace_that_is_missing_or_setting_that_is_off_then_refused() -> None:
    config = BrokerConfig(enable_replicated_subscriptions=False)
    async with rest_broker(config) as broker, AdminClient(broker.web_url) as admin:
        with pytest.raises(Conflict, match="enableReplicatedSubscriptions=false"):
            await admin.namespaces.acknowledgements("public/default")
    async with rest_broker() as broker, AdminClient(broker.web_url) as admin:
        with pytest.raises(NamespaceNotFound):
            await admin.namespaces.acknowledgements("public/missing")
        assert (await admin.brokers.runtime_configuration())["supportsAcknowledgementSync"] == "1"


async def test_wait_through_a_proxy_then_the_answer_comes_back(bench: Bench) -> None:
    with proxy_in_thread(bench.broker.app.service_url, bench.broker.web_url) as proxy:
        async with AdminClient(proxy.web_url) as admin:
            page = await admin.namespaces.acknowledgements("public/default")
            waiting = admin.namespaces.acknowledgements("public/default", since=page["token"], wait_s=20)
            task = asyncio.create_task(waiting)
            await bench.admin.topics.acknowledge(TOPIC, "s", mark_delete=Position(bench.ledger, 3))
            async with asyncio.timeout(5):
                assert names_of(await task) == ["s"]
