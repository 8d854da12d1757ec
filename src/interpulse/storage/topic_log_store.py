"""The store of all logs, over any journal: which of them are open, and with which ledgers one is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from interpulse.clock import now_ms
from interpulse.storage.api import Change, LedgerRecord, LogListener, LogNotFound, MetadataStore
from interpulse.storage.journals import Journal
from interpulse.storage.tail_cache import TailCache
from interpulse.storage.topic_log import LogConfig, TopicLog
from interpulse.storage.topic_records import LedgerIds, TopicRecord, TopicRecords, with_ledgers
from interpulse.storage.write_meter import WriteMeter, WrittenEntries

__all__ = ["TopicLogStore"]


class TopicLogStore:
    """All logs over one journal. See `interpulse.storage.api.LogStore`."""

    def __init__(
        self,
        metadata: MetadataStore,
        journal: Journal,
        config: LogConfig | None = None,
        now_ms: Callable[[], int] = now_ms,
    ) -> None:
        self.config = config or LogConfig()
        self.journal = journal
        self.now_ms = now_ms
        self.records = TopicRecords(metadata)
        self.ids = LedgerIds(metadata)
        self.cache = TailCache(self.config.cache_bytes_max)
        self._logs: dict[str, TopicLog] = {}
        self._meters: dict[str, WriteMeter] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, name: str, listener: LogListener, *, create: bool) -> TopicLog:
        assert name not in self._logs, f"log {name} is open already"
        record = await self.records.get(name)
        if record is None and not create:
            raise LogNotFound(name)
        if record is not None:
            await self.journal.verify(name, _to_verify(record))
        if record is None or record.terminated is None:
            record = await self._begin_ledger(name, create=create)
        else:
            record = with_ledgers(record, self._measured(record))
        assert name not in self._logs, f"log {name} is open already"
        log = self._logs[name] = TopicLog(name, listener, record, self)
        return log

    async def _begin_ledger(self, name: str, *, create: bool) -> TopicRecord:
        new = LedgerRecord(await self.ids.take(), 0, 0, self.now_ms())

        def step(old: TopicRecord | None) -> TopicRecord:
            if old is None and not create:
                raise LogNotFound(name)  # deleted meanwhile
            return with_ledgers(old, [*self._measured(old), new])

        return await self.records.change(name, step)

    async def exists(self, name: str) -> bool:
        return await self.records.exists(name)

    async def delete(self, *names: str, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        for log in [self._logs[name] for name in names if name in self._logs]:
            log.fence("deleted")
            self.closed(log)
        await self.journal.forget(await self.records.delete(*names, also=also, expect=expect))

    async def close(self) -> None:
        for log in list(self._logs.values()):
            await log.close()
        await self.journal.close()

    def closed(self, log: TopicLog) -> None:
        """Called by a log that is no longer in use."""
        log.forget_tail()
        if self._logs.get(log.name) is log:
            del self._logs[log.name]

    def meter(self, name: str) -> WriteMeter:
        """Where the writes of a log are counted: logs whose names differ in the last part only share one."""
        group = name.rpartition("/")[0]
        meter = self._meters.get(group)
        if meter is None:
            meter = self._meters[group] = WriteMeter()
        return meter

    def written(self) -> dict[str, WrittenEntries]:
        """The durable entries of the last full period, by the names of logs without their last part."""
        self._meters = {group: meter for group, meter in self._meters.items() if not meter.is_idle}
        return {group: meter.last_period for group, meter in self._meters.items()}

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work of a log without a caller; the store keeps it alive."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _measured(self, record: TopicRecord | None) -> list[LedgerRecord]:
        """The ledgers that hold something, with final counts."""
        rows = []
        for row in record.ledgers if record else ():
            entries, size = (row.entries, row.size) if row.entries else self.journal.measure(row.ledger_id)
            if entries:
                rows.append(row._replace(entries=entries, size=size))
        return rows


def _to_verify(record: TopicRecord) -> list[LedgerRecord]:
    """The compacted ledger first, for what comes last is compared most closely."""
    compacted = [] if record.compacted is None else [LedgerRecord(*record.compacted[:4])]
    return [*compacted, *record.ledgers]
