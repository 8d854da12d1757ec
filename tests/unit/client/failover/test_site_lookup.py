"""Questions that are under way when the client leaves a site."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.client.config import BrokerAddress
from interpulse.client.failover.site_lookup import SiteLookup
from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName

TOPIC = TopicName.parse("t")


class FakeLookup:
    """Answers with its own address once the test allows it."""

    def __init__(self, host: str) -> None:
        self.address = BrokerAddress(host, 1)
        self.allowed = asyncio.Event()
        self.asked = asyncio.Event()
        self.failure: PulsarError | None = None
        self.is_closed = False

    async def _answer(self, *_: object, **__: object) -> Any:
        self.asked.set()
        await self.allowed.wait()
        if self.failure is not None:
            raise self.failure
        return self.address

    broker = brokers = partitions = topics_of_namespace = service_connection = schema = _answer

    async def close(self) -> None:
        self.is_closed = True


def pair() -> tuple[Any, Any, SiteLookup]:
    east, west = FakeLookup("east"), FakeLookup("west")
    return east, west, SiteLookup(east)


async def test_question_when_the_client_leaves_then_is_asked_again() -> None:
    east, west, lookup = pair()
    asking = asyncio.create_task(lookup.broker(TOPIC))
    await east.asked.wait()
    west.allowed.set()
    assert id(lookup.move(west)) == id(east)
    assert await asking == west.address
    await lookup.close()
    assert (east.is_closed, west.is_closed) == (False, True)


async def test_answer_when_it_comes_from_the_site_that_was_left_then_does_not_count() -> None:
    east, west, lookup = pair()
    asking = asyncio.create_task(lookup.broker(TOPIC))
    await east.asked.wait()
    east.allowed.set()
    await asyncio.sleep(0)
    west.allowed.set()
    lookup.move(west)
    assert await asking == west.address


async def test_every_question_is_asked_at_the_present_site() -> None:
    east, west, lookup = pair()
    lookup.move(west)
    west.allowed.set()
    answers = [
        await lookup.partitions(TOPIC, create=False),
        await lookup.brokers([TOPIC]),
        await lookup.topics_of_namespace(NamespaceName.parse("public/default")),
        await lookup.service_connection(),
        await lookup.schema(TOPIC),
    ]
    assert answers == [west.address] * 5
    assert not east.asked.is_set()


async def test_failure_when_the_client_stays_then_is_raised() -> None:
    east, _, lookup = pair()
    east.failure = TopicNotFound("t")
    east.allowed.set()
    with pytest.raises(TopicNotFound):
        await lookup.broker(TOPIC)


async def test_caller_when_cancelled_then_its_question_ends() -> None:
    east, west, lookup = pair()
    asking = asyncio.create_task(lookup.broker(TOPIC))
    await east.asked.wait()
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    lookup.move(west)
    assert not west.asked.is_set()
