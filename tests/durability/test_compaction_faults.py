"""A compacted ledger when the disk or the metadata store fails at any step: the old one is there, or the new one.

The life of a log: it is filled, compacted, filled on, trimmed and compacted again, then comes the next process.
"""

from __future__ import annotations

import errno
import random
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.model.ids import EARLIEST, LATEST
from interpulse.storage.api import Change, LogEntry, MetadataUnavailable
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments.files import Files
from interpulse.storage.segments.journal import SegmentJournal, open_log_store
from tests.durability.scenario import DIRECTORY, SEGMENT_BYTES
from tests.simulation.disk import SimulatedDisk
from tests.support.memory_storage import MemoryMetadataStore
from tests.unit.storage.listeners import Listener

NAME = "t/n/persistent/compacted"
STATES = {
    0: None,
    1: [b"first 1", b"first 3"],
    2: [b"first 3", b"second 2"],
}
"""What each compaction keeps: nothing before the first one."""


class FailingMetadata(MemoryMetadataStore):
    """Fails one commit, before or after it is stored; from then on nothing works: the process is as good as dead."""

    def __init__(self, *, fail_at: int | None = None, stored: bool = False) -> None:
        super().__init__()
        self.commits = 0
        self._fail_at = fail_at
        self._stored = stored

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        number, self.commits = self.commits, self.commits + 1
        failing = self._fail_at is not None and number >= self._fail_at
        if not failing or (self._stored and number == self._fail_at):
            await super().commit(changes, expect)
        if failing:
            raise MetadataUnavailable(f"simulated failure of commit {number}")

    def healed(self) -> FailingMetadata:
        """The same keys, in the hands of the next process."""
        self._fail_at = None
        return self


class Life:
    """Compacts, and remembers which compactions ended well."""

    def __init__(self, files: Files, metadata: FailingMetadata) -> None:
        self.files = files
        self.metadata = metadata
        self.reached = 0
        self.begun = 0

    async def whole(self) -> None:
        try:
            store = await self._open()
        except PersistenceError:
            return
        try:
            await self._live(store)
        except (PersistenceError, MetadataError):
            pass  # what is there is checked by the next process
        finally:
            await store.close()  # no thread of this process works on the files of the next one

    async def _live(self, store: TopicLogStore) -> None:
        listener = Listener()
        log = await store.open(NAME, listener, create=True)
        for turn, words in ((1, b"first"), (2, b"second")):
            position = [log.append(b"%b %d" % (words, number)) for number in range(4)][-1]
            await listener.durable(position)
            self.begun = turn
            await log.compacted.replace(position, self._kept(log, STATES[turn]))
            self.reached = turn
            await log.roll()
            await log.trim(LATEST)

    async def _open(self) -> TopicLogStore:
        return await open_log_store(DIRECTORY, self.metadata, files=self.files, segment_bytes_max=SEGMENT_BYTES)

    async def _kept(self, log: TopicLog, entries: list[bytes] | None) -> AsyncIterator[list[LogEntry]]:
        assert entries is not None
        there = await log.compacted.read(EARLIEST, entries_max=99, bytes_max=10**6)
        there += await log.read(EARLIEST, entries_max=99, bytes_max=10**6)
        for each in there:
            if each.entry in entries:
                yield [each]

    async def check(self, files: Files, context: object) -> None:
        """What the next process finds: a whole state, no older than what was answered, and nothing beside it."""
        self.files, self.metadata = files, self.metadata.healed()
        store = await self._open()
        listener = Listener()
        log = await store.open(NAME, listener, create=True)
        ledger = log.compacted.current
        found = await log.compacted.read(EARLIEST, entries_max=99, bytes_max=10**6)
        possible = [STATES[state] for state in range(self.reached, self.begun + 1)]
        assert (None if ledger is None else [each.entry for each in found]) in possible, context
        assert [each.position for each in found] == sorted(each.position for each in found), context
        if ledger is not None:
            assert ledger.horizon >= max((each.position for each in found), default=EARLIEST), context
        assert isinstance(store.journal, SegmentJournal)
        known = {*(each.ledger_id for each in log.ledgers), *([ledger.ledger_id] if ledger else [])}
        assert set(store.journal._segments.ledger_ids) <= known, (context, "ledgers without a log")
        await self._goes_on(log, listener, context)
        await store.close()

    async def _goes_on(self, log: TopicLog, listener: Listener, context: object) -> None:
        """The next compaction works."""
        position = log.append(b"after")
        await listener.durable(position)
        await log.compacted.replace(position, self._kept(log, [b"after"]))
        assert await log.compacted.last() == LogEntry(position, b"after"), context


async def steps_of_a_life() -> tuple[int, int]:
    disk, metadata = SimulatedDisk(), FailingMetadata()
    life = Life(disk, metadata)
    await life.whole()
    assert life.reached == 2
    await life.check(disk.healthy(), "nothing failed")
    return len(disk.steps), metadata.commits


@pytest.mark.parametrize("error_number", [errno.EIO, errno.ENOSPC], ids=["io-error", "no-space"])
async def test_compaction_when_any_step_of_the_disk_fails_then_a_whole_state_is_found(error_number: int) -> None:
    for number in range((await steps_of_a_life())[0]):
        for for_good in (False, True):
            disk = SimulatedDisk(fail_at=number, error_number=error_number, for_good=for_good)
            life = Life(disk, FailingMetadata())
            await life.whole()
            await life.check(disk.healthy(), (number, disk.steps[min(number, len(disk.steps) - 1)], for_good))


async def test_compaction_when_power_is_lost_at_any_step_then_a_whole_state_is_found() -> None:
    for number in range((await steps_of_a_life())[0]):
        for seed in range(3):
            disk = SimulatedDisk(fail_at=number, for_good=True)
            life = Life(disk, FailingMetadata())
            await life.whole()
            await life.check(disk.after_power_loss(random.Random(seed)), (number, seed))


@pytest.mark.parametrize("stored", [False, True], ids=["before-it-is-stored", "after-it-is-stored"])
async def test_compaction_when_it_ends_at_any_commit_then_a_whole_state_is_found(stored: bool) -> None:
    for number in range((await steps_of_a_life())[1]):
        disk = SimulatedDisk()
        life = Life(disk, FailingMetadata(fail_at=number, stored=stored))
        await life.whole()
        await life.check(disk.healthy(), (number, stored))
