"""The judge of a cluster: for each property a history that breaks it, and ones beside it that do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.bookkeeper.records import LedgerMetadata, Quorum, Segment, encode_metadata, path_of
from interpulse.wire import pulsar_api_pb2 as pb
from tests.simulation.cluster_judge import ClusterJudge
from tests.simulation.cluster_view import Owner
from tests.simulation.judge import Interval
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.zookeeper_tree import CHANGED, CREATED, Event

TOPIC: Final = TopicName.parse("persistent://public/default/t")
RECORD: Final = "/managed-ledgers/public/default/persistent/t"
SESSION: Final = 7
DUPLICATE: Final = (1 << 64) - 1


@dataclass
class FakeView:
    """A cluster in which everything is as it should be, with the owner "one"."""

    seconds: float = 1.0
    found: Owner | None = Owner("one", SESSION)  # noqa: RUF009 - a tuple
    living: set[str] = field(default_factory=lambda: {"one", "two"})
    copies_of: dict[Position, int] = field(default_factory=dict)
    values: dict[str, bytes] = field(default_factory=dict)

    def value(self, path: str) -> bytes | None:
        return self.values.get(path)

    def owner(self) -> Owner | None:
        return self.found

    def has_session(self, broker: Node) -> bool:
        return broker.name in self.living

    def copies(self, position: Position) -> int:
        return self.copies_of.get(position, 2)


class Cluster:
    """Two brokers, and what they do under the eyes of the judge."""

    def __init__(self, world: World) -> None:
        self.view = FakeView()
        self.judge = ClusterJudge(self.view, TOPIC, ack_quorum=2)
        self.one, self.two = Node(world, "one"), Node(world, "two")

    @property
    def letters(self) -> list[str]:
        return [finding.property for finding in self.judge.findings]

    def receipt(self, broker: Node, ledger: int, entry: int) -> None:
        id_ = pb.MessageIdData(ledgerId=ledger, entryId=entry)
        receipt = pb.CommandSendReceipt(producer_id=0, sequence_id=0, message_id=id_)
        self.judge.on_command(broker, pb.BaseCommand(type=pb.BaseCommand.SEND_RECEIPT, send_receipt=receipt))

    def message(self, broker: Node) -> None:
        message = pb.CommandMessage(consumer_id=0, message_id=pb.MessageIdData(ledgerId=1, entryId=0))
        self.judge.on_command(broker, pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=message))

    def lookup(self, broker: Node, response: pb.CommandLookupTopicResponse.LookupType.ValueType) -> None:
        answer = pb.CommandLookupTopicResponse(request_id=0, response=response)
        command = pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=answer)
        self.judge.on_command(broker, command)

    def write(self, path: str, session: int = SESSION) -> None:
        self.judge.on_write([Event(CHANGED, path)], session)

    def create(self, ledger: int) -> None:
        self.judge.on_write([Event(CREATED, path_of(ledger))], SESSION)

    def end(self, ledger: int, entry: int) -> None:
        metadata = LedgerMetadata(Quorum(3, 3, 2), (Segment(0, ("a", "b", "c")),)).closed_at(entry, 100)
        self.view.values[path_of(ledger)] = encode_metadata(metadata)
        self.write(path_of(ledger))


@pytest.fixture
def cluster(world: World) -> Cluster:
    return Cluster(world)


def _receipt_behind_the_end(cluster: Cluster) -> None:
    cluster.end(1, 3)
    cluster.receipt(cluster.one, 1, 4)


def _receipt_beside_a_later_ledger(cluster: Cluster) -> None:
    cluster.receipt(cluster.two, 2, 0)
    cluster.receipt(cluster.one, 1, 0)


def _receipts_of_two_for_one_ledger(cluster: Cluster) -> None:
    cluster.receipt(cluster.one, 1, 0)
    cluster.receipt(cluster.two, 1, 1)


def _receipts_of_two_lives_for_one_ledger(cluster: Cluster) -> None:
    cluster.receipt(cluster.one, 1, 0)
    cluster.one.life += 1
    cluster.receipt(cluster.one, 1, 1)


def _entry_without_the_bundle(cluster: Cluster) -> None:
    cluster.message(cluster.two)


def _entry_of_a_free_bundle(cluster: Cluster) -> None:
    cluster.view.found = None
    cluster.message(cluster.one)


def _entry_after_the_session(cluster: Cluster) -> None:
    cluster.view.living = set()
    cluster.message(cluster.one)


def _lookup_after_the_session(cluster: Cluster) -> None:
    cluster.view.living = {"one"}
    cluster.lookup(cluster.two, pb.CommandLookupTopicResponse.Connect)


def _record_written_without_the_bundle(cluster: Cluster) -> None:
    cluster.view.found = None
    cluster.write(RECORD)


def _cursor_written_in_another_session(cluster: Cluster) -> None:
    cluster.write(f"{RECORD}/subscription", SESSION + 1)


def _cursor_created_without_the_bundle(cluster: Cluster) -> None:
    cluster.view.found = None
    cluster.judge.on_write([Event(CREATED, f"{RECORD}/subscription")], SESSION)


def _topic_created_without_the_bundle(cluster: Cluster) -> None:
    cluster.view.found = None
    cluster.judge.on_write([Event(CREATED, RECORD)], SESSION)


def _receipt_below_the_quorum(cluster: Cluster) -> None:
    cluster.view.copies_of[Position(1, 0)] = 1
    cluster.receipt(cluster.one, 1, 0)


def _ledger_with_two_ends(cluster: Cluster) -> None:
    cluster.end(1, 3)
    cluster.end(1, 4)


def _receipt_behind_a_failed_entry(cluster: Cluster) -> None:
    cluster.view.copies_of[Position(1, 1)] = 1
    cluster.receipt(cluster.one, 1, 0)
    cluster.receipt(cluster.one, 1, 2)


def _ledger_created_twice(cluster: Cluster) -> None:
    cluster.create(1)
    cluster.create(1)


@pytest.mark.parametrize(
    ("breaking", "letters"),
    [
        (_receipt_behind_the_end, ["O1"]),
        (_receipt_beside_a_later_ledger, ["O1"]),
        (_receipts_of_two_for_one_ledger, ["O1"]),
        (_receipts_of_two_lives_for_one_ledger, ["O1"]),
        (_entry_without_the_bundle, ["O1"]),
        (_entry_of_a_free_bundle, ["O1"]),
        (_entry_after_the_session, ["O2"]),
        (_lookup_after_the_session, ["O2"]),
        (_record_written_without_the_bundle, ["O4"]),
        (_cursor_written_in_another_session, ["O4"]),
        (_cursor_created_without_the_bundle, ["O4"]),
        (_topic_created_without_the_bundle, []),
        (_receipt_below_the_quorum, ["K1"]),
        (_ledger_with_two_ends, ["K1"]),
        (_receipt_behind_a_failed_entry, ["L6"]),
        (_ledger_created_twice, ["L6"]),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else None,
)
def test_cluster_when_a_property_is_broken_then_it_is_found(
    cluster: Cluster, breaking: Callable[[Cluster], None], letters: list[str]
) -> None:
    breaking(cluster)
    assert cluster.letters == letters


def _all_in_order(cluster: Cluster) -> None:
    cluster.create(1)
    cluster.receipt(cluster.one, 1, 0)
    cluster.message(cluster.one)
    cluster.lookup(cluster.two, pb.CommandLookupTopicResponse.Redirect)
    cluster.write(f"{RECORD}/subscription")
    cluster.end(1, 0)
    cluster.create(2)
    cluster.receipt(cluster.one, 2, 0)


def _late_receipt_for_an_entry_that_recovery_kept(cluster: Cluster) -> None:
    cluster.end(1, 3)
    cluster.receipt(cluster.two, 2, 0)
    cluster.receipt(cluster.one, 1, 3)


def _receipt_of_a_duplicate(cluster: Cluster) -> None:
    cluster.receipt(cluster.two, DUPLICATE, DUPLICATE)


def _lookup_refused_after_the_session(cluster: Cluster) -> None:
    cluster.view.living = set()
    cluster.lookup(cluster.two, pb.CommandLookupTopicResponse.Failed)


def _record_of_another_topic(cluster: Cluster) -> None:
    cluster.write(f"{RECORD}-other/subscription", SESSION + 1)


def _end_written_again(cluster: Cluster) -> None:
    cluster.end(1, 3)
    cluster.end(1, 3)


@pytest.mark.parametrize(
    "history",
    [
        _all_in_order,
        _late_receipt_for_an_entry_that_recovery_kept,
        _receipt_of_a_duplicate,
        _lookup_refused_after_the_session,
        _record_of_another_topic,
        _end_written_again,
    ],
    ids=lambda value: value.__name__.strip("_"),
)
def test_cluster_when_all_properties_hold_then_nothing_is_found(
    cluster: Cluster, history: Callable[[Cluster], None]
) -> None:
    history(cluster)
    assert cluster.letters == []


@pytest.mark.parametrize(
    ("faults", "late"),
    [
        ([], True),
        ([Interval(5.0, 6.0)], True),
        ([Interval(5.0, 90.0)], True),
        ([Interval(0.0, 12.0)], False),
        ([Interval(5.0, 90.0), Interval(6.0, 90.0)], False),
        ([Interval(5.0, 6.0), Interval(12.0, 12.0)], False),
    ],
    ids=["no fault", "one in the beginning", "one that lasts", "one that ends late", "two that last", "one after one"],
)
def test_receipts_when_they_are_late_then_further_faults_excuse_them(
    cluster: Cluster, faults: list[Interval], late: bool
) -> None:
    for cluster.view.seconds in (3.0, 4.0, 20.0):
        cluster.receipt(cluster.one, DUPLICATE, DUPLICATE)
    assert [each.property for each in cluster.judge.late_receipts(faults, 10.0)] == ["O3"] * late
