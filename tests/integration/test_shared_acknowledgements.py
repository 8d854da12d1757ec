"""Acknowledgements of a namespace that several brokers serve, asked of one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.broker.replication import gathered_acknowledgements
from interpulse.client import AdminClient, Client
from interpulse.model.errors import NotConnected, PulsarError
from interpulse.model.ids import EARLIEST, MessageId
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers

TOPICS = [f"persistent://public/default/t-{number}" for number in range(10, 22)]


class Cluster:
    """Three brokers with topics at each, every one with the marked subscription ``s``."""

    def __init__(self, brokers: SharedBrokers, admin: AdminClient) -> None:
        self.brokers = brokers
        self.admin = admin
        """A client of the first broker."""
        self.token: str | None = None

    async def changed(self, *, at: AdminClient | None = None, wait_s: float = 0) -> list[str]:
        """The topics with changes since the last question."""
        asked = (at or self.admin).namespaces
        page = await asked.acknowledgements("public/default", since=self.token, wait_s=wait_s)
        self.token = page["token"]
        return sorted(state["topic"] for state in page["subscriptions"])

    async def change(self, topic: str) -> None:
        await self.admin.topics.reset_cursor_to_message(topic, "s", MessageId(*EARLIEST))

    async def elsewhere(self) -> list[str]:
        """A topic of each of the other brokers."""
        owners = {(await self.brokers.owner(topic)).id: topic for topic in TOPICS}
        return [topic for broker, topic in owners.items() if broker != self.brokers[0].id]


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with shared_brokers(3) as brokers, AdminClient(brokers[0].web_url) as admin:
        await brokers.spread(TOPICS)
        for topic in TOPICS:
            await admin.topics.create_subscription(topic, "s", replicated=True)
        yield Cluster(brokers, admin)


async def test_every_broker_is_asked_whichever_is(cluster: Cluster) -> None:
    assert await cluster.changed() == TOPICS
    assert await cluster.changed() == []
    first, second = await cluster.elsewhere()
    await cluster.change(first)
    async with AdminClient(cluster.brokers[1].web_url) as other:
        assert await cluster.changed(at=other) == [first]
        await cluster.change(second)
        assert await cluster.changed(at=other) == [second]
    assert await cluster.changed() == []


async def test_applied_at_a_broker_that_does_not_serve_the_topic_then_its_owner_does_it(cluster: Cluster) -> None:
    await cluster.changed()
    (first, _) = await cluster.elsewhere()
    owner = await cluster.brokers.owner(first)
    async with Client(owner.service_url) as client, await client.create_producer(first) as producer:
        sent = await producer.send(b"1")
    assert await cluster.admin.topics.acknowledge(first, "s", mark_delete=sent.position) == 1
    assert await cluster.changed() == [first]


def count_calls(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of brokers that the first one asks from now on."""
    others = cluster.brokers[0].app.context.others
    assert others is not None
    asked: list[str] = []
    ask = others.ask

    async def counted(broker: Any, method: str, path: str, **options: Any) -> Any:
        asked.append(broker.web_url)
        return await ask(broker, method, path, **options)

    monkeypatch.setattr(others, "ask", counted)
    return asked


async def test_wait_ends_with_a_change_at_another_broker_and_leaves_one_call_at_each(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.changed()
    asked = count_calls(cluster, monkeypatch)
    first, second = await cluster.elsewhere()
    for _ in range(3):
        waiting = asyncio.create_task(cluster.changed(wait_s=20))
        await asyncio.sleep(0)
        await cluster.change(first)
        async with asyncio.timeout(5):
            assert await waiting == [first]
    changed, silent = [(await cluster.brokers.owner(topic)).web_url for topic in (first, second)]
    assert (asked.count(changed), asked.count(silent)) == (3, 1)


async def test_wait_longer_than_a_call_between_brokers_then_they_are_asked_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered_acknowledgements, "_WAIT_SECONDS_MAX", 0.05)
    await cluster.changed()
    asked = count_calls(cluster, monkeypatch)
    assert await cluster.changed(wait_s=0.3) == []
    assert 4 <= len(asked) <= 16
    assert await cluster.changed() == []


async def test_broker_that_cannot_be_asked_then_the_others_answer_and_its_part_follows(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = cluster.brokers[0].app.context.others
    assert others is not None
    first, second = await cluster.elsewhere()
    lost, ask = await cluster.brokers.owner(second), others.ask

    async def without_one(broker: Any, method: str, path: str, **options: Any) -> Any:
        if broker.web_url == lost.web_url:
            raise NotConnected(f"Cannot reach {lost.web_url}")
        return await ask(broker, method, path, **options)

    await cluster.changed()
    await cluster.change(first)
    await cluster.change(second)
    monkeypatch.setattr(others, "ask", without_one)
    assert await cluster.changed() == [first]
    for wait_s in (0, 0.3):
        with pytest.raises(PulsarError, match="Cannot reach"):
            await cluster.changed(wait_s=wait_s)
    monkeypatch.setattr(others, "ask", ask)
    assert await cluster.changed(wait_s=20) == [second]


async def test_bundle_that_moved_then_its_new_broker_reports_all_it_serves(cluster: Cluster) -> None:
    await cluster.changed()
    (first, _), target = await cluster.elsewhere(), cluster.brokers[0]
    left = await cluster.brokers.owner(first)
    await cluster.brokers.move(first, target)
    assert set(await cluster.changed()) == {topic for topic in TOPICS if topic in await topics_at(cluster, target)}
    assert first not in await topics_at(cluster, left)
    assert await cluster.changed() == []


async def topics_at(cluster: Cluster, broker: SharedBroker) -> list[str]:
    return [topic for topic in TOPICS if await cluster.brokers.owner(topic) is broker]


async def test_bundles_that_nobody_serves_then_are_placed_for_a_first_question(cluster: Cluster) -> None:
    await cluster.admin.namespaces.unload("public/default")
    assert not any(broker.bundles for broker in cluster.brokers.brokers)
    assert await cluster.changed() == TOPICS
    assert await cluster.changed() == []


async def test_namespace_without_subscriptions_then_no_bundle_is_taken(cluster: Cluster) -> None:
    await cluster.admin.namespaces.create("public/empty")
    page = await cluster.admin.namespaces.acknowledgements("public/empty", wait_s=0.1)
    assert page["subscriptions"] == []
    assert not any("public/empty" in bundle for broker in cluster.brokers.brokers for bundle in broker.bundles)
