"""Judge of a cluster that shares a topic: its owners and its ledgers, judged from outside, at each moment.

O: ownership, K: BookKeeper, L6: writes of one ledger.

O1: a receipt is for an entry that every later owner has kept, and entries come from the owner of the bundle alone.
O2: a broker whose session may be over sends no entry, and answers no lookup.
O3: in quiet every broker names the same owner, and after one fault the next receipt comes soon.
O4: the records of the topic in ZooKeeper are changed in the session that owns the bundle.
K1: what has a receipt is synced on an ack quorum of bookies, and a ledger ends in one place.
L6: no receipt is given behind an entry that could not be written, and ledger ids never repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Protocol

from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.bookkeeper.records import decode_metadata, id_of, path_of
from interpulse.storage.logs.topic_records import record_key
from interpulse.wire import pulsar_api_pb2 as pb
from tests.simulation.cluster_view import Owner
from tests.simulation.judge import Finding, Interval
from tests.simulation.nodes import Node
from tests.support.zookeeper_tree import CHANGED, CREATED, Event

_NOT_STORED: Final = 1 << 63
"""Ledger ids from here on are negative: the receipt of a duplicate."""
_FAILED: Final = pb.CommandLookupTopicResponse.Failed
_SHOWN_MAX: Final = 20


class View(Protocol):
    """The cluster at this moment; see `cluster_view`."""

    @property
    def seconds(self) -> float: ...

    def value(self, path: str) -> bytes | None: ...

    def owner(self) -> Owner | None: ...

    def has_session(self, broker: Node) -> bool: ...

    def copies(self, position: Position) -> int: ...


class ClusterJudge:
    """Judges commands of brokers and writes to ZooKeeper as they happen."""

    def __init__(self, view: View, topic: TopicName, ack_quorum: int) -> None:
        self.findings: list[Finding] = []
        self.receipts: list[float] = []
        """The moments of receipts."""
        self._view = view
        self._record = record_key(topic.log_name)
        self._ack_quorum = ack_quorum
        self._ledgers: set[int] = set()
        self._ends: dict[int, int] = {}
        """The last entries of closed ledgers."""
        self._writers: dict[int, tuple[str, int]] = {}
        """The lives of brokers that gave receipts for entries of ledgers."""
        self._confirmed: dict[int, int] = {}
        """The last entries with a receipt, by ledger."""

    # the records in ZooKeeper

    def on_write(self, events: Sequence[Event], session: int) -> None:
        """Judge the changes of one write."""
        for event in events:
            if event == Event(CREATED, self._record):
                continue  # any broker may create a topic
            if event.path == self._record or event.path.startswith(f"{self._record}/"):
                owner = self._view.owner()
                if owner is None or owner.session != session:
                    self._find("O4", f"session {session:x} writes {event.path}, the owner is {owner}")
            elif (ledger := id_of(event.path)) is not None:
                self._on_ledger(event.kind, ledger)

    def _on_ledger(self, kind: int, ledger: int) -> None:
        if kind == CREATED:
            if ledger in self._ledgers:
                self._find("L6", f"ledger {ledger} is created again")
            self._ledgers.add(ledger)
        elif kind == CHANGED:
            metadata = decode_metadata(ledger, self._view.value(path_of(ledger)) or b"")
            end = self._ends.get(ledger)
            if end is not None and (not metadata.closed or metadata.last_entry != end):
                self._find("K1", f"ledger {ledger} ended at {end}, now at {metadata.last_entry}")
            if metadata.closed:
                self._ends[ledger] = metadata.last_entry

    # the commands of brokers

    def on_command(self, broker: Node, command: pb.BaseCommand) -> None:
        """Judge a command that a broker sends to a client."""
        if command.type == pb.BaseCommand.SEND_RECEIPT:
            self._on_receipt(broker, command.send_receipt.message_id)
        elif command.type == pb.BaseCommand.MESSAGE:
            self._on_entry(broker, command.message.message_id)
        elif command.type == pb.BaseCommand.LOOKUP_RESPONSE and command.lookupTopicResponse.response != _FAILED:
            self._check_session(broker, "answers a lookup")

    def _on_entry(self, broker: Node, id_: pb.MessageIdData) -> None:
        self._check_session(broker, f"sends {id_.ledgerId}:{id_.entryId}")
        owner = self._view.owner()
        if owner is None or owner.broker != broker.name:
            self._find("O1", f"{broker.name} sends {id_.ledgerId}:{id_.entryId}, the owner is {owner}")

    def _check_session(self, broker: Node, what: str) -> None:
        if not self._view.has_session(broker):
            self._find("O2", f"{broker.name} {what}, its session may be over")

    def _on_receipt(self, broker: Node, id_: pb.MessageIdData) -> None:
        self.receipts.append(self._view.seconds)
        if id_.ledgerId >= _NOT_STORED:
            return
        position = Position(id_.ledgerId, id_.entryId)
        life = broker.name, broker.life
        writer = self._writers.setdefault(position.ledger, life)
        if writer != life:
            self._find("O1", f"{life} and {writer} give receipts for ledger {position.ledger}")
        end = self._ends.get(position.ledger)
        if end is not None and position.entry > end:
            self._find("O1", f"{broker.name} gives a receipt for {position}, where the ledger ended at {end}")
        if end is None and any(ledger > position.ledger for ledger, other in self._writers.items() if other != life):
            self._find("O1", f"{broker.name} gives a receipt for {position}, and another broker for a later ledger")
        self._check_copies(position)

    def _check_copies(self, position: Position) -> None:
        first = self._confirmed.get(position.ledger, -1) + 1
        for entry in range(first, position.entry + 1):
            copies = self._view.copies(Position(position.ledger, entry))
            if copies < self._ack_quorum:
                letter = "K1" if entry == position.entry else "L6"
                self._find(letter, f"{position} has a receipt, entry {entry} is synced on {copies} bookies")
        self._confirmed[position.ledger] = max(first - 1, position.entry)

    def late_receipts(self, faults: Sequence[Interval], seconds_max: float) -> Iterator[Finding]:
        """Yield a finding for each longer wait for a receipt in which no fault began or ended, and at most one lasted.

        Call this at the end. Programs send until they have all receipts.
        """
        changes = sorted(moment for fault in faults for moment in fault)
        for before, after in pairwise(self.receipts):
            if after - before <= seconds_max:
                continue
            for begin, end in pairwise([before, *(each for each in changes if before < each < after), after]):
                lasting = sum(fault.begin < end and fault.end > begin for fault in faults)
                if end - begin > seconds_max and lasting <= 1:
                    yield Finding("O3", f"{begin:.3f} no receipt for {end - begin:.3f} s, until {after:.3f}")

    def _find(self, letter: str, text: str) -> None:
        if len(self.findings) < _SHOWN_MAX:
            self.findings.append(Finding(letter, f"{self._view.seconds:.3f} {text}"))
