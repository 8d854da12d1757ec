"""The console among several brokers: what others have is told too, or where it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.client import AdminClient, Client
from interpulse.model.errors import NotConnected
from tests.support.console_browser import PlainBrowser, address
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.waiting import SECONDS_MAX

BASE = "persistent://public/default/p"
PARTITIONS = [f"{BASE}-partition-{index}" for index in range(6)]


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    async with shared_brokers(3) as started:
        yield started


async def model(broker: SharedBroker, page: str, **query: str) -> dict[str, Any]:
    """As soon as it is known."""
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            page_text = await asyncio.to_thread(PlainBrowser(broker.web_url).get, address(f"{page}.json", query))
            assert page_text.status == 200, page_text.text
            found: dict[str, Any] = json.loads(page_text.text)
            if found["known"]:
                return found
            await asyncio.sleep(0.05)


async def _fill(brokers: SharedBrokers, admin: AdminClient, client: Client) -> None:
    """A message in each partition, and a subscription that has them before it."""
    await admin.topics.create_partitioned(BASE, len(PARTITIONS))
    await brokers.spread(PARTITIONS)
    await admin.topics.create_subscription(BASE, "s")
    for partition in PARTITIONS:
        async with await client.create_producer(partition) as producer:
            await producer.send(b"1")


async def test_topic_when_its_partitions_are_at_several_brokers_then_each_shows_all_of_it(
    brokers: SharedBrokers,
) -> None:
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await _fill(brokers, admin, client)
        for broker in brokers.brokers:
            found = await model(broker, "topic", name=BASE)
            assert (found["silent"], found["total"]["parts"], found["total"]["backlog"]) == ([], 6, 6)
            assert [each["backlog"] for each in found["subscriptions"]] == [6]
            owners = {each["name"]: each["broker"] or broker.id for each in found["partition_page"]["rows"]}
            assert owners == {each: (await brokers.owner(each)).id for each in PARTITIONS}
            one = await model(broker, "topic", name=PARTITIONS[0])
            assert (one["refusal"], one["total"]["parts"], one["total"]["backlog"]) == ("", 1, 1)


async def test_topic_when_a_broker_does_not_answer_then_the_page_says_so_and_shows_the_rest(
    brokers: SharedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = brokers[0].app.context.others
    assert others is not None
    answered = others.ask

    async def ask(broker: Any, *arguments: Any, **more: Any) -> Any:
        if broker.web_url.rstrip("/") == brokers[2].web_url:
            raise NotConnected(f"Cannot reach {broker.web_url}")
        return await answered(broker, *arguments, **more)

    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await _fill(brokers, admin, client)
        monkeypatch.setattr(others, "ask", ask)
        gone = brokers[2]
        at_others = [each for each in PARTITIONS if await brokers.owner(each) is not gone]
        assert 0 < len(at_others) < len(PARTITIONS)
        found = await model(brokers[0], "topic", name=BASE)
    assert [each["broker"] for each in found["silent"]] == [gone.id]
    assert found["total"]["parts"] == len(at_others)
    page = await asyncio.to_thread(PlainBrowser(brokers[0].web_url).get, address("topic", {"name": BASE}))
    assert f"{gone.id} did not answer:" in page.text


@pytest.mark.parametrize("page", ["overview", "replication"])
async def test_page_about_loaded_topics_when_there_are_several_brokers_then_names_its_own_and_leads_to_the_others(
    brokers: SharedBrokers, page: str
) -> None:
    found = await model(brokers[0], page)
    assert found["here"] == brokers[0].id
    links = {each["broker"]: each["url"] for each in found["others"]}
    assert links == {each.id: f"{each.web_url}/console/{page}" for each in brokers.brokers[1:]}
    text = (await asyncio.to_thread(PlainBrowser(brokers[0].web_url).get, f"/console/{page}")).text
    assert f'This is broker <strong class="name">{brokers[0].id}</strong>.' in text
