"""Compaction with the official client: the same on our broker and on a real Pulsar."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address
from tests.interop.replicated_pairs import until
from tests.support.official_client import RECEIVE_MS, admin, connected, is_quiet, receive
from tests.support.waiting import SECONDS_MAX

pytestmark = pytest.mark.interop

Row = tuple[str, bytes]


class Side:
    """One cluster and an official client."""

    def __init__(self, address: Address, client: pulsar.Client, *, is_ours: bool) -> None:
        self.address = address
        self.client = client
        self.is_ours = is_ours

    def new_topic(self) -> str:
        return f"persistent://public/default/{uuid.uuid4().hex}"

    def admin(self, method: str, topic: str, rest: str, body: Any = None) -> Any:
        return admin(self.address.web_url, method, f"{topic.replace('://', '/')}/{rest}", body)

    def compact(self, topic: str) -> None:
        self.admin("PUT", topic, "compaction")
        deadline = time.monotonic() + SECONDS_MAX
        while (status := self.admin("GET", topic, "compaction"))["status"] == "RUNNING":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert status == {"status": "SUCCESS", "lastError": ""}

    def publish(self, topic: str, *rows: tuple[str | None, bytes], **options: Any) -> list[Any]:
        """In one batch if batching is on; the ids."""
        ids: list[Any] = []
        options = {"batching_enabled": False, "batching_max_publish_delay_ms": 5000} | options
        producer = self.client.create_producer(topic, **options)
        for key, content in rows:
            producer.send_async(content, lambda _, id_: ids.append(id_), **({"partition_key": key} if key else {}))
        producer.flush()
        producer.close()
        return ids

    def reader(self, topic: str, start: Any = pulsar.MessageId.earliest, **options: Any) -> pulsar.Reader:
        return self.client.create_reader(topic, start, is_read_compacted=True, **options)

    def read(self, topic: str, start: Any = pulsar.MessageId.earliest) -> list[Row]:
        """What a compacted reader finds up to the end that the broker tells it."""
        reader = self.reader(topic, start)
        found = []
        while reader.has_message_available():
            message = reader.read_next(RECEIVE_MS)
            found.append((message.partition_key(), message.data()))
        reader.close()
        return found


@pytest.fixture(scope="module")
def compaction_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """One broker of ours for the tests of this file."""
    with InProcessBroker(tmp_path_factory.mktemp("compaction")) as broker:
        yield Address(broker.service_url, broker.web_url)


@pytest.fixture(params=["interpulse", pytest.param("pulsar", marks=pytest.mark.slow)])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    """Every test runs against both."""
    is_ours = request.param == "interpulse"
    address: Address = request.getfixturevalue("compaction_broker" if is_ours else "real_pulsar")
    with connected(address.service_url, tmp_path / "client.log") as client:
        yield Side(address, client, is_ours=is_ours)


HISTORY = [("a", b"1"), ("b", b"1"), (None, b"no key"), ("a", b"2"), ("b", b""), ("c", b"1")]
REMOVED = ("", b"")
"""What the official client shows of a message that was removed from its batch."""


def test_single_messages_when_compacted_then_the_newest_stay_where_they_were(side: Side) -> None:
    topic = side.new_topic()
    ids = side.publish(topic, *HISTORY)
    side.compact(topic)
    reader = side.reader(topic)
    found = [reader.read_next(RECEIVE_MS) for _ in range(2)]
    assert [(each.partition_key(), each.data()) for each in found] == [("a", b"2"), ("c", b"1")]
    assert [each.message_id() for each in found] == [ids[3], ids[5]]
    assert not reader.has_message_available()
    side.publish(topic, ("a", b"3"))
    assert reader.read_next(RECEIVE_MS).data() == b"3"


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_batch_when_compacted_then_messages_keep_their_index(side: Side, compression: str) -> None:
    topic = side.new_topic()
    ids = side.publish(
        topic, *HISTORY, batching_enabled=True, compression_type=getattr(pulsar.CompressionType, compression)
    )
    side.compact(topic)
    assert side.read(topic) == [REMOVED, REMOVED, REMOVED, ("a", b"2"), REMOVED, ("c", b"1")]
    reader = side.reader(topic, ids[3])
    assert [reader.read_next(RECEIVE_MS).data() for _ in range(2)] == [b"", b"1"]
    side.publish(topic, ("c", b""))
    side.compact(topic)
    found = side.read(topic)
    assert found[:4] == [REMOVED, REMOVED, REMOVED, ("a", b"2")]
    assert set(found[4:]) <= {REMOVED}, "the client may have these two before it asks for the last one that is left"


def test_batch_of_which_nothing_stays_is_gone_as_a_whole(side: Side) -> None:
    topic = side.new_topic()
    side.publish(topic, ("a", b"1"), ("b", b"1"), batching_enabled=True)
    side.publish(topic, ("a", b"2"), ("b", b"2"), batching_enabled=True)
    side.publish(topic, ("c", b""), ("d", b""), batching_enabled=True)
    side.compact(topic)
    assert side.read(topic) == [("a", b"2"), ("b", b"2")]
    assert side.admin("GET", topic, "internalStats")["compactedLedger"]["entries"] == 1


def test_cursor_of_the_compaction_is_shown_and_can_be_deleted(side: Side) -> None:
    topic = side.new_topic()
    side.publish(topic, *HISTORY)
    side.compact(topic)
    assert side.admin("GET", topic, "subscriptions") == ["__compaction"]

    def shown() -> tuple[object, ...]:
        stats, inside = (side.admin("GET", topic, each) for each in ("stats", "internalStats"))
        done, compacted, cursor = stats["compaction"], inside["compactedLedger"], inside["cursors"]["__compaction"]
        return (
            stats["subscriptions"]["__compaction"]["msgBacklog"],
            done["lastCompactionSucceedTimestamp"] > 0,
            done["lastCompactionRemovedEventCount"] > 0,
            cursor["markDeletePosition"] == inside["lastConfirmedEntry"],
            cursor["properties"] == {"CompactedTopicLedger": compacted["ledgerId"]},
            compacted["entries"],
        )

    until(shown, (0, True, True, True, True, 2))  # a real one says SUCCESS before it has moved the cursor
    side.admin("DELETE", topic, "subscription/__compaction")

    def left() -> tuple[int, object]:
        inside = side.admin("GET", topic, "internalStats")
        return inside["compactedLedger"]["ledgerId"], inside["cursors"]

    until(left, (-1, {}))  # and it forgets the compacted ledger after its answer


def test_consumers_when_they_read_compacted_then_only_one_at_a_time_may(side: Side) -> None:
    topic = side.new_topic()
    side.publish(topic, *HISTORY)
    side.compact(topic)
    for kind in (pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Failover):
        consumer = side.client.subscribe(
            topic,
            kind.name,
            kind,
            initial_position=pulsar.InitialPosition.Earliest,
            is_read_compacted=True,
        )
        found = receive(consumer, 2)
        assert [each.data() for each in found] == [b"2", b"1"]
        assert is_quiet(consumer)
        consumer.acknowledge_cumulative(found[-1])
        consumer.close()


def test_acknowledgements_of_what_only_compaction_has_end_when_the_topic_is_unloaded(side: Side) -> None:
    """A cursor knows the entries of the log; who consumes compacted does best to acknowledge cumulatively."""
    topic = side.new_topic()
    rows = [(f"k{number}", b"%d" % number) for number in range(4)]
    ids = side.publish(topic, *rows)
    side.compact(topic)
    side.admin("PUT", topic, "unload")
    side.publish(topic, ("z", b"behind"))
    deadline = time.monotonic() + SECONDS_MAX
    while side.admin("GET", topic, "internalStats")["ledgers"][0]["ledgerId"] == ids[0].ledger_id():
        assert time.monotonic() < deadline
        side.admin("POST", topic, "trim")
    contents = [content for _, content in rows] + [b"behind"]
    start = pulsar.InitialPosition.Earliest
    for _ in range(2):
        consumer = side.client.subscribe(topic, "s", is_read_compacted=True, initial_position=start)
        messages = receive(consumer, len(contents))
        assert [each.data() for each in messages] == contents
        for message in (messages[1], messages[3]):
            consumer.acknowledge(message)
        consumer.close()
        side.admin("PUT", topic, "unload")


def test_topics_that_are_not_stored_cannot_be_read_compacted(side: Side) -> None:
    with pytest.raises(pulsar.NotAllowedError):
        side.reader(side.new_topic().replace("persistent", "non-persistent"), pulsar.MessageId.latest)


def test_threshold_when_set_then_the_log_is_kept_from_then_on(side: Side) -> None:
    topic = side.new_topic()
    side.publish(topic, ("a", b"1"))
    side.admin("POST", topic, "compactionThreshold", 10**9)
    deadline = time.monotonic() + SECONDS_MAX
    while side.admin("GET", topic, "subscriptions") != ["__compaction"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert side.admin("GET", topic, "stats")["subscriptions"]["__compaction"]["msgBacklog"] == 1


def test_table_view_of_the_official_client(side: Side) -> None:
    topic = side.new_topic()
    side.publish(topic, *HISTORY, batching_enabled=True)
    side.compact(topic)
    side.publish(topic, ("d", b"1"))
    view = side.client.create_table_view(topic)
    assert {key: view.get(key) for key in "abcd"} == {"a": b"2", "b": None, "c": b"1", "d": b"1"}
    assert len(view) == 3
    view.close()


def test_chunked_messages_stay_whole(side: Side) -> None:
    """A real Pulsar keeps the last chunk only, and such a message is lost to all compacted reads."""
    topic = side.new_topic()
    large = b"x" * (6 * 1024 * 1024)
    side.publish(topic, ("a", large + b"1"), ("a", large + b"2"), ("b", b"small"), chunking_enabled=True)
    side.compact(topic)
    reader = side.reader(topic)
    found = [reader.read_next(RECEIVE_MS) for _ in range(2 if side.is_ours else 1)]
    assert [each.data()[-5:] for each in found] == ([b"xxxx2"] if side.is_ours else []) + [b"small"]


@pytest.mark.slow
def test_java_client_when_it_reads_compacted_then_sees_what_is_left(
    compaction_broker: Address, java_check: JavaCheck
) -> None:
    """What it printed against a real Pulsar."""
    left = ["a=2", "c=2", "d=1"]
    expected = []
    for kind in ("single", "batched"):
        expected += [f"{kind} {who}: [{', '.join(left)}]" for who in ("reader", "consumer")]
        expected.append(f"{kind} table: {{{', '.join(left)}}}")
    assert java_check("Compacted.java", *compaction_broker).splitlines() == expected
