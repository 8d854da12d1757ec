"""Writes entries of entry mode: marks them, sends them in order per lane, and settles retries against the target.

It runs on the executor inside one event loop. A lane is opened for its first entry, or ahead of it, and closed at the
end of the task. Its producer name excludes a second writer meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from interpulse.client.consuming.entry_reader import EntryRun
from interpulse.model.errors import AlreadyClosed, NotConnected, OperationTimeout, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.copy import SKIP_PASSED, EntryMarker, is_carried_marker, skip_reason
from interpulse.replication.position_runs import Run
from interpulse.spark.lanes import (
    NO_SEQUENCE,
    UNTOUCHED,
    LaneReport,
    LaneState,
    PositionTooLarge,
    lane_key,
    merged_lane_name,
    pack_sequence,
    sink_lane_name,
    unpack_sequence,
)
from interpulse.spark.offsets import entries_between
from interpulse.spark.writing.broker_target import BrokerTarget, LaneSender
from interpulse.spark.writing.collected_runs import CollectedRuns
from interpulse.spark.writing.lane import Lane
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry

_parse = pb.MessageMetadata.FromString
_WHOLE_CLUSTER = (NotConnected, OperationTimeout, AlreadyClosed)  # errors of the whole cluster, not of one topic


class EntryRows(NamedTuple):
    """Rows of entry mode as columns."""

    topics: Sequence[str]
    ledgers: Sequence[int]
    entries: Sequence[int]
    metadata: Sequence[bytes]
    payloads: Sequence[bytes | memoryview]


class LaneWriter:
    """All lanes of one task. Call ``write`` for every Arrow batch, then ``finish``, and ``close`` in any case."""

    def __init__(
        self, target: BrokerTarget, options: WriteOptions, states: Mapping[str, LaneState], query_id: str
    ) -> None:
        """Prepare the lanes of one task.

        Without clusters this is a plain copy: entries of any origin are written, and none is added.
        """
        self._target = target
        self._options = options
        self._producer_name = sink_lane_name(options.producer_name, query_id, options.lane_epoch)
        self._part = f"e{options.lane_epoch}" if options.lane_epoch else ""
        self._markers: dict[str, EntryMarker] = {}
        self._states = states
        self._lanes: dict[str, Lane] = {}
        self._expected: dict[str, asyncio.Task[LaneSender]] = {}
        """Openings of lanes that were not needed so far, by topic-partition."""
        self._reports: dict[str, LaneReport] = {}
        self._reached: dict[str, Position] = {}
        self._read: dict[str, deque[tuple[int, Position]]] = defaultdict(deque)
        """Source positions of what was read of a topic-partition, each with the receipts that have to come for it."""
        self._confirmed: dict[str, Position] = {}
        """Source positions up to which the target holds a topic-partition, or is not to hold it."""
        self._versions: dict[str, dict[bytes, bytes]] = {}
        """Schema versions of the source with those of the target, by topic-partition."""
        self._collects_runs = False

    def collect_runs(self) -> None:
        """Collect the positions of copies, for `take_runs` and the reports. Call it before the first entry."""
        self._collects_runs = True

    def expect(self, topic: str) -> None:
        """Open the lane of a topic-partition while its entries are still in flight.

        Errors are raised on the first write.

        This applies only to lanes that were written before. The source of a new lane may hold only skipped entries,
        which leave the target untouched.
        """
        state = self._states.get(lane_key(topic, self._part), UNTOUCHED)
        if state.sequence_id != NO_SEQUENCE and topic not in self._lanes.keys() | self._expected.keys():
            self._expected[topic] = asyncio.ensure_future(
                self._target.open_lane(topic, self._name(topic), is_new=False)
            )

    async def write(self, rows: EntryRows) -> None:
        """Send the rows in order. Raises the first failure; nothing is sent after it.

        The payload of a row without metadata is the reason why the source could not be read further.
        """
        for topic, ledger, entry, raw, payload in zip(*rows, strict=True):
            report = self._reports.get(topic) or self._report(topic, Position(ledger, entry - 1))
            if not raw:
                self._note_hold(report, bytes(payload).decode())
            if report.held is None:
                await self._take(report, (ledger, entry), raw, _parse(raw), payload)

    async def copy(self, topic: str, runs: Sequence[EntryRun]) -> None:
        """Send what was just read of one topic-partition, in order; see :meth:`write`."""
        for run in runs:
            await self._copy(topic, run)
            lane = self._lanes.get(topic)
            self._read[topic].append((0 if lane is None else lane.sender.sent_count, run.positions[-1]))

    async def _copy(self, topic: str, run: EntryRun) -> None:
        """Send as many together as need no look by themselves, the others one by one in between."""
        first = run.positions[0]
        report = self._report(topic, Position(first.ledger, first.entry - 1))
        try:
            numbers = [pack_sequence(*position) for position in run.positions]
        except PositionTooLarge as refusal:
            return self._hold(report, refusal)
        start = 0
        while report.held is None and start < len(numbers):
            lane = self._lanes.get(topic)
            copies: Sequence[bytes] = ()
            counts: Sequence[int] = ()
            if lane is not None and lane.takes_runs and numbers[start] > lane.settled_upto:
                versions = [*self._versions.get(topic, {}).items()]
                copies, counts = self._markers[topic].copies(run.raws, run.positions, numbers, start, versions)
            if lane is not None and copies:
                await self._send(lane, numbers[start : start + len(copies)], counts, copies)
                start += len(copies)
            else:
                position, _, parsed = run.entry(start)
                await self._take(report, position, parsed.metadata_bytes, parsed.metadata, parsed.payload)
                start += 1

    async def _send(self, lane: Lane, numbers: Sequence[int], counts: Sequence[int], entries: Sequence[bytes]) -> None:
        lane.last = numbers[-1]
        try:
            await lane.send(numbers, counts, entries)
        except PulsarError as refusal:
            self._hold(lane.report, refusal)

    def refuse(self, topic: str, after: Position, upto: Position, reason: str) -> None:
        """Hold ``(after, upto]`` of a topic-partition, which the source could not read."""
        report = self._report(topic, after)
        self._claim(report, upto)
        self._note_hold(report, reason)

    def pass_over(self, topic: str, after: Position, upto: Position) -> None:
        """Skip ``(after, upto]``, the beginning of a range: the cursor on the source was moved past it.

        Earlier attempts may have sent some of it.
        """
        report = self._report(topic, after)
        report.skipped[SKIP_PASSED] += entries_between(after, upto)
        self._claim(report, upto)
        if topic in self._lanes:
            self._lanes[topic].claim(report.state.claimed)

    def is_held(self, topic: str) -> bool:
        """Return True if the target refused an entry of a topic-partition, or its source could not be read."""
        report = self._reports.get(topic)
        return report is not None and report.held is not None

    def owed(self, topic: str) -> Position:
        """Return the source position up to which this task has to read a topic-partition, EARLIEST if nothing is owed.

        An earlier attempt of the batch has written so far. If the lane is not accounted for until there,
        :meth:`finish` takes the entries for those of another writer.
        """
        lane = self._lanes.get(topic)
        return EARLIEST if lane is None else unpack_sequence(lane.owed)

    def account(self, topic: str, upto: Position) -> None:
        """Count everything up to a position as read, also what the source does not have any more."""
        self._lanes[topic].claim(pack_sequence(*upto))

    def copied(self) -> dict[str, tuple[Position, int, int, int]]:
        """Return by topic-partition how far it is copied for certain, and the entries, messages and bytes sent so far.

        Everything up to the source position has a receipt, or needs none. It may be acknowledged on the source, if
        another attempt of the batch calls :meth:`recall` with it.
        """
        for topic in self._read:
            self._confirm(topic)
        counts = {topic: (report.entries, report.messages, report.bytes) for topic, report in self._reports.items()}
        return {topic: (position, *counts[topic]) for topic, position in self._confirmed.items()}

    def _confirm(self, topic: str) -> None:
        """Take the receipts of a topic-partition, unless :meth:`finish` has to compare it with the target first."""
        if self.is_held(topic):
            return
        received, lane = 0, self._lanes.get(topic)
        if lane is not None:
            lane.sender.take_receipts()
            if lane.holes or lane.sender.refused:
                return
            received = lane.sender.received_count
        read = self._read[topic]
        while read and read[0][0] <= received:
            self._confirmed[topic] = read.popleft()[1]

    def take_runs(self) -> dict[str, list[Run]]:
        """Return the runs of copies that were stored since the last call, by source topic-partition.

        They include those of everything that :meth:`copied` has returned, but for what was copied before this task.
        """
        collected = {topic: lane.sender.runs for topic, lane in self._lanes.items()}
        taken = {topic: runs.take() for topic, runs in collected.items() if runs is not None}
        return {topic: runs for topic, runs in taken.items() if runs}

    def recall(self, topic: str, upto: Position) -> None:
        """Begin behind a position that an earlier attempt of the batch has returned from :meth:`copied`.

        The source may not have the entries before it any more.
        """
        self._claim(self._report(topic, upto), upto)
        self._confirmed[topic] = upto
        self.reach(topic, upto)

    def reach(self, topic: str, position: Position) -> None:
        """Record the source position up to which a topic-partition was read ahead of its range."""
        self._report(topic, position)
        self._reached[topic] = max(position, self._reached.get(topic, EARLIEST))

    def _claim(self, report: LaneReport, upto: Position) -> None:
        claimed = pack_sequence(upto.ledger, upto.entry + 1) - 1  # a cursor may be at the start of a ledger
        report.state = report.state._replace(claimed=max(report.state.claimed, claimed))

    async def _take(
        self,
        report: LaneReport,
        position: tuple[int, int],
        raw: bytes,
        metadata: pb.MessageMetadata,
        payload: bytes | memoryview,
    ) -> None:
        options = self._options
        if is_carried_marker(metadata, options.target_cluster):
            await self._carry(report, position, raw, payload)
            return
        forwarded_by = options.source_cluster if options.forward == "origin" else None
        reason = skip_reason(metadata, options.target_cluster, forwarded_by=forwarded_by)
        if reason is not None:
            report.skipped[reason] += 1
            return
        try:
            sequence_id = pack_sequence(*position)
            lane = self._lanes.get(report.topic) or await self._open(report, sequence_id)
            lane.last = sequence_id
            is_chunk = metadata.num_chunks_from_msg > 1
            if is_chunk and not lane.is_read_back:
                # Brokers count a chunked message by its last chunk, so they do not report chunks of an earlier attempt.
                await lane.read_back()
            if sequence_id <= lane.settled_upto:
                lane.settle(sequence_id)
                return
            version = await self._target_version(report.topic, metadata)
            marked = self._markers[report.topic].mark(raw, metadata, position, sequence_id, version)
            count = metadata.num_messages_in_batch
            await lane.send([sequence_id], [count], [build_entry(marked, payload)], is_chunk=is_chunk)
        except PulsarError as refusal:
            self._hold(report, refusal)

    async def _carry(
        self, report: LaneReport, position: tuple[int, int], raw: bytes, payload: bytes | memoryview
    ) -> None:
        """Send a marker in its place among the entries.

        It has no part in the numbers of the lane. A retry sends it again, and a lost connection may lose it: its
        cluster ignores repeated responses, and asks again without one.
        """
        try:
            sequence_id = pack_sequence(*position)
            lane = self._lanes.get(report.topic) or await self._open(report, sequence_id)
            marked = self._markers[report.topic].mark_carried(raw, position)
            await lane.sender.send_marker(sequence_id, build_entry(marked, payload))
        except PulsarError as refusal:
            self._hold(report, refusal)

    async def _target_version(self, topic: str, metadata: pb.MessageMetadata) -> bytes | None:
        if not metadata.HasField("schema_version"):
            return None
        version = await self._target.schema_version(topic, metadata.schema_version)
        if version is not None:
            self._versions.setdefault(topic, {})[metadata.schema_version] = version
        return version

    def _report(self, topic: str, after: Position) -> LaneReport:
        report = self._reports.get(topic)
        if report is None:
            key = lane_key(topic, self._part)
            report = self._reports[topic] = LaneReport(topic, self._states.get(key, UNTOUCHED), after, key=key)
        return report

    def _hold(self, report: LaneReport, refusal: PulsarError) -> None:
        """Hold the lane: its whole range comes again, and reading back then shows the stored part."""
        if not self._options.isolate or isinstance(refusal, _WHOLE_CLUSTER):
            raise refusal
        self._note_hold(report, str(refusal))

    def _note_hold(self, report: LaneReport, reason: str) -> None:
        report.held = reason
        report.after = max(report.after, self._confirmed.get(report.topic, EARLIEST))
        lane = self._lanes.get(report.topic)
        if lane is not None:
            held = lane.held_state()
            report.state = held._replace(claimed=max(held.claimed, report.state.claimed))

    async def _open(self, report: LaneReport, first: int) -> Lane:
        topic, name = report.topic, self._name(report.topic)
        opening = self._expected.get(topic)
        if opening is None:
            sender = await self._target.open_lane(topic, name, is_new=report.key not in self._states)
        else:
            sender = await opening
            del self._expected[topic]
        self._markers[topic] = EntryMarker(name, self._options.source_cluster)
        sender.runs = CollectedRuns() if self._collects_runs else None
        lane = self._lanes[topic] = Lane(self._target, sender, report)
        await lane.settle_past(first, is_anchored=report.key in self._states)
        return lane

    def _name(self, topic: str) -> str:
        """Return the producer name. Several topics may be written to one, so each needs its own then."""
        merges = self._options.topic_map.merge
        return merged_lane_name(self._producer_name, topic) if merges else self._producer_name

    async def finish(self, account: Callable[[str], Awaitable[None]] | None = None) -> list[LaneReport]:
        """Wait for all receipts and return the reports. Raises HolesFound or LaneInUse when the target disagrees.

        ``account`` is called with a topic-partition that owes again: while the connection of this task was away, an
        earlier attempt that lives on may have written.
        """
        for topic, lane in self._lanes.items():
            if lane.report.held is None:
                try:
                    await lane.sender.drain()
                    owed = NO_SEQUENCE
                    while account is not None and lane.owed > owed:
                        owed = lane.owed
                        await account(topic)
                        await lane.sender.drain()
                    if not self.is_held(topic):
                        await lane.finish()
                except PulsarError as refusal:
                    self._hold(lane.report, refusal)
        for topic, position in self._reached.items():
            report = self._reports[topic]
            if report.held is None:
                report.state = report.state._replace(reached=max(position, report.state.reached))
        for topic, runs in self.take_runs().items():
            self._reports[topic].runs = runs
        return list(self._reports.values())

    async def close(self) -> None:
        """Release the producer names."""
        lanes, self._lanes = self._lanes, {}
        unneeded, self._expected = self._expected, {}
        closings = [lane.sender.close() for lane in lanes.values()] + [_close(sender) for sender in unneeded.values()]
        for outcome in await asyncio.gather(*closings, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, PulsarError):
                raise outcome  # a PulsarError: the connection is gone, and the name with it


async def _close(opening: asyncio.Task[LaneSender]) -> None:
    """Close a lane that was not needed, if it could be opened."""
    opening.cancel()  # no effect if it is open
    await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()
