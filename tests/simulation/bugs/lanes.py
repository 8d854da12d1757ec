"""Bugs of lanes, which S6 and S9 must find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.producing.send_queue import SendQueue
from interpulse.model.errors import NotConnected, PulsarError, QuotaExceededException
from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.copy import SKIP_REPLICATED
from interpulse.spark.copying import range_copies
from interpulse.spark.copying.copy_reader import CopyReader, ReportCommit
from interpulse.spark.lanes import NO_SEQUENCE, LaneState, Opening, StreamTask
from interpulse.spark.reading import planner
from interpulse.spark.reading.planner import StreamPlanner, TopicEnd
from interpulse.spark.reading.source_cursor import SourceCursor
from interpulse.spark.state_disk import StateDisk
from interpulse.spark.state_files import LaneFiles
from interpulse.spark.writing import lane, lane_writer
from interpulse.spark.writing.broker_target import LaneSender
from interpulse.spark.writing.lane import Lane
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.ids import position_from_wire
from tests.simulation.lanes.disk import NodeDisk


def lane_reopened_with_another_epoch() -> None:
    """21: each further attempt of a task opens its lanes under the name of another epoch."""
    open_lanes = range_copies.open_lanes  # type: ignore[attr-defined]
    attempts: Counter[tuple[str | None, StreamTask]] = Counter()

    async def reopened(
        options: WriteOptions, states: Mapping[str, LaneState], task: StreamTask, *arguments: Any, **named: Any
    ) -> LaneWriter:
        key = (options.producer_name, task)
        epoch = attempts[key]
        attempts[key] += 1
        return await open_lanes(replace(options, lane_epoch=epoch), states, task, *arguments, **named)

    range_copies.open_lanes = reopened  # type: ignore[attr-defined]


def holes_skipped() -> None:
    """22: a lane takes every id up to the broker's last one for stored."""

    def trusting(self: Lane, sequence_id: int) -> None:
        self.report.replays += 1

    Lane.settle = trusting  # type: ignore[method-assign]


def lane_file_behind_the_mark() -> None:
    """23: the lane file of a batch is written behind Spark's mark, before the next batch is planned."""
    take, partitions = ReportCommit.take, CopyReader.partitions
    waiting: dict[StateDisk, Callable[[], None]] = {}

    def late(self: ReportCommit, rows: Sequence[bytes], batch: int) -> None:
        waiting[self._files._disk] = lambda: take(self, rows, batch)

    def planned(self: CopyReader, *offsets: Any) -> Any:
        waiting.pop(self._files._disk, lambda: None)()
        return partitions(self, *offsets)

    ReportCommit.take = late  # type: ignore[method-assign]
    CopyReader.partitions = planned  # type: ignore[assignment, method-assign]


def lane_directory_not_synced() -> None:
    """231: the name of a lane file is not brought to disk."""
    NodeDisk.sync_directory = lambda self, directory: None  # type: ignore[method-assign]


def complete_reader_not_asked_again() -> None:
    """232: a reader with all its entries stays without a connection, and a task asks it for ever."""
    ends = EntryReader._ends

    async def waiting(self: EntryReader) -> Any:
        if self._handler.connection is None:
            raise NotConnected(f"the reader of {self.topic} has no connection at the moment")
        return await ends(self)

    EntryReader._ends = waiting  # type: ignore[method-assign]


def source_consumer_left_open() -> None:
    """233: a driver whose question failed leaves its consumer open, and cannot open another one."""

    async def forgetful(self: SourceCursor) -> tuple[Position, Position | None]:
        connection = self._connection or await self._open()
        consumer_id = self._id
        try:
            answer = await connection.request(pb.CommandGetLastMessageId(consumer_id=consumer_id))
        except PulsarError:
            self._connection = None
            connection.consumers.forget(consumer_id)
            raise
        ends = answer.getLastMessageIdResponse
        known = ends.HasField("consumer_mark_delete_position")
        stands = position_from_wire(ends.consumer_mark_delete_position) if known else None
        return position_from_wire(ends.last_message_id), stands

    SourceCursor._ask = forgetful  # type: ignore[method-assign]


def copies_sent_on() -> None:
    """234: a lane sends on what came straight from a third cluster."""
    reason_of = lane_writer.skip_reason  # type: ignore[attr-defined]

    def lenient(metadata: pb.MessageMetadata, target_cluster: str | None, **named: Any) -> str | None:
        origin = metadata.replicated_from
        is_sent_on = origin != target_cluster and f".{origin}-->" in metadata.producer_name
        reason: str | None = reason_of(metadata, target_cluster, **named)
        return None if reason == SKIP_REPLICATED and is_sent_on else reason

    lane_writer.skip_reason = lenient  # type: ignore[attr-defined]


def released_topic_begins_at_its_end() -> None:
    """235: a topic that is held when its query starts begins at its end once it is released."""

    def late(self: StreamPlanner, topic: str, end: TopicEnd) -> Position:
        return end.last

    StreamPlanner._begin_of = late  # type: ignore[method-assign]


def hold_forgotten_by_the_cursor() -> None:
    """236: the cursor on the source moves past a range that the target refused."""
    planner._written_up_to = lambda positions, held: positions


def forgotten_lane_taken_for_a_new_one() -> None:
    """237: a lane whose name the broker forgot sends without a look at the target."""
    decide = lane.decide_opening  # type: ignore[attr-defined]

    def trusting(state: LaneState, broker: int, first: int, **named: Any) -> Opening:
        return Opening.SEND_ALL if broker == NO_SEQUENCE else decide(state, broker, first, **named)

    lane.decide_opening = trusting  # type: ignore[attr-defined]


def copies_ahead_not_accounted_for() -> None:
    """238: a task ends before it has read what an earlier attempt copied ahead of its range."""
    LaneWriter.owed = lambda self, topic: EARLIEST  # type: ignore[method-assign]


def copies_acknowledged_before_their_receipts() -> None:
    """239: a task reports what it has sent as copied, and the cursor on the source follows."""

    def at_once(self: LaneSender) -> None:
        self.received_count = self.sent_count

    LaneSender.take_receipts = at_once  # type: ignore[method-assign]


def acknowledged_copies_forgotten() -> None:
    """240: a batch that is repeated begins where it was planned to, before what its first attempt acknowledged."""

    begin = LaneFiles.begin_attempt

    def forgetful(self: LaneFiles) -> tuple[int, dict[str, Position]]:
        return begin(self)[0], {}

    LaneFiles.begin_attempt = forgetful  # type: ignore[method-assign]


def lane_file_replaced() -> None:
    """241: a repeated batch replaces the lane file of its first commit, whose positions are acknowledged by now."""

    commit = LaneFiles.commit

    def replacing(self: LaneFiles, batch: int, changed: Mapping[str, LaneState]) -> None:
        self._disk.unlink(self._lanes / f"{batch}.json")
        commit(self, batch, changed)

    LaneFiles.commit = replacing  # type: ignore[method-assign]


def sent_behind_a_refused_entry() -> None:
    """242: a lane goes on behind entries that a target without room has refused."""

    def forgetful(self: SendQueue, refusal: QuotaExceededException) -> None:
        if not self._request.waits_for_room:
            self._unconfirmed.fail_all(refusal)

    SendQueue._on_no_room = forgetful  # type: ignore[method-assign]
