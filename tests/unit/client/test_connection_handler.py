"""Finding the broker of a topic, and coming back to it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.connection_handler import Attachment
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import NotAllowed, PulsarError, ServiceNotReady
from interpulse.model.names import TopicName
from tests.support.scripted_broker import ScriptedBroker


class Owner:
    """Registers, as often as it is told to, with what it is told to answer."""

    def __init__(self, session: Session) -> None:
        self.place = Attachment(session, TopicName.parse("t"), self, what="owner")
        self.refusals: list[PulsarError] = []
        self.returning: list[bool] = []
        self.failures: list[PulsarError] = []
        self.heard = asyncio.Event()

    async def register(self, connection: Connection) -> None:
        self.returning.append(self.place.is_returning)
        self.heard.set()
        if self.refusals:
            raise self.refusals.pop(0)
        self.place.settle(connection)

    def on_failed(self, failure: PulsarError) -> None:
        self.failures.append(failure)
        self.heard.set()


@pytest.fixture
async def owner() -> AsyncIterator[Owner]:
    async with ScriptedBroker() as broker:
        session = Session(ClientConfig(broker.url, backoff_initial_ms=1, backoff_max_ms=5, operation_timeout_ms=2000))
        yield Owner(session)
        await session.close()


async def test_owner_when_opening_is_refused_for_now_then_tried_again(owner: Owner) -> None:
    owner.refusals = [ServiceNotReady("soon"), ServiceNotReady("soon")]
    await owner.place.open(timeout_ms=2000)
    assert owner.place.connection is not None
    assert owner.returning == [False, False, False]


async def test_owner_when_opening_is_refused_for_good_then_the_caller_hears_of_it(owner: Owner) -> None:
    owner.refusals = [NotAllowed("never")]
    with pytest.raises(NotAllowed):
        await owner.place.open(timeout_ms=2000)
    assert (owner.place.connection, owner.failures) == (None, [])


async def test_owner_when_its_connection_is_lost_then_comes_back_once(owner: Owner) -> None:
    await owner.place.open(timeout_ms=2000)
    assert owner.place.lose()
    assert not owner.place.lose()
    owner.place.come_back()
    owner.place.come_back()
    await owner.place.returned()
    assert owner.returning == [False, True]
    assert (owner.place.connection is not None, owner.place.is_returning) == (True, False)


async def test_owner_when_it_cannot_come_back_then_is_told_why(owner: Owner) -> None:
    await owner.place.open(timeout_ms=2000)
    owner.refusals = [NotAllowed("never again")]
    owner.place.lose()
    owner.place.come_back()
    await owner.place.returned()
    assert [str(failure) for failure in owner.failures] == ["never again"]


async def test_owner_when_it_has_work_of_its_own_then_comes_back_after_that(owner: Owner) -> None:
    await owner.place.open(timeout_ms=2000)
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    owner.heard.clear()
    owner.place.lose()
    owner.place.come_back(after=work)
    await asyncio.sleep(0)
    assert not owner.heard.is_set()
    work.set_result(None)
    await owner.place.returned()
    assert owner.returning == [False, True]


async def test_owner_when_it_leaves_then_does_not_come_back(owner: Owner) -> None:
    await owner.place.open(timeout_ms=2000)
    connection = owner.place.connection
    assert await owner.place.leave() is connection
    owner.refusals = [ServiceNotReady("soon")] * 100
    owner.place.come_back()
    assert await owner.place.leave() is None
    assert not owner.place.is_returning
