"""Copying on executors: the ranges of one task, lane by lane, in one event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from interpulse.client.consuming.entry_reader import EntryReader, EntryRun
from interpulse.client.session import Session
from interpulse.model.errors import NotAllowed, PulsarError
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.copying.run_ahead import RunAhead, RunAheadEnd
from interpulse.spark.lanes import LaneReport, LaneState, StreamTask, unpack_sequence
from interpulse.spark.offsets import TopicRange
from interpulse.spark.processes.process_client import in_portal, patiently
from interpulse.spark.reading.fetch import read_ranges, reading_session
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.state_disk import LOCAL_DISK, StateDisk
from interpulse.spark.state_files import LaneFiles
from interpulse.spark.writing.broker_target import last_position
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.spark.writing.sink import open_lanes
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire.cursor_promise import REPLICATION_CURSORS, VALID_S

log = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 0.005
"""Pause after copying what arrived, so that entries of a busy topic-partition go in runs."""
_BUFFER_BYTES_MIN: Final = 64 * 1024


async def copy_in_loop(
    source: ReadOptions,
    target: WriteOptions,
    ranges: Sequence[TopicRange],
    lanes: Mapping[str, LaneState],
    task: StreamTask,
    passed: Mapping[str, Position],
    *,
    ahead: RunAhead | None = None,
    recalled: Mapping[str, Position] = {},
    position_runs: bool = False,
    disk: StateDisk = LOCAL_DISK,
) -> list[LaneReport]:
    """Copy the ranges; return a report of each topic-partition once all receipts are there. Raises the first failure.

    ``passed`` has the positions of the source cursor beyond the beginnings of ranges, as the driver received them, and
    ``recalled`` those beginnings that an earlier attempt of the batch has copied up to. With ``ahead``, whose files are
    on ``disk``, copy what arrives behind the ranges too. With ``position_runs``, collect the positions of copies; a
    task that reports every second writes them to ``disk``, and the rest is in its reports. Everything happens in the
    running event loop; `copy_ranges` does the same in the portal's and blocks.
    """
    marks = await _source_marks(source, passed)
    writer = await open_lanes(target, lanes, task, permit=marks.permit)
    if position_runs:
        writer.collect_runs()
    for topic, upto in recalled.items():
        writer.recall(topic, upto)
    try:
        copies = RangeCopies(await reading_session(source), source, writer, marks)
        if ahead is None:
            await copies.copy(ranges)
        else:
            assert target.state_path is not None
            report = _live_report(LaneFiles(target.state_path, disk), task, writer, ahead.attempt or 0)
            await copies.run_ahead(ranges, RunAheadEnd(ahead, disk), report)
        return await writer.finish(copies.account_again)
    finally:
        await writer.close()


def _live_report(files: LaneFiles, task: StreamTask, writer: LaneWriter, attempt: int) -> Callable[[], None]:
    """Return a function that writes what the task has copied, if that has changed since the last call.

    Positions of copies come first: what is acknowledged on the source has its own written.
    """
    written: Mapping[str, tuple[Position, int, int, int]] = {}

    def report() -> None:
        nonlocal written
        copied = writer.copied()
        if copied != written:
            files.positions.write(writer.take_runs(), writer=f"{attempt}-{task.partition}")
            files.write_live(task.batch, task.partition, copied, attempt=attempt)
            written = copied

    return report


copy_ranges = in_portal(copy_in_loop)


class RangeCopies:
    """The ranges of one task, on their way from the source to the lanes of the target."""

    def __init__(self, session: Session, options: ReadOptions, writer: LaneWriter, marks: SourceMarks) -> None:
        """Copy from a source with these ``options``, which ``session`` reads, but nothing up to the ``marks``."""
        self._session = session
        self._options = options
        self._writer = writer
        self._marks = marks
        self._accounted: dict[str, tuple[TopicRange, Position]] = {}
        """Range of each topic-partition, and the position up to which it was read behind it."""

    async def copy(
        self, ranges: Sequence[TopicRange], follow: Callable[[TopicRange], Awaitable[None]] | None = None
    ) -> None:
        """Copy ranges, and what an earlier attempt has copied behind them. ``follow`` may copy more of each.

        Ranges that are empty are left out.
        """
        expect = self._writer.expect
        unread = [item for item in ranges if item.after < item.upto]
        if not unread:
            return
        await read_ranges(
            self._options,
            unread,
            self._take,
            self._refuse,
            begin=lambda item: expect(item.topic),
            admit=self._admit,
            follow=follow or self._account,
        )

    async def run_ahead(self, ranges: Sequence[TopicRange], end: RunAheadEnd, report: Callable[[], None]) -> None:
        """Copy ranges, and what arrives behind them until the run-ahead ends. Ranges may be empty."""

        async def follow(item: TopicRange) -> None:
            reached = item.upto
            if item.topic in end.topics:
                reached = await self._follow(item, end)
            await self._account(item, reached)

        empty = [item for item in ranges if item.after >= item.upto]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(end.watch(report))
                copying = [group.create_task(follow(item)) for item in empty]
                copying.append(group.create_task(self.copy(ranges, follow)))
                await asyncio.wait(copying)
                end.end()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _take(self, item: TopicRange, arrived: Sequence[EntryRun]) -> None:
        await self._writer.copy(item.topic, arrived)

    async def _refuse(self, item: TopicRange, reason: str) -> None:
        self._writer.refuse(item.topic, item.after, item.upto, reason)

    async def _admit(self, item: TopicRange, reader: EntryReader) -> TopicRange:
        mark = min(await self._marks.of(item.topic, reader), item.upto)
        if mark <= item.after:
            return item
        self._writer.pass_over(item.topic, item.after, mark)
        return item._replace(after=mark)

    async def _follow(self, item: TopicRange, end: RunAheadEnd) -> Position:
        """Copy what arrives behind a range until the end. Return the position reached.

        A source that cannot be read ends it, and so does a cursor that was moved into what arrives: the next batch
        begins where the source says.
        """
        options, topic, reached = self._options, item.topic, item.upto
        reader = EntryReader(
            self._session,
            TopicName.parse(topic),
            after=reached,
            buffer_bytes=max(options.fetch_buffer_bytes // len(end.topics), _BUFFER_BYTES_MIN),
            subscription_prefix=options.subscription_prefix,
            checksum_verified=options.verify_checksum,
            reconnect_timeout_ms=None,
            replication_cursor=options.predefined_subscription,
        )
        try:
            with end.ending(reader):
                async with aclosing(self._arrivals(topic, reader)) as arrivals:
                    async for arrived in arrivals:
                        await self._writer.copy(topic, arrived)
                        if self._writer.is_held(topic):
                            end.end()  # so that the hold is recorded, and the next attempt planned
                            break
                        reached = arrived[-1].positions[-1]
                        end.note(sum(len(run.positions) for run in arrived))
                        await asyncio.sleep(_GATHER_SECONDS)
        finally:
            self._session.spawn(reader.close())
        return reached

    async def _arrivals(self, topic: str, reader: EntryReader) -> AsyncGenerator[Sequence[EntryRun], None]:
        """Yield what arrives and may be copied."""
        try:
            await reader.open()
            while arrived := await reader.read_runs():
                if arrived[0].positions[0] <= await self._marks.of(topic, reader):
                    return
                yield arrived
        except PulsarError as problem:
            log.info("topic is not followed any more topic=%s error=%s", topic, problem)

    async def _account(self, item: TopicRange, reached: Position | None = None) -> None:
        """Copy what an earlier attempt has copied further than ``reached``, the end of the range unless given.

        Record how far the topic-partition was read behind its range.
        """
        topic, reached = item.topic, item.upto if reached is None else reached
        if self._writer.is_held(topic):
            return
        owed = self._writer.owed(topic)
        if reached < owed <= await last_position(self._session, TopicName.parse(topic)):
            rest = TopicRange(topic, reached, owed, sparse=True)
            await read_ranges(self._options, [rest], self._take, self._refuse, admit=self._admit)
            self._writer.account(topic, owed)
            reached = owed
        if reached > item.upto:
            self._writer.reach(topic, reached)
        self._accounted[topic] = item, reached

    async def account_again(self, topic: str) -> None:
        """Copy what an earlier attempt has copied since this one was done with a topic-partition."""
        await self._account(*self._accounted[topic])


async def _source_marks(options: ReadOptions, passed: Mapping[str, Position]) -> SourceMarks:
    """Return the marks of the source. Brokers that keep replication cursors for us promise their positions."""
    cursor = options.predefined_subscription
    if cursor is None or not cursor.startswith(REPLICATION_CURSORS):
        return SourceMarks(passed, None)
    session = await reading_session(options)

    async def ask(topic: str) -> Position:
        async with EntryReader(
            session,
            TopicName.parse(topic),
            after=LATEST,
            subscription_prefix=options.subscription_prefix,
            replication_cursor=cursor,
        ) as reader:
            await reader.open()
            return await reader.promised_position()

    return SourceMarks(passed, lambda topic: patiently(session, lambda: ask(topic)))


class CursorMoved(NotAllowed):
    """A cursor that was moved past entries that wait to be sent."""


class PromisedReader(Protocol):
    """A reader that names its replication cursor to the broker."""

    resubscribed_count: int

    async def promised_position(self) -> Position: ...


class SourceMarks:
    """The marks of all topic-partitions of one task."""

    def __init__(
        self,
        positions: Mapping[str, Position],
        ask: Callable[[str], Awaitable[Position]] | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with the driver's positions. ``ask`` returns a position with the broker's promise, if there are any."""
        self._marks = dict(positions)
        self._ask = ask
        self._valid_until: dict[str, float] = {}
        self._promised_to: dict[str, tuple[PromisedReader, int]] = {}
        self._now = clock

    async def of(self, topic: str, reader: PromisedReader | None = None) -> Position:
        """Return the position up to which nothing may be sent. All behind it may be, before the next turn of the loop.

        An open ``reader`` asks for the position. After it has subscribed again it asks again: policies may have closed
        the cursor and opened another one. Raises the source's refusals.
        """
        consumer = None if reader is None else (reader, reader.resubscribed_count)
        is_same = consumer is None or consumer == self._promised_to.get(topic)
        is_promised = is_same and self._now() < self._valid_until.get(topic, 0.0)
        if self._ask is not None and not is_promised:
            asked_at = self._now()
            position = await (self._ask(topic) if reader is None else reader.promised_position())
            self._marks[topic] = max(position, self._marks.get(topic, EARLIEST))
            self._valid_until[topic] = asked_at + VALID_S
            if consumer is not None:
                self._promised_to[topic] = consumer
        return self._marks.get(topic, EARLIEST)

    async def permit(self, topic: str, sequence_id: int) -> None:
        """Check the cursor before the entry with this sequence id is sent. Raises CursorMoved."""
        mark, position = await self.of(topic), unpack_sequence(sequence_id)
        if position <= mark:
            raise CursorMoved(
                f"{topic}: the cursor was moved to {mark} while {position} waited to be sent; what lies behind the "
                f"cursor is copied next"
            )
