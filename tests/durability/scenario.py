"""A small life of a log store, and what must be true after any misfortune in it.

Payloads are unique. `Ledgers of truth`: for every log what was appended, in order, and what of it was acknowledged.
After a restart a log must hold every acknowledged entry, once, in the order of the appends; entries that were appended
but not acknowledged may be there as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from interpulse.model.errors import PersistenceError
from interpulse.model.ids import LATEST, Position
from interpulse.storage.api import DataDirectoryUnusable
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments.files import Files
from interpulse.storage.segments.journal import SegmentJournal, open_log_store
from tests.support.memory_storage import MemoryMetadataStore
from tests.unit.storage.listeners import Listener, read_all

DIRECTORY = Path("/data/log")
SEGMENT_BYTES = 700


@dataclass
class Truth:
    """What one log was told and what it promised."""

    appended: list[bytes] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    acknowledged: set[bytes] = field(default_factory=set)

    def check(self, found: list[bytes], context: object) -> None:
        missing = self.acknowledged - set(found)
        assert not missing, (context, "acknowledged entries are gone", sorted(missing))
        order = {payload: number for number, payload in enumerate(self.appended)}
        numbers = [order[payload] for payload in found]
        assert numbers == sorted(set(numbers)), (context, "entries out of order or twice", found)


class Life:
    """Runs a store through its life; a log that fails is opened again, as the broker does."""

    def __init__(self, files: Files, metadata: MemoryMetadataStore | None = None) -> None:
        self.files = files
        self.metadata = metadata or MemoryMetadataStore()
        self.truths: dict[str, Truth] = {}
        self.logs: dict[str, tuple[TopicLog, Listener]] = {}
        self.failures = 0
        self.store: TopicLogStore | None = None

    async def open_store(self) -> TopicLogStore:
        if self.store is None:
            self.store = await open_log_store(
                DIRECTORY, self.metadata, files=self.files, segment_bytes_max=SEGMENT_BYTES
            )
        return self.store

    async def log(self, name: str) -> tuple[TopicLog, Listener]:
        store = await self.open_store()
        if name in self.logs and self.logs[name][1].error is not None:
            await self.logs.pop(name)[0].close()
        if name not in self.logs:
            listener = Listener()
            self.logs[name] = (await store.open(name, listener, create=True), listener)
        return self.logs[name]

    async def publish(self, name: str, count: int, size: int = 20) -> None:
        truth = self.truths.setdefault(name, Truth())
        try:
            log, listener = await self.log(name)
        except (PersistenceError, DataDirectoryUnusable):
            self.failures += 1
            return
        for _ in range(count):
            payload = f"{name}#{len(truth.appended)}".encode().ljust(size, b".")
            position = log.append(payload)
            truth.appended.append(payload)
            truth.positions.append(position)
        try:
            await listener.durable(position)
        except PersistenceError:
            self.failures += 1
        for known, payload in zip(truth.positions, truth.appended, strict=True):
            if known.ledger == listener.last.ledger and known <= listener.last:
                truth.acknowledged.add(payload)

    async def index_written(self) -> None:
        """Wait until the writer's thread has nothing left to do: it writes the index after the receipt.

        Needed before the files are copied or counted.
        """
        if self.store is not None:
            assert isinstance(self.store.journal, SegmentJournal)
            await self.store.journal.unlink([])

    async def roll(self, name: str) -> None:
        log, listener = await self.log(name)
        if listener.error is None:
            await log.roll()

    async def trim(self, name: str) -> None:
        """Drop all but the current ledger."""
        log, listener = await self.log(name)
        if listener.error is not None:
            return
        current = log.ledgers[-1].ledger_id
        truth = self.truths[name]
        kept = [position.ledger >= current for position in truth.positions]
        truth.acknowledged &= {payload for payload, keep in zip(truth.appended, kept, strict=True) if keep}
        await log.trim(LATEST)

    async def delete(self, name: str) -> None:
        store = await self.open_store()
        await store.delete(name)
        self.logs.pop(name, None)
        self.truths.pop(name, None)

    async def close(self) -> None:
        if self.store is not None:
            await self.store.close()
            self.store = None
        self.logs.clear()

    async def whole(self) -> None:
        """Publish, roll, trim, delete, restart, publish."""
        await self.publish("a", 3)
        await self.publish("b", 1)
        for turn in range(4):
            await self.publish("a", 2, size=100)
            await self.publish("c", 1, size=150)
            if turn == 1:
                await self.attempt(self.roll, "a")
        await self.attempt(self.trim, "a")
        await self.attempt(self.delete, "c")
        await self.publish("b", 2)
        await self.close()
        await self.publish("b", 2, size=300)
        await self.publish("a", 5)
        await self.close()

    async def attempt(self, step: object, name: str) -> None:
        try:
            await step(name)  # type: ignore[operator]
        except PersistenceError:
            self.failures += 1

    async def check(self, files: Files, context: object) -> None:
        """What the next process finds."""
        store = await open_log_store(DIRECTORY, self.metadata, files=files, segment_bytes_max=SEGMENT_BYTES)
        for name, truth in self.truths.items():
            listener = Listener()
            log = await store.open(name, listener, create=True)
            truth.check(await read_all(log), (context, name))
            payload = b"after"
            await listener.durable(log.append(payload))
            assert (await read_all(log))[-1] == payload, context
        await store.close()
