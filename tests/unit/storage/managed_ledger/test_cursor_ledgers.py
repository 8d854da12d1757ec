"""Cursors with ledgers: where their state is in which moment, and what becomes of it after every kind of end."""

from __future__ import annotations

from typing import Any, cast

import pytest

from interpulse.model.ids import Position
from interpulse.storage.api import CommitConflict, FenceCause, LogFenced, MetadataUnavailable, Put
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.errors import LedgerFailed, RecoveryStopped
from interpulse.storage.bookkeeper.records import LogQuorums, Quorum
from interpulse.storage.cursors import (
    COMPACTED_LEDGER,
    COMPACTION_CURSOR,
    DEDUPLICATION_CURSOR,
    CursorRecord,
)
from interpulse.storage.managed_ledger.cursor_codec import IN_RECORD, decode_record, encode_record
from interpulse.storage.managed_ledger.cursor_ledgers import LedgerCursors
from tests.support.cursor_ledgers import Ledgers
from tests.support.memory_storage import MemoryMetadataStore

LOG = "t/n/persistent/x"
ABOVE = f"/managed-ledgers/{LOG}"


class CursorsBench:
    def __init__(self) -> None:
        self.metadata = MemoryMetadataStore()
        self.ledgers = Ledgers()
        self.now_ms = 1000

    def open(self, *, guarded: bool = False) -> Any:
        """The cursors, as a broker sees them that opens the topic; ``guarded``: and whose commits prove that it owns
        the topic."""
        quorum, is_guarded = Quorum(3, 3, 2), lambda log: guarded and log == LOG
        ledgers = cast(BookKeeperClient, self.ledgers)
        return LedgerCursors(self.metadata, ledgers, LogQuorums(quorum), lambda: self.now_ms, is_guarded).of(LOG)

    async def record(self, name: str = "s") -> tuple[CursorRecord, int]:
        stored = await self.metadata.get(f"{ABOVE}/{name}")
        assert stored is not None
        found = decode_record(stored.value)
        return found.state, found.ledger_id


@pytest.fixture
def bench() -> CursorsBench:
    return CursorsBench()


def at(entry: int, **more: Any) -> CursorRecord:
    return CursorRecord(Position(7, entry), **more)


async def test_cursor_when_flushed_then_goes_into_its_ledger_and_the_record_names_it(bench: CursorsBench) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0, properties={"a": "b"}))
    assert await bench.record() == (at(0, properties={"a": "b"}), IN_RECORD)
    assert bench.ledgers.there == {}
    await cursors.flush({"s": at(1, properties={"a": "b"}, ranges=((7, 3, 4),))})
    (ledger,) = bench.ledgers.there.values()
    assert await bench.record() == (at(1, properties={"a": "b"}), ledger.ledger_id)
    assert ledger.custom == {
        "component": b"managed-ledger",
        "pulsar/managed-ledger": LOG.encode(),
        "pulsar/cursor": b"s",
        "application": b"pulsar",
    }
    stored = await bench.metadata.get(f"{ABOVE}/s")
    await cursors.flush({"s": at(2)})
    assert len(ledger.entries) == 2
    assert await bench.metadata.get(f"{ABOVE}/s") == stored


async def test_topic_when_its_broker_is_killed_then_its_cursors_are_as_flushed_last(bench: CursorsBench) -> None:
    cursors = bench.open()
    for name in ("s", "t"):
        await cursors.put(name, at(0, properties={"of": name}))
    state = at(5, properties={"of": "s"}, ranges=((7, 8, 9),), batches=((Position(7, 7), (5,)),))
    await cursors.flush({"s": at(4, properties={"of": "s"})})
    await cursors.flush({"s": state})
    found = await bench.open().load()
    assert found == {"s": state, "t": at(0, properties={"of": "t"})}
    assert await bench.record("s") == (state, IN_RECORD)
    assert bench.ledgers.there == {}


async def test_topic_when_closed_then_records_hold_the_states_and_ledgers_are_gone(bench: CursorsBench) -> None:
    cursors = bench.open()
    for name in ("s", "t", "u"):
        await cursors.put(name, at(0))
    await cursors.flush({"s": at(1), "t": at(2)})
    await cursors.flush({"s": at(3), "u": at(4)}, last=True)
    assert [await bench.record(name) for name in ("s", "t", "u")] == [(at(each), IN_RECORD) for each in (3, 2, 4)]
    assert bench.ledgers.there == {}


async def test_earlier_owner_when_the_topic_was_taken_over_then_changes_nothing(bench: CursorsBench) -> None:
    zombie = bench.open()
    for name in ("s", "t"):
        await zombie.put(name, at(0))
    await zombie.flush({"s": at(1)})
    heir = bench.open()
    assert await heir.load() == {"s": at(1), "t": at(0)}
    for name in ("s", "t"):
        with pytest.raises(LogFenced, match="another broker"):
            await zombie.flush({name: at(9)})
        with pytest.raises(LogFenced, match="another broker"):
            await zombie.flush({name: at(9)}, last=True)
    with pytest.raises(LogFenced):
        await zombie.delete("s")
    await heir.flush({"s": at(2)}, last=True)
    assert await bench.record("s") == (at(2), IN_RECORD)
    assert await bench.record("t") == (at(0), IN_RECORD)


async def test_next_owner_when_the_earlier_one_closes_the_topic_then_has_its_state(
    bench: CursorsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = bench.open()
    await zombie.put("s", at(0))
    commit, closed = bench.metadata.commit, False

    async def commit_behind_the_zombie(changes: Any, expect: Any = {}) -> None:  # noqa: B006
        nonlocal closed
        if not closed:
            closed = True
            await zombie.flush({"s": at(5)}, last=True)
        await commit(changes, expect)

    monkeypatch.setattr(bench.metadata, "commit", commit_behind_the_zombie)
    assert await bench.open().load() == {"s": at(5)}
    with pytest.raises(LogFenced) as caught:
        await zombie.flush({"s": at(9)}, last=True)
    assert caught.value.cause is FenceCause.OWNED_ELSEWHERE


@pytest.mark.parametrize("left", ["nothing", "an empty ledger"])
async def test_ledger_when_empty_then_the_record_counts(bench: CursorsBench, left: str) -> None:
    ledger = await bench.ledgers.create(Quorum(1, 1, 1))
    if left == "nothing":
        await bench.ledgers.delete(ledger.ledger_id)
    record = encode_record("s", at(6), ledger_id=ledger.ledger_id)
    await bench.metadata.commit([Put(f"{ABOVE}/s", record)])
    assert await bench.open().load() == {"s": at(6)}
    assert await bench.record() == (at(6), IN_RECORD)


async def test_topic_when_a_cursor_cannot_be_recovered_then_is_not_loaded_and_nothing_changes(
    bench: CursorsBench,
) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0))
    await cursors.flush({"s": at(1)})
    before = await bench.record()
    bench.ledgers.failure = RecoveryStopped(1, "too few bookies")
    with pytest.raises(RecoveryStopped):
        await bench.open().load()
    assert await bench.record() == before
    bench.ledgers.failure = None
    assert await bench.open().load() == {"s": at(1)}


@pytest.mark.parametrize("value", [b"", b"rubbish"])
async def test_record_that_cannot_be_understood_is_refused_with_its_name(bench: CursorsBench, value: bytes) -> None:
    await bench.metadata.commit([Put(f"{ABOVE}/my+sub", value)])
    with pytest.raises(MetadataUnavailable, match="the cursor my sub of t/n/persistent/x cannot be understood"):
        await bench.open().load()


async def test_flush_when_its_ledger_fails_then_goes_into_the_record(bench: CursorsBench) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0))
    await cursors.flush({"s": at(1)})
    (ledger,) = bench.ledgers.there.values()
    ledger.failure = LedgerFailed(ledger.ledger_id, "no bookies")
    await cursors.flush({"s": at(2)})
    assert await bench.record() == (at(2), IN_RECORD)
    assert ledger.abandoned
    await cursors.flush({"s": at(3)})
    assert await bench.open().load() == {"s": at(3)}


async def test_flush_when_no_ledger_can_be_created_then_goes_into_the_record(bench: CursorsBench) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0))
    bench.ledgers.failure = LedgerFailed(0, "no bookies")
    await cursors.flush({"s": at(2)})
    assert await bench.record() == (at(2), IN_RECORD)


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("applied", [True, False])
async def test_flush_when_the_record_may_name_the_new_ledger_then_it_stays(
    bench: CursorsBench, monkeypatch: pytest.MonkeyPatch, applied: bool, killed: bool
) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0))
    commit = bench.metadata.commit

    async def answer_lost(changes: Any, expect: Any = {}) -> None:  # noqa: B006
        if applied:
            await commit(changes, expect)
        raise MetadataUnavailable("no answer")

    monkeypatch.setattr(bench.metadata, "commit", answer_lost)
    with pytest.raises(MetadataUnavailable):
        await cursors.flush({"s": at(1, ranges=((7, 3, 9),))})
    monkeypatch.setattr(bench.metadata, "commit", commit)
    (ledger,) = bench.ledgers.there.values()
    assert ledger.abandoned
    if killed:
        assert await bench.open().load() == {"s": at(1, ranges=((7, 3, 9),)) if applied else at(0)}
        with pytest.raises(LogFenced, match="another broker"):
            await cursors.flush({"s": at(2)})
        return
    await cursors.flush({"s": at(2, ranges=((7, 4, 9),))})
    (other,) = bench.ledgers.there.values()
    assert await bench.record() == (at(2), other.ledger_id)
    assert other is not ledger
    assert await bench.open().load() == {"s": at(2, ranges=((7, 4, 9),))}


async def test_cursor_when_deleted_while_its_record_is_unsure_then_no_ledger_stays(
    bench: CursorsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0))
    commit = bench.metadata.commit

    async def answer_lost(changes: Any, expect: Any = {}) -> None:  # noqa: B006
        await commit(changes, expect)
        raise MetadataUnavailable("no answer")

    monkeypatch.setattr(bench.metadata, "commit", answer_lost)
    with pytest.raises(MetadataUnavailable):
        await cursors.flush({"s": at(1)})
    monkeypatch.setattr(bench.metadata, "commit", commit)
    await cursors.delete("s")
    assert await bench.metadata.get(f"{ABOVE}/s") is None
    assert bench.ledgers.there == {}


@pytest.mark.parametrize("full", ["entries", "age"])
async def test_ledger_when_it_is_full_then_another_takes_its_place(
    bench: CursorsBench, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.managed_ledger.cursor_ledgers._ENTRIES_MAX", 3)
    cursors = bench.open()
    await cursors.put("s", at(0))
    for entry in range(1, 4 if full == "entries" else 2):
        await cursors.flush({"s": at(entry)})
    if full == "age":
        bench.now_ms += 4 * 3600 * 1000
    (old,) = bench.ledgers.there.values()
    await cursors.flush({"s": at(8)})
    (new,) = bench.ledgers.there.values()
    assert new is not old
    assert old.abandoned
    assert (await bench.record())[1] == new.ledger_id
    assert await bench.open().load() == {"s": at(8)}


async def test_settings_when_they_change_then_record_has_them_with_the_state(bench: CursorsBench) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0))
    await cursors.flush({"s": at(1)})
    await cursors.put("s", at(2, properties={"new": "1"}))
    assert await bench.record() == (at(2, properties={"new": "1"}), IN_RECORD)
    assert bench.ledgers.there == {}


async def test_cursor_when_deleted_then_its_ledger_goes_too(bench: CursorsBench) -> None:
    cursors = bench.open()
    await cursors.put("s", at(0))
    await cursors.flush({"s": at(1)})
    await cursors.delete("s")
    assert await bench.metadata.get(f"{ABOVE}/s") is None
    assert bench.ledgers.there == {}
    await cursors.delete("s")
    await cursors.put("s", at(5))
    assert await bench.open().load() == {"s": at(5)}


async def test_sequence_ids_when_flushed_first_then_have_a_record_and_later_a_ledger(bench: CursorsBench) -> None:
    cursors = bench.open()
    await cursors.flush({DEDUPLICATION_CURSOR: at(0, numbers={"p": 4})})
    await cursors.flush({DEDUPLICATION_CURSOR: at(1, numbers={"q": 5})})
    assert await bench.open().load() == {DEDUPLICATION_CURSOR: at(1, numbers={"q": 5})}


async def test_sequence_ids_when_a_producer_is_removed_then_stays_removed_after_close(
    bench: CursorsBench,
) -> None:
    cursors = bench.open()
    await cursors.put(DEDUPLICATION_CURSOR, at(0, numbers={"gone": 9}))
    await cursors.flush({DEDUPLICATION_CURSOR: at(1, numbers={"gone": 9, "b": 1})})
    await cursors.flush({DEDUPLICATION_CURSOR: at(2, numbers={"b": 2})})
    await cursors.flush({}, last=True)
    assert await bench.open().load() == {DEDUPLICATION_CURSOR: at(2, numbers={"b": 2})}


async def test_numbers_that_are_pulsars_own_stay_with_the_cursor(bench: CursorsBench) -> None:
    await bench.metadata.commit([Put(f"{ABOVE}/s", encode_record("s", at(6, numbers={"pulsar.own": 33})))])
    cursors = bench.open()
    await cursors.load()
    await cursors.flush({"s": at(7)})
    assert (await bench.open().load())["s"].numbers == {"pulsar.own": 33}


async def test_compacted_ledger_when_no_longer_named_then_stays_unnamed(bench: CursorsBench) -> None:
    cursors = bench.open()
    await cursors.put(COMPACTION_CURSOR, at(6, numbers={COMPACTED_LEDGER: 33}))
    await cursors.flush({COMPACTION_CURSOR: at(7, numbers={COMPACTED_LEDGER: 33})})
    assert (await bench.record(COMPACTION_CURSOR))[0].numbers == {COMPACTED_LEDGER: 33}
    await cursors.put(COMPACTION_CURSOR, at(7))
    await cursors.flush({COMPACTION_CURSOR: at(8)})
    assert await bench.open().load() == {COMPACTION_CURSOR: at(8)}


async def test_cursor_when_it_is_stored_with_another_change_then_both_are_or_none(bench: CursorsBench) -> None:
    cursors = bench.open()
    await bench.metadata.commit([Put(ABOVE, b"1")])
    found = await bench.metadata.get(ABOVE)
    assert found is not None
    await cursors.put("s", at(0), also=[Put(ABOVE, b"2")], expect={ABOVE: found.version})
    with pytest.raises(CommitConflict):
        await cursors.put("t", at(0), also=[Put(ABOVE, b"3")], expect={ABOVE: found.version})
    assert await bench.open().load() == {"s": at(0)}


# --- a record that another broker wrote. Source: docs/reference/cluster-protocol.md#claimed-cursors


@pytest.mark.parametrize("last", [False, True])
async def test_cursor_when_another_broker_changed_its_record_then_states_are_merged(
    bench: CursorsBench, last: bool
) -> None:
    other = bench.open()
    await other.put("s", at(0))
    owner = bench.open(guarded=True)
    await owner.load()
    stored = await bench.metadata.get(f"{ABOVE}/s")
    assert stored is not None
    theirs = encode_record("s", at(2, ranges=((7, 9, 9),)), ledger_id=IN_RECORD, previous=stored.value)
    await bench.metadata.commit([Put(f"{ABOVE}/s", theirs)])
    await owner.flush({"s": at(1, ranges=((7, 6, 6),))}, last=last)
    state, ledger_id = await bench.record("s")
    assert (state, ledger_id) == (at(2, ranges=((7, 6, 6), (7, 9, 9))), IN_RECORD)
    await owner.flush({"s": at(4, ranges=((7, 6, 6),))}, last=True)
    assert await bench.record("s") == (at(4, ranges=((7, 6, 6), (7, 9, 9))), IN_RECORD)
    assert bench.ledgers.there == {}


async def test_cursor_when_reset_since_opening_then_foreign_state_is_ignored(
    bench: CursorsBench,
) -> None:
    await bench.open().put("s", at(5))
    owner = bench.open(guarded=True)
    await owner.load()
    await owner.flush({"s": at(1)}, last=True)
    await bench.metadata.commit([Put(f"{ABOVE}/s", encode_record("s", at(9), ledger_id=IN_RECORD, previous=b""))])
    await owner.flush({"s": at(2)}, last=True)
    assert await bench.record("s") == (at(2), IN_RECORD)


async def test_cursor_when_another_broker_used_a_ledger_then_it_is_recovered_and_merged(
    bench: CursorsBench,
) -> None:
    await bench.open().put("s", at(0))
    owner = bench.open(guarded=True)
    await owner.load()
    zombie = bench.open()
    await zombie.load()
    await zombie.flush({"s": at(3)})
    await owner.flush({"s": at(1, ranges=((7, 5, 5),))}, last=True)
    assert await bench.record("s") == (at(3, ranges=((7, 5, 5),)), IN_RECORD)
    with pytest.raises(LogFenced, match="another broker"):
        await zombie.flush({"s": at(9)})


async def test_sequence_ids_when_another_broker_wrote_them_then_the_owners_stay(bench: CursorsBench) -> None:
    """Their position belongs to them: with another one messages would be taken twice."""
    name = DEDUPLICATION_CURSOR
    await bench.open().put(name, at(0, numbers={"p": 1}))
    owner = bench.open(guarded=True)
    await owner.load()
    theirs = encode_record(name, at(9, numbers={"p": 9}), ledger_id=IN_RECORD, previous=b"")
    await bench.metadata.commit([Put(f"{ABOVE}/{name}", theirs)])
    await owner.flush({name: at(4, numbers={"p": 5})}, last=True)
    found, _ = await bench.record(name)
    assert (found.mark_delete, found.numbers) == (Position(7, 4), {"p": 5})
