"""Checks of a whole broker for inactive topics: the topics that go, all that goes with them, and what keeps them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.api import InitialPosition, ProducerRequest, SubscribeRequest
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.registry.topic_registry import DeleteCheck
from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.model.errors import MetadataError, SchemaNotFound, TopicNotFound
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from interpulse.model.policies.policy_records import DELETE_WHEN_CAUGHT_UP, InactiveTopicPolicies, RetentionPolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Existence, Requester, TopicKind
from tests.support.fake_clock import FakeClock
from tests.unit.broker.live.conftest import RecordingConsumerSink, RecordingProducerSink, make_entry, settle

X = TopicName.parse("x")
UNSTORED = TopicName.parse("non-persistent://public/default/x")
ABSENT = Existence(TopicKind.ABSENT)
STRING = SchemaInfo(SchemaType.STRING)
FOR_EVER = 10**9


class AwaitedSink(RecordingProducerSink):
    """The answers to publishes can be awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: asyncio.Queue[int] = asyncio.Queue()

    def receipts(self, producer_id: int, receipts: Sequence[tuple[int, int, int, int]]) -> None:
        for sequence_id, *_ in receipts:
            self.answers.put_nowait(sequence_id)


class Broker:
    """A broker whose clock and checks are the test's."""

    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        config = BrokerConfig(
            data_dir=str(directory),
            broker_service_port=0,
            web_service_port=0,
            broker_delete_inactive_topics_frequency_seconds=FOR_EVER,
            broker_delete_inactive_topics_max_inactive_duration_seconds=60,
        )
        self.app = BrokerApp(config, clock=self.clock)

    async def topic(self, name: TopicName = X, *, create: bool = True) -> AnyTopic:
        return await self.app.registry.open(name, by=Requester.CLIENT, create=create)

    async def exists(self, name: TopicName = X) -> bool:
        return await self.app.lifecycle.existence(name) != ABSENT

    async def check_after(self, seconds: int) -> None:
        self.clock.time_ms += seconds * 1000
        await self.app.context.inactive_topics.check()

    async def subscribe(self, topic: AnyTopic, name: str = "s", **request: Any) -> Any:
        return await topic.subscribe(SubscribeRequest(1, name, **request), RecordingConsumerSink())

    async def produce(self, topic: AnyTopic, count: int = 0) -> Any:
        sink = AwaitedSink()
        producer = await topic.add_producer(ProducerRequest(1, "p"), sink)
        for number in range(count):
            producer.publish([number], [make_entry(number)])
        for _ in range(count):
            await sink.answers.get()
        return producer

    async def namespace_says(self, **policies: Any) -> None:
        await self.app.context.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(**policies))
        await self.app.registry.policies_changed(PUBLIC_DEFAULT)

    async def topic_says(self, policies: InactiveTopicPolicies | None, name: TopicName = X) -> None:
        await self.app.context.topic_policies.update(name, lambda old: old.changed(inactive_topics=policies))
        await self.app.registry.policies_changed(base=name)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = Broker(tmp_path)
    await broker.app.start()
    yield broker
    await broker.app.stop()


async def test_topic_when_inactive_for_long_enough_then_goes_with_all_that_belongs_to_it(
    broker: Broker,
) -> None:
    await broker.topic()
    await broker.app.context.schemas.register(X, STRING, by=Requester.CLIENT)
    await broker.topic_says(InactiveTopicPolicies(max_inactive_seconds=90))
    await broker.check_after(89)
    assert await broker.exists()
    await broker.check_after(1)
    assert not await broker.exists()
    assert broker.app.registry.topics() == []
    with pytest.raises(SchemaNotFound):
        await broker.app.context.schemas.get(X)
    await broker.topic()
    assert (await broker.app.context.topic_policies.find(X)).inactive_topics is None


async def test_topic_when_it_is_not_loaded_then_stays(broker: Broker) -> None:
    await broker.app.lifecycle.create_plain(X)
    await broker.check_after(FOR_EVER)
    assert await broker.exists()


async def test_topic_when_created_and_never_opened_then_is_loaded_by_a_check_and_goes_like_any_other(
    broker: Broker,
) -> None:
    await broker.app.lifecycle.create_plain(X)
    broker.app.context.inactive_topics.note_created(X)
    broker.app.context.inactive_topics.note_created(X.partition(0))  # gone before the check
    await broker.check_after(60)
    assert [topic.name for topic in broker.app.registry.topics()] == [X]
    await broker.check_after(60)
    assert not await broker.exists()


async def test_topic_when_a_client_is_connected_then_stays_and_the_time_begins_when_it_leaves(broker: Broker) -> None:
    topic = await broker.topic()
    for connect in (broker.produce, lambda each: broker.subscribe(each, durable=False)):
        client = await connect(topic)
        await broker.check_after(1000)
        client.close()
        await broker.check_after(59)
        assert broker.app.registry.get(X) is topic
    await broker.check_after(1)
    assert not await broker.exists()


async def test_topic_when_a_client_comes_and_goes_between_two_checks_then_the_time_begins_anew(broker: Broker) -> None:
    topic = await broker.topic()
    broker.clock.time_ms += 59_000
    (await broker.produce(topic)).close()
    await broker.check_after(59)
    assert await broker.exists()


async def test_subscription_when_any_is_there_then_keeps_its_topic_until_it_is_deleted(broker: Broker) -> None:
    topic = await broker.topic()
    await topic.create_subscription("s")
    await broker.check_after(1000)
    assert await broker.exists()
    await topic.delete_subscription("s")
    await broker.check_after(59)
    assert await broker.exists()
    await broker.check_after(1)
    assert not await broker.exists()


async def test_subscription_when_it_must_have_caught_up_then_keeps_its_topic_until_it_has(broker: Broker) -> None:
    await broker.namespace_says(inactive_topics=InactiveTopicPolicies(DELETE_WHEN_CAUGHT_UP, 60))
    topic = await broker.topic()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    (await broker.produce(topic, 2)).close()
    await broker.check_after(1000)
    assert await broker.exists()
    backlog_operations.clear(topic, "s")  # type: ignore[arg-type]
    consumer = await broker.subscribe(topic)
    await broker.check_after(1000)
    assert await broker.exists(), "a consumer that waits for messages would miss the next one"
    consumer.close()
    await broker.check_after(59)
    assert await broker.exists()
    await broker.check_after(1)
    assert not await broker.exists()


@pytest.mark.parametrize(("minutes", "idle_s"), [(-1, FOR_EVER), (10, 599)])
async def test_topic_when_its_messages_are_retained_then_stays_as_long(
    broker: Broker, minutes: int, idle_s: int
) -> None:
    await broker.namespace_says(retention=RetentionPolicies(minutes, -1))
    y = TopicName.parse("y")
    (await broker.produce(await broker.topic(), 1)).close()
    (await broker.produce(await broker.topic(y))).close()
    await broker.check_after(idle_s)
    assert await broker.exists()
    assert not await broker.exists(y), "of a topic without messages there is nothing to retain"
    await broker.namespace_says(retention=None)
    await broker.check_after(0)
    assert not await broker.exists()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Without those of asyncio, which tells of slow steps in its debug mode."""
    ours = [record for record in caplog.records if record.name == "interpulse.broker.topics.inactivity"]
    return [record.getMessage() for record in ours if record.levelno == logging.WARNING]


async def test_messages_when_no_subscription_has_read_them_then_one_warning_names_topics_and_counts(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    y, empty = TopicName.parse("y"), TopicName.parse("empty")
    (await broker.produce(await broker.topic(), 3)).close()
    (await broker.produce(await broker.topic(y), 1)).close()
    await broker.topic(empty)
    await broker.check_after(60)
    (warning,) = warnings_of(caplog)
    assert warning.startswith(
        "inactive topics deleted with messages that no subscription has read topics=2 "
        "names=persistent://public/default/x (3 messages), persistent://public/default/y (1 message) remedy="
    )
    assert "brokerDeleteInactiveTopicsEnabled=false" in warning
    await broker.check_after(60)
    assert len(warnings_of(caplog)) == 1


async def test_messages_when_they_are_from_before_the_topic_was_loaded_then_entries_are_counted(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    (await broker.produce(await broker.topic(), 2)).close()
    await broker.app.registry.unload(X)
    await broker.topic()
    await broker.check_after(60)
    (warning,) = warnings_of(caplog)
    assert "names=persistent://public/default/x (2 entries) remedy=" in warning


async def test_messages_when_many_topics_held_them_then_the_line_is_bounded(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(23):
        (await broker.produce(await broker.topic(TopicName.parse(f"t{number:02}")), 1)).close()
    await broker.check_after(60)
    (warning,) = warnings_of(caplog)
    assert "topics=23" in warning
    assert "t19 (1 message) and 3 more remedy=" in warning


async def test_messages_when_all_subscriptions_have_read_them_then_there_is_no_warning(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    await broker.namespace_says(inactive_topics=InactiveTopicPolicies(DELETE_WHEN_CAUGHT_UP, 60))
    topic = await broker.topic()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    (await broker.produce(topic, 2)).close()
    backlog_operations.clear(topic, "s")  # type: ignore[arg-type]
    await broker.check_after(60)
    assert not await broker.exists()
    assert warnings_of(caplog) == []


async def test_topic_when_another_cluster_has_still_to_get_messages_then_stays(broker: Broker) -> None:
    topic = await broker.topic()
    await topic.create_subscription("pulsar.repl.west")
    (await broker.produce(topic, 1)).close()
    await broker.check_after(1000)
    assert await broker.exists()
    backlog_operations.clear(topic, "pulsar.repl.west")  # type: ignore[arg-type]
    await broker.check_after(60)
    assert not await broker.exists()


async def test_system_topic_when_inactive_then_stays(broker: Broker) -> None:
    name = TopicName.parse("public/default/__change_events")
    await broker.topic(name)
    await broker.check_after(FOR_EVER)
    assert await broker.exists(name)


async def test_topic_that_is_not_stored_when_no_client_is_connected_then_goes_whatever_is_retained(
    broker: Broker,
) -> None:
    await broker.namespace_says(retention=RetentionPolicies(-1, -1))
    topic = await broker.topic(UNSTORED)
    for client in (await broker.produce(topic), await broker.subscribe(topic)):
        await broker.check_after(1000)
        assert await broker.exists(UNSTORED)
        client.close()
    await broker.check_after(59)
    assert await broker.exists(UNSTORED)
    await broker.check_after(1)
    assert not await broker.exists(UNSTORED)


@pytest.mark.parametrize(("goes", "stays"), [(X, UNSTORED), (UNSTORED, X)], ids=["unstored-stays", "stored-stays"])
async def test_schema_when_one_of_two_domains_goes_then_stays_for_the_other(
    broker: Broker, goes: TopicName, stays: TopicName
) -> None:
    await broker.topic(goes)
    kept = await broker.produce(await broker.topic(stays))
    await broker.app.context.schemas.register(X, STRING, by=Requester.CLIENT)
    await broker.check_after(60)
    assert (await broker.exists(goes), await broker.exists(stays)) == (False, True)
    assert await broker.app.context.schemas.has_schema(X)
    kept.close()
    await broker.check_after(60)
    assert not await broker.app.context.schemas.has_schema(X)


async def test_switch_when_it_changes_while_the_broker_runs_then_counts_unless_something_nearer_speaks(
    broker: Broker,
) -> None:
    await broker.topic()
    await broker.app.context.dynamic.set("brokerDeleteInactiveTopicsEnabled", "false")
    await settle()
    await broker.check_after(1000)
    assert await broker.exists()
    await broker.namespace_says(inactive_topics=InactiveTopicPolicies())
    await broker.topic_says(InactiveTopicPolicies(delete_while_inactive=False))
    await broker.check_after(1000)
    assert await broker.exists()
    await broker.topic_says(None)
    await broker.check_after(0)
    assert not await broker.exists()


async def test_producer_when_it_comes_in_the_last_moment_then_keeps_its_topic(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await broker.topic()
    delete = broker.app.context.inactive_topics._deletion.inactive_topic
    sinks = []

    async def delete_after_a_client_came(*arguments: Any) -> None:
        sinks.append(RecordingProducerSink())
        await topic.add_producer(ProducerRequest(1, "p"), sinks[0])
        await delete(*arguments)

    monkeypatch.setattr(broker.app.context.inactive_topics._deletion, "inactive_topic", delete_after_a_client_came)
    await broker.check_after(60)
    assert broker.app.registry.get(X) is topic
    assert sinks[0].closed == []


async def test_topic_when_it_was_loaded_anew_in_the_last_moment_then_stays(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.topic()
    delete = broker.app.context.inactive_topics._deletion.inactive_topic

    async def delete_after_it_was_unloaded(*arguments: Any) -> None:
        await broker.app.registry.unload(X)
        await delete(*arguments)

    monkeypatch.setattr(broker.app.context.inactive_topics._deletion, "inactive_topic", delete_after_it_was_unloaded)
    await broker.check_after(60)
    assert await broker.exists()


async def test_client_when_it_comes_while_its_topic_goes_then_gets_a_new_one_that_keeps_its_schema(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await broker.topic()
    delete = broker.app.context.inactive_topics._deletion.inactive_topic
    begun = asyncio.Event()

    async def tell_when_it_begins(name: TopicName, check: DeleteCheck) -> None:
        def checked(found: AnyTopic | None) -> None:
            check(found)
            begun.set()

        await delete(name, checked)

    monkeypatch.setattr(broker.app.context.inactive_topics._deletion, "inactive_topic", tell_when_it_begins)
    broker.clock.time_ms += 60_000
    going = asyncio.create_task(broker.app.context.inactive_topics.check())
    await begun.wait()
    again = await broker.topic()
    await broker.app.context.schemas.register(X, STRING, by=Requester.CLIENT)
    producer = await broker.produce(again)
    await going
    assert again is not topic
    assert broker.app.registry.get(X) is again
    assert (await broker.app.context.schemas.get(X))[0] == STRING
    assert not producer.closed


async def test_check_when_one_topic_cannot_be_deleted_then_the_others_go_and_the_next_check_tries_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    y = TopicName.parse("y")
    await broker.topic()
    await broker.topic(y)
    delete = broker.app.context.inactive_topics._deletion.inactive_topic

    async def fail_for_x(name: TopicName, check: Any) -> None:
        if name == X:
            raise MetadataError("disk full")
        await delete(name, check)

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(broker.app.context.inactive_topics._deletion, "inactive_topic", fail_for_x)
        await broker.check_after(60)
    assert (await broker.exists(), await broker.exists(y)) == (True, False)
    assert "disk full" in caplog.text
    await broker.check_after(0)
    assert not await broker.exists()


async def test_partitions_when_they_go_then_their_topic_stays_and_each_comes_back_when_it_is_opened(
    broker: Broker,
) -> None:
    await broker.app.context.dynamic.set("allowAutoTopicCreation", "false")
    await broker.app.lifecycle.create_partitioned(X, 2)
    await broker.app.context.schemas.register(X, STRING, by=Requester.ADMIN)
    for index in range(2):
        await broker.topic(X.partition(index))
    await broker.check_after(60)
    assert not await broker.exists(X.partition(0))
    assert await broker.app.lifecycle.partitions(X, create=True) == 2
    assert await broker.app.lifecycle.partitions(X.partition(0), create=True) == 0
    with pytest.raises(TopicNotFound):
        await broker.topic(X.partition(0), create=False)
    assert not await broker.exists(X.partition(0)), "asking does not bring it back"
    await broker.topic(X.partition(0))
    assert await broker.exists(X.partition(0))
    assert (await broker.app.context.schemas.get(X))[0] == STRING


@pytest.mark.parametrize("base", [X, UNSTORED], ids=str)
async def test_partitioned_topic_when_it_may_go_then_goes_with_its_last_partition(
    broker: Broker, base: TopicName
) -> None:
    await broker.app.context.dynamic.set("brokerDeleteInactivePartitionedTopicMetadataEnabled", "true")
    await broker.app.lifecycle.create_partitioned(base, 2)
    await broker.topic_says(InactiveTopicPolicies(), base)
    await broker.app.context.schemas.register(base, STRING, by=Requester.ADMIN)
    await broker.topic(base.partition(0))
    kept = await broker.produce(await broker.topic(base.partition(1)))
    await broker.check_after(60)
    assert not any(each.name == base.partition(0) for each in broker.app.registry.topics())
    assert await broker.app.lifecycle.partitions(base, create=False) == 2
    kept.close()
    await broker.check_after(60)
    assert not await broker.exists(base)
    assert await broker.app.lifecycle.metadata(base) is None
    assert not await broker.app.context.schemas.has_schema(base)
    assert (await broker.app.context.topic_policies.find(base)).inactive_topics is None


async def test_partitioned_topic_when_a_partition_was_never_opened_then_stays(broker: Broker) -> None:
    await broker.app.context.dynamic.set("brokerDeleteInactivePartitionedTopicMetadataEnabled", "true")
    await broker.app.lifecycle.create_partitioned(X, 2)
    await broker.topic(X.partition(0))
    await broker.check_after(60)
    assert not await broker.exists(X.partition(0))
    assert await broker.app.lifecycle.partitions(X, create=False) == 2
