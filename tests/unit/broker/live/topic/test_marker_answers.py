"""Markers in the log of a topic: passed by its subscriptions, and updates that move them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from interpulse.broker.live.api import InitialPosition, SubType, TopicSettings
from interpulse.broker.live.entry_metadata import broker_entry_metadata_of
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.topic import marker_answers
from interpulse.broker.live.topic.subscription import CursorPromises
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.cursor_promise import CURSOR_PROPERTY
from interpulse.wire.entries import build_entry, parse_entry
from interpulse.wire.markers import build_marker, cluster_position, parse_marker, position_on
from tests.support.waiting import eventually

FIRST = MessageId(*EARLIEST)
LIMITS = backlog_operations.ScanLimits(entries_max=100, time_ms_max=1000)


def update(name: str, position: Position, *, cluster: str = "c", source: str = "east") -> bytes:
    """The copy of an update; the broker of these tests is the cluster ``c``."""
    payload = pb.ReplicatedSubscriptionsUpdate(
        subscription_name=name, clusters=[cluster_position("other", EARLIEST), cluster_position(cluster, position)]
    )
    parsed = parse_entry(build_marker(payload, 1_000))
    parsed.metadata.replicated_from = source
    return build_entry(parsed.metadata.SerializeToString(), parsed.payload)


class Markers:
    """A topic with a producer of messages and markers."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.count = 0

    async def open(self) -> Any:
        self.topic = await self.bench.topic()
        self.producer, _ = await self.bench.producer(self.topic)
        return self.topic

    async def publish(self, kinds: str) -> None:
        """``m``: a message, ``x``: a marker."""
        for kind in kinds:
            marker = {"marker_type": 10} if kind == "x" else {}
            self.producer.publish([self.count], [self.bench.entry(self.count, **marker)], marker=kind == "x")
            self.count += 1
        await self.bench.settle()

    async def send(self, marker: bytes) -> None:
        self.producer.publish([0], [marker], marker=True)
        await self.bench.settle()

    def backlog(self, name: str = "s") -> int:
        return int(self.topic.stats()["subscriptions"][name]["msgBacklog"])

    def cursor(self, name: str = "s") -> Any:
        return self.topic.subscription(name).cursor

    def entry(self, number: int) -> Position:
        return Position(self.topic.positions.durable.ledger, number)


@pytest.fixture
def markers(bench: Any) -> Markers:
    return Markers(bench)


@pytest.mark.parametrize(
    ("kinds", "backlog", "mark_delete"), [("x" * 30, 0, 29), ("x" * 15 + "m" + "x" * 14, 1, 14), ("mxmx", 2, -1)]
)
async def test_subscription_without_consumer_passes_markers(
    markers: Markers, bench: Any, kinds: str, backlog: int, mark_delete: int
) -> None:
    topic = await markers.open()
    await topic.create_subscription("s", replicate_state=True)
    await markers.publish(kinds)
    assert markers.backlog() == backlog
    assert markers.cursor().mark_delete.entry == mark_delete
    found = await backlog_operations.analyze(topic, "s", EARLIEST, LIMITS)
    assert (found.entries, found.markers) == (len(kinds), kinds.count("x"))
    await bench.restart()
    await markers.open()
    assert (markers.backlog(), markers.cursor().mark_delete.entry) == (backlog, mark_delete)


async def test_markers_after_a_waiting_message_are_part_of_the_analysis(markers: Markers) -> None:
    topic = await markers.open()
    await topic.create_subscription("s")
    await markers.publish("xmxxmx")
    assert markers.backlog() == 2
    found = (await backlog_operations.analyze(topic, "s", None, LIMITS)).to_json()
    assert (found["entries"], found["markerMessages"]) == (5, 3)


async def test_broker_that_crashes_before_the_cursor_is_stored_then_passes_the_next_markers_again(
    markers: Markers, bench: Any
) -> None:
    topic = await markers.open()
    await topic.create_subscription("s", replicate_state=True)
    await markers.publish("x" * 250 + "m")
    await bench.crash()
    await markers.open()
    await bench.settle()
    assert (markers.cursor().mark_delete.entry, markers.backlog()) == (249, 1)


@pytest.mark.parametrize("sub_type", list(SubType))
async def test_consumer_without_permits_then_markers_are_no_backlog(
    markers: Markers, bench: Any, sub_type: SubType
) -> None:
    topic = await markers.open()
    consumer, sink = await bench.consumer(topic, permits=0, sub_type=sub_type)
    await markers.publish("xmxxmx")
    assert markers.backlog() == 2
    consumer.flow(1)
    assert sink.numbers() == [1]
    consumer.acknowledge(markers.entry(1))
    assert markers.cursor().mark_delete == markers.entry(3)
    consumer.flow(5)
    assert sink.numbers() == [4]


async def test_cursor_that_is_placed_before_markers_then_passes_them(markers: Markers) -> None:
    topic = await markers.open()
    await topic.create_subscription("s")
    await markers.publish("xxmxm")
    await topic.create_subscription("t", initial=InitialPosition.EARLIEST)
    assert markers.backlog("t") == 2
    await markers.bench.consumer(topic, "u", initial_position=InitialPosition.EARLIEST, permits=0)
    assert markers.backlog("u") == 2
    markers.cursor().acknowledge_upto(topic.positions.durable)
    await topic.subscription("s").seek(MessageId(*EARLIEST))
    assert (markers.backlog(), markers.cursor().mark_delete) == (2, markers.entry(1))
    await topic.subscription("s").seek_to_time(0)
    assert (markers.backlog(), markers.cursor().mark_delete) == (2, markers.entry(1))


async def test_cursors_of_replication_and_compaction_do_not_pass_markers(markers: Markers, bench: Any) -> None:
    bench.settings = TopicSettings(remote_clusters=("west",), compaction_threshold_bytes=10**9)
    topic = await markers.open()
    await markers.publish("xx")
    assert {name: markers.cursor(name).mark_delete.entry for name in topic.subscriptions} == {
        "pulsar.repl.west": -1,
        "__compaction": -1,
    }


async def test_update_of_a_missing_subscription_then_it_is_created_at_the_position_and_marked(
    markers: Markers, bench: Any
) -> None:
    topic = await markers.open()
    await markers.publish("mmmmm")
    await markers.send(update("s", markers.entry(2)))
    created = topic.subscription("s")
    assert (created.cursor.mark_delete, created.replicate_state, markers.backlog()) == (markers.entry(2), True, 2)
    await markers.send(update("s", markers.entry(1)))
    assert created.cursor.mark_delete == markers.entry(2)
    await markers.send(update("s", markers.entry(4)))
    assert markers.backlog() == 0
    await bench.registry.flush()
    await bench.crash()
    topic = await markers.open()
    assert topic.subscription("s").replicate_state
    assert markers.backlog() == 0


async def test_two_updates_of_a_missing_subscription_at_once_then_the_higher_one_counts(
    markers: Markers, bench: Any
) -> None:
    await markers.open()
    await markers.publish("mmmmm")
    for position in (1, 3, 2):
        markers.producer.publish([0], [update("s", markers.entry(position))], marker=True)
    await bench.settle()
    assert markers.cursor().mark_delete == markers.entry(3)


@pytest.mark.parametrize("sub_type", list(SubType))
async def test_update_of_a_subscription_in_use_then_its_consumer_goes_on_after_the_position(
    markers: Markers, bench: Any, sub_type: SubType
) -> None:
    topic = await markers.open()
    consumer, sink = await bench.consumer(topic, permits=3, sub_type=sub_type)
    await markers.publish("mmmmmm")
    assert sink.numbers() == [0, 1, 2]
    await markers.send(update("s", markers.entry(3)))
    subscription = topic.subscription("s")
    assert (subscription.cursor.mark_delete, subscription.replicate_state) == (markers.entry(3), False)
    consumer.redeliver()
    consumer.flow(9)
    assert sink.numbers() == [4, 5]


@pytest.mark.parametrize("position", [(0, 505), (0, 5), (1, 0), (2**62, 0)])
async def test_update_to_a_position_that_is_not_there_then_nothing_but_a_warning(
    markers: Markers, caplog: pytest.LogCaptureFixture, position: tuple[int, int]
) -> None:
    topic = await markers.open()
    await markers.publish("mmm")
    await topic.log.roll()
    await topic.create_subscription("s", initial=InitialPosition.EARLIEST)
    await markers.publish("m")
    first = topic.log.ledgers[0].ledger_id
    beyond = Position(first + position[0], position[1]) if position[0] < 2**62 else Position(2**63 - 1, 0)
    beyond = Position(first + 1, 600) if position == (1, 0) else beyond
    before = markers.cursor().mark_delete
    with caplog.at_level(logging.WARNING):
        await markers.send(update("s", beyond))
        await markers.send(update("new", beyond))
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert f"subscription=s cluster=east position={beyond}" in caplog.records[0].getMessage()
    assert markers.cursor().mark_delete == before
    assert topic.subscription_names() == ["s"]


async def test_update_to_a_position_that_was_trimmed_then_a_new_subscription_begins_with_the_first_entry(
    markers: Markers,
) -> None:
    topic = await markers.open()
    await markers.publish("mmm")
    gone = markers.entry(1)
    await topic.log.roll()
    await markers.publish("m")
    await topic.log.trim(Position(gone.ledger + 1, 0))
    await markers.send(update("s", gone))
    assert markers.backlog() == 1


@pytest.mark.parametrize(
    "marker",
    [
        update("s", Position(1, 1), source=""),
        update("s", Position(1, 1), source="c"),
        update("s", Position(1, 1), cluster="west"),
        update("s", EARLIEST)[:-1],
    ],
    ids=["published-here", "came-back", "of-another-cluster", "unreadable"],
)
async def test_update_that_is_not_meant_for_this_cluster_then_nothing(markers: Markers, marker: bytes) -> None:
    topic = await markers.open()
    await markers.publish("mmm")
    await markers.send(marker)
    assert topic.subscriptions == {}


@pytest.mark.parametrize("name", ["pulsar.repl.west", "__compaction", "pulsar.dedup", " "])
async def test_update_of_a_name_that_clients_may_not_use_then_nothing(markers: Markers, bench: Any, name: str) -> None:
    bench.settings = TopicSettings(remote_clusters=("west",), compaction_threshold_bytes=10**9)
    topic = await markers.open()
    await markers.publish("mmm")
    before = {each: markers.cursor(each).mark_delete for each in topic.subscriptions}
    await markers.send(update(name, markers.entry(1)))
    assert {each: markers.cursor(each).mark_delete for each in topic.subscriptions} == before


async def test_update_of_a_reader_then_it_stays(markers: Markers, bench: Any) -> None:
    topic = await markers.open()
    _, sink = await bench.consumer(topic, "r", permits=0, durable=False)
    await markers.publish("mmm")
    await markers.send(update("r", markers.entry(1)))
    topic.subscription("r").consumers[0].flow(9)
    assert sink.numbers() == [0, 1, 2]


async def test_update_when_there_are_as_many_subscriptions_as_allowed_then_a_warning(
    markers: Markers, bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench.settings = TopicSettings(max_subscriptions=1)
    topic = await markers.open()
    await topic.create_subscription("s")
    await markers.publish("mmm")
    await markers.send(update("t", markers.entry(1)))
    assert topic.subscription_names() == ["s"]
    assert "replicated subscription not created" in caplog.text


async def test_setting_that_is_off_then_updates_are_ignored_and_markers_passed(markers: Markers, bench: Any) -> None:
    bench.settings = TopicSettings(replicated_subscriptions_enabled=False)
    topic = await markers.open()
    await topic.create_subscription("s")
    await markers.publish("x")
    await markers.send(update("s", markers.entry(0)))
    await markers.send(update("t", markers.entry(0)))
    assert (markers.backlog(), topic.subscription_names()) == (0, ["s"])


def request(snapshot_id: str, source: str) -> bytes:
    payload = pb.ReplicatedSubscriptionsSnapshotRequest(snapshot_id=snapshot_id, source_cluster=source)
    parsed = parse_entry(build_marker(payload, 1_000))
    parsed.metadata.replicated_from = source
    return build_entry(parsed.metadata.SerializeToString(), parsed.payload)


async def answers(topic: Any) -> list[tuple[str, str, Position | None, list[str]]]:
    """Snapshot id, producer name, position and receivers of each response in the log."""
    found = []
    for _, entry in await topic.log.read(topic.log.first_position, entries_max=1000, bytes_max=10**6):
        marker = parse_marker(entry)
        if marker is not None and isinstance(marker.payload, pb.ReplicatedSubscriptionsSnapshotResponse):
            position = position_on("c", [marker.payload.cluster])
            addressed = list(marker.metadata.replicate_to)
            found.append((marker.payload.snapshot_id, marker.metadata.producer_name, position, addressed))
            assert marker.metadata.sequence_id == 0
    return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker_answers, "_ANSWER_SECONDS", 0.02)
    monkeypatch.setattr(marker_answers, "_COPIED_WITHIN_SECONDS", 0.02)


@pytest.fixture
async def copied(markers: Markers, bench: Any) -> Any:
    """A topic that is replicated to ``west``, and that a task copies."""
    bench.settings = TopicSettings(remote_clusters=("west",))
    topic = await markers.open()
    topic.promised_position("pulsar.repl.west")
    return topic


async def test_request_of_a_cluster_that_the_topic_is_copied_to_then_is_answered_with_its_position(
    markers: Markers, copied: Any
) -> None:
    await markers.publish("mm")
    await markers.send(request("a", "west"))
    (answer,) = await answers(copied)
    assert answer == ("a", "pulsar.marker", markers.entry(2), ["west"])
    assert copied.positions.durable == markers.entry(3)


async def test_requests_at_once_then_the_newest_is_answered_and_a_known_one_again(
    markers: Markers, copied: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker_answers, "_ANSWER_SECONDS", 0.5)
    await markers.send(request("a", "west"))
    for snapshot_id in "bca":
        await markers.send(request(snapshot_id, "west"))
    assert [answer[0] for answer in await answers(copied)] == ["a"]
    await eventually(lambda: copied.positions.durable == markers.entry(5))
    (_, first), (_, again) = [(answer[0], answer[2]) for answer in await answers(copied)]
    assert (first, again) == (markers.entry(0), markers.entry(4))


async def test_request_that_comes_before_the_task_then_is_answered_when_the_task_comes(
    markers: Markers, copied: Any
) -> None:
    cursor = copied.subscription("pulsar.repl.west")
    cursor.promises = CursorPromises()
    cursor.promises._until = 0.0
    await markers.send(request("a", "west"))
    assert await answers(copied) == []
    copied.promised_position("pulsar.repl.west")
    await markers.bench.settle()
    assert [answer[0] for answer in await answers(copied)] == ["a"]


@pytest.mark.usefixtures("quick")
async def test_request_while_no_task_copies_then_is_dropped(markers: Markers, copied: Any) -> None:
    promises = copied.subscription("pulsar.repl.west").promises
    promises._until = 0.0
    await markers.send(request("a", "west"))
    await eventually(lambda: not copied.markers._asked)
    assert await answers(copied) == []
    promises.give()
    await markers.send(request("b", "west"))
    assert [answer[0] for answer in await answers(copied)] == ["b"]


async def test_requests_that_concern_others_then_nothing(markers: Markers, bench: Any, copied: Any) -> None:
    await markers.send(request("a", "north"))
    await markers.send(request("a", "c"))
    await markers.send(build_marker(pb.ReplicatedSubscriptionsSnapshotRequest(snapshot_id="a"), 1_000))
    bench.settings = replace(bench.settings, replicated_subscriptions_enabled=False)
    await copied.apply(bench.settings)
    await markers.send(request("a", "west"))
    assert await answers(copied) == []


async def test_answer_of_a_terminated_topic_then_is_dropped(
    markers: Markers, copied: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker_answers, "_ANSWER_SECONDS", 0.05)
    await markers.send(request("a", "west"))
    await markers.send(request("b", "west"))
    await copied.terminate()
    await eventually(lambda: not copied.markers._asked)
    assert [answer[0] for answer in await answers(copied)] == ["a"]


async def test_broker_entry_metadata_then_a_response_has_it(markers: Markers, bench: Any) -> None:
    bench.settings = TopicSettings(remote_clusters=("west",))
    bench.broker_entry_fields = BrokerEntryFields(timed=True, indexed=True)
    await bench.restart()
    topic = await markers.open()
    topic.promised_position("pulsar.repl.west")
    await markers.send(request("a", "west"))
    assert [answer[0] for answer in await answers(topic)] == ["a"]
    assert broker_entry_metadata_of((await topic.positions.read_entry(markers.entry(1))).entry).HasField(
        "broker_timestamp"
    )


async def test_task_that_copies_then_gets_markers_and_other_readers_do_not(
    markers: Markers, bench: Any, copied: Any
) -> None:
    copying = {CURSOR_PROPERTY: "pulsar.repl.west"}
    _, task = await bench.consumer(copied, "task", durable=False, metadata=copying, start_message_id=FIRST)
    _, reader = await bench.consumer(copied, "reader", durable=False, start_message_id=FIRST)
    await markers.publish("mxm")
    assert (task.numbers(), reader.numbers()) == ([0, 1, 2], [0, 2])
    await bench.restart()
    topic = await markers.open()
    _, task = await bench.consumer(topic, "task", durable=False, metadata=copying, start_message_id=FIRST)
    assert task.numbers() == [0, 1, 2]
