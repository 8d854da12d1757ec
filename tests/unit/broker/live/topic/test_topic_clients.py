"""How many clients a topic takes, at the limit and one beyond; a change counts at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interpulse.broker.live.api import AccessMode, SubscribeRequest, SubType, TopicSettings
from interpulse.broker.live.topic import topic_clients
from interpulse.broker.live.topic.topic_clients import SubscribeLimits
from interpulse.model.errors import ConsumerBusy, NotAllowed, PreconditionFailed, ProducerBusy, ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import BacklogQuota, DispatchRate, PublishRate, SubscribeRate


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


NON_PERSISTENT = TopicName.parse("non-persistent://public/default/t")
BOTH = pytest.mark.parametrize("name", [TopicName.parse("persistent://public/default/t"), NON_PERSISTENT], ids=str)


async def limited(bench: Any, name: TopicName, **settings: Any) -> Any:
    bench.settings = TopicSettings(**settings)
    return await bench.registry.open(name)


@BOTH
async def test_producers(bench: Any, name: TopicName) -> None:
    topic = await limited(bench, name, max_producers=2)
    first, _ = await bench.producer(topic, "a")
    await bench.producer(topic, "b", producer_id=2)
    for mode in AccessMode:
        with pytest.raises(ProducerBusy, match=r"reached max producers limit \(maxProducers=2\)"):
            await bench.producer(topic, "c", producer_id=3, access_mode=mode)
    with pytest.raises(ProducerBusy):
        await bench.producer(topic, "pulsar.replica", producer_id=4, remote=True)
    await bench.producer(topic, "pulsar.repl.west", producer_id=4, remote=True, remote_cluster="west")
    first.close()
    await bench.producer(topic, "c", producer_id=3)
    await topic.apply(TopicSettings(max_producers=3))
    await bench.producer(topic, "d", producer_id=5)


async def test_producer_that_comes_back_at_the_limit_replaces_itself(bench: Any, topic_name: TopicName) -> None:
    topic = await limited(bench, topic_name, max_producers=1)
    await bench.producer(topic, "a", user_provided_name=False)
    await bench.producer(topic, "a", user_provided_name=False, epoch=1)
    assert len(topic.producers.by_name) == 1


@BOTH
async def test_consumers_of_a_topic(bench: Any, name: TopicName) -> None:
    topic = await limited(bench, name, max_consumers=2)
    first, _ = await bench.consumer(topic, "a")
    await bench.consumer(topic, "b", consumer_id=2, durable=False)
    with pytest.raises(ConsumerBusy, match=r"^Topic reached max consumers limit \(maxConsumers=2\)$"):
        await bench.consumer(topic, "c", consumer_id=3)
    assert topic.subscription_names() == ["a", "b"]
    first.close()
    await bench.consumer(topic, "a", consumer_id=4)
    await topic.apply(TopicSettings())
    await bench.consumer(topic, "c", consumer_id=3)


async def test_consumer_beyond_the_limit_of_its_topic_is_refused_on_an_existing_subscription_too(
    bench: Any, topic_name: TopicName
) -> None:
    topic = await limited(bench, topic_name, max_consumers=1)
    await bench.consumer(topic, "a", sub_type=SubType.SHARED)
    with pytest.raises(ConsumerBusy, match="Topic reached max consumers limit"):
        await bench.consumer(topic, "a", sub_type=SubType.SHARED, consumer_id=2)


@BOTH
@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.FAILOVER, SubType.KEY_SHARED])
async def test_consumers_of_a_subscription(bench: Any, name: TopicName, sub_type: SubType) -> None:
    topic = await limited(bench, name, max_consumers_per_subscription=2)
    await bench.consumer(topic, "a", sub_type=sub_type, consumer_name="1")
    await bench.consumer(topic, "a", sub_type=sub_type, consumer_name="2", consumer_id=2)
    with pytest.raises(ConsumerBusy, match=r"reached max consumers limit \(maxConsumersPerSubscription=2\)$"):
        await bench.consumer(topic, "a", sub_type=sub_type, consumer_name="3", consumer_id=3)
    await bench.consumer(topic, "b", sub_type=sub_type, consumer_id=3)


async def test_exclusive_consumer_whose_client_is_dead_makes_room_at_the_limit(
    bench: Any, topic_name: TopicName
) -> None:
    topic = await limited(bench, topic_name, max_consumers=1, max_consumers_per_subscription=1)
    _, sink = await bench.consumer(topic, "a")
    sink.alive = False
    await bench.consumer(topic, "a", consumer_id=2)
    assert topic.consumer_count == 1


async def test_subscriptions(bench: Any, topic_name: TopicName) -> None:
    topic = await limited(bench, topic_name, max_subscriptions=2)
    await topic.create_subscription("pulsar.repl.west")
    await topic.keep_for_compaction()
    await topic.create_subscription("a")
    await bench.consumer(topic, "b", durable=False)
    refusal = rf"^Exceed the maximum number of subscriptions of the topic: {topic_name} \(maxSubscriptionsPerTopic=2\)$"
    with pytest.raises(NotAllowed, match=refusal):
        await topic.create_subscription("c")
    with pytest.raises(NotAllowed, match=refusal):
        await bench.consumer(topic, "c", consumer_id=2)
    with pytest.raises(NotAllowed, match=refusal):
        await bench.consumer(topic, "c", consumer_id=2, durable=False)
    await bench.consumer(topic, "a", consumer_id=3)
    await topic.delete_subscription("a", force=True)
    await topic.create_subscription("c")


async def test_types_of_subscriptions(bench: Any, topic_name: TopicName) -> None:
    topic = await limited(bench, topic_name)
    await bench.consumer(topic, "a", sub_type=SubType.SHARED)
    await topic.apply(TopicSettings(subscription_types_enabled=frozenset({"Exclusive"})))
    with pytest.raises(NotAllowed, match=r"doesn't support Shared sub type! \(subscriptionTypesEnabled=Exclusive\)"):
        await bench.consumer(topic, "a", sub_type=SubType.SHARED, consumer_id=2)
    await bench.consumer(topic, "b", consumer_id=3)
    assert topic.consumer_count == 2


async def test_replication_reads_whatever_is_limited(bench: Any, topic_name: TopicName) -> None:
    topic = await limited(
        bench, topic_name, max_consumers=1, max_subscriptions=1, subscription_types_enabled=frozenset({"Shared"})
    )
    await topic.create_subscription("pulsar.repl.west")
    await bench.consumer(topic, "a", sub_type=SubType.SHARED)
    await bench.consumer(topic, "pulsar.repl.west", consumer_id=2)
    assert topic.consumer_count == 1


async def test_system_topic_takes_all_clients(bench: Any) -> None:
    topic = await limited(
        bench, TopicName.parse("persistent://pulsar/system/t"), max_consumers=1, max_subscriptions=1, max_producers=1
    )
    for number in range(3):
        await bench.consumer(topic, f"s{number}", consumer_id=number)
        await bench.producer(topic, f"p{number}", producer_id=number)


async def test_subscribe_rate_is_of_one_consumer(bench: Any, topic_name: TopicName) -> None:
    topic = await limited(bench, topic_name, subscribe_rate=SubscribeRate(2, 30))

    async def subscribe(**request: Any) -> None:
        consumer, _ = await bench.consumer(topic, "a", **{"consumer_name": "n", "address": "/10.0.0.1:500", **request})
        consumer.close()

    await subscribe()
    await subscribe(address="/10.0.0.1:501")
    with pytest.raises(
        NotAllowed,
        match=r"^Subscribe limited by subscribe rate limit per consumer\. \(subscribeRate=2 per 30 s\)$",
    ):
        await subscribe()
    await subscribe(consumer_id=2)
    await subscribe(consumer_name="m")
    await subscribe(address="/10.0.0.2:500")
    bench.clock.time_ms += 15_000
    await subscribe()
    with pytest.raises(NotAllowed):
        await subscribe()
    await topic.apply(TopicSettings())
    await subscribe()


async def test_non_persistent_topic_looks_neither_at_types_nor_at_the_subscribe_rate_as_in_pulsar(bench: Any) -> None:
    topic = await limited(
        bench,
        NON_PERSISTENT,
        subscription_types_enabled=frozenset({"Exclusive"}),
        subscribe_rate=SubscribeRate(1, 60),
        max_subscriptions=1,
    )
    for number in range(2):
        await bench.consumer(topic, "a", sub_type=SubType.SHARED)
        await bench.consumer(topic, f"b{number}", consumer_id=number)


async def test_refused_consumer_leaves_no_subscription_on_a_non_persistent_topic(bench: Any) -> None:
    topic = await limited(bench, NON_PERSISTENT, max_consumers=1)
    await bench.consumer(topic, "a")
    with pytest.raises(ConsumerBusy):
        await bench.consumer(topic, "b", consumer_id=2)
    assert topic.subscription_names() == ["a"]


async def test_metrics_show_what_is_limited_and_nothing_of_topics_without_limits(
    bench: Any, topic_name: TopicName
) -> None:
    topic = await limited(bench, topic_name, max_producers=3)
    assert topic.measure().limits is None
    await topic.apply(
        TopicSettings(
            publish_rate=PublishRate(1, -1),
            dispatch_rate=DispatchRate(1, -1),
            backlog_quotas={"destination_storage": BacklogQuota(1, -1, "consumer_backlog_eviction")},
        )
    )
    await bench.consumer(topic, "s", sub_type=SubType.SHARED, permits=10)
    await bench.publish(topic, 0, 1)
    await bench.registry.topic_tasks.check_backlogs()
    shown = topic.measure().limits
    assert shown[:3] == (2, 1, -1)
    assert shown.evictions == {"destination_storage": 1}
    assert shown.throttled["s"]["dispatchThrottledMsgEventsByTopicLimit"] > 0


async def test_metrics_of_a_non_persistent_topic_show_its_publish_rate(bench: Any) -> None:
    topic = await limited(bench, NON_PERSISTENT, publish_rate=PublishRate(1, -1))
    await bench.publish(topic, 0)
    assert topic.measure().limits.publish_throttled == 1
    await topic.apply(TopicSettings())
    assert topic.measure().limits is None


NOW = 1_000


@pytest.fixture
def is_refused() -> Callable[[SubscribeLimits, int, int], bool]:
    def ask(limits: SubscribeLimits, consumer_id: int, now_ms: int) -> bool:
        try:
            limits.check(SubscribeRequest(consumer_id, "s", address="/[::1]:70"), now_ms)
        except NotAllowed:
            return True
        return False

    return ask


def test_at_the_limit_and_one_beyond(is_refused: Callable[..., bool]) -> None:
    limits = SubscribeLimits(SubscribeRate(2, 10))
    assert [is_refused(limits, 1, NOW) for _ in range(3)] == [False, False, True]
    assert is_refused(limits, 1, NOW + 4_999)
    assert [is_refused(limits, 1, NOW + 5_000) for _ in range(2)] == [False, True]


def test_many_consumers_are_forgotten_when_they_did_not_come_for_a_period_else_the_first_ones(
    is_refused: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_clients, "_REMEMBERED_MAX", 4)
    limits = SubscribeLimits(SubscribeRate(1, 10))
    for consumer_id in range(4):
        assert not is_refused(limits, consumer_id, NOW)
    assert not is_refused(limits, 4, NOW + 10_000)  # the others may come again anyway
    assert len(limits._buckets) == 1
    for consumer_id in range(5, 9):
        assert not is_refused(limits, consumer_id, NOW + 10_000)
    assert is_refused(limits, 8, NOW + 10_000)
    assert len(limits._buckets) <= 4
