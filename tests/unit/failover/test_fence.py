"""The fence of one topic, seen from a broker whose answers the test chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.session import Session
from interpulse.failover.fence import Fence, Gap
from interpulse.model.errors import AuthorizationError, ServerError
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker
from tests.support.waiting import eventually

TOPIC = TopicName.parse("persistent://shop/orders/paid")
NAME = "interpulse.fence.orders.e5"
PRODUCER = pb.BaseCommand.PRODUCER


class Times:
    """A clock that is one second later at each look."""

    def __init__(self) -> None:
        self._now = 0

    def __call__(self) -> int:
        self._now += 1000
        return self._now


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    async with ScriptedBroker() as scripted:
        yield scripted


@pytest.fixture
async def fence(broker: ScriptedBroker) -> AsyncIterator[Fence]:
    session = Session(ClientConfig(broker.url, backoff_initial_ms=1, backoff_max_ms=10))
    yield Fence(session, TOPIC, NAME, Times())
    await session.close()


def refuse(broker: ScriptedBroker, error: ServerError) -> None:
    """Refuse every producer from now on."""

    def answer(peer: Peer, frame: Frame) -> None:
        peer.say(commands.error(frame.command.producer.request_id, error, "no"))

    broker.scripts[PRODUCER] = answer


def asked(broker: ScriptedBroker) -> list[tuple[str, str, int, int]]:
    producers = [command.producer for command in broker.all_of(PRODUCER)]
    return [(each.topic, each.producer_name, each.producer_access_mode, each.epoch) for each in producers]


async def test_fence_when_opened_then_asks_for_exclusive_access(broker: ScriptedBroker, fence: Fence) -> None:
    await fence.open()
    assert asked(broker) == [(str(TOPIC), NAME, pb.ExclusiveWithFencing, 0)]
    assert (fence.holds, fence.is_idle, fence.gaps) == (True, False, [])
    await fence.close()
    assert not fence.holds
    assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 1


async def test_fence_when_its_connection_is_lost_then_opens_again_and_records_the_gap(
    broker: ScriptedBroker, fence: Fence
) -> None:
    await fence.open()
    broker.peers[-1].drop()
    await eventually(lambda: fence.gaps and fence.holds)
    assert [epoch for *_, epoch in asked(broker)] == [0, 1]
    (gap,) = fence.gaps
    assert gap == Gap(TOPIC, 1000, 2000, "the broker closed the fence, or its connection was lost")
    assert (gap.ended_ms or 0) - gap.began_ms == 1000


async def test_fence_when_the_broker_closes_it_then_opens_again(broker: ScriptedBroker, fence: Fence) -> None:
    await fence.open()
    producer_id = broker.all_of(PRODUCER)[0].producer.producer_id
    broker.peers[-1].say(commands.encode(pb.CommandCloseProducer(producer_id=producer_id, request_id=1)))
    await eventually(lambda: fence.gaps and fence.holds)
    assert broker.count(PRODUCER) == 2


async def test_fence_when_reopening_is_refused_then_waits_to_be_opened(broker: ScriptedBroker, fence: Fence) -> None:
    await fence.open()
    refuse(broker, ServerError.AuthorizationError)
    broker.peers[-1].drop()
    await eventually(lambda: fence.failure is not None)
    await eventually(lambda: fence.is_idle)
    assert isinstance(fence.failure, AuthorizationError)
    with pytest.raises(AuthorizationError):
        await fence.open()
    broker.scripts.clear()
    await fence.open()
    assert fence.failure is None
    assert [gap.ended_ms for gap in fence.gaps] == [2000]


async def test_fence_when_the_topic_is_terminated_then_holds_without_a_producer(
    broker: ScriptedBroker, fence: Fence
) -> None:
    refuse(broker, ServerError.TopicTerminatedError)
    fence.begin_gap("the topic appeared", 500)
    await fence.open()
    assert (fence.holds, fence.is_idle) == (True, False)
    assert fence.gaps == [Gap(TOPIC, 500, 1000, "the topic appeared")]
