"""Batches half acknowledged by the official Python client and by ours: the other goes on with the rest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import uuid4

import pulsar
import pytest

from interpulse.client import Message
from interpulse.sync import Client
from tests.support.official_client import RECEIVE_MS, admin, connected, receive

pytestmark = pytest.mark.interop
COUNT = 70
"""More than one word of an ack set has bits for."""


class Stage:
    def __init__(self, ours: Client, official: pulsar.Client, web_url: str) -> None:
        self.ours = ours
        self.official = official
        self.topic = f"persistent://public/default/{uuid4().hex}"
        self._web_url = web_url

    def publish(self) -> None:
        """One entry."""
        with self.ours.create_producer(self.topic, batch_delay_ms=60_000, batch_messages_max=COUNT) as producer:
            ids = [future.result(30) for future in [producer.send_async(b"%d" % number) for number in range(COUNT)]]
        assert len({message_id.position for message_id in ids}) == 1

    def subscribe_official(self, kind: pulsar.ConsumerType) -> pulsar.Consumer:
        return self.official.subscribe(
            self.topic,
            "s",
            consumer_type=kind,
            batch_index_ack_enabled=True,
            initial_position=pulsar.InitialPosition.Earliest,
        )

    def wait_until_all_is_acknowledged(self) -> None:
        path = self.topic.replace("://", "/") + "/stats"
        deadline = time.monotonic() + RECEIVE_MS / 1000
        while admin(self._web_url, "GET", path)["subscriptions"]["s"]["msgBacklog"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.slow)])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    broker = request.getfixturevalue("pulsar_broker" if request.param == "ours" else "real_pulsar")
    with Client(broker.service_url) as ours, connected(broker.service_url) as official:
        yield Stage(ours, official, broker.web_url)


def numbers(messages: list[Message]) -> list[int]:
    return [int(message.content or b"") for message in messages]


@pytest.mark.parametrize("batch_index_ack_enabled", [True, False])
def test_batch_when_half_acknowledged_by_the_official_client_then_ours_goes_on(
    stage: Stage, batch_index_ack_enabled: bool
) -> None:
    consumer = stage.subscribe_official(pulsar.ConsumerType.Shared)
    stage.publish()
    for message in receive(consumer, COUNT)[1::2]:
        consumer.acknowledge(message)
    consumer.close()
    with stage.ours.subscribe(
        stage.topic, "s", subscription_type="shared", batch_index_ack_enabled=batch_index_ack_enabled
    ) as ours:
        messages = [ours.receive(RECEIVE_MS) for _ in range(COUNT // 2)]
        assert numbers(messages) == list(range(0, COUNT, 2))
        for message in messages:
            ours.acknowledge(message)
        stage.wait_until_all_is_acknowledged()


@pytest.mark.parametrize("cumulative", [True, False])
def test_batch_when_half_acknowledged_by_ours_then_the_official_client_goes_on(stage: Stage, cumulative: bool) -> None:
    with stage.ours.subscribe(stage.topic, "s", batch_index_ack_enabled=True) as ours:
        stage.publish()
        messages = [ours.receive(RECEIVE_MS) for _ in range(COUNT)]
        if cumulative:
            ours.acknowledge_cumulative(messages[65])
        else:
            for message in messages[:66]:
                ours.acknowledge(message)
    consumer = stage.subscribe_official(pulsar.ConsumerType.Exclusive)
    received = receive(consumer, COUNT - 66)
    assert [int(message.data()) for message in received] == [66, 67, 68, 69]
    for message in received:
        consumer.acknowledge(message)
    stage.wait_until_all_is_acknowledged()
