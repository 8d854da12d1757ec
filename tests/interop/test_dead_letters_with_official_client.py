"""Dead letters of the official Python client and of ours: each finds the other's, on our broker and on a real one."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pulsar
import pytest

from interpulse.client import DeadLetterPolicy
from interpulse.sync import Client
from tests.support.official_client import RECEIVE_MS, connected, is_quiet

pytestmark = pytest.mark.interop
SHARED = {"subscription_type": "shared", "nack_delay_ms": 20}


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.slow)])
def clients(request: pytest.FixtureRequest) -> Iterator[tuple[Client, pulsar.Client]]:
    broker = request.getfixturevalue("pulsar_broker" if request.param == "ours" else "real_pulsar")
    with Client(broker.service_url) as ours, connected(broker.service_url) as official:
        yield ours, official


def test_dead_letters_of_ours_when_read_by_the_official_client_then_are_what_it_would_send(
    clients: tuple[Client, pulsar.Client],
) -> None:
    ours, official = clients
    topic = f"persistent://public/default/{uuid4().hex}"
    policy = DeadLetterPolicy(1, initial_subscription_name="look")
    with ours.subscribe(
        topic, "s", subscription_type="shared", nack_delay_ms=20, dead_letter_policy=policy
    ) as consumer:
        official.create_producer(topic).send(b"bad", {"mine": "1"}, partition_key="k", event_timestamp=7)
        for count in range(2):
            message = consumer.receive(RECEIVE_MS)
            assert message.redelivery_count == count
            consumer.negative_acknowledge(message)
        dead_letters = official.subscribe(f"{topic}-s-DLQ", "other", initial_position=pulsar.InitialPosition.Earliest)
        dead = dead_letters.receive(RECEIVE_MS)
        assert (dead.data(), dead.partition_key(), dead.event_timestamp()) == (b"bad", "k", 7)
        properties = dead.properties()
        assert (properties["mine"], properties["REAL_TOPIC"]) == ("1", topic)
        assert properties["ORIGIN_MESSAGE_ID"] == str(message.id)
        kept = official.subscribe(f"{topic}-s-DLQ", "look")
        assert kept.receive(RECEIVE_MS).message_id() == dead.message_id()


def test_dead_letters_of_the_official_client_when_read_by_ours_then_name_their_origin(
    clients: tuple[Client, pulsar.Client],
) -> None:
    ours, official = clients
    topic = f"persistent://public/default/{uuid4().hex}"
    consumer = official.subscribe(
        topic,
        "s",
        consumer_type=pulsar.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(1),
    )
    with ours.subscribe(f"{topic}-s-DLQ", "look") as dead_letters, ours.create_producer(topic) as producer:
        producer.send(b"bad", key="k", properties={"mine": "1"})
        for _ in range(2):
            consumer.negative_acknowledge(consumer.receive(RECEIVE_MS))
        dead = dead_letters.receive(RECEIVE_MS)
    assert is_quiet(
        consumer
    )  # also: this client dies when it is closed while it acknowledges what it gave to the dead-letter topic
    assert (dead.content, dead.key, dead.properties["mine"]) == (b"bad", "k", "1")
    assert dead.properties["REAL_TOPIC"] == topic
    assert "ORIGIN_MESSAGE_ID" in dead.properties


def test_messages_given_back_when_both_share_a_subscription_then_count_for_both(
    clients: tuple[Client, pulsar.Client],
) -> None:
    ours, official = clients
    topic = f"persistent://public/default/{uuid4().hex}"
    policy = DeadLetterPolicy(2)
    with ours.subscribe(
        topic, "s", subscription_type="shared", nack_delay_ms=20, dead_letter_policy=policy
    ) as consumer:
        with ours.create_producer(topic, batching_enabled=False) as producer:
            producer.send(b"bad")
        consumer.negative_acknowledge(consumer.receive(RECEIVE_MS))
        again = consumer.receive(RECEIVE_MS)
        assert again.redelivery_count == 1
        other = official.subscribe(
            topic,
            "s",
            consumer_type=pulsar.ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=100,
            dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(1),
        )
    dead_letters = official.subscribe(f"{topic}-s-DLQ", "look")
    message = other.receive(RECEIVE_MS)
    assert message.redelivery_count() == 1
    other.negative_acknowledge(message)
    assert dead_letters.receive(RECEIVE_MS).properties()["REAL_TOPIC"] == topic
    assert is_quiet(other)
