"""What the objects of one client share."""

import asyncio

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.scripted_broker import ScriptedBroker


async def test_topics_looked_up_ahead_are_not_looked_up_again_once() -> None:
    async with ScriptedBroker() as broker:
        session = Session(ClientConfig(broker.url))
        topics = [TopicName.parse("a"), TopicName.parse("b")]
        await session.look_ahead(topics)
        for topic in topics:
            assert (await session.connect(topic)).address == BrokerAddress.parse(broker.url)
        assert broker.count(pb.BaseCommand.LOOKUP) == 2
        await session.connect(topics[0])
        assert broker.count(pb.BaseCommand.LOOKUP) == 3
        await session.close()


async def test_session_when_closed_then_its_tasks_are_over_and_it_refuses_work() -> None:
    session = Session(ClientConfig("pulsar://127.0.0.1:1"))
    task = session.spawn(asyncio.Event().wait())
    await session.close()
    assert task.cancelled()
    with pytest.raises(AlreadyClosed):
        await session.connect(TopicName.parse("a"))


async def test_ids_never_repeat() -> None:
    session = Session(ClientConfig("pulsar://127.0.0.1:1"))
    assert len({session.next_id() for _ in range(100)}) == 100
    await session.close()


async def test_broker_when_remembered_then_is_looked_up_again_only_after_it_refused() -> None:
    async with ScriptedBroker() as broker:
        session = Session(ClientConfig(broker.url), remembers_brokers=True)
        topic = TopicName.parse("a")
        here = (await session.connect(topic)).address
        session.note_closed(topic, here)
        await session.connect(topic)
        assert broker.count(pb.BaseCommand.LOOKUP) == 1
        await session.connect(topic)  # as where the first attempt is refused
        assert broker.count(pb.BaseCommand.LOOKUP) == 2
        await session.close()


async def test_broker_when_not_to_be_remembered_then_is_looked_up_each_time() -> None:
    async with ScriptedBroker() as broker:
        session = Session(ClientConfig(broker.url))
        topic = TopicName.parse("a")
        session.note_closed(topic, (await session.connect(topic)).address)
        await session.connect(topic)
        assert broker.count(pb.BaseCommand.LOOKUP) == 2
        await session.close()
