"""Two brokers over the store on ZooKeeper, each with a session, against a scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from interpulse.client import AdminClient, Client
from interpulse.model.errors import ServerError
from interpulse.model.names import TopicName
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.link import Link, LinkConfig
from interpulse.storage.zookeeper.session import parse_servers
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from tests.support import commands
from tests.support.fake_clock import FakeClock
from tests.support.raw_client import RawClient
from tests.support.rest_client import call
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.waiting import eventually

TOPIC = "persistent://public/default/t-0"
NAME = TopicName.parse(TOPIC)

LOST_SIGHT = "The metadata store does not answer; the broker serves again when it does"

T = TypeVar("T")


@pytest.fixture
async def zookeeper() -> AsyncIterator[ScriptedZooKeeper]:
    async with scripted_zookeeper() as server:
        yield server


@pytest.fixture
async def brokers(zookeeper: ScriptedZooKeeper) -> AsyncIterator[SharedBrokers]:
    """Two of them."""
    address = await zookeeper.listen()
    async with shared_brokers(0) as started:
        for _ in range(2):
            await started.start(await ZooKeeperMetadataStore.open(await ZooKeeperClient.connect(address)))
        yield started


def session_of(broker: SharedBroker) -> int:
    return broker.app.parts.base.stores.metadata.session.id


async def test_bundle_when_moved_then_the_topic_goes_on(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    async with Client(other.service_url) as client, AdminClient(other.web_url) as admin:
        assert await admin.brokers.list() == sorted(each.id for each in brokers.brokers)
        producer = await client.create_producer(TOPIC)
        consumer = await client.subscribe(TOPIC, "s")
        await producer.send(b"1")
        consumer.acknowledge(await consumer.receive())
        await owner.app.stop()
        brokers.brokers.remove(owner)
        await producer.send(b"2")
        assert (await consumer.receive()).content == b"2"
        assert other.ownership.holds(NAME)


async def test_session_when_expired_then_free_bundles_are_taken_again_and_topics_go_on(
    brokers: SharedBrokers, zookeeper: ScriptedZooKeeper
) -> None:
    owner, _ = await brokers.take(TOPIC)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC)
        await producer.send(b"1")
        topic, first = owner.app.registry.get(NAME), session_of(owner)
        zookeeper.expire(first)
        await eventually(lambda: session_of(owner) != first and owner.ownership.serving())
        assert owner.ownership.holds(NAME)
        assert owner.app.registry.get(NAME) is topic
        await owner.app.registry.flush()
        await producer.send(b"2")


async def test_connection_when_cut_then_nothing_happens(brokers: SharedBrokers, zookeeper: ScriptedZooKeeper) -> None:
    owner, other = await brokers.take(TOPIC)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC)
        topic, first = owner.app.registry.get(NAME), session_of(owner)
        zookeeper.cut()
        await producer.send(b"1")
        await eventually(lambda: owner.ownership.holds(NAME) and other.ownership.serving())
        assert (owner.app.registry.get(NAME), session_of(owner)) == (topic, first)
        await producer.send(b"2")


async def test_bundle_when_both_want_it_at_once_then_one_has_it(brokers: SharedBrokers) -> None:
    [bundle, *_] = await brokers[0].ownership.bundles_of(NAME.namespace_name)
    locks = await asyncio.gather(*(each.ownership.take(bundle) for each in brokers.brokers for _ in range(50)))
    assert len({lock.broker.broker_id for lock in locks}) == 1
    assert [len(each.bundles) for each in brokers.brokers] in ([0, 1], [1, 0])


QUESTIONS = [
    ("GET", "/lookup/v2/topic/persistent/public/default/new", None),
    ("GET", "/lookup/v2/topic/persistent/public/unread/t-0/bundle", None),
    ("POST", "/lookup/v2/topics", {"topics": ["persistent://public/unread/t-0"]}),
    ("GET", "/admin/v2/persistent/public/default/unread-1/partitions", None),
    ("GET", "/admin/v2/persistent/public/default/unread-2/stats", None),
    ("GET", "/admin/v2/namespaces/public/unread", None),
    ("GET", "/admin/v2/schemas/public/default/unread-3/schema", None),
]
COMMANDS = [
    commands.lookup(1, "persistent://public/unread/t-1"),
    commands.lookup(2, "persistent://public/unread/t-1", authoritative=True),
    commands.batch_lookup(3, ["persistent://public/unread/t-1"]),
    commands.partitioned_metadata(4, "persistent://public/default/new"),
]


def refusal(answer: Any) -> tuple[int, str]:
    """Code and message of a binary answer."""
    return answer.error, answer.message


async def test_questions_when_zookeeper_is_silent_then_are_refused_at_the_deadline_and_at_once_after_it(
    zookeeper: ScriptedZooKeeper,
) -> None:
    """Source: docs/reference/cluster-protocol.md#session-deadline."""
    loop, clock = asyncio.get_running_loop(), FakeClock()
    loop.set_default_executor(ThreadPoolExecutor(len(QUESTIONS) + 1))
    zookeeper.session_timeout_ms = 1000
    link = await Link.open(parse_servers(await zookeeper.listen()), LinkConfig(operation_timeout_s=10_000), clock)
    async with shared_brokers(0) as started:
        broker = await started.start(await ZooKeeperMetadataStore.open(ZooKeeperClient(link)))
        assert (await call(broker.web_url, *QUESTIONS[0])).status == 200
        with await asyncio.to_thread(RawClient, broker.service_url) as client:
            zookeeper.silent = True
            waiting = [await begun(zookeeper, call(broker.web_url, *question)) for question in QUESTIONS[1:]]
            waiting_command = await begun(zookeeper, asyncio.to_thread(client.ask, COMMANDS[0]))
            assert broker.ownership.serving()
            assert not any(task.done() for task in (*waiting, waiting_command))
            clock.now += 1
            replies = await asyncio.gather(*waiting)
            assert {(reply.status, reply.reason) for reply in replies} == {(503, LOST_SIGHT)}
            assert refusal(await waiting_command) == (ServerError.ServiceNotReady, LOST_SIGHT)
            for question in QUESTIONS:
                reply = await call(broker.web_url, *question)
                assert (reply.status, reply.reason) == (503, LOST_SIGHT)
            for command in COMMANDS:
                answer = await asyncio.to_thread(client.ask, command)
                assert refusal(answer) == (ServerError.ServiceNotReady, LOST_SIGHT)
            zookeeper.silent = False
            zookeeper.cut()
            await eventually(broker.ownership.serving)
            assert (await call(broker.web_url, *QUESTIONS[0])).status == 200
            answer = await asyncio.to_thread(client.ask, commands.lookup(5, TOPIC))
            assert answer.brokerServiceUrl == broker.service_url


async def begun(zookeeper: ScriptedZooKeeper, question: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """The question, once ZooKeeper was asked for it."""
    before = len(zookeeper.requests)
    task = asyncio.create_task(question)
    await eventually(lambda: len(zookeeper.requests) > before)
    return task
