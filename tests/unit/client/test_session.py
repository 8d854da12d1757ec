"""What the objects of one client share."""

import asyncio
import logging

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.client.failover.sites import Site, SiteChange
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, NotConnected
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


class FakeWaiting:
    """Producer or consumer that waits for a connection."""

    def __init__(self) -> None:
        self.started_over = 0

    def start_over(self) -> None:
        self.started_over += 1


async def test_site_when_changed_then_what_belongs_to_the_former_one_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    topic, waiting = TopicName.parse("a"), FakeWaiting()
    changes: list[SiteChange] = []
    async with ScriptedBroker() as east, ScriptedBroker() as west:
        session = Session(ClientConfig(east.url), remembers_brokers=True, site=Site(east.url))
        end = session.on_site_change(changes.append)
        session.on_site_change(lambda change: 1 / 0)
        connection = await session.connect(topic)
        session.note_closed(topic, connection.address)
        session.note_waiting(waiting)
        assert session.site_lost.is_set()
        assert session.silent_s >= 0
        session.change_site(Site(west.url), "asked for", silent_s=2.5)
        assert not connection.is_open
        assert waiting.started_over == 1
        assert (session.cluster, session.config.service_url, session.generation) == (west.url, west.url, 1)
        assert (await session.connect(topic)).address == BrokerAddress.parse(west.url)
        assert changes == [SiteChange(1, Site(east.url), Site(west.url), "asked for", 2.5)]
        assert f"generation=1 before={east.url} after={west.url} silent_s=2.5 reason=asked for" in caplog.text
        assert "listener of site changes failed" in caplog.text
        end()
        session.note_waiting(waiting, ended=True)
        session.change_site(Site(east.url), "back", silent_s=0)
        assert (len(changes), waiting.started_over, session.silent_s) == (1, 1, 0)
        await session.close()


async def test_connection_when_the_site_changes_while_it_is_looked_up_then_the_caller_may_try_again() -> None:
    async with ScriptedBroker() as east, ScriptedBroker() as west:
        east.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: None
        session = Session(ClientConfig(east.url), site=Site(east.url))
        connecting = asyncio.create_task(session.connect(TopicName.parse("a")))
        await east.heard(pb.BaseCommand.LOOKUP)
        session.change_site(Site(west.url), "asked for", silent_s=0)
        with pytest.raises(NotConnected, match="has left"):
            await connecting
        assert (await session.connect(TopicName.parse("a"))).address == BrokerAddress.parse(west.url)
        await session.close()


async def test_redirected_session_then_has_the_identity_of_the_site_and_ends_with_it() -> None:
    topic, credentials = TopicName.parse("a"), Credentials.token("t")
    async with ScriptedBroker() as east, ScriptedBroker() as west:
        session = Session(ClientConfig(east.url, credentials=credentials), site=Site(east.url, credentials=credentials))
        redirected = session.redirected(west.url)
        assert session.redirected(west.url) is redirected
        assert (redirected.cluster, redirected.config.credentials) == (west.url, credentials)
        assert len({session.next_id(), redirected.next_id(), session.next_id()}) == 3
        connection = await redirected.connect(topic)
        assert connection.address == BrokerAddress.parse(west.url)
        session.change_site(Site(west.url), "asked for", silent_s=0)
        assert not connection.is_open
        with pytest.raises(NotConnected, match="has left"):
            await redirected.pool.get(connection.address)
        connection = await session.redirected(west.url).connect(topic)
        await session.close()
        assert not connection.is_open


async def test_redirect_to_an_address_that_is_none_then_refused() -> None:
    async with ScriptedBroker() as broker:
        session = Session(ClientConfig(broker.url))
        for address in ("", "west.example", "pulsar://west.example:x"):
            with pytest.raises(ValueError, match="expected pulsar"):
                session.redirected(address)
        await session.close()
