from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.requests import AccessMode
from interpulse.model.errors import PreconditionFailed, ServiceNotReady
from interpulse.model.names import TopicName


@pytest.fixture(params=["persistent", "non-persistent"])
async def topic(bench: Any, request: pytest.FixtureRequest) -> Any:
    return await bench.registry.open(TopicName.parse(f"{request.param}://public/default/t"), create=True)


async def test_topic_when_a_client_is_connected_or_waits_then_it_is_in_use(bench: Any, topic: Any) -> None:
    topic.clients.check_none()
    owner, _ = await bench.producer(topic, access_mode=AccessMode.EXCLUSIVE)
    waiting, _ = await bench.producer(topic, "w", access_mode=AccessMode.WAIT_FOR_EXCLUSIVE)
    consumer, _ = await bench.consumer(topic)
    for client in (owner, waiting, consumer):
        with pytest.raises(PreconditionFailed, match=r"Topic .*/t has active producers/subscriptions"):
            topic.clients.check_none()
        client.close()
    topic.clients.check_none()


async def test_topic_when_it_is_retired_then_clients_are_disconnected_and_others_refused(
    bench: Any, topic: Any
) -> None:
    _, producer_sink = await bench.producer(topic)
    _, consumer_sink = await bench.consumer(topic)
    topic.clients.retire()
    assert (producer_sink.closed, consumer_sink.closed) == ([1], [1])
    assert not topic.clients.connected
    for opened in (bench.producer(topic), bench.consumer(topic)):
        with pytest.raises(ServiceNotReady, match="temporarily unavailable"):
            await opened


async def test_topic_when_refused_twice_then_the_first_reason_stays(topic: Any) -> None:
    topic.clients.retire()
    topic.clients.refuse_while_unloading()
    assert str(topic.clients.refusal).endswith("is being deleted")
