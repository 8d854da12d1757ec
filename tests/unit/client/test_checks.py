"""Settings and arguments that make no sense are refused at once, with their name and value."""

from collections.abc import Callable

import pytest

from interpulse.client.checks import check_interval, check_provider, topic_names
from interpulse.client.config import ClientConfig
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.reader import ReaderConfig
from interpulse.client.producing.partition_producer import ProducerConfig
from interpulse.model.names import TopicName

A, B = TopicName.parse("a"), TopicName.parse("b")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ConsumerConfig("Shared"), "subscription_type='Shared' must be one of 'exclusive', 'shared'"),  # type: ignore[arg-type]
        (lambda: ConsumerConfig(initial_position="Earliest"), "initial_position='Earliest' must be"),  # type: ignore[arg-type]
        (lambda: ConsumerConfig(topics_mode="x"), "topics_mode='x' must be"),  # type: ignore[arg-type]
        (lambda: ConsumerConfig(crypto_failure_action="FAIL"), "'fail', 'discard', 'consume'"),  # type: ignore[arg-type]
        (lambda: ConsumerConfig(receiver_queue_size=0), "receiver_queue_size=0 must be an integer, at least 1"),
        (lambda: ConsumerConfig(nack_delay_ms=-5), "nack_delay_ms=-5 must be an integer, at least 0"),
        (lambda: ConsumerConfig(ack_timeout_ms=0.5), "ack_timeout_ms=0.5 must be an integer"),  # type: ignore[arg-type]
        (lambda: ProducerConfig(access_mode="x"), "access_mode='x' must be"),  # type: ignore[arg-type]
        (lambda: ProducerConfig(compression="gzip"), "compression='gzip' must be one of 'none', 'lz4'"),  # type: ignore[arg-type]
        (lambda: ProducerConfig(routing="x"), "routing='x' must be"),  # type: ignore[arg-type]
        (lambda: ProducerConfig(hashing="x"), "hashing='x' must be"),  # type: ignore[arg-type]
        (lambda: ProducerConfig(pending_messages_max=0), "pending_messages_max=0 must be"),
        (lambda: ProducerConfig(send_timeout_ms=-1), "send_timeout_ms=-1 must be"),
        (lambda: ClientConfig("pulsar://a", operation_timeout_ms=-1), "operation_timeout_ms=-1 must be"),
        (lambda: ClientConfig("pulsar://a", lookup_timeout_ms="30"), "lookup_timeout_ms='30' must be"),  # type: ignore[arg-type]
    ],
)
def test_setting_when_nothing_can_be_done_with_it_then_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ClientConfig(None), "service_url=None is of type NoneType, expected str"),  # type: ignore[arg-type]
        (lambda: ConsumerConfig(schema="json"), "schema='json' is of type str, expected SchemaInfo, None"),  # type: ignore[arg-type]
        (lambda: ConsumerConfig(dead_letter_policy=3), "dead_letter_policy=3 is of type int"),  # type: ignore[arg-type]
        (lambda: ConsumerConfig(properties={"a": 1}), "properties=1 is of type int, expected str"),  # type: ignore[dict-item]
        (lambda: ReaderConfig(start="earliest"), "start='earliest' is of type str, expected MessageId, Position"),  # type: ignore[arg-type]
        (lambda: topic_names(7), "topics=7 is of type int, expected str, list"),  # type: ignore[arg-type]
        (lambda: topic_names(b"t"), "topics=b't' is of type bytes"),  # type: ignore[arg-type]
        (lambda: topic_names([None]), "topic=None is of type NoneType, expected str"),  # type: ignore[list-item]
    ],
)
def test_value_when_of_another_type_then_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make()


def test_topics_when_named_once_or_more_then_each_is_there_once() -> None:
    assert topic_names(" a ") == [A]
    assert topic_names(["a", "b", "a"]) == [A, B]
    assert topic_names([]) == []


@pytest.mark.parametrize("interval_ms", [0, -1])
@pytest.mark.parametrize(
    "accept",
    [
        lambda interval_ms: check_interval("auto_update_partitions_interval_ms", interval_ms),
        lambda interval_ms: ProducerConfig(auto_update_partitions_interval_ms=interval_ms),
        lambda interval_ms: ConsumerConfig(auto_update_partitions_interval_ms=interval_ms),
        lambda interval_ms: ReaderConfig(auto_update_partitions_interval_ms=interval_ms),
    ],
    ids=["check", "producer", "consumer", "reader"],
)
def test_interval_below_one_is_refused_with_what_to_do_instead(
    accept: Callable[[int], object], interval_ms: int
) -> None:
    with pytest.raises(ValueError, match="auto_update_partitions=False"):
        accept(interval_ms)


def test_provider_when_it_is_none_or_missing_then_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="tracing='yes' must be True, False, or a provider of OpenTelemetry"):
        ClientConfig("pulsar://localhost", tracing="yes")  # type: ignore[arg-type]
    monkeypatch.setattr("interpulse.client.checks.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"metrics needs opentelemetry-api as well: pip install 'interpulse\[tracing"):
        check_provider("metrics", True, "get_meter")
    check_provider("metrics", False, "get_meter")
