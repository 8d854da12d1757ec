"""``republish``: dead letters go back to their topic, each of them, and are tried as often as new messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.cli.messaging import warn_if_not_retained
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.client.consuming.consumer_config import DeadLetterPolicy
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.sync import AdminClient, Client
from interpulse.testing import InProcessBroker

TOPIC = "persistent://public/default/orders"
LETTERS = f"{TOPIC}-billing-DLQ"
SCHEMA = SchemaInfo(SchemaType.JSON, json.dumps({"type": "record", "name": "O", "fields": []}).encode(), {}, "O")


def run(broker: InProcessBroker, *arguments: str) -> str:
    result = CliRunner().invoke(
        main, ["republish", *arguments, "--url", broker.service_url, "--idle-seconds", "3"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def broker(tmp_path: Path) -> InProcessBroker:
    return InProcessBroker(tmp_path)


def test_dead_letters_when_republished_then_each_is_in_the_topic_again(broker: InProcessBroker) -> None:
    policy = DeadLetterPolicy(max_redeliver_count=1)
    with broker, Client(broker.service_url) as client, AdminClient(broker.web_url) as admin:
        consumer = client.subscribe(
            TOPIC, "billing", subscription_type="shared", dead_letter_policy=policy, schema=SCHEMA, nack_delay_ms=10
        )
        with client.create_producer(TOPIC, schema=SCHEMA, batching_enabled=False) as producer:
            for number in range(5):
                producer.send(b"{}", key=f"k{number}", properties={"n": str(number)}, event_time_ms=7)
        refused = 0
        while refused < 10:
            consumer.negative_acknowledge(consumer.receive(timeout_ms=30_000))
            refused += 1
        letters = client.subscribe(LETTERS, "watch", initial_position="earliest")
        assert sorted(letters.receive(timeout_ms=30_000).properties["n"] for _ in range(5)) == list("01234")
        consumer.close()

        assert run(broker, LETTERS, TOPIC, "-n", "2") == f"2 messages of {LETTERS} were published to {TOPIC}\n"
        assert run(broker, LETTERS, TOPIC) == f"3 messages of {LETTERS} were published to {TOPIC}\n"
        assert run(broker, LETTERS, TOPIC).startswith("0 messages")

        back = client.subscribe(TOPIC, "billing", subscription_type="shared")
        messages = [back.receive(timeout_ms=30_000) for _ in range(5)]
        assert sorted(each.key or "" for each in messages) == [f"k{number}" for number in range(5)]
        assert {tuple(each.properties) for each in messages} == {("n",)}
        assert {each.event_time_ms for each in messages} == {7}
        assert {each.schema_version for each in messages} == {(0).to_bytes(8, "big")}
        assert admin.topics.stats(LETTERS)["subscriptions"]["interpulse-republish"]["msgBacklog"] == 0


def test_letters_when_the_target_refuses_them_then_none_is_acknowledged(broker: InProcessBroker) -> None:
    with broker, Client(broker.service_url) as client, AdminClient(broker.web_url) as admin:
        with client.create_producer(LETTERS) as producer:
            producer.send(b"x")
        admin.topics.create(TOPIC)
        admin.topics.terminate(TOPIC)
        arguments = ["republish", LETTERS, TOPIC, "--url", broker.service_url]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 1
        assert "terminated" in result.stderr
        assert admin.topics.stats(LETTERS)["subscriptions"]["interpulse-republish"]["msgBacklog"] == 1


def test_target_when_it_keeps_nothing_then_is_warned_of_before_a_message_is_acknowledged(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker, Client(broker.service_url) as client, AdminClient(broker.web_url) as admin:
        with client.create_producer(LETTERS) as producer:
            producer.send(b"x")
            producer.send(b"y")
        backlogs = []

        async def note(settings: ConnectionSettings, topic: TopicName) -> None:
            subscription = admin.topics.stats(LETTERS)["subscriptions"]["interpulse-republish"]
            backlogs.append(subscription["msgBacklog"])
            await warn_if_not_retained(settings, topic)

        monkeypatch.setattr("interpulse.cli.republish.warn_if_not_retained", note)
        monkeypatch.setattr("interpulse.cli.messaging._WAITED_S", 60)
        warning = f"Warning: {TOPIC} has neither a subscription nor retention"
        output = run(broker, LETTERS, TOPIC, "-n", "1", "--admin-url", broker.web_url)
        assert (output.count(warning), backlogs) == (1, [2])
        admin.topics.create_subscription(TOPIC, "s")
        assert warning not in run(broker, LETTERS, TOPIC, "--admin-url", broker.web_url)
        assert backlogs == [2, 1]


@pytest.mark.parametrize(
    ("source", "target"),
    [("orders", "orders"), ("orders", TOPIC), (f"{TOPIC}-partition-2", "orders"), ("orders", "orders-partition-0")],
)
def test_source_when_it_is_the_target_too_then_is_wrong_usage(source: str, target: str) -> None:
    result = CliRunner().invoke(main, ["republish", source, target, "--url", "pulsar://127.0.0.1:1"])
    assert result.exit_code == 2
    assert "are the same topic: what is published would come again, without end" in result.stderr


@pytest.mark.parametrize(
    ("source", "target"),
    [("orders-partition-0", "orders-partition-1"), ("orders", "non-persistent://public/default/orders")],
)
def test_source_when_it_is_another_topic_then_is_not_refused(source: str, target: str) -> None:
    result = CliRunner().invoke(main, ["republish", source, target, "--url", "pulsar://127.0.0.1:1", "--timeout", "1"])
    assert "are the same topic" not in result.stderr
    assert result.exit_code == 5
