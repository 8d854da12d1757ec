"""The data directory of a stopped broker, read without changing it.

The metadata are small. They are copied to a temporary directory and opened there, because opening writes. Segments are
read in place; repairs that a start would make are made in memory. What is read is synced, so that the next import finds
it too, even after a loss of power.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.schemas import RecordedSchemas
from interpulse.model.names import TopicName
from interpulse.storage.api import (
    CompactedLedger,
    DataDirectoryUnusable,
    LedgerRecord,
    LogEntry,
    MetadataStore,
    scan_pages,
)
from interpulse.storage.cursors import CursorRecord, RecordedCursors
from interpulse.storage.directory_lock import DirectoryLock
from interpulse.storage.logs.compacted import POSITIONS_IN_FRONT
from interpulse.storage.logs.journal import Journal
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.logs.topic_records import TopicRecord
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.storage.segments.files import Files, ReadOnlyFiles, sync_unchanged
from interpulse.storage.segments.journal import open_log_store
from interpulse.storage.segments.worker import StartWorker, ThreadWorker

_METADATA: Final = "metadata.sqlite"
_KEYS_PER_PAGE: Final = 500
_READ_ENTRIES_MAX: Final = 2_000
_READ_BYTES_MAX: Final = 2 << 20


class DataDirectory:
    """The stores of a stopped broker. Create it with `open`."""

    def __init__(self, metadata: MetadataStore, logs: TopicLogStore, cluster: str) -> None:
        self.metadata = metadata
        self.cluster = cluster
        """The cluster name of the broker."""
        self.schemas = RecordedSchemas(metadata)
        self._logs = logs
        self._cursors = RecordedCursors(metadata)

    @classmethod
    async def open(cls, directory: Path, opened: AsyncExitStack) -> Self:
        """Open the directory, and push its closing.

        Raises DataDirectoryInUse, DataDirectoryUnusable and MetadataError.
        """
        opened.callback(DirectoryLock.acquire_unchanged(directory).release)
        if not (directory / _METADATA).exists():
            raise DataDirectoryUnusable(
                str(directory), f"it has no {_METADATA}, so it does not belong to a standalone broker"
            )
        scratch = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="interpulse-")))
        await asyncio.to_thread(_copy_metadata, directory, scratch)
        metadata = await SqliteMetadataStore.open(scratch / _METADATA)
        opened.push_async_callback(metadata.close)
        return await cls.with_metadata(metadata, directory, opened)

    @classmethod
    async def with_metadata(
        cls,
        metadata: MetadataStore,
        directory: Path,
        opened: AsyncExitStack,
        *,
        files: Files | None = None,
        worker: StartWorker = ThreadWorker,
    ) -> Self:
        """Open the logs of the directory, whose metadata were copied, and push their closing.

        ``files`` may not change the directory. Errors are those of `open`.
        """
        logs = await open_log_store(directory / "log", metadata, files=files or ReadOnlyFiles(), worker=worker)
        opened.push_async_callback(logs.close)
        claimed = await metadata.get(keys.LOCAL_CLUSTER)
        if claimed is None:
            raise DataDirectoryUnusable(str(directory), "no broker ever completed its start on it")
        return cls(metadata, logs, claimed.value.decode())

    async def topics(self) -> list[TopicName]:
        """Return every topic and partition with a record, sorted by name."""
        topics = []
        async for key, _ in self.values(f"{keys.TOPIC_RECORDS}/"):
            topic = keys.topic_of_record(key)
            if topic is not None and key == keys.topic_record(topic):
                topics.append(topic)
        return sorted(topics, key=str)

    async def values(self, prefix: str) -> AsyncIterator[tuple[str, bytes]]:
        """Return all keys with a prefix, and their values."""
        async for page in scan_pages(self.metadata, prefix, limit=_KEYS_PER_PAGE):
            for key, stored in page:
                yield key, stored.value

    async def record(self, topic: TopicName) -> TopicRecord:
        """Return the record of a topic, with its non-empty ledgers and their entry counts. Raises LogDamaged."""
        record = await self._logs.records.get(topic.log_name) or TopicRecord()
        journal = self._logs.journal
        compacted = [] if record.compacted is None else [LedgerRecord(*record.compacted[:4])]
        await journal.verify(topic.log_name, [*compacted, *record.ledgers])
        ledgers = []
        for row in record.ledgers:
            if row.entries and row.ledger_id != record.newest:
                ledgers.append(row)
            elif (recovered := await journal.recover(row.ledger_id)) is not None:
                ledgers.append(LedgerRecord(row.ledger_id, recovered.entries, recovered.size, row.created_ms))
        return TopicRecord(tuple(ledgers), record.terminated, record.other, record.compacted)

    async def cursors(self, topic: TopicName) -> dict[str, CursorRecord]:
        """Return the stored cursors of a topic, by name."""
        return await self._cursors.of(topic.log_name).load()

    def entries(self, topic: TopicName, ledger: LedgerRecord) -> AsyncIterator[list[bytes]]:
        """Return the entries of one ledger, in parts. Raises LogDamaged."""
        return entries_of(self._logs.journal, topic, ledger.ledger_id, ledger.entries)

    async def compacted_entries(self, topic: TopicName, ledger: CompactedLedger) -> AsyncIterator[list[LogEntry]]:
        """Return the compacted entries, in parts, with their positions in the log. Raises LogDamaged."""
        async for part in self.entries(topic, LedgerRecord(*ledger[:4])):
            yield [POSITIONS_IN_FRONT.unpack(raw) for raw in part]


async def entries_of(journal: Journal, topic: TopicName, ledger_id: int, count: int) -> AsyncIterator[list[bytes]]:
    """Return the first entries of a ledger, in parts."""
    first = 0
    while first < count:
        wanted = min(count - first, _READ_ENTRIES_MAX)
        part = await journal.read(topic.log_name, ledger_id, first, wanted, _READ_BYTES_MAX)
        yield part
        first += len(part)


def _copy_metadata(directory: Path, scratch: Path) -> None:
    for name in (_METADATA, f"{_METADATA}-wal"):
        if (directory / name).exists():
            sync_unchanged(directory / name)
            shutil.copyfile(directory / name, scratch / name)
    sync_unchanged(directory)  # the names too
