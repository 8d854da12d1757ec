"""Clients of one topic while the role of its namespace changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker.live.api import AccessMode, ProducerRequest, TopicSettings
from interpulse.broker.live.topic import failover_gate
from interpulse.model.errors import ServiceNotReady, TopicMoved
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName
from interpulse.rules.failover_role import FailoverRole, Role
from interpulse.wire.cursor_promise import ENTRY_READER_PROPERTY
from tests.support.waiting import eventually

PERSISTENT = TopicName.parse("persistent://public/default/t")
NON_PERSISTENT = TopicName.parse("non-persistent://public/default/t")
BOTH = pytest.mark.parametrize("name", [PERSISTENT, NON_PERSISTENT], ids=str)
LANE = "interpulse.shop.east-->west.e0"
FENCED = TopicSettings(role=FailoverRole(Role.FENCED, 4))
STANDBY_REFUSING = TopicSettings(role=FailoverRole(Role.STANDBY, 4), standby_consumers_allowed=False)
WEST = FailoverRole(Role.MOVED, 4, "pulsar://west:6650")
MOVED = TopicSettings(role=WEST)
READY = TopicSettings(role=FailoverRole(Role.MOVED, 4, "pulsar://west:6650", subscriptions_ready=True))


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failover_gate, "_RECHECK_MS", 1)


@BOTH
async def test_fence_when_set_then_local_producers_go_and_copies_stay(bench: Any, name: TopicName) -> None:
    topic = await bench.registry.open(name)
    _, local = await bench.producer(topic, "local")
    _, lane = await bench.producer(topic, LANE, producer_id=2)
    _, replicator = await bench.producer(topic, "pulsar.repl.east", producer_id=3, remote=True)
    await topic.apply(FENCED)
    assert (local.closed, lane.closed, replicator.closed) == ([1], [], [])
    assert topic.failover_gate.closed_producers == 1
    for refused in ("local", "pulsar.repl.stranger"):
        with pytest.raises(ServiceNotReady, match="Namespace public/default is fenced for a switch, epoch 4: "):
            await bench.producer(topic, refused)
    await topic.apply(TopicSettings())
    await bench.producer(topic, "local")
    assert topic.failover_gate.closed_producers == 0


@BOTH
async def test_way_when_closed_to_a_cluster_then_its_copies_go_and_others_stay(bench: Any, name: TopicName) -> None:
    topic = await bench.registry.open(name)
    _, local = await bench.producer(topic, "local")
    _, lane = await bench.producer(topic, LANE, producer_id=2)
    east = {"name": "pulsar.repl.east-->west", "remote": True, "remote_cluster": "east"}
    _, replicator = await bench.producer(topic, producer_id=3, **east)
    _, north = await bench.producer(topic, "interpulse.shop.north-->west.e0", producer_id=4)
    await topic.apply(TopicSettings(role=FailoverRole(Role.ACTIVE, 5, closed_to="east")))
    assert (local.closed, lane.closed, replicator.closed, north.closed) == ([], [2], [3], [])
    assert topic.failover_gate.closed_producers == 0
    with pytest.raises(ServiceNotReady, match="public/default is active, epoch 5: copies from east are refused"):
        await bench.producer(topic, LANE, producer_id=5)
    with pytest.raises(ServiceNotReady, match="copies from east are refused"):
        await bench.producer(topic, producer_id=5, **east)
    await topic.apply(TopicSettings(role=FailoverRole(Role.ACTIVE, 5)))
    await bench.producer(topic, LANE, producer_id=5)


async def test_consumers_when_held_then_those_of_replicated_subscriptions_wait_until_the_time(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.registry.open(PERSISTENT)
    _, marked = await bench.consumer(topic, "m", replicate_state=True)
    _, own = await bench.consumer(topic, "own", consumer_id=2)
    _, reader = await bench.consumer(topic, "r", consumer_id=3, durable=False, start_message_id=MessageId(-1, -1))
    until = "2100-01-01T00:00:00.000Z"
    await topic.apply(TopicSettings(role=FailoverRole(Role.ACTIVE, 5, consumers_from=until)))
    assert (marked.closed, own.closed, reader.closed) == ([1], [], [])
    for name, replicated in (("m", False), ("new", True)):
        with pytest.raises(ServiceNotReady, match=f"consumers of {name} are served from {until} on"):
            await bench.consumer(topic, name, consumer_id=4, replicate_state=replicated)
    await bench.consumer(topic, "r2", consumer_id=5, replicate_state=True, metadata={ENTRY_READER_PROPERTY: "true"})
    monkeypatch.setattr(bench.registry, "now_ms", lambda: 4_102_444_800_000)
    await bench.consumer(topic, "m", consumer_id=4)


async def test_fence_when_entries_are_on_their_way_then_each_has_its_receipt_before_the_end(
    bench: Any, make_entry: Any
) -> None:
    topic = await bench.topic()
    producer, sink = await bench.producer(topic, "local")
    producer.publish([0], [make_entry(0)])
    producer.publish([1], [make_entry(1)])
    fencing = asyncio.create_task(topic.apply(FENCED))
    await asyncio.sleep(0)
    producer.publish([2], [make_entry(2)])
    await fencing
    assert ([receipt[0] for receipt in sink.received], sink.failures, sink.closed) == ([0, 1], [], [1])
    assert topic.positions.durable.entry == 1


async def test_fence_when_producers_wait_for_exclusivity_then_a_lane_follows(bench: Any) -> None:
    topic = await bench.topic()
    _, owner = await bench.producer(topic, "local", access_mode=AccessMode.EXCLUSIVE)
    wait = AccessMode.WAIT_FOR_EXCLUSIVE
    _, waiting = await bench.producer(topic, "next", producer_id=2, access_mode=wait)
    lane, lane_sink = await bench.producer(topic, LANE, producer_id=3, access_mode=wait)
    await topic.apply(FENCED)
    await bench.settle()
    assert (owner.closed, waiting.closed, lane_sink.ready) == ([1], [2], [1])
    assert topic.producers.exclusive is lane


async def test_fence_when_set_while_a_producer_opens_then_it_is_refused_for_now(bench: Any) -> None:
    topic = await bench.topic()
    holder, holder_sink = await bench.producer(topic, "p")
    looking = asyncio.Event()

    async def is_alive() -> bool:
        looking.set()
        await topic.apply(FENCED)
        return False

    holder_sink.is_alive = is_alive
    with pytest.raises(ServiceNotReady, match="is fenced for a switch"):
        await bench.producer(topic, "p")
    assert looking.is_set()
    assert holder.closed


async def test_fence_when_set_while_an_exclusive_producer_opens_then_it_is_not_fenced_out_for_good(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    store_epoch = topic.producers._store_epoch

    async def fence_meanwhile(epoch: int) -> None:
        await store_epoch(epoch)
        await topic.apply(FENCED)

    monkeypatch.setattr(topic.producers, "_store_epoch", fence_meanwhile)
    with pytest.raises(ServiceNotReady, match="is fenced for a switch"):
        await bench.producer(topic, "p", access_mode=AccessMode.EXCLUSIVE)


@BOTH
async def test_move_when_set_then_clients_without_backlog_are_redirected(bench: Any, name: TopicName) -> None:
    topic = await bench.registry.open(name)
    _, producer = await bench.producer(topic, "local")
    _, consumer = await bench.consumer(topic)
    _, reader = await bench.consumer(topic, "r", consumer_id=2, metadata={ENTRY_READER_PROPERTY: "true"})
    await topic.apply(MOVED)
    assert (producer.moved, consumer.moved, reader.moved) == ([(1, WEST)], [(1, WEST)], [])
    for opened in (bench.producer(topic, "local"), bench.consumer(topic), bench.consumer(topic, "new")):
        with pytest.raises(TopicMoved, match=r"has moved to another cluster, epoch 4: moved;.*;url=pulsar:") as caught:
            await opened
        assert (caught.value.service_url, caught.value.service_url_tls) == ("pulsar://west:6650", "")
    assert "new" not in topic.subscriptions
    await topic.apply(TopicSettings())
    await bench.consumer(topic)


async def test_move_when_a_subscription_has_a_backlog_then_its_consumers_drain_it_first(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, 0, 1)
    await topic.apply(MOVED)
    assert (sink.moved, sink.numbers()) == ([], [0, 1])
    consumer.acknowledge_cumulative(topic.positions.durable)
    await eventually(lambda: sink.moved == [(1, WEST)])
    assert not topic.subscription("s").dirty


async def test_move_when_a_topic_is_loaded_later_then_consumers_drain_their_backlog_too(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0)
    await bench.registry.unload(topic.name)
    bench.settings = MOVED
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    assert sink.numbers() == [0]
    consumer.acknowledge(topic.positions.durable)
    await eventually(lambda: sink.moved == [(1, WEST)])


async def test_move_when_taken_back_while_acknowledgements_are_stored_then_consumers_stay(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, 0)
    consumer.acknowledge(topic.positions.durable)

    async def take_back(subscription: object) -> None:
        await topic.failover_gate.use(TopicSettings())

    monkeypatch.setattr(type(topic.subscription("s")), "store_acknowledgements", take_back)
    await topic.apply(MOVED)
    assert (sink.moved, sink.closed) == ([], [])


async def test_move_when_subscriptions_are_ready_there_then_nothing_is_drained(bench: Any) -> None:
    topic = await bench.topic()
    _, sink = await bench.consumer(topic)
    await bench.publish(topic, 0)
    await topic.apply(MOVED)
    assert sink.moved == []
    await topic.apply(READY)
    assert sink.moved == [(1, READY.role)]


async def test_move_when_taken_back_before_all_drained_then_consumers_stay(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, 0)
    await topic.apply(MOVED)
    await topic.apply(TopicSettings())
    consumer.acknowledge(topic.positions.durable)
    await eventually(lambda: not topic.failover_gate._rechecking)
    assert (sink.moved, sink.closed) == ([], [])


@BOTH
async def test_standby_when_consumers_are_refused_then_only_readers_of_entries_are_served(
    bench: Any, name: TopicName
) -> None:
    topic = await bench.registry.open(name)
    _, consumer = await bench.consumer(topic)
    _, reader = await bench.consumer(topic, "r", consumer_id=2, metadata={ENTRY_READER_PROPERTY: "true"})
    await topic.apply(TopicSettings(role=FailoverRole(Role.STANDBY, 4)))
    assert consumer.closed == []
    await topic.apply(STANDBY_REFUSING)
    assert (consumer.closed, reader.closed) == ([1], [])
    with pytest.raises(ServiceNotReady, match="Namespace public/default is standby, epoch 4"):
        await bench.consumer(topic)


async def test_topic_when_loaded_in_a_role_then_refuses_from_the_start(bench: Any) -> None:
    bench.settings = FENCED
    topic = await bench.topic()
    with pytest.raises(ServiceNotReady):
        topic.failover_gate.check_producer(ProducerRequest(1))
