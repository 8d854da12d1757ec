"""Writing on executors: the Arrow batches of one task, with a wait for every receipt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.session import Session
from interpulse.model.schemas import SchemaType
from interpulse.spark.lanes import LaneReport, LaneState, StreamTask, sink_lane_name
from interpulse.spark.options.connection_options import admin_client
from interpulse.spark.processes.process_client import Patience, process_portal, relaxed_collector, session_for
from interpulse.spark.writing.broker_target import BrokerTarget, TargetSchemas
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.spark.writing.message_writer import MessageWriter, RowEncoders
from interpulse.spark.writing.publishing_writer import PlainPublishers, PublishingWriter
from interpulse.spark.writing.row_lanes import RowLanes
from interpulse.spark.writing.sink_rows import entry_rows
from interpulse.spark.writing.target_topics import TargetTopics
from interpulse.spark.writing.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_NO_STREAM: Final = StreamTask("")


class _Writer(Protocol):
    async def write(self, batch: pa.RecordBatch) -> None: ...

    async def finish(self) -> list[LaneReport]: ...

    async def close(self) -> None: ...


def write_rows(
    options: WriteOptions,
    batches: Iterator[pa.RecordBatch],
    states: Mapping[str, LaneState],
    record: StructType | None = None,
    task: StreamTask = _NO_STREAM,
) -> list[LaneReport]:
    """Send all rows. Return a report per lane. Raises the first failure.

    ``record``: the columns that a schema encodes.
    """
    call = process_portal().call
    with relaxed_collector():
        writer = call(lambda: _open_writer(options, states, record, task))
        try:
            for batch in batches:
                call(partial(writer.write, batch))
            return call(writer.finish)
        finally:
            call(writer.close)


async def _open_writer(
    options: WriteOptions, states: Mapping[str, LaneState], record: StructType | None, task: StreamTask
) -> _Writer:
    session, source = await _target_session(options), await _schema_source(options)
    admin = None
    if options.admin_url is not None:  # connects on its first request
        admin = admin_client(options.admin_url, options.access, options.admin_access, options.operation_timeout_ms)
    topics = TargetTopics(session, options.create_topics, admin)
    if options.mode == "message":
        encoders = None
        if record is not None:
            encoders = RowEncoders(session, record, SchemaType[options.schema_type.upper()])
        lanes: RowLanes | PlainPublishers = PlainPublishers(options, session)
        if options.exactly_once:
            lanes = RowLanes(options, await _broker_target(options, admin), states, task)
        return _Closing(MessageWriter(options, topics, lanes, encoders), admin)
    if not options.exactly_once:
        plain = PlainPublishers(options, session)
        return _Closing(PublishingWriter(options, plain, TargetSchemas(session, source), topics), admin)
    return _Closing(_LaneRows(await open_lanes(options, states, task, admin), options.topic), admin)


async def open_lanes(
    options: WriteOptions,
    states: Mapping[str, LaneState],
    task: StreamTask,
    admin: AdminClient | None = None,
    *,
    permit: Callable[[str, int], Awaitable[None]] | None = None,
) -> LaneWriter:
    """Open the lanes of one task that copies entries. Call it in the portal's loop before the first entry.

    ``admin`` shows if topics de-duplicate, unless ``assumeDeduplication`` decides it. ``permit``: see `BrokerTarget`.
    """
    return LaneWriter(
        await _broker_target(options, admin, permit),
        producer_name=sink_lane_name(options.producer_name, task.query_id, options.lane_epoch),
        source_cluster=options.source_cluster,
        target_cluster=options.target_cluster,
        states=states,
        epoch=options.lane_epoch,
        isolate=options.isolate,
        is_merging=options.topic_map.merge,
        forwards=options.forward == "origin",
    )


async def _broker_target(
    options: WriteOptions, admin: AdminClient | None, permit: Callable[[str, int], Awaitable[None]] | None = None
) -> BrokerTarget:
    return BrokerTarget(
        await _target_session(options),
        window_bytes=options.max_pending_bytes,
        takeover_timeout_ms=options.takeover_timeout_ms,
        source=await _schema_source(options),
        admin=admin,
        is_deduplicating=options.assume_deduplication,
        topic_map=options.topic_map,
        is_copying=options.mode == "entry",
        permit=permit,
    )


async def _target_session(options: WriteOptions) -> Session:
    return await session_for(options.service_url, options.operation_timeout_ms, options.access, _patience(options))


async def _schema_source(options: WriteOptions) -> Session | None:
    url, access = options.schema_source_url, options.schema_source_access
    if url is None:
        return None
    return await session_for(url, options.operation_timeout_ms, access, _patience(options))


def _patience(options: WriteOptions) -> Patience:
    return Patience(options.outage_timeout_ms, waits_for_room=not options.isolate)


class _Closing:
    """A writer and its client of the admin API, which are closed together."""

    def __init__(self, writer: _Writer, admin: AdminClient | None) -> None:
        self._admin = admin
        self._writer = writer
        self.write = writer.write
        self.finish = writer.finish

    async def close(self) -> None:
        try:
            await self._writer.close()
        finally:
            if self._admin is not None:
                await self._admin.close()


class _LaneRows:
    """Writes rows of entry mode exactly once through lanes."""

    def __init__(self, lanes: LaneWriter, topic: str | None) -> None:
        self._lanes = lanes
        self._topic = topic

    async def write(self, batch: pa.RecordBatch) -> None:
        await self._lanes.write(entry_rows(batch, self._topic))

    async def finish(self) -> list[LaneReport]:
        return await self._lanes.finish()

    async def close(self) -> None:
        await self._lanes.close()
