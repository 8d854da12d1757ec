"""Finding the broker of a topic, and reconnecting to it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.connection_handler import ConnectionHandler, tolerated_while_reconnecting
from interpulse.client.failover.sites import Site
from interpulse.client.outages import Outages
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import (
    CertificateError,
    ConsumerBusy,
    NotAllowed,
    NotConnected,
    ProducerBusy,
    ProducerFenced,
    PulsarError,
    ServiceNotReady,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker
from tests.support.waiting import eventually


@pytest.mark.parametrize("error", [NotConnected(), ProducerBusy(), ConsumerBusy(), CertificateError()])
def test_what_may_pass_is_tolerated_while_reconnecting(error: PulsarError) -> None:
    assert tolerated_while_reconnecting(error)


@pytest.mark.parametrize("error", [NotAllowed(), TopicNotFound(), ProducerFenced()])
def test_what_is_final_is_not_tolerated_while_reconnecting(error: PulsarError) -> None:
    assert not tolerated_while_reconnecting(error)


class Owner:
    """Registers, as often as it is told to, with what it is told to answer."""

    def __init__(self, session: Session) -> None:
        self.handler = ConnectionHandler(session, TopicName.parse("t"), self, what="owner")
        self.refusals: list[PulsarError] = []
        self.reconnecting: list[bool] = []
        self.failures: list[PulsarError] = []
        self.heard = asyncio.Event()

    async def register(self, connection: Connection) -> None:
        self.reconnecting.append(self.handler.is_reconnecting)
        self.heard.set()
        if self.refusals:
            raise self.refusals.pop(0)
        self.handler.on_connected(connection)

    def on_failed(self, failure: PulsarError) -> None:
        self.failures.append(failure)
        self.heard.set()


@pytest.fixture
async def owner() -> AsyncIterator[Owner]:
    async with ScriptedBroker() as broker:
        session = Session(ClientConfig(broker.url, backoff_initial_ms=1, backoff_max_ms=5, operation_timeout_ms=60_000))
        yield Owner(session)
        await session.close()


async def test_owner_when_opening_is_refused_for_now_then_tried_again(owner: Owner) -> None:
    owner.refusals = [ServiceNotReady("soon"), ServiceNotReady("soon")]
    await owner.handler.open(timeout_ms=60_000)
    assert owner.handler.connection is not None
    assert owner.reconnecting == [False, False, False]


async def test_owner_when_opening_is_refused_for_good_then_the_caller_hears_of_it(owner: Owner) -> None:
    owner.refusals = [NotAllowed("never")]
    with pytest.raises(NotAllowed):
        await owner.handler.open(timeout_ms=60_000)
    assert (owner.handler.connection, owner.failures) == (None, [])


async def test_owner_when_its_connection_is_lost_then_reconnects_once(owner: Owner) -> None:
    await owner.handler.open(timeout_ms=60_000)
    assert owner.handler.on_lost()
    assert not owner.handler.on_lost()
    owner.handler.reconnect()
    owner.handler.reconnect()
    await owner.handler.reconnected()
    assert owner.reconnecting == [False, True]
    assert (owner.handler.connection is not None, owner.handler.is_reconnecting) == (True, False)


async def test_owner_when_it_cannot_reconnect_then_is_told_why(owner: Owner) -> None:
    await owner.handler.open(timeout_ms=60_000)
    owner.refusals = [NotAllowed("never again")]
    owner.handler.on_lost()
    owner.handler.reconnect()
    await owner.handler.reconnected()
    assert [str(failure) for failure in owner.failures] == ["never again"]


async def test_owner_when_it_has_work_of_its_own_then_reconnects_after_that(owner: Owner) -> None:
    await owner.handler.open(timeout_ms=60_000)
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    owner.heard.clear()
    owner.handler.on_lost()
    owner.handler.reconnect(after=work)
    await asyncio.sleep(0)
    assert not owner.heard.is_set()
    work.set_result(None)
    await owner.handler.reconnected()
    assert owner.reconnecting == [False, True]


async def test_owner_when_it_stops_then_does_not_reconnect(owner: Owner) -> None:
    await owner.handler.open(timeout_ms=60_000)
    connection = owner.handler.connection
    assert await owner.handler.stop() is connection
    owner.refusals = [ServiceNotReady("soon")] * 100
    owner.handler.reconnect()
    assert await owner.handler.stop() is None
    assert not owner.handler.is_reconnecting


async def test_owner_when_it_is_closed_and_comes_back_at_once_then_that_is_counted() -> None:
    async with ScriptedBroker() as broker:
        outages = Outages("here")
        session = Session(ClientConfig(broker.url), outages)
        owner = Owner(session)
        await owner.handler.open(timeout_ms=60_000)
        owner.handler.on_lost()
        owner.handler.reconnect()
        await owner.handler.reconnected()
        (healed,) = outages.take_resolved()
        assert (healed.times, healed.reason.startswith("the owner of persistent://public/default/t was closed")) == (
            1,
            True,
        )
        await session.close()


@pytest.mark.parametrize("closed", [True, False])
async def test_owner_when_it_is_closed_or_fails_while_reconnecting_then_it_waits_for_the_cluster_no_more(
    closed: bool,
) -> None:
    async with ScriptedBroker() as broker:
        outages = Outages("here")
        session = Session(ClientConfig(broker.url, backoff_initial_ms=1, backoff_max_ms=5), outages)
        owner = Owner(session)
        await owner.handler.open(timeout_ms=60_000)
        owner.refusals = [ServiceNotReady("soon")] * 1000 if closed else [ServiceNotReady("soon"), NotAllowed("never")]
        owner.handler.on_lost()
        owner.handler.reconnect()
        if closed:
            await eventually(lambda: outages.waiting(0.0) is not None)
            await owner.handler.stop()
        else:
            await owner.handler.reconnected()
        assert (outages.waiting(0.0), outages.take_resolved()) == (None, [])
        await session.close()


async def test_owner_when_stopped_while_connected_then_its_broker_is_remembered() -> None:
    async with ScriptedBroker() as broker:
        session = Session(ClientConfig(broker.url), remembers_brokers=True)
        for _ in range(2):
            owner = Owner(session)
            await owner.handler.open(timeout_ms=60_000)
            await owner.handler.stop()
        assert broker.count(pb.BaseCommand.LOOKUP) == 1
        owner = Owner(session)
        await owner.handler.open(timeout_ms=60_000)
        owner.handler.on_lost()  # the topic may be elsewhere now
        await owner.handler.stop()
        await Owner(session).handler.open(timeout_ms=60_000)
        assert broker.count(pb.BaseCommand.LOOKUP) == 2
        await session.close()


async def test_reconnection_when_begun_again_then_goes_on_without_its_pause(broker: ScriptedBroker) -> None:
    session = Session(ClientConfig(broker.url, backoff_initial_ms=600_000, backoff_max_ms=600_000))
    owner = Owner(session)
    await owner.handler.open(timeout_ms=60_000)
    owner.refusals = [NotConnected()]
    owner.handler.on_lost()
    owner.handler.reconnect()  # pauses, since the connection did not last
    await asyncio.sleep(0)
    owner.handler.start_over()
    await eventually(lambda: not owner.refusals)  # pauses again after the refusal
    owner.handler.start_over()
    await eventually(lambda: owner.handler.connection is not None and not owner.handler.is_reconnecting)
    owner.handler.start_over()  # nothing is under way
    assert not owner.handler.is_reconnecting
    assert session.silent_s == 0
    await session.close()


async def test_owner_when_redirected_then_its_topic_is_looked_up_there_from_then_on(owner: Owner) -> None:
    await owner.handler.open(timeout_ms=60_000)
    before = owner.handler.generation
    async with ScriptedBroker() as west, ScriptedBroker() as second:
        west.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_response(frame.command.lookupTopic.request_id, broker_url=second.url)
        )
        owner.handler.redirect(west.url)
        assert owner.handler.generation != before
        for lookups in (1, 2):
            assert owner.handler.on_lost()
            owner.handler.reconnect()
            await owner.handler.reconnected()
            assert owner.handler.connection is not None
            assert owner.handler.connection.address == BrokerAddress.parse(second.url)
            assert (west.count(pb.BaseCommand.LOOKUP), west.count(pb.BaseCommand.PARTITIONED_METADATA)) == (lookups, 0)
        await owner.handler.stop()


async def test_owner_when_the_client_changes_its_site_then_no_redirect_is_left(broker: ScriptedBroker) -> None:
    async with ScriptedBroker() as west, ScriptedBroker() as north:
        session = Session(ClientConfig(broker.url), site=Site(broker.url))
        owner = Owner(session)
        owner.handler.redirect(west.url)
        await owner.handler.open(timeout_ms=60_000)
        assert (owner.handler.session.cluster, west.count(pb.BaseCommand.LOOKUP)) == (west.url, 1)
        session.change_site(Site(north.url), "asked for", silent_s=0)
        assert owner.handler.session is session
        owner.handler.on_lost()
        owner.handler.reconnect()
        await eventually(lambda: owner.handler.connection is not None)
        assert (north.count(pb.BaseCommand.LOOKUP), west.count(pb.BaseCommand.LOOKUP)) == (1, 1)
        await session.close()


async def test_owner_when_redirected_to_an_address_that_is_none_then_stays_and_logs_it(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    before = owner.handler.generation
    owner.handler.redirect("west.example")
    assert owner.handler.generation == before
    assert "redirect cannot be followed what=owner topic=persistent://public/default/t" in caplog.text
    assert "not a service URL: 'west.example'" in caplog.text


async def test_owner_when_stopped_after_a_redirect_then_that_broker_is_not_remembered(broker: ScriptedBroker) -> None:
    async with ScriptedBroker() as west:
        session = Session(ClientConfig(broker.url), remembers_brokers=True)
        owner = Owner(session)
        owner.handler.redirect(west.url)
        await owner.handler.open(timeout_ms=60_000)
        await owner.handler.stop()
        assert (await session.connect(TopicName.parse("t"))).address == BrokerAddress.parse(broker.url)
        await session.close()
