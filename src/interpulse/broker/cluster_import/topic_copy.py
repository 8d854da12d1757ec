"""The copy of one topic: its ledgers, each read back and compared, then its record with all cursors.

Compacted ledgers are copied in Pulsar's form.

The ids of the new ledgers are noted in the metadata before they are written, so that the next import removes what an
interrupted one left.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from interpulse.broker import metadata_paths as keys
from interpulse.broker.cluster_import.source import DataDirectory, entries_of
from interpulse.broker.committer import IN_CLUSTER
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import Change, CompactedLedger, Delete, LedgerRecord, LogEntry, MetadataStore, Put
from interpulse.storage.cursors import COMPACTED_LEDGER, COMPACTION_CURSOR, CursorRecord, RecordedCursors, cursor_key
from interpulse.storage.logs.journal import TOPIC_LEDGER, Journal, LedgerPurpose, LedgerUse, LedgerWriter, Sealed
from interpulse.storage.logs.topic_records import TopicRecord, TopicRecords
from interpulse.storage.managed_ledger.topic_codec import PulsarCompacted

_TOPICS_PER_QUESTION: Final = 200
_COMMIT_BYTES_MAX: Final = 500_000  # ZooKeeper takes 1 MiB
_NONE: Final = CursorRecord()


class CopiedLedger(NamedTuple):
    """A ledger with entries: its source id, its id in the cluster, and the number of its entries."""

    old_id: int
    new_id: int
    entries: int


def moved_end(position: Position, ledgers: Sequence[CopiedLedger]) -> Position:
    """Translate an end position: the same entries are before it or at it.

    ``ledgers`` are all that hold entries, oldest first. A position in another ledger, trimmed or empty, becomes the end
    of the ledger before it, or a position before every entry.
    """
    at = bisect_right(ledgers, position.ledger, key=lambda ledger: ledger.old_id) - 1
    if at < 0:
        return Position(ledgers[0].new_id, -1) if ledgers else EARLIEST
    ledger = ledgers[at]
    last = ledger.entries - 1
    return Position(ledger.new_id, min(position.entry, last) if ledger.old_id == position.ledger else last)


def moved_cursor(record: CursorRecord, ledgers: Sequence[CopiedLedger]) -> CursorRecord:
    """Translate a cursor. Acknowledgements of trimmed entries are left out."""
    there = {ledger.old_id: ledger for ledger in ledgers}
    ranges = [
        (there[ledger].new_id, first, min(last, there[ledger].entries - 1))
        for ledger, first, last in record.ranges
        if ledger in there and first < there[ledger].entries
    ]
    batches = [
        (Position(there[position.ledger].new_id, position.entry), words)
        for position, words in record.batches
        if position.ledger in there and position.entry < there[position.ledger].entries
    ]
    return replace(
        record, mark_delete=moved_end(record.mark_delete, ledgers), ranges=tuple(ranges), batches=tuple(batches)
    )


class CopyDiffers(PersistenceError):
    """The copy differs from the original when it is read back."""

    retriable = False

    def __init__(self, topic: str, ledger_id: int, problem: str) -> None:
        super().__init__(f"the copy of ledger {ledger_id} of {topic} is not what was copied: {problem}")
        self.topic = topic
        self.ledger_id = ledger_id
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.topic, self.ledger_id, self.problem)


class Copied(NamedTuple):
    """The copied content of a topic, equal to the original."""

    ledgers: int
    entries: int
    size: int
    cursors: int


class _Digest:
    def __init__(self) -> None:
        self.entries = 0
        self.size = 0
        self._hash = blake2b(digest_size=16)

    def add(self, entries: Sequence[bytes]) -> None:
        for entry in entries:
            self._hash.update(len(entry).to_bytes(4, "big"))
            self._hash.update(entry)
            self.size += len(entry)
        self.entries += len(entries)

    def difference(self, other: _Digest) -> str:
        """Return the difference from another digest, "" if there is none."""
        if (self.entries, self.size) != (other.entries, other.size):
            return f"{other.entries} entries of {other.size} bytes, not {self.entries} of {self.size}"
        return "" if self._hash.digest() == other._hash.digest() else "the checksums of its entries differ"


class TopicCopies:
    """A copier of topics from a data directory into the stores of a cluster."""

    def __init__(
        self, source: DataDirectory, metadata: MetadataStore, journal: Journal, *, without_compacted: bool = False
    ) -> None:
        """``without_compacted`` leaves compacted ledgers behind."""
        self._without_compacted = without_compacted
        self._form = PulsarCompacted()
        self._source = source
        self._metadata = metadata
        self._journal = journal
        self._records = TopicRecords(metadata, IN_CLUSTER.topic_records)
        self._cursors = RecordedCursors(metadata, IN_CLUSTER.cursors)

    async def there(self, topics: Sequence[TopicName]) -> set[TopicName]:
        """Return the topics that the cluster has, without the remains of an interrupted import."""
        existing: set[TopicName] = set()
        for first in range(0, len(topics), _TOPICS_PER_QUESTION):
            asked = topics[first : first + _TOPICS_PER_QUESTION]
            records = await self._metadata.get_many([keys.topic_record(topic) for topic in asked])
            notes = await self._metadata.get_many([keys.imported_ledgers(topic.log_name) for topic in asked])
            existing |= {
                topic
                for topic in asked
                if keys.topic_record(topic) in records and keys.imported_ledgers(topic.log_name) not in notes
            }
        return existing

    async def looks_copied(self, topic: TopicName) -> bool:
        """Return True if the records say that the cluster has the whole topic and nothing else."""
        there = await self._records.get(topic.log_name)
        assert there is not None
        original = await self._source.record(topic)
        if [row.entries for row in there.ledgers] != [row.entries for row in original.ledgers]:
            return False
        ledgers = _pairs(original.ledgers, there.ledgers)
        if _encoded(replace(there, stored=b"")) != _encoded(_moved_record(original, ledgers, there.ledgers)):
            return False
        wanted = _encoded_cursors(await self._moved_cursors(topic, original, ledgers))
        cursors = await self._cursors_of(topic)
        if (
            self._compacted(original) is not None
            and COMPACTED_LEDGER not in cursors.pop(COMPACTION_CURSOR, _NONE).numbers
        ):
            return False
        return _encoded_cursors(cursors) == wanted

    async def compare(self, topic: TopicName) -> Copied:
        """Read the copy and the original again; raise CopyDiffers."""
        there = await self._records.get(topic.log_name) or TopicRecord()
        original = await self._source.record(topic)
        for old, new in zip(original.ledgers, there.ledgers, strict=True):
            digest = _Digest()
            async for part in self._source.entries(topic, old):
                digest.add(part)
            await self._check(topic, new.ledger_id, await self._journal.recover(new.ledger_id), digest)
        cursors = await self._cursors_of(topic)
        if (compacted := self._compacted(original)) is not None:
            await self._compare_compacted(topic, compacted, cursors[COMPACTION_CURSOR].numbers[COMPACTED_LEDGER])
        return _copied(there.ledgers, len(cursors))

    async def copy(self, topic: TopicName) -> Copied:
        """Copy a topic.

        Raises PersistenceError and MetadataError; the topic is then not in the cluster, and can be copied again.
        """
        await self._remove_leftovers(topic)
        original = await self._source.record(topic)
        compacted = self._compacted(original)
        gone = [] if compacted is None else await self._numbers_for_gone(topic, original, compacted)
        rows: list[LedgerRecord] = []
        for row in original.ledgers:
            rows.append(await self._copy_ledger(topic, row, [row.ledger_id for row in rows]))
        ledgers = _pairs(original.ledgers, rows)
        cursors = await self._moved_cursors(topic, original, ledgers)
        if compacted is not None:
            written = [row.ledger_id for row in rows]
            cursors[COMPACTION_CURSOR] = await self._copy_compacted(topic, compacted, [*gone, *ledgers], written)
        await self._commit(topic, _moved_record(original, ledgers, rows), cursors)
        return _copied(rows, len(cursors))

    async def _copy_ledger(self, topic: TopicName, row: LedgerRecord, before: Sequence[int]) -> LedgerRecord:
        new_id = await self._journal.create(topic.log_name, TOPIC_LEDGER)
        await self._note(topic, [*before, new_id])
        writer, digest = LedgerWriter(self._journal, new_id), _Digest()
        async for part in self._source.entries(topic, row):
            await writer.write(part)
            digest.add(part)
        sealed = await self._journal.seal(new_id)
        await self._check(topic, new_id, sealed, digest)
        return LedgerRecord(new_id, sealed.entries, sealed.size, row.created_ms)

    # ---- The compacted ledger

    def _compacted(self, original: TopicRecord) -> CompactedLedger | None:
        return None if self._without_compacted else original.compacted

    async def _numbers_for_gone(
        self, topic: TopicName, original: TopicRecord, compacted: CompactedLedger
    ) -> list[CopiedLedger]:
        """Return new ids for trimmed ledgers that compacted entries come from, lower than those of the copies.

        Positions keep their order that way.
        """
        there = {row.ledger_id for row in original.ledgers}
        entries: dict[int, int] = {}
        async for part in self._source.compacted_entries(topic, compacted):
            for entry in part:
                if entry.position.ledger not in there:
                    entries[entry.position.ledger] = entry.position.entry + 1
        new_ids = [await self._journal.create(topic.log_name, TOPIC_LEDGER) for _ in entries]
        await self._journal.forget(new_ids)
        return [CopiedLedger(old, new, entries[old]) for old, new in zip(sorted(entries), new_ids, strict=True)]

    async def _copy_compacted(
        self, topic: TopicName, compacted: CompactedLedger, ledgers: Sequence[CopiedLedger], before: Sequence[int]
    ) -> CursorRecord:
        horizon = moved_end(compacted.horizon, ledgers)
        new_id = await self._journal.create(topic.log_name, LedgerPurpose(LedgerUse.COMPACTED, horizon=horizon))
        await self._note(topic, [*before, new_id])
        writer, digest = LedgerWriter(self._journal, new_id), _Digest()
        async for part in self._source.compacted_entries(topic, compacted):
            packed = [self._form.pack(LogEntry(moved_end(entry.position, ledgers), entry.entry)) for entry in part]
            await writer.write(packed)
            digest.add(packed)
        await self._check(topic, new_id, await self._journal.seal(new_id), digest)
        return CursorRecord(horizon, numbers={COMPACTED_LEDGER: new_id})

    async def _compare_compacted(self, topic: TopicName, compacted: CompactedLedger, ledger_id: int) -> None:
        wanted, copied = _Digest(), _Digest()
        async for part in self._source.compacted_entries(topic, compacted):
            wanted.add([entry.entry for entry in part])
        sealed = await self._journal.recover(ledger_id)
        async for stored in entries_of(self._journal, topic, ledger_id, 0 if sealed is None else sealed.entries):
            copied.add([self._form.unpack(raw).entry for raw in stored])
        if problem := wanted.difference(copied):
            raise CopyDiffers(str(topic), ledger_id, problem)

    # ---- What is written, and what is left

    async def _check(self, topic: TopicName, ledger_id: int, sealed: Sealed | None, expected: _Digest) -> None:
        """Read a ledger of the cluster, whose end is ``sealed``; raise CopyDiffers."""
        there = 0 if sealed is None else sealed.entries
        if there != expected.entries:
            raise CopyDiffers(str(topic), ledger_id, f"it has {there} entries, not {expected.entries}")
        actual = _Digest()
        async for part in entries_of(self._journal, topic, ledger_id, expected.entries):
            actual.add(part)
        if problem := expected.difference(actual):
            raise CopyDiffers(str(topic), ledger_id, problem)

    async def _moved_cursors(
        self, topic: TopicName, original: TopicRecord, ledgers: Sequence[CopiedLedger]
    ) -> dict[str, CursorRecord]:
        """Return the translated cursors, without that of a compacted ledger."""
        cursors = await self._source.cursors(topic)
        if original.compacted is not None:
            cursors.pop(COMPACTION_CURSOR, None)
        return {name: moved_cursor(cursor, ledgers) for name, cursor in cursors.items()}

    async def _cursors_of(self, topic: TopicName) -> dict[str, CursorRecord]:
        return await self._cursors.of(topic.log_name).load()

    async def _note(self, topic: TopicName, ledger_ids: Sequence[int]) -> None:
        await self._metadata.commit([Put(keys.imported_ledgers(topic.log_name), json.dumps(ledger_ids).encode())])

    async def _remove_leftovers(self, topic: TopicName) -> None:
        note = keys.imported_ledgers(topic.log_name)
        stored = await self._metadata.get(note)
        if stored is not None and stored.value:
            left = set(json.loads(stored.value)) | set(await self._records.delete(topic.log_name))
            await self._journal.forget(left)
            await self._metadata.commit([Delete(note)])

    async def _commit(self, topic: TopicName, record: TopicRecord, cursors: Mapping[str, CursorRecord]) -> None:
        """Commit the topic in one step, or in several under the note that marks it as incomplete."""
        key, note = keys.topic_record(topic), keys.imported_ledgers(topic.log_name)
        puts = [Put(key, _encoded(record))]
        puts += [Put(cursor_key(topic.log_name, name), value) for name, value in _encoded_cursors(cursors).items()]
        *parts, last = _parts(puts)
        if parts:
            await self._note(topic, [row.ledger_id for row in record.ledgers])
        expect: Mapping[str, int | None] = {key: None}
        for part in parts:
            await self._metadata.commit(part, expect)
            expect = {}
        ending: list[Change] = [Delete(note)] if await self._metadata.get(note) is not None else []
        await self._metadata.commit([*last, *ending], expect)


def _pairs(old: Sequence[LedgerRecord], new: Sequence[LedgerRecord]) -> list[CopiedLedger]:
    return [CopiedLedger(a.ledger_id, b.ledger_id, b.entries) for a, b in zip(old, new, strict=True)]


def _moved_record(original: TopicRecord, ledgers: Sequence[CopiedLedger], rows: Sequence[LedgerRecord]) -> TopicRecord:
    end = None if original.terminated is None else moved_end(original.terminated, ledgers)
    return TopicRecord(tuple(rows), end, original.other)


def _encoded(record: TopicRecord) -> bytes:
    return IN_CLUSTER.topic_records.encode(record)


def _encoded_cursors(cursors: Mapping[str, CursorRecord]) -> dict[str, bytes]:
    return {name: IN_CLUSTER.cursors.encode(name, cursor) for name, cursor in cursors.items()}


def _parts(puts: Sequence[Put]) -> list[list[Put]]:
    """Split a list into parts that fit one commit, at least one."""
    parts: list[list[Put]] = [[]]
    size = 0
    for put in puts:
        length = len(put.key) + len(put.value)
        if parts[-1] and size + length > _COMMIT_BYTES_MAX:
            parts.append([])
            size = 0
        parts[-1].append(put)
        size += length
    return parts


def _copied(rows: Sequence[LedgerRecord], cursors: int) -> Copied:
    return Copied(len(rows), sum(row.entries for row in rows), sum(row.size for row in rows), cursors)
