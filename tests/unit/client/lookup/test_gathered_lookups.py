"""Lookups that become due together are asked together; one that comes alone does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from interpulse.client.config import BrokerAddress
from interpulse.client.lookup.gathered_lookups import GatheredLookups
from interpulse.model.errors import AlreadyClosed, PulsarError, TopicNotFound
from interpulse.model.names import TopicName

BROKER = BrokerAddress("b", 1)
A, B, C, D = (TopicName.parse(name) for name in "abcd")


class Broker:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[list[TopicName]] = []
        self.second = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.missing: set[TopicName] = set()
        self.fault: Exception | None = None

    async def single(self, topic: TopicName) -> BrokerAddress:
        answer = (await self.many([topic]))[topic]
        if isinstance(answer, PulsarError):
            raise answer
        return answer

    async def many(self, topics: Sequence[TopicName]) -> Mapping[TopicName, BrokerAddress | PulsarError]:
        self.asked.append(list(topics))
        if len(self.asked) == 2:
            self.second.set()
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return {topic: TopicNotFound(str(topic)) if topic in self.missing else BROKER for topic in topics}


@pytest.fixture
def broker() -> Broker:
    return Broker()


def gathered(broker: Broker, window_s: float = 60) -> GatheredLookups:
    """The window is longer than any test unless it is what the test is about."""
    return GatheredLookups(broker.single, broker.many, window_s=window_s)


async def test_lookup_when_alone_then_asked_at_once(broker: Broker) -> None:
    lookups = gathered(broker)
    for topic in (A, B, A):
        assert await lookups.find(topic) == BROKER
    assert broker.asked == [[A], [B], [A]]


async def test_lookups_when_they_come_together_then_first_alone_and_the_others_as_one(broker: Broker) -> None:
    lookups = gathered(broker)
    answers = await asyncio.gather(*map(lookups.find, (A, B, C, B, D)))
    assert answers == [BROKER] * 5
    assert broker.asked == [[A], [B, C, D]]


async def test_lookups_when_the_first_takes_long_then_the_others_wait_for_the_window_only(broker: Broker) -> None:
    lookups = gathered(broker, window_s=0.001)
    broker.gate.clear()
    finding = [asyncio.create_task(lookups.find(topic)) for topic in (A, B, C)]
    async with asyncio.timeout(60):
        await broker.second.wait()
    assert broker.asked == [[A], [B, C]]
    broker.gate.set()
    assert await asyncio.gather(*finding) == [BROKER] * 3


async def test_lookups_when_a_batch_is_under_way_then_later_ones_are_the_next_batch(broker: Broker) -> None:
    lookups = gathered(broker)
    first = [asyncio.create_task(lookups.find(topic)) for topic in (A, B)]
    await broker.second.wait()
    await asyncio.gather(*first, *map(lookups.find, (C, D)))
    assert broker.asked == [[A], [B], [C, D]]


async def test_lookups_when_one_topic_fails_then_only_who_asked_for_it_hears(broker: Broker) -> None:
    lookups = gathered(broker)
    broker.missing = {A, C}
    answers = await asyncio.gather(*map(lookups.find, (A, B, C, C)), return_exceptions=True)
    assert answers[1] == BROKER
    assert [type(answers[index]) for index in (0, 2, 3)] == [TopicNotFound] * 3


async def test_lookups_when_the_question_has_a_fault_then_none_waits_for_ever(broker: Broker) -> None:
    lookups = gathered(broker)
    broker.fault = RuntimeError("a bug")
    answers = await asyncio.gather(*map(lookups.find, (A, B, C)), return_exceptions=True)
    assert all(answer is broker.fault for answer in answers)
    broker.fault = None
    assert await lookups.find(A) == BROKER


async def test_lookup_when_one_who_waits_gives_up_then_the_others_get_their_answers(broker: Broker) -> None:
    lookups = gathered(broker)
    broker.gate.clear()
    finding = [asyncio.create_task(lookups.find(topic)) for topic in (A, B, B, C)]
    await asyncio.sleep(0)
    finding[1].cancel()
    broker.gate.set()
    answers = await asyncio.gather(*finding, return_exceptions=True)
    assert isinstance(answers[1], asyncio.CancelledError)
    assert [answers[0], *answers[2:]] == [BROKER] * 3


@pytest.mark.parametrize("turns", [1, 3], ids=["waiting", "under-way"])
async def test_lookups_when_the_client_is_closed_then_who_waits_hears_of_it(broker: Broker, turns: int) -> None:
    lookups = gathered(broker, window_s=0 if turns > 1 else 60)
    broker.gate.clear()
    finding = [asyncio.create_task(lookups.find(topic)) for topic in (A, B, C)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await lookups.close()
    for waiting in finding[1:]:
        with pytest.raises(AlreadyClosed):
            await waiting
    broker.gate.set()
    assert await finding[0] == BROKER
