"""The log store over segments on disk: opened, and freed of ledgers without a log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from interpulse.storage.api import (
    DataDirectoryUnusable,
    MetadataStore,
)
from interpulse.storage.logs.topic_log import LogConfig
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments.files import DiskFiles, Files
from interpulse.storage.segments.journal import SegmentJournal
from interpulse.storage.segments.ledger_owners import LedgerIds, living_ledgers
from interpulse.storage.segments.reader import SegmentReader
from interpulse.storage.segments.recovery import recover_segments
from interpulse.storage.segments.segment_set import Segment, SegmentSet

_log = logging.getLogger(__name__)


async def open_log_store(
    directory: Path,
    metadata: MetadataStore,
    *,
    config: LogConfig | None = None,
    segment_bytes_max: int = 64 * 1024 * 1024,
    files: Files | None = None,
    on_full: Callable[[str], None] = lambda problem: None,
    on_write: Callable[[int], None] = lambda size: None,
) -> TopicLogStore:
    """Open the logs in ``directory`` (created if absent), whose records are in ``metadata``.

    ``on_full`` is called with the problem when entries could not be written for lack of space, ``on_write`` with the
    bytes of every group of entries that is about to be written. Raise `DataDirectoryUnusable` if the directory cannot
    be used or belongs to another metadata store.
    """
    files = files or DiskFiles()
    ids = LedgerIds(metadata)
    reader = SegmentReader(files)
    try:
        recovered = await reader.run(lambda: recover_segments(directory, files))
        segments = SegmentSet(recovered)
        dead = await _take_dead_segments(directory, metadata, ids, segments)
    except OSError as error:
        await reader.close()
        raise DataDirectoryUnusable(str(directory), error.strerror or str(error)) from error
    except BaseException:
        await reader.close()
        raise
    journal = SegmentJournal(directory, files, reader, segments, ids, segment_bytes_max, on_full, on_write)
    await journal.unlink(dead)
    return TopicLogStore(metadata, journal, config)


async def _take_dead_segments(
    directory: Path, metadata: MetadataStore, ids: LedgerIds, segments: SegmentSet
) -> list[Segment]:
    """Drop the ledgers without a log, and return the segments that held nothing else."""
    unreserved = await ids.first_unreserved()
    strangers = [ledger for ledger in segments.ledger_ids if ledger >= unreserved]
    if strangers:
        reason = (
            f"ledger {strangers[0]} does not belong to this metadata store; was metadata.sqlite removed or replaced?"
        )
        raise DataDirectoryUnusable(str(directory), reason)
    owners = await living_ledgers(metadata, segments.ledger_ids)
    for ledger_id, name in owners.items():
        for segment, rows in segments.parts(ledger_id):
            if rows.damaged_at is not None:
                _log.error("log is damaged log=%s segment=%s offset=%d", name, segment.path, rows.damaged_at)
    dead = segments.forget([ledger for ledger in segments.ledger_ids if ledger not in owners])
    return dead + segments.remove_empty()
