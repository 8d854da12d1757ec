"""Writes entries of entry mode: marks them, sends them in order per lane, settles retries against the target.

Runs on the executor inside one event loop. A lane is opened when its first entry is to be written and closed at the
end of the task; its producer name keeps a second writer out meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from interpulse.model.errors import AlreadyClosed, NotAllowed, NotConnected, OperationTimeout, PulsarError
from interpulse.model.ids import Position
from interpulse.replication.copy import EntryMarker, skip_reason
from interpulse.spark.lanes import (
    NO_SEQUENCE,
    UNTOUCHED,
    LaneState,
    Opening,
    decide_opening,
    is_overrun,
    merged_lane_name,
    pack_sequence,
    unpack_sequence,
)
from interpulse.spark.writing.lane_report import LaneReport
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import build_entry

__all__ = ["EntryRows", "HolesFound", "LaneInUse", "LaneSender", "LaneWriter", "Target"]

_parse = pb.MessageMetadata.FromString
_WHOLE_CLUSTER = (NotConnected, OperationTimeout, AlreadyClosed)  # no matter of a single topic


class HolesFound(NotAllowed):
    """Entries that the target's broker takes for repeats although they are not stored."""


class LaneInUse(NotAllowed):
    """Another writer uses the lane's producer name."""


class EntryRows(NamedTuple):
    """Rows of entry mode as columns."""

    topics: Sequence[str]
    ledgers: Sequence[int]
    entries: Sequence[int]
    metadata: Sequence[bytes]
    payloads: Sequence[bytes]


class LaneSender(Protocol):
    """A named producer that sends whole entries."""

    @property
    def last_sequence_id(self) -> int:
        """Highest sequence id the broker knew under the name when it was opened; -1 if none."""

    async def send(self, sequence_id: int, num_messages: int, entry: bytes, *, is_chunk: bool) -> None:
        """Put one entry on its way, waiting only for room. Raises what stopped the sender."""

    async def drain(self) -> None:
        """Return when every receipt is there; raises what stopped the sender."""

    @property
    def last_position(self) -> Position | None:
        """Where the last entry with a receipt was stored."""

    @property
    def refused(self) -> Sequence[int]:
        """Sequence ids answered with the position of a repeat."""

    async def close(self) -> None: ...


class Target(Protocol):
    """The cluster written to."""

    async def open_lane(self, topic: str, producer_name: str, *, is_new: bool) -> LaneSender:
        """Waits a while for another holder of the name to end; then raises ProducerBusy.

        ``is_new``: nothing is known of the lane yet. Raises what speaks against writing there exactly once.
        """

    async def read_back(self, topic: str, after: Position, producer_name: str) -> dict[int, Position]:
        """Sequence ids stored under a name behind a position, and where."""

    async def schema_version(self, topic: str, version: bytes) -> bytes | None:
        """The version on the target for one of the source; None: the entry is written without one."""


@dataclass
class _OpenLane:
    topic: str
    producer_name: str
    sender: LaneSender
    before: LaneState
    report: LaneReport
    marker: EntryMarker
    stored: Mapping[int, Position] = field(default_factory=dict)
    settled_upto: int = NO_SEQUENCE
    is_read_back: bool = False
    last: int = NO_SEQUENCE
    holes: list[int] = field(default_factory=list)


class LaneWriter:
    """All lanes of one task. Use as: ``write`` for every Arrow batch, ``finish``, and ``close`` in any case."""

    def __init__(
        self,
        target: Target,
        *,
        producer_name: str,
        source_cluster: str,
        target_cluster: str,
        states: Mapping[str, LaneState],
        isolate: bool = False,
        is_merging: bool = False,
    ) -> None:
        """``isolate``: a topic that is refused is held, as its report says, and no other. ``is_merging``: several
        topics may be written to one, so that each has a producer name of its own."""
        self._isolate = isolate
        self._target = target
        self._producer_name = producer_name
        self._target_cluster = target_cluster
        self._source_cluster = source_cluster
        self._is_merging = is_merging
        self._states = states
        self._lanes: dict[str, _OpenLane] = {}
        self._reports: dict[str, LaneReport] = {}

    async def write(self, rows: EntryRows) -> None:
        """Send the rows, in order. Raises the first failure; nothing is sent after it.

        A row without metadata says in its payload why the source could not read on from there.
        """
        for topic, ledger, entry, raw, payload in zip(*rows, strict=True):
            report = self._report(topic, ledger, entry)
            if not raw:
                self._note_hold(report, bytes(payload).decode())
            if report.held is not None:
                continue
            metadata = _parse(raw)
            reason = skip_reason(metadata, self._target_cluster)
            if reason is not None:
                report.skipped[reason] += 1
                continue
            try:
                sequence_id = pack_sequence(ledger, entry)
                lane = self._lanes.get(topic) or await self._open(report, sequence_id)
                await self._write_one(lane, (ledger, entry), sequence_id, raw, metadata, payload)
            except PulsarError as refusal:
                self._hold(report, refusal)

    async def _write_one(
        self,
        lane: _OpenLane,
        position: tuple[int, int],
        sequence_id: int,
        raw: bytes,
        metadata: pb.MessageMetadata,
        payload: bytes,
    ) -> None:
        lane.last = sequence_id
        if metadata.num_chunks_from_msg > 1 and not lane.is_read_back:
            # Brokers count a chunked message by its last chunk: what an earlier attempt stored of it they do not tell.
            await self._read_back(lane)
        if sequence_id <= lane.settled_upto:
            self._settle(lane, sequence_id)
            return
        version = None
        if metadata.HasField("schema_version"):
            version = await self._target.schema_version(lane.topic, metadata.schema_version)
        stored = build_entry(lane.marker.mark(raw, metadata, position, sequence_id, version), payload)
        count = metadata.num_messages_in_batch
        await lane.sender.send(sequence_id, count, stored, is_chunk=metadata.num_chunks_from_msg > 1)
        report = lane.report
        report.entries += 1
        report.messages += count
        report.bytes += len(stored)

    def _settle(self, lane: _OpenLane, sequence_id: int) -> None:
        """An id the broker would drop as a repeat: it is one if committed or on the target, else it is a hole.

        Committed ids come again when a topic left the selection and came back: its cursor on the source stands a
        moment behind the last commit.
        """
        if sequence_id <= lane.before.sequence_id or sequence_id in lane.stored:
            lane.report.replays += 1
        else:
            lane.holes.append(sequence_id)

    def _report(self, topic: str, ledger: int, entry: int) -> LaneReport:
        report = self._reports.get(topic)
        if report is None:
            after = Position(ledger, entry - 1)
            report = self._reports[topic] = LaneReport(topic, self._states.get(topic, UNTOUCHED), after)
        return report

    def _hold(self, report: LaneReport, refusal: PulsarError) -> None:
        """The range of this lane is to come again as a whole; reading back then tells what of it is stored."""
        if not self._isolate or isinstance(refusal, _WHOLE_CLUSTER):
            raise refusal
        self._note_hold(report, str(refusal))

    def _note_hold(self, report: LaneReport, reason: str) -> None:
        report.held = reason
        lane = self._lanes.get(report.topic)
        if lane is not None:
            report.state = lane.before._replace(claimed=max(lane.before.claimed, lane.last))

    async def _open(self, report: LaneReport, first: int) -> _OpenLane:
        topic = report.topic
        before = self._states.get(topic, UNTOUCHED)
        name = merged_lane_name(self._producer_name, topic) if self._is_merging else self._producer_name
        sender = await self._target.open_lane(topic, name, is_new=topic not in self._states)
        lane = _OpenLane(topic, name, sender, before, report, EntryMarker(name, self._source_cluster))
        self._lanes[topic] = lane
        opening = decide_opening(before, sender.last_sequence_id, first)
        if opening is Opening.IN_USE:
            raise LaneInUse(self._in_use_text(lane))
        if opening is Opening.READ_BACK:
            await self._read_back(lane)
        return lane

    async def _read_back(self, lane: _OpenLane) -> None:
        """What the target holds behind the last commit. What is on its way at the moment may be missing: it was sent
        by this very task, which does not ask for it again."""
        lane.stored = await self._target.read_back(lane.topic, lane.before.target, lane.producer_name)
        lane.settled_upto = max([lane.settled_upto, lane.sender.last_sequence_id, *lane.stored])
        lane.is_read_back = True

    def _in_use_text(self, lane: _OpenLane) -> str:
        return (
            f"{lane.topic}: producer {lane.producer_name} has written up to source position "
            f"{unpack_sequence(lane.sender.last_sequence_id)} there, which this job did not; another job uses the "
            f"name. Choose another pipeline name or lane epoch"
        )

    async def finish(self) -> list[LaneReport]:
        """Wait for all receipts and report. Raises HolesFound or LaneInUse when the target disagrees."""
        for lane in self._lanes.values():
            if lane.report.held is None:
                try:
                    await self._finish(lane)
                except PulsarError as refusal:
                    self._hold(lane.report, refusal)
        return list(self._reports.values())

    async def _finish(self, lane: _OpenLane) -> None:
        await lane.sender.drain()
        await self._verify_refused(lane)
        if lane.holes:
            raise HolesFound(_holes_text(lane))
        if is_overrun(lane.before, lane.sender.last_sequence_id, lane.last):
            raise LaneInUse(self._in_use_text(lane))
        lane.report.state = _state_after(lane)

    async def _verify_refused(self, lane: _OpenLane) -> None:
        """Repeats are expected when the connection was lost between an entry and its receipt; the target decides."""
        refused = set(lane.sender.refused)
        if refused:
            stored = await self._target.read_back(lane.topic, lane.before.target, lane.producer_name)
            lane.holes.extend(refused - set(stored))
            lane.stored = {**lane.stored, **stored}
            lane.report.replays += len(refused & set(stored))

    async def close(self) -> None:
        """Give the producer names back."""
        lanes, self._lanes = self._lanes, {}
        for closing in [asyncio.ensure_future(lane.sender.close()) for lane in lanes.values()]:
            try:
                await closing
            except PulsarError:
                continue  # the connection is gone, and the name with it


def _state_after(lane: _OpenLane) -> LaneState:
    # Only what this range covers: entries behind it have still to be found by the next one.
    reached = [lane.before.target, *(position for number, position in lane.stored.items() if number <= lane.last)]
    if lane.sender.last_position is not None:
        reached.append(lane.sender.last_position)
    return LaneState(max(lane.before.sequence_id, lane.last), max(reached), lane.before.claimed)


def _holes_text(lane: _OpenLane) -> str:
    shown = ", ".join(str(unpack_sequence(number)) for number in sorted(lane.holes)[:10])
    return (
        f"{lane.topic}: the target drops source entries {shown} ({len(lane.holes)} in all) as repeats, but does not "
        f"hold them; an earlier send failed while a later one was stored. Nothing was skipped; start again with "
        f"another lane epoch to write them"
    )
