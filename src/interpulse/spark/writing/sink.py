"""Writing on executors: the Arrow batches of one task, with a wait for every receipt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from interpulse.client.session import Session
from interpulse.model.schemas import SchemaType
from interpulse.spark.lanes import LaneReport, LaneState, StreamTask
from interpulse.spark.options.connection_options import Access, admin_client
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

    from interpulse.client.admin.admin_client import AdminClient

_NO_STREAM: Final = StreamTask("")


_Write = Callable[["pa.RecordBatch"], Coroutine[Any, Any, None]]
_Finish = Callable[[], Coroutine[Any, Any, list[LaneReport]]]


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
    call, closing = process_portal().call, AsyncExitStack()
    with relaxed_collector():
        try:
            write, finish = call(lambda: _open_writer(options, states, record, task, closing))
            for batch in batches:
                call(partial(write, batch))
            return call(finish)
        finally:
            call(closing.aclose)


async def _open_writer(
    options: WriteOptions,
    states: Mapping[str, LaneState],
    record: StructType | None,
    task: StreamTask,
    closing: AsyncExitStack,
) -> tuple[_Write, _Finish]:
    session, admin = await _session(options), None
    if options.admin_url is not None:  # connects on its first request
        admin = admin_client(options.admin_url, options.access, options.admin_access, options.operation_timeout_ms)
        closing.push_async_callback(admin.close)
    if options.mode == "entry" and options.exactly_once:
        lanes = await open_lanes(options, states, task, admin)
        closing.push_async_callback(lanes.close)

        async def write(batch: pa.RecordBatch) -> None:
            await lanes.write(entry_rows(batch, options.topic))

        return write, lanes.finish
    topics = TargetTopics(session, options.create_topics, admin)
    writer: PublishingWriter | MessageWriter
    if options.mode == "entry":
        schemas = TargetSchemas(session, await _schema_source(options), options.topic_map)
        writer = PublishingWriter(options, PlainPublishers(options, session), schemas, topics)
    else:
        encoders = None
        if record is not None:
            encoders = RowEncoders(session, record, SchemaType[options.schema_type.upper()])
        publishers: RowLanes | PlainPublishers = PlainPublishers(options, session)
        if options.exactly_once:
            target = BrokerTarget(session, options, source=await _schema_source(options), admin=admin)
            publishers = RowLanes(options, target, states, task)
        writer = MessageWriter(options, topics, publishers, encoders)
    closing.push_async_callback(writer.close)
    return writer.write, writer.finish


async def open_lanes(
    options: WriteOptions,
    states: Mapping[str, LaneState],
    task: StreamTask,
    admin: AdminClient | None = None,
    *,
    permit: Callable[[str, int], Awaitable[None]] | None = None,
) -> LaneWriter:
    """Open the lanes of one task that copies entries. Call it in the portal's loop before the first entry.

    ``admin`` and ``permit``: see `BrokerTarget`.
    """
    source = await _schema_source(options)
    target = BrokerTarget(await _session(options), options, source=source, admin=admin, permit=permit)
    return LaneWriter(target, options, states, task.query_id)


async def _schema_source(options: WriteOptions) -> Session | None:
    url = options.schema_source_url
    return None if url is None else await _session(options, url, options.schema_source_access)


async def _session(options: WriteOptions, url: str = "", access: Access | None = None) -> Session:
    """Return the session with a cluster, by default the target."""
    patience = Patience(options.outage_timeout_ms, waits_for_room=not options.isolate)
    return await session_for(
        url or options.service_url, options.operation_timeout_ms, access or options.access, patience
    )
