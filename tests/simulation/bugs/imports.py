"""Bugs of the import of a data directory, which S8 must find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from interpulse.broker.cluster_import import topic_copy
from interpulse.broker.cluster_import.cluster_import import ClusterImport
from interpulse.broker.cluster_import.source import DataDirectory
from interpulse.broker.cluster_import.topic_copy import TopicCopies
from interpulse.model.names import TopicName
from interpulse.storage.cursors import CursorRecord
from interpulse.storage.logs.topic_records import TopicRecord


def imported_cursor_ahead() -> None:
    """161: an imported cursor begins one entry too late."""
    moved = topic_copy.moved_cursor

    def ahead(record: CursorRecord, ledgers: Any) -> CursorRecord:
        cursor = moved(record, ledgers)
        return replace(cursor, mark_delete=cursor.mark_delete._replace(entry=cursor.mark_delete.entry + 1))

    topic_copy.moved_cursor = ahead


def imported_batches_forgotten() -> None:
    """162: an imported cursor has no partly acknowledged batches."""
    moved = topic_copy.moved_cursor
    topic_copy.moved_cursor = lambda record, ledgers: replace(moved(record, ledgers), batches=())


def new_ledgers_not_noted() -> None:
    """163: an import does not note the ledgers that it is about to write."""

    async def forgetful(self: TopicCopies, topic: TopicName, ledger_ids: Sequence[int]) -> None:
        """Note nothing."""

    TopicCopies._note = forgetful  # type: ignore[method-assign]


def documents_copied_before_the_check() -> None:
    """164: a refused import has copied the documents."""
    check = ClusterImport._check

    async def late(self: ClusterImport, topics: Sequence[TopicName]) -> set[TopicName]:
        await self._copy_documents()
        return await check(self, topics)

    ClusterImport._check = late  # type: ignore[method-assign]


def newest_ledger_taken_from_its_record() -> None:
    """165: the ledger that the broker wrote last has the entries of its record, which does not count them yet."""

    async def believing(self: DataDirectory, topic: TopicName) -> TopicRecord:
        stored = await self._logs.records.get(topic.log_name) or TopicRecord()
        return replace(stored, ledgers=tuple(row for row in stored.ledgers if row.entries))

    DataDirectory.record = believing  # type: ignore[method-assign]
