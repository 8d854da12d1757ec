"""What a topic demands of each entry; clients that are too fast are not read from, never refused."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.producing.publish_limits import PublishLimits
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import MetadataError, NotAllowed
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import PublishRate
from interpulse.wire import pulsar_api_pb2 as pb

NOW = 1_000


@pytest.mark.parametrize(
    ("settings", "limited"),
    [
        pytest.param(TopicSettings(), False, id="no policy"),
        pytest.param(TopicSettings(publish_rate=PublishRate(1, -1)), True, id="rate"),
        pytest.param(TopicSettings(max_message_size=1), True, id="size"),
        pytest.param(TopicSettings(encryption_required=True), True, id="encryption"),
    ],
)
def test_topic_that_nothing_is_demanded_of_has_no_limits(settings: TopicSettings, limited: bool) -> None:
    assert (PublishLimits.of(settings, None, NOW) is not None) == limited


@pytest.mark.parametrize(
    ("size", "is_chunk", "refused"), [(9, False, False), (10, False, False), (11, False, True), (11, True, False)]
)
def test_size(size: int, is_chunk: bool, refused: bool) -> None:
    limits = PublishLimits(TopicSettings(max_message_size=10), NOW)
    if not refused:
        limits.check(b"x" * size, is_chunk=is_chunk, is_marker=False)
        return
    with pytest.raises(NotAllowed, match=r"^Exceed maximum message size: 11 bytes \(maxMessageSize=10\)$"):
        limits.check(b"x" * size, is_chunk=is_chunk, is_marker=False)


def test_encryption(make_entry: Any) -> None:
    limits = PublishLimits(TopicSettings(encryption_required=True), NOW)
    limits.check(
        make_entry(1, encryption_keys=[pb.EncryptionKeys(key="k", value=b"v")]), is_chunk=False, is_marker=False
    )
    limits.check(make_entry(1), is_chunk=False, is_marker=True)
    with pytest.raises(MetadataError, match="Messages must be encrypted"):
        limits.check(make_entry(1), is_chunk=False, is_marker=False)


def test_rate_that_stays_goes_on_counting_when_other_settings_change() -> None:
    rate = PublishRate(2, -1)
    limits = PublishLimits(TopicSettings(publish_rate=rate), NOW)
    assert [limits.charge(1, 1, NOW), limits.charge(1, 1, NOW)] == [0, 500]
    after = PublishLimits.of(TopicSettings(publish_rate=rate, max_message_size=9), limits, NOW)
    assert after is not None
    assert (after.charge(1, 1, NOW), after.throttled_count) == (1000, 2)
    fresh = PublishLimits.of(TopicSettings(publish_rate=PublishRate(3, -1)), after, NOW)
    assert fresh is not None
    assert fresh.charge(1, 1, NOW) == 0


def test_very_short_waits_are_joined() -> None:
    limits = PublishLimits(TopicSettings(publish_rate=PublishRate(1_000, -1)), NOW)
    assert limits.charge(1_000, 1, NOW) == 10


# --- on a topic


async def limited(bench: Any, **settings: Any) -> Topic:
    bench.settings = TopicSettings(**settings)
    topic: Topic = await bench.topic()
    return topic


async def test_producers_of_a_topic_share_its_rate_and_nothing_is_refused(bench: Any, publish: Any) -> None:
    topic = await limited(bench, publish_rate=PublishRate(4, -1))
    one, of_one = await bench.producer(topic, "one")
    two, of_two = await bench.producer(topic, "two", producer_id=2)
    await publish(one, 0, 1)
    await publish(two, 0)
    assert of_one.throttled == of_two.throttled == []
    await publish(two, 1)
    await publish(one, 2)
    assert (of_one.throttled, of_two.throttled) == ([500], [250])
    assert (len(of_one.received), len(of_two.received)) == (3, 2)
    assert of_one.failures == of_two.failures == []
    assert topic.stats()["publishRateLimitedTimes"] == 2
    bench.clock.time_ms += 500
    await publish(one, 3)
    assert of_one.throttled == [500, 250]


async def test_rate_in_bytes_counts_what_is_stored(bench: Any, make_entry: Any) -> None:
    entry = make_entry(0)
    topic = await limited(bench, publish_rate=PublishRate(-1, 2 * len(entry)))
    producer, sink = await bench.producer(topic)
    producer.publish([0], [entry])
    assert sink.throttled == []
    producer.publish([1], [entry])
    assert len(sink.throttled) == 1


async def test_batch_counts_its_messages(bench: Any, make_entry: Any) -> None:
    topic = await limited(bench, publish_rate=PublishRate(10, -1))
    producer, sink = await bench.producer(topic)
    producer.publish([0], [make_entry(0, num_messages_in_batch=30)], num_messages=30)
    assert sink.throttled == [2100]


async def test_rate_that_is_taken_away_lets_all_producers_go_on(bench: Any, publish: Any) -> None:
    topic = await limited(bench, publish_rate=PublishRate(1, -1))
    producer, sink = await bench.producer(topic)
    await publish(producer, 0, 1, 2)
    await topic.apply(TopicSettings())
    assert sink.throttled == [1000, 2000, 3000, 0]
    await publish(producer, 3)
    assert len(sink.throttled) == 4


async def test_entry_that_is_too_large_is_refused_in_its_turn(bench: Any, make_entry: Any) -> None:
    small, large = make_entry(1), make_entry(1_000_000)
    topic = await limited(bench, max_message_size=len(small))
    producer, sink = await bench.producer(topic)
    producer.publish([1], [small])
    producer.publish([2], [large])
    producer.publish([3], [small])
    await bench.settle()
    assert sink.order == [1, 2, 3]
    [(number, error)] = sink.failures
    assert (number, type(error)) == (2, NotAllowed)
    await topic.apply(TopicSettings())
    producer.publish([4], [large])
    await bench.settle()
    assert sink.received[-1][0] == 4


async def test_producer_without_encryption_is_refused_and_an_open_one_sent_away(bench: Any) -> None:
    topic = await limited(bench)
    _, plain = await bench.producer(topic, "plain")
    _, encrypting = await bench.producer(topic, "encrypting", producer_id=2, encrypted=True)
    await topic.apply(TopicSettings(encryption_required=True))
    assert (plain.closed, encrypting.closed) == ([1], [])
    with pytest.raises(MetadataError, match=f"^Encryption is required in {topic.name}"):
        await bench.producer(topic, "plain")


async def test_topics_of_the_system_are_not_limited(bench: Any, publish: Any) -> None:
    bench.settings = TopicSettings(publish_rate=PublishRate(1, -1), max_producers=1, encryption_required=True)
    topic = await bench.topic(TopicName.parse("persistent://pulsar/system/t"))
    producer, sink = await bench.producer(topic, "a")
    await bench.producer(topic, "b", producer_id=2)
    await publish(producer, 0, 1)
    assert (sink.throttled, len(sink.received)) == ([], 2)


async def test_non_persistent_topic_is_limited_as_well(bench: Any, publish: Any) -> None:
    bench.settings = TopicSettings(publish_rate=PublishRate(1, -1), max_message_size=10_000, max_producers=1)
    topic = await bench.registry.open(TopicName.parse("non-persistent://public/default/t"))
    producer, sink = await bench.producer(topic)
    await publish(producer, 0)
    assert sink.throttled == [1000]
    assert topic.stats()["publishRateLimitedTimes"] == 1
