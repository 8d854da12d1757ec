"""A replication query as Spark runs it: a driver that plans micro-batches and commits them, and tasks that copy.

The order of the steps is Spark's: the offsets of a batch are stored before it runs, its lane file is written by the
function of ``foreachBatch``, and the mark of its commit after that. Spark's own files are trusted: each is there, or is
not, and survives every end of the driver.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from interpulse.client.config import ClientConfig
from interpulse.client.session import Session
from interpulse.model.errors import DataLoss
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.copying.copy_reader import CopyPartition, CopyReader, ReportCommit
from interpulse.spark.copying.range_copies import copy_in_loop
from interpulse.spark.lanes import StreamTask, lane_name
from interpulse.spark.offsets import StreamOffset
from interpulse.spark.options.option import Purpose
from interpulse.spark.processes.process_client import close_sessions
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.state_disk import StateDisk, write_atomically
from interpulse.spark.state_files import LaneFiles
from interpulse.spark.writing.broker_target import lane_start
from interpulse.spark.writing.lane import HolesFound, LaneInUse
from interpulse.spark.writing.write_options import parse_write_options
from tests.simulation.lanes.disk import NodeDisk
from tests.simulation.lanes.executors import Executors
from tests.simulation.lanes.judge import Acknowledged
from tests.simulation.lanes.view import ObservedView, RememberedView
from tests.simulation.nodes import Node, SimulatedWorker
from tests.simulation.workload import CLIENT_OPTIONS

_PLANNED, _COPIED, _RECORDED, _MARKED = "planned", "copied", "recorded", "marked"
DRIVER_STEPS: Final = (_PLANNED, _COPIED, _RECORDED, _MARKED)
_PERMANENT: Final = (HolesFound, LaneInUse, DataLoss, ValueError)
_PAUSE_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.1
_TAKEOVER_MS: Final = 5_000


@dataclass(frozen=True)
class Direction:
    """The clusters of some lanes, each with its name and the address of its brokers, and the topics of the lanes."""

    source: str
    source_url: str
    target: str
    target_url: str
    topics: Sequence[str]

    @property
    def name(self) -> str:
        return f"{self.source}-->{self.target}"

    @property
    def producer(self) -> str:
        """The producer name of its lanes."""
        return lane_name("sim", self.source, self.target)


@dataclass
class Checkpoint:
    """The files of Spark: the offsets of batches, and the marks of those that are committed."""

    offsets: dict[int, str] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)


class CopyQuery:
    """The query of one direction, over all lives of its driver."""

    def __init__(
        self,
        direction: Direction,
        executors: Executors,
        chance: random.Random,
        *,
        isolate: bool,
        run_ahead_ms: int,
        target_end: Callable[[str], Position],
    ) -> None:
        """``isolate`` as in the job: a refused topic is held, and the others go on.

        ``target_end`` returns the last position of a topic that the target holds at that moment.
        """
        self._run_ahead_ms = run_ahead_ms
        self.direction = direction
        self.checkpoint = Checkpoint()
        self.unready: set[str] = set()
        """The topics that the control side of the job holds at the moment, because their targets do not fit."""
        self.acknowledged: dict[str, list[Acknowledged]] = {topic: [] for topic in direction.topics}
        """The acknowledgements of each topic on the source."""
        self._target_end = target_end
        self._listed: list[str] | None = None
        self._failure: Exception | None = None
        """The error that ended the last run of the query, until a batch is committed."""
        self._node: Node | None = None
        self._executors = executors
        self._chance = chance
        self._state = Path("/lanes") / direction.target
        self._source = {
            "service.url": direction.source_url,
            "operationTimeoutMs": "5000",
            "mode": "entry",
            "startingOffsets": "subscription",
            "predefinedSubscription": f"pulsar.repl.{direction.target}",
            "topicsFile": str(self._state / "topics.json"),
            "maxEntriesPerTrigger": "100",
            "maxPartitions": "2",
            "fetchBufferBytes": "65536",
            "offsetPollIntervalMs": "100",
            "pollTimeoutMs": "10000",
        }
        self._target = {
            "service.url": direction.target_url,
            "operationTimeoutMs": "5000",
            "outageTimeoutMs": "10000",
            "mode": "entry",
            "deliveryGuarantee": "exactly-once",
            "producerName": direction.producer,
            "replicatedFrom": direction.source,
            "targetCluster": direction.target,
            "statePath": str(self._state),
            "assumeDeduplication": "true",
            "isolate": str(isolate).lower(),
        }

    def copied(self, topic: str) -> Position:
        """Return the position up to which committed batches have copied a topic."""
        if not self.checkpoint.commits:
            return EARLIEST
        offset = StreamOffset.from_json(json.loads(self.checkpoint.offsets[max(self.checkpoint.commits)]))
        files = self._files()
        upto = max(offset.positions.get(topic, EARLIEST), files.copied().get(topic, EARLIEST))
        held = files.held().get(topic)
        return upto if held is None else min(upto, held.after)

    def stopped(self, topic: str) -> str:
        """Return why a topic is not copied at the moment; empty if nothing is known."""
        if self._failure is not None:
            return repr(self._failure)
        held = self._files().held().get(topic)
        return "" if held is None else held.reason

    async def run(self, node: Node) -> None:
        """Keep the query running, as the job does: the program of the driver."""
        self._node = node
        while not isinstance(self._failure, _PERMANENT):
            try:
                await self._query(node)
            except Exception as failure:  # noqa: BLE001 - the job starts a query again whatever ended it
                self._failure = failure
                node.world.note("query failed", self.direction.name, type(failure).__name__)
                await close_sessions()
                await asyncio.sleep(_PAUSE_SECONDS)
        await asyncio.get_running_loop().create_future()

    def _files(self) -> LaneFiles:
        assert self._node is not None
        return LaneFiles(str(self._state), NodeDisk(self._node))

    def _committed(self, batch: int) -> None:
        self.checkpoint.commits.add(batch)
        self._failure = None

    async def _query(self, node: Node) -> None:
        disk = NodeDisk(node)
        files = LaneFiles(str(self._state), disk)
        if not self.checkpoint.offsets:
            files.forget()
        self._listed = None
        await self._list(files, disk)
        source = parse_read_options(self._source, Purpose.STREAM_READ)
        observed = ObservedView(source, disk, self._note_acknowledged)
        view = RememberedView(observed)
        target = parse_write_options(self._target, Purpose.STREAM_WRITE)
        batches = _Batches(
            node=node,
            disk=node.worker("driver"),
            reader=CopyReader(
                source,
                target,
                run_ahead_ms=self._run_ahead_ms,
                cursor_follows=True,
                disk=disk,
                open_view=lambda options: view,
            ),
            commit=ReportCommit(str(self._state), disk),
            answered=view.answered,
            prepared=lambda: self._list(files, disk),
            work=lambda partition, task: partial(_copied, source, target, partition, task, disk),
            checkpoint=self.checkpoint,
            committed=self._committed,
            executors=self._executors,
            chance=self._chance,
        )
        try:
            await batches.run()
        finally:
            await observed.close_in_loop()

    def _note_acknowledged(self, positions: Mapping[str, Position]) -> None:
        for topic, position in positions.items():
            self.acknowledged[topic].append(Acknowledged(position, self._target_end(topic)))

    async def _list(self, files: LaneFiles, disk: StateDisk) -> None:
        """Record where lanes begin, and list the topics, as the control side of the job does, if any became ready."""
        direction = self.direction
        ready = [topic for topic in direction.topics if topic not in self.unready]
        if ready == self._listed:
            return
        anchors = files.anchors()
        if missing := [topic for topic in ready if topic not in anchors]:
            session = Session(ClientConfig(direction.target_url, **CLIENT_OPTIONS))
            try:
                for topic in missing:
                    anchors[topic] = await lane_start(
                        session, topic, direction.producer, takeover_timeout_ms=_TAKEOVER_MS
                    )
            finally:
                await session.close()
            files.write_anchors(anchors)
        held = [topic for topic in direction.topics if topic not in ready]
        listed = {"topics": ready, "held": held, "rates": {}}
        write_atomically(self._state / "topics.json", json.dumps(listed), disk=disk)
        self._listed = ready


@dataclass
class _Batches:
    """The micro-batches of one start of a query."""

    node: Node
    disk: SimulatedWorker
    reader: CopyReader
    commit: ReportCommit
    answered: Callable[[Callable[[], Any]], Any]
    prepared: Callable[[], Awaitable[None]]
    work: Callable[[CopyPartition, StreamTask], Callable[[], Any]]
    checkpoint: Checkpoint
    committed: Callable[[int], None]
    executors: Executors
    chance: random.Random

    async def run(self) -> None:
        """Repeat the batch that has no mark, and plan and run others for ever."""
        offsets, commits = self.checkpoint.offsets, self.checkpoint.commits
        newest = max(offsets, default=-1)
        if newest >= 0 and newest not in commits:
            before = offsets.get(newest - 1)
            start = json.loads(before) if before is not None else await self.answered(self.reader.initialOffset)
            await self._execute(newest, start)
        while True:
            await self.prepared()
            newest = max(offsets, default=-1)
            start = json.loads(offsets[newest]) if newest >= 0 else await self.answered(self.reader.initialOffset)
            end = await self.answered(partial(self.reader.latestOffset, start, self.reader.getDefaultReadLimit()))
            if end == start:
                await asyncio.sleep(_POLL_SECONDS)
                continue
            await self._pause()
            offsets[newest + 1] = json.dumps(end)
            await self.node.reached(_PLANNED)
            if newest >= 0:
                self.reader.commit(start)
            await self._execute(newest + 1, start)

    async def _execute(self, batch: int, start: dict[str, Any]) -> None:
        end = json.loads(self.checkpoint.offsets[batch])
        partitions = await self.answered(lambda: self.reader.partitions(start, end))
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._task(partition, StreamTask("query", batch, number)))
                    for number, partition in enumerate(partitions)
                    if isinstance(partition, CopyPartition) and partition.ranges
                ]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        await self.node.reached(_COPIED)
        rows = [row for task in tasks for row in pickle.loads(task.result())]
        await self._on_disk(lambda: self.commit.take(rows, batch))
        await self.node.reached(_RECORDED)
        await self._pause()
        self.committed(batch)
        await self.node.reached(_MARKED)

    async def _task(self, partition: CopyPartition, task: StreamTask) -> bytes:
        return await self.executors.run(self.node, self.work(pickle.loads(pickle.dumps(partition)), task))

    async def _on_disk(self, job: Callable[[], None]) -> None:
        """Run a job of the disk. An end of the driver may break it off at any of its steps."""
        done: asyncio.Future[None] = self.node.loop.create_future()

        def run() -> None:
            try:
                job()
            except OSError as error:
                self.node.loop.call_soon(done.set_exception, error)
            else:
                self.node.loop.call_soon(done.set_result, None)

        self.disk.put(run)
        await done

    async def _pause(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, 0.02))


async def _copied(source: Any, target: Any, partition: CopyPartition, task: StreamTask, disk: StateDisk) -> bytes:
    """Copy the ranges of a partition, and return the pickled rows: the work of an executor beside its driver."""
    lanes = partition.lanes.below(task.batch)
    reports = await copy_in_loop(
        *(source, target, partition.ranges, lanes, task, partition.passed),
        ahead=partition.ahead,
        recalled=partition.recalled,
        disk=disk,
    )
    return pickle.dumps([pickle.dumps(report) for report in reports])
