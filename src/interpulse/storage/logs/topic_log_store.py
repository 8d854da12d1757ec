"""The store of all logs, over any journal: the open logs, and the ledgers with which a log is opened.

Model: docs/models/bundle_takeover.tla.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from interpulse.clock import now_ms
from interpulse.storage.api import Change, FenceCause, LedgerRecord, LogFenced, LogListener, LogNotFound, MetadataStore
from interpulse.storage.logs.compacted import POSITIONS_IN_FRONT, CompactedForm
from interpulse.storage.logs.journal import TOPIC_LEDGER, Journal
from interpulse.storage.logs.tail_cache import TailCache
from interpulse.storage.logs.topic_log import LogConfig, TopicLog
from interpulse.storage.logs.topic_records import (
    JSON_RECORDS,
    TopicRecord,
    TopicRecordCodec,
    TopicRecords,
    check_newest,
    with_ledgers,
)
from interpulse.storage.meters import WriteMeter


class TopicLogStore:
    """All logs over one journal. See `interpulse.storage.api.LogStore`."""

    def __init__(
        self,
        metadata: MetadataStore,
        journal: Journal,
        config: LogConfig | None = None,
        now_ms: Callable[[], int] = now_ms,
        codec: TopicRecordCodec = JSON_RECORDS,
        compacted_form: CompactedForm = POSITIONS_IN_FRONT,
    ) -> None:
        self.config = config or LogConfig()
        self.journal = journal
        self.now_ms = now_ms
        self.compacted_form = compacted_form
        self.records = TopicRecords(metadata, codec, journal.record_changes)
        self.cache = TailCache(self.config.cache_bytes_max)
        self.meter = WriteMeter()
        self._logs: dict[str, TopicLog] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, name: str, listener: LogListener, *, create: bool) -> TopicLog:
        assert name not in self._logs, f"log {name} is open already"
        stored = await self.records.get(name)
        if stored is None and not create:
            raise LogNotFound(name)
        record = stored or TopicRecord()
        compacted = [] if record.compacted is None else [LedgerRecord(*record.compacted[:4])]
        await self.journal.verify(name, [*compacted, *record.ledgers])  # the last ones are verified most closely
        ledgers, empty = await self._recovered(record)
        newest = record.newest
        if record.terminated is None:
            record = await self._begin_ledger(name, newest, ledgers, create=create)
            newest = record.newest
            await self.journal.forget(empty)
        else:
            record = with_ledgers(record, ledgers)
        assert name not in self._logs, f"log {name} is open already"
        log = self._logs[name] = TopicLog(name, listener, record, self, newest)
        return log

    async def _recovered(self, record: TopicRecord) -> tuple[list[LedgerRecord], list[int]]:
        """Return the ledgers with entries, with final counts, and the ids of the existing empty ledgers.

        A ledger without a count was being written, and so may the last one have been: their writer is stopped.
        """
        ledgers, empty = [], []
        for row in record.ledgers:
            if row.entries and row.ledger_id != record.newest:
                ledgers.append(row)
                continue
            sealed = await self.journal.recover(row.ledger_id)
            if sealed is not None and sealed.entries:
                ledgers.append(row._replace(entries=sealed.entries, size=sealed.size))
            elif sealed is not None:
                empty.append(row.ledger_id)
        return ledgers, empty

    async def _begin_ledger(
        self, name: str, newest: int | None, ledgers: Sequence[LedgerRecord], *, create: bool
    ) -> TopicRecord:
        """Add a ledger to the record and return it. Raise `LogFenced` if another process did so since it was read."""
        new = LedgerRecord(await self.journal.create(name, TOPIC_LEDGER), 0, 0, self.now_ms())

        def step(old: TopicRecord | None) -> TopicRecord:
            if old is None:
                if not create:
                    raise LogNotFound(name)  # deleted meanwhile
                return TopicRecord((new,))
            check_newest(name, old, (newest, new.ledger_id))
            return with_ledgers(old, [*ledgers, new])

        try:
            return await self.records.change(name, step)
        except (LogFenced, LogNotFound):
            await self.journal.forget([new.ledger_id])
            raise
        except BaseException:
            self.journal.abandon(new.ledger_id)  # it may be in the record
            raise

    @property
    def open_count(self) -> int:
        """The number of open logs."""
        return len(self._logs)

    async def exists(self, name: str) -> bool:
        return await self.records.exists(name)

    async def delete(self, *names: str, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        for log in [self._logs[name] for name in names if name in self._logs]:
            log.fence("deleted", FenceCause.DELETED)
            self.closed(log)
        await self.journal.forget(await self.records.delete(*names, also=also, expect=expect))

    async def close(self) -> None:
        await asyncio.gather(*(log.close() for log in list(self._logs.values())))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.journal.close()

    def closed(self, log: TopicLog) -> None:
        """Remove a log that is no longer in use."""
        log.let_go()
        if self._logs.get(log.name) is log:
            del self._logs[log.name]

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work of a log without a caller. The store keeps it alive, and cancels it when the store is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
