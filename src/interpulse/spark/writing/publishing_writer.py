"""At least once: publishers of messages, and entries published again as they are."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.producing.producer import Router
from interpulse.client.producing.unconfirmed import Receipt
from interpulse.client.session import Session
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.replication.copy import SKIP_MARKER, renumber
from interpulse.spark.lanes import UNTOUCHED, LaneReport
from interpulse.spark.writing.broker_target import TargetSchemas, open_sender
from interpulse.spark.writing.sink_rows import OutgoingMessage, entry_rows
from interpulse.spark.writing.target_topics import TargetTopics, check_takes_entries
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class PlainPublisher:
    """One producer on one topic-partition, and its sent entries."""

    sender: EntrySender
    next_sequence_id: int
    report: LaneReport
    receipts: list[asyncio.Future[Receipt]] = field(default_factory=list)

    def unsent(self, messages: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        """Return the messages that are not stored yet. Called once for every message, in order."""
        return messages

    def ids(self, messages: Sequence[object]) -> Sequence[int]:
        """Return the sequence ids for messages that are sent now. At least once only counts them."""
        return range(self.next_sequence_id, self.next_sequence_id + len(messages))

    async def send(self, entry: bytes, ids: Sequence[int]) -> None:
        """Send an entry of these messages, waiting only for room. Raises the error that stopped the producer."""
        self.next_sequence_id = ids[-1] + 1
        highest = ids[-1] if len(ids) > 1 else 0
        sending = self.sender.send_entry(entry, sequence_id=ids[0], highest_sequence_id=highest, num_messages=len(ids))
        self.receipts.append(await sending)
        self.report.entries += 1
        self.report.messages += len(ids)
        self.report.bytes += len(entry)

    async def finish(self) -> LaneReport:
        """Wait for all receipts and report."""
        await self.sender.drain()
        if self.receipts:
            self.report.state = UNTOUCHED._replace(target=self.receipts[-1].result().position)
        return self.report

    async def close(self) -> None:
        for future in self.receipts:
            future.cancel()
        await self.sender.close()


class PlainPublishers:
    """Opens publishers at least once, with producer names that no other task has."""

    def __init__(self, options: WriteOptions, session: Session) -> None:
        self._options = options
        self._session = session
        self._prefix = f"{options.producer_name or 'spark-interpulse'}-{secrets.token_hex(5)}"
        self._router = Router(mode=options.routing_mode, hashing=options.hashing_scheme)

    async def open(self, topic: str, first: OutgoingMessage | None, schema: SchemaInfo | None) -> PlainPublisher:
        """Open a publisher with this schema, or with the topic's own. ``first`` is the first message for it."""
        make = partial(
            EntrySender,
            self._session,
            TopicName.parse(topic),
            self._prefix,
            schema=schema,
            schema_of_topic=schema is None,
            window_bytes=self._options.max_pending_bytes,
            send_timeout_ms=self._options.send_timeout_ms,
            encrypted=bool(self._options.encryption_keys) or self._options.mode == "entry",
        )
        sender = await open_sender(self._session, make)
        return PlainPublisher(sender, sender.last_sequence_id + 1, LaneReport(topic))

    def producer_of(self, message: OutgoingMessage) -> str:
        """Return the producer of a message, if a topic-partition has several."""
        return ""

    def keyless_partition(self, count: int) -> int:
        """Return the partition, of ``count``, for messages without a key. Called once per Arrow batch and topic."""
        return self._router.choose(None, count)


class PublishingWriter:
    """At least once: entries published again as they are."""

    def __init__(
        self, options: WriteOptions, publishers: PlainPublishers, schemas: TargetSchemas, topics: TargetTopics
    ) -> None:
        self._options = options
        self._opening = publishers
        self._schemas = schemas
        self._topics = topics
        self._publishers: dict[str, PlainPublisher] = {}

    async def write(self, batch: pa.RecordBatch) -> None:
        rows = entry_rows(batch, self._options.topic)
        for topic, raw, payload in zip(rows.topics, rows.metadata, rows.payloads, strict=True):
            publisher = self._publishers.get(topic) or await self._open(topic)
            metadata = pb.MessageMetadata.FromString(raw)
            if metadata.HasField("marker_type"):
                publisher.report.skipped[SKIP_MARKER] += 1
                continue
            name, version = publisher.sender.name, None
            if metadata.HasField("schema_version"):
                version = await self._schemas.version(topic, metadata.schema_version, producer_name=name)
            first, count = publisher.next_sequence_id, metadata.num_messages_in_batch
            renumbered = renumber(raw, metadata, name, first, version)
            await publisher.send(build_entry(renumbered, payload), range(first, first + count))

    async def _open(self, topic: str) -> PlainPublisher:
        await check_takes_entries(self._topics, topic)
        publisher = self._publishers[topic] = await self._opening.open(topic, None, None)
        return publisher

    async def finish(self) -> list[LaneReport]:
        return [await publisher.finish() for publisher in self._publishers.values()]

    async def close(self) -> None:
        publishers, self._publishers = self._publishers, {}
        for publisher in publishers.values():
            await publisher.close()
