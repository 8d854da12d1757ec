"""A ledger that is being written: entries are distributed over bookies, and acknowledged in order.

* An entry reported by `LedgerListener.on_confirmed`, and all before it, are synced by as many bookies as the ack quorum
  demands.
* A bookie that fails is replaced by another, from the first unacknowledged entry on. Without another the ledger goes on
  as long as each entry can have its ack quorum.
* A slow bookie is awaited, but only with bounded memory.
* After a failure nothing is acknowledged any more, and the ledger is never touched again: it must be recovered.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, count
from typing import Final, Protocol

from interpulse.storage.bookkeeper.bookies import Bookies
from interpulse.storage.bookkeeper.errors import (
    BookieAway,
    BookKeeperError,
    Code,
    EntryTooLarge,
    LedgerChanged,
    LedgerFailed,
    LedgerFenced,
    NoLedger,
    meaning,
)
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore, StoredLedger
from interpulse.storage.bookkeeper.packets import digest_of
from interpulse.storage.bookkeeper.pending import PendingEntries
from interpulse.storage.bookkeeper.protocol import FRAME_OVERHEAD, add_frame, add_frames
from interpulse.storage.bookkeeper.records import LedgerMetadata, LedgerState
from interpulse.storage.bookkeeper.replica import Replica, ReplicaConfig
from interpulse.storage.zookeeper.errors import NotConnected, Refused, ZooKeeperError

log = logging.getLogger(__name__)

_TURNS: Final = count()  # orders the waiters for the same entry
_BEHIND_AT_ONCE: Final = 4  # times the limit: a bookie so far behind gets no time to catch up


@dataclass(frozen=True, slots=True)
class WriterConfig:
    """Limits and time-outs of a writer."""

    frame_bytes_max: int = 5_242_880  # the default of bookies' nettyMaxFrameSizeBytes
    behind_entries: int = 5_000  # the limit for a bookie that lags behind the acknowledgements
    behind_bytes: int = 32 << 20
    behind_s: float = 5.0
    retry_s: float = 5.0  # the interval of attempts to replace a failed bookie
    stall_s: float = 30.0  # the longest time without an acknowledgement before the ledger fails
    replica: ReplicaConfig = field(default_factory=ReplicaConfig)

    @property
    def entry_bytes_max(self) -> int:
        """The largest entry that bookies accept."""
        return self.frame_bytes_max - FRAME_OVERHEAD


class LedgerListener(Protocol):
    """The recipient of a ledger's outcome, called in the event loop. Must not raise."""

    def on_confirmed(self, last_entry: int) -> None:
        """Report that this entry and all before it are durable."""

    def on_ledger_failed(self, error: BookKeeperError) -> None:
        """Report once that nothing more is acknowledged."""


class LedgerWriter:
    """The only writer of one ledger, created by `BookKeeperClient.create`."""

    __slots__ = (  # each loaded topic has one
        "_behind_since", "_bookies", "_changing", "_closing", "_config", "_confirming", "_digest", "_failed_slots",
        "_held", "_listener", "_loop", "_metadata_turn", "_pending", "_replicas", "_store", "_version", "_waiters",
        "failure", "ledger_id", "metadata",
    )  # fmt: skip

    def __init__(
        self,
        ledger_id: int,
        stored: StoredLedger,
        store: LedgerMetadataStore,
        bookies: Bookies,
        config: WriterConfig,
        listener: LedgerListener | None = None,
    ) -> None:
        self.ledger_id = ledger_id
        self.metadata, self._version = stored
        """The ledger's metadata in ZooKeeper that this writer last read or wrote."""
        self._store = store
        self._bookies = bookies
        self._config = config
        self._listener = listener
        self._digest = digest_of(self.metadata.digest, self.metadata.password)
        self._loop = asyncio.get_running_loop()
        self._pending = PendingEntries(self.metadata.quorum)
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []  # a heap by entry
        self._failed_slots: dict[int, float] = {}  # and the time of the failure
        self._behind_since: dict[int, float] = {}
        self._changing: asyncio.Task[None] | None = None
        self._held = False  # an ensemble change is being written: nothing is acknowledged
        self._metadata_turn = asyncio.Lock()
        self._confirming = False
        self._closing = False
        self.failure: BookKeeperError | None = None
        """The error after which nothing is acknowledged."""
        self._replicas = [
            self._replica(position, bookie_id) for position, bookie_id in enumerate(self.metadata.last_segment.ensemble)
        ]

    @property
    def last_confirmed(self) -> int:
        """The last acknowledged entry, -1 if there is none."""
        return self._pending.confirmed

    @property
    def last_appended(self) -> int:
        """The last entry, acknowledged or not, -1 if there is none."""
        return self._pending.last

    def append(self, *payloads: bytes) -> int:
        """Send entries and return the number of the last. The listener hears when they are acknowledged.

        Raise `EntryTooLarge`, or the error that ended the ledger: then none of them is sent.
        """
        if self.failure is not None:
            raise self.failure
        if self._closing:
            raise LedgerFailed(self.ledger_id, "it is being closed")
        largest, size_max = max(map(len, payloads), default=0), self._config.entry_bytes_max
        if largest > size_max:
            raise EntryTooLarge(largest, size_max)
        if len(payloads) == 1:
            return self._append_one(payloads[0])
        pending, digest = self._pending, self._digest
        lengths = list(accumulate(map(len, payloads), initial=pending.length))[1:]
        fronts = digest.fronts(self.ledger_id, pending.last + 1, pending.confirmed, lengths, payloads)
        frames = add_frames(digest.master_key, fronts, payloads, digest.front_size)
        entry_ids = pending.append(frames, lengths)
        for replica in self._replicas:
            replica.send(entry_ids, frames)
        return pending.last

    def _append_one(self, payload: bytes) -> int:
        """Send one entry without the overhead that pays off only for a run."""
        pending, digest = self._pending, self._digest
        length = pending.length + len(payload)
        packet = digest.seal(self.ledger_id, pending.last + 1, pending.confirmed, length, payload)
        frames = (add_frame(digest.master_key, packet),)
        entry_ids = pending.append(frames, (length,))
        for replica in self._replicas:
            replica.send(entry_ids, frames)
        return pending.last

    async def add(self, payload: bytes) -> int:
        """Send one entry, wait until it is acknowledged, and return its number."""
        entry_id = self.append(payload)
        await self.confirmed(entry_id)
        return entry_id

    async def confirmed(self, entry_id: int) -> None:
        """Wait until an entry is acknowledged. Raise the error that ended the ledger."""
        if entry_id <= self.last_confirmed:
            return
        if self.failure is not None:
            raise self.failure
        waiter: asyncio.Future[None] = self._loop.create_future()
        heappush(self._waiters, (entry_id, next(_TURNS), waiter))
        await waiter

    async def close(self) -> LedgerMetadata:
        """Wait for all appended entries, and close the ledger for good.

        Raise the error that ends the ledger, or `ZooKeeperError` if ZooKeeper does not answer: then the caller may try
        again.
        """
        self._closing = True
        await self.confirmed(self.last_appended)
        async with self._metadata_turn:
            if self.failure is not None:
                raise self.failure
            if not self.metadata.closed:
                await self._write_end()
        self._stop()
        self._listener = None
        return self.metadata

    def abandon(self) -> None:
        """Stop using the ledger, as after a failure. Unacknowledged entries may or may not be in it."""
        self._fail(LedgerFailed(self.ledger_id, "it was given up"), wanted=True)

    async def _write_end(self) -> None:
        closed = self.metadata.closed_at(self.last_confirmed, self._pending.confirmed_length)
        try:
            self._version = await self._store.write(self.ledger_id, closed, self._version)
        except LedgerChanged:
            stored = (await self._store.read(self.ledger_id)).ledger
            if not (stored.closed and (stored.last_entry, stored.length) == (closed.last_entry, closed.length)):
                fenced = LedgerFenced(self.ledger_id, "another process has recovered it")
                self._fail(fenced)
                raise fenced from None
        except NoLedger as error:
            self._fail(error)
            raise
        self.metadata = closed

    def _replica(self, position: int, bookie_id: str) -> Replica:
        return Replica(bookie_id, position, self, self._pending, self._bookies, self._config.replica)

    # --- reports of replicas

    def on_stored(self) -> None:
        """Confirm entries once in a turn of the event loop, however many answers bookies send in it."""
        if not self._confirming:
            self._confirming = True
            self._loop.call_soon(self._confirm)

    def on_failed(self, slot: int, reason: str) -> None:
        bookie_id = self._replicas[slot].bookie_id
        log.warning("bookie failed ledger=%d bookie=%s problem=%s", self.ledger_id, bookie_id, reason)
        self._bookies.avoid(bookie_id)
        self._behind_since.pop(slot, None)
        self._pending.give_up(slot)
        self._failed_slots[slot] = self._loop.time()
        if self._changing is None and self.failure is None:
            self._changing = asyncio.create_task(self._change(), name=f"ensemble of ledger {self.ledger_id}")

    def on_refused(self, code: int) -> None:
        if code == Code.FENCED:
            self._fail(LedgerFenced(self.ledger_id, "another process recovers it"))
        else:
            self._fail(LedgerFailed(self.ledger_id, f"a bookie refused its entries: {meaning(code)}"))

    # --- acknowledging

    def _confirm(self) -> None:
        self._confirming = False
        if self._held or self.failure is not None or not self._pending.confirm():
            return
        last = self.last_confirmed
        while self._waiters and self._waiters[0][0] <= last:
            *_, waiter = heappop(self._waiters)
            if not waiter.done():
                waiter.set_result(None)
        self._look_for_slow()
        if self._listener is not None:
            self._listener.on_confirmed(last)

    def _look_for_slow(self) -> None:
        """Give up bookies that are too far behind the acknowledgements: memory is bounded by the remaining ones."""
        config = self._config
        if (
            not self._behind_since
            and len(self._pending) <= config.behind_entries
            and self._pending.held_bytes <= config.behind_bytes
        ):
            return
        for position, (entries, size) in enumerate(map(self._pending.lag, range(len(self._replicas)))):
            times = max(entries / config.behind_entries, size / config.behind_bytes)
            if times <= 1:
                self._behind_since.pop(position, None)
                continue
            since = self._behind_since.setdefault(position, self._loop.time())
            if times > _BEHIND_AT_ONCE or self._loop.time() - since > config.behind_s:
                self._replicas[position].stop()
                self.on_failed(position, f"it is {entries} entries and {size} bytes behind")

    async def _change(self) -> None:
        """Replace failed bookies, and look for replacements again while there are none."""
        stalled_since = self._loop.time()
        try:
            while self._failed_slots and self.failure is None:
                problem = await self._replace_failed()
                if self._pending.possible:
                    stalled_since = self._loop.time()
                elif self._loop.time() - stalled_since > self._config.stall_s:
                    self._fail(LedgerFailed(self.ledger_id, f"entries cannot have their ack quorum: {problem}"))
                if problem:
                    await asyncio.sleep(self._config.retry_s)
        except BookKeeperError as error:
            self._fail(error)
        except Exception as error:
            log.exception("ensemble change failed ledger=%d", self.ledger_id)
            self._fail(LedgerFailed(self.ledger_id, f"its ensemble could not be changed: {error!r}"))
        finally:
            self._changing = None

    async def _replace_failed(self) -> str:
        """Return why a bookie could not be replaced, empty if all were."""
        living = [
            replica.bookie_id for position, replica in enumerate(self._replicas) if position not in self._failed_slots
        ]
        try:
            writable = await self._bookies.writable(without=living)
            own = {replica.bookie_id for replica in self._replicas}
            spares = [bookie for bookie in writable if bookie not in own]
            chosen = dict(zip(sorted(self._failed_slots), spares, strict=False))
            if chosen:
                await self._write_change(chosen)
            for position in [slot for slot in self._failed_slots if slot not in chosen]:
                await self._revive(position, writable)
        except ZooKeeperError as error:
            return str(error)
        missing = [self._replicas[slot].bookie_id for slot in self._failed_slots if slot not in chosen]
        return f"no bookie can replace {', '.join(missing)}" if missing else ""

    async def _write_change(self, chosen: dict[int, str]) -> None:
        async with self._metadata_turn:
            if self.metadata.state is not LedgerState.OPEN or self.failure is not None:
                return
            self._held = True
            try:
                await self._write_ensemble(chosen)
            finally:
                self._held = False
        self._confirm()

    async def _write_ensemble(self, chosen: dict[int, str]) -> None:
        ensemble = list(self.metadata.last_segment.ensemble)
        for position, bookie_id in chosen.items():
            ensemble[position] = bookie_id
        changed = self.metadata.with_ensemble(self.last_confirmed + 1, tuple(ensemble))
        try:
            self._version = await self._store.write(self.ledger_id, changed, self._version)
        except LedgerChanged:
            raise LedgerFenced(self.ledger_id, "another process has changed its metadata") from None
        except (NotConnected, Refused):
            raise  # it was not applied
        except ZooKeeperError as error:
            raise LedgerFailed(self.ledger_id, f"its bookies are unknown: {error}") from error
        self.metadata = changed
        for position, bookie_id in chosen.items():
            former = self._replicas[position].bookie_id
            log.info("bookie replaced ledger=%d bookie=%s by=%s", self.ledger_id, former, bookie_id)
            self._failed_slots.pop(position, None)
            self._pending.replace(position)
            self._replicas[position] = self._replica(position, bookie_id)
            self._replicas[position].send_unanswered()

    async def _revive(self, position: int, writable: list[str]) -> None:
        """Try the failed bookie again, which may have returned, because there is no other."""
        bookie_id = self._replicas[position].bookie_id
        failed_at = self._failed_slots[position]
        if bookie_id not in writable or self._loop.time() < failed_at + self._config.retry_s:
            return
        try:
            await self._bookies.connect(bookie_id)
        except BookieAway:
            return
        if self.failure is None and position in self._failed_slots:
            log.info("bookie available again ledger=%d bookie=%s", self.ledger_id, bookie_id)
            del self._failed_slots[position]
            self._pending.revive(position)
            self._replicas[position] = self._replica(position, bookie_id)
            self._replicas[position].send_unanswered()

    def _fail(self, error: BookKeeperError, *, wanted: bool = False) -> None:
        if self.failure is not None or self.metadata.closed:
            return
        self.failure = error
        if not wanted:
            log.warning("ledger failed ledger=%d confirmed=%d problem=%s", self.ledger_id, self.last_confirmed, error)
        self._stop()
        for *_, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self._waiters.clear()
        if self._listener is not None:
            self._listener.on_ledger_failed(error)
            self._listener = None

    def _stop(self) -> None:
        """Stop writing, and drop references to the writer, so that both are freed immediately."""
        for replica in self._replicas:
            replica.stop()
        self._replicas = []
        if self._changing is not None and self._changing is not asyncio.current_task():
            self._changing.cancel()
