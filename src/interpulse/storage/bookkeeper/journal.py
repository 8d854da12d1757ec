"""`Journal` on BookKeeper: each ledger of a log is a ledger there. A receipt means that the ack quorum has synced it.

Entries that logs append in one turn of the event loop are sent at its end, in one packet each. Groups of one log follow
each other without waiting. A log is informed of its groups in their order, across its ledgers. A log with much in
flight sends no more before bookies have answered, so that pending entries are stored once, and groups become larger.

A ledger that fails takes the groups of its log with it, and fails the log: it must be opened again, which recovers the
ledger. Nothing of a ledger is closed, changed or deleted after it failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.storage.api import Change, FenceCause, LedgerRecord, LogDamaged, LogFenced, NotReadableNow
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.errors import BookKeeperError, EntryDamaged, LedgerFailed, LedgerFenced, NoLedger
from interpulse.storage.bookkeeper.reader import LedgerReader
from interpulse.storage.bookkeeper.records import NO_ENTRY_YET, LogQuorums, custom_metadata, digest_for
from interpulse.storage.bookkeeper.writer import LedgerWriter
from interpulse.storage.logs.journal import (
    JournalClient,
    JournalStatistics,
    LedgerGone,
    LedgerPurpose,
    LedgerUse,
    Run,
    Sealed,
)
from interpulse.storage.logs.tail_cache import within

log = logging.getLogger(__name__)

_ON_ITS_WAY_ENTRIES: Final = 5_000  # of one log in flight
_ON_ITS_WAY_BYTES: Final = 16 << 20
_READERS_MAX: Final = 10_000  # closed ledgers with cached metadata, about a kilobyte each
_DELETED_AT_ONCE: Final = 64
_AGAIN_S: Final = 5.0  # between attempts to delete ledgers


class _Group:
    """The runs that a log passed at one time."""

    __slots__ = ("begun", "entries", "runs", "size")

    def __init__(self, runs: list[Run], begun: float) -> None:
        self.runs = runs
        self.begun = begun
        self.entries = sum(len(run.entries) for run in runs)
        self.size = sum(sum(map(len, run.entries)) for run in runs)


@dataclass(slots=True, eq=False)
class _Sender:
    """A log that writes, and its groups in flight."""

    client: JournalClient
    groups: list[_Group] = field(default_factory=list)  # few; an empty deque takes 700 bytes
    entries: int = 0
    size: int = 0
    waits: bool = False
    """True if it has more to send than may be in flight."""
    failed: bool = False

    @property
    def has_room(self) -> bool:
        return self.entries < _ON_ITS_WAY_ENTRIES and self.size < _ON_ITS_WAY_BYTES


class _OpenLedger:
    """A ledger that accepts entries. See `interpulse.storage.bookkeeper.writer.LedgerListener`."""

    __slots__ = ("journal", "log", "reader", "sender", "writer")

    writer: LedgerWriter
    reader: LedgerReader

    def __init__(self, journal: BookKeeperJournal, log: str) -> None:
        self.journal = journal
        self.log = log
        self.sender: _Sender | None = None

    def on_confirmed(self, last_entry: int) -> None:
        if self.sender is not None:
            self.journal.report(self.sender)

    def on_ledger_failed(self, error: BookKeeperError) -> None:
        if self.sender is not None:
            self.journal.fail(self.sender, self.log, error)


class BookKeeperJournal:
    """The ledgers of all logs of one broker. The client stays open when the journal is closed."""

    def __init__(self, client: BookKeeperClient, quorums: LogQuorums) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = client
        self._quorums = quorums
        self._open: dict[int, _OpenLedger] = {}
        self._readers: OrderedDict[int, LedgerReader] = OrderedDict()  # of closed ledgers
        self._senders: dict[JournalClient, _Sender] = {}  # logs with groups in flight
        self._waiting: list[JournalClient] = []
        self._scheduled = False
        self._undeleted: set[int] = set()
        self._deleting: asyncio.Task[None] | None = None
        self.statistics = JournalStatistics()
        self.counts_may_follow = False

    # ledgers

    async def create(self, log: str, purpose: LedgerPurpose) -> int:
        ledger = _OpenLedger(self, log)
        topic = purpose.use is LedgerUse.TOPIC
        ledger.writer = await self._client.create(
            await self._quorums.of(log) if topic else self._quorums.default,
            custom=custom_metadata(log, purpose),
            digest=digest_for(purpose),
            listener=ledger,
        )
        ledger.reader = self._client.reader_of(ledger.writer)
        self._open[ledger.writer.ledger_id] = ledger
        return ledger.writer.ledger_id

    def record_changes(self, log: str, before: Collection[int], after: Collection[int]) -> list[Change]:
        return []

    async def recover(self, ledger_id: int) -> Sealed | None:
        self.abandon(ledger_id)
        try:
            return _sealed(self._keep(await self._client.recover(ledger_id)))
        except NoLedger:
            return None

    async def seal(self, ledger_id: int) -> Sealed:
        ledger = self._open.get(ledger_id)
        if ledger is None:
            raise LedgerFailed(ledger_id, "it is not open here")
        await ledger.writer.close()
        self._open.pop(ledger_id, None)
        return _sealed(self._keep(self._client.reader_of(ledger.writer)))

    def abandon(self, ledger_id: int) -> None:
        ledger = self._open.pop(ledger_id, None)
        if ledger is not None:
            if ledger.writer.last_confirmed == ledger.writer.last_appended:
                ledger.sender = None  # nothing of its log fails with it
            ledger.writer.abandon()

    # writing

    def enqueue(self, client: JournalClient) -> None:
        self._waiting.append(client)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        clients, self._waiting = self._waiting, []
        for client in clients:
            sender = self._senders.get(client) or _Sender(client)
            if sender.has_room:
                self._send_group(sender)
            else:
                sender.waits = True

    def _send_group(self, sender: _Sender) -> None:
        runs = sender.client.take_pending()
        if not runs:
            self._drop_idle(sender)
            return
        group = _Group(runs, self._loop.time())
        sender.groups.append(group)
        sender.entries += group.entries
        sender.size += group.size
        self._senders[sender.client] = sender
        for run in runs:
            ledger = self._open.get(run.ledger_id)
            if ledger is None:
                self.fail(sender, f"of ledger {run.ledger_id}", LedgerFailed(run.ledger_id, "it is not open here"))
                return
            ledger.sender = sender
            try:
                writer = ledger.writer
                if run.first != writer.last_appended + 1 and writer.failure is None:
                    raise LedgerFailed(run.ledger_id, f"entry {run.first} cannot follow entry {writer.last_appended}")
                writer.append(*run.entries)
            except BookKeeperError as error:
                self.fail(sender, ledger.log, error)
                ledger.writer.abandon()  # entries behind the refused one must not be in it
                return

    def report(self, sender: _Sender) -> None:
        """Report to a log its groups that are durable by now."""
        groups = sender.groups
        while groups and self._is_durable(groups[0]):
            group = groups.pop(0)
            sender.entries -= group.entries
            sender.size -= group.size
            self.statistics.count(group.size, self._loop.time() - group.begun)
            try:
                sender.client.committed(group.runs)
            except Exception as fault:
                log.exception("log failed after its entries were written")
                self.fail(sender, "", PersistenceError(f"broken after a write: {fault!r}"))
        if sender.waits and sender.has_room:
            sender.waits = False
            self.enqueue(sender.client)
        else:
            self._drop_idle(sender)

    def _drop_idle(self, sender: _Sender) -> None:
        if not sender.groups and self._senders.get(sender.client) is sender:
            del self._senders[sender.client]

    def _is_durable(self, group: _Group) -> bool:
        for run in group.runs:
            ledger = self._open.get(run.ledger_id)
            if ledger is None or ledger.writer.last_confirmed < run.first + len(run.entries) - 1:
                return False
        return True

    def fail(self, sender: _Sender, log_name: str, error: PersistenceError) -> None:
        """Fail a log, of which nothing more becomes durable."""
        if sender.failed:
            return
        sender.failed = True
        self.statistics.failed_groups += len(sender.groups)
        sender.groups.clear()
        self._drop_idle(sender)
        fenced = isinstance(error, LedgerFenced)
        sender.client.failed(LogFenced(log_name, str(error), FenceCause.OWNED_ELSEWHERE) if fenced else error)

    # reading

    async def verify(self, name: str, ledgers: Sequence[LedgerRecord]) -> None:
        """Accept everything: bookies check their entries, and every entry is checked when it is read."""

    async def read(self, name: str, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[bytes]:
        try:
            return await self._read(name, ledger_id, first, entries_max, bytes_max)
        except (BookKeeperError, MetadataError) as error:
            if not error.retriable:
                raise
            raise NotReadableNow(f"log {name} cannot be read now: {error}") from error

    async def _read(self, name: str, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[bytes]:
        reader = await self._reader(ledger_id)
        if first > reader.last_confirmed:
            reason = f"the ledger ends with entry {reader.last_confirmed}"
            raise LogDamaged(name, f"entry {ledger_id}:{first}", -1, reason)
        try:
            return within(await reader.read(first, entries_max=entries_max, bytes_max=bytes_max), bytes_max)
        except EntryDamaged as error:
            raise LogDamaged(name, f"entry {ledger_id}:{error.entry_id}", -1, error.reason) from error

    async def _reader(self, ledger_id: int) -> LedgerReader:
        """Return the reader of a ledger. One that is not written here is recovered, after which it never changes."""
        ledger = self._open.get(ledger_id)
        if ledger is not None:
            return ledger.reader
        reader = self._readers.get(ledger_id)
        if reader is not None:
            self._readers.move_to_end(ledger_id)
            return reader
        try:
            return self._keep(await self._client.recover(ledger_id))
        except NoLedger:
            raise LedgerGone(ledger_id) from None

    def _keep(self, reader: LedgerReader) -> LedgerReader:
        if reader.last_confirmed == NO_ENTRY_YET:
            return reader  # no caller reads it
        self._readers[reader.ledger_id] = reader
        while len(self._readers) > _READERS_MAX:
            self._readers.popitem(last=False)
        return reader

    # upkeep

    async def forget(self, ledger_ids: Iterable[int]) -> None:
        """Delete ledgers, repeatedly while ZooKeeper does not answer; until then they take space."""
        gone = list(ledger_ids)
        for ledger_id in gone:
            self.abandon(ledger_id)
            self._readers.pop(ledger_id, None)
        self._undeleted.update(gone)
        await self._delete(gone)
        if self._undeleted and self._deleting is None:
            self._deleting = asyncio.create_task(self._delete_later(), name="ledgers that could not be deleted")

    async def _delete(self, ledger_ids: Sequence[int]) -> None:
        for first in range(0, len(ledger_ids), _DELETED_AT_ONCE):
            await asyncio.gather(*map(self._delete_one, ledger_ids[first : first + _DELETED_AT_ONCE]))

    async def _delete_one(self, ledger_id: int) -> None:
        try:
            await self._client.delete(ledger_id)
        except MetadataError as error:
            log.info("ledger is not deleted yet ledger=%d error=%s", ledger_id, error)
        else:
            self._undeleted.discard(ledger_id)

    async def _delete_later(self) -> None:
        while self._undeleted:
            await asyncio.sleep(_AGAIN_S)
            await self._delete(list(self._undeleted))
        self._deleting = None

    async def close(self) -> None:
        if self._deleting is not None:
            self._deleting.cancel()
            await asyncio.wait([self._deleting])
        self._send()
        writers = [ledger.writer for ledger in self._open.values()]
        await asyncio.gather(*(writer.confirmed(writer.last_appended) for writer in writers), return_exceptions=True)
        for ledger_id in list(self._open):
            self.abandon(ledger_id)
        self._readers.clear()


def _sealed(reader: LedgerReader) -> Sealed:
    return Sealed(reader.last_confirmed + 1, reader.metadata.length)
