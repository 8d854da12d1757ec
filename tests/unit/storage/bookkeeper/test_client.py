"""Ledgers written, read and recovered on bookies in the process."""

from __future__ import annotations

import asyncio
import random
import struct
from collections import Counter

import pytest

from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.errors import (
    BookKeeperError,
    Code,
    EntryDamaged,
    EntryTooLarge,
    EntryUnreachable,
    LedgerFailed,
    LedgerFenced,
    LedgerUnusable,
    NoLedger,
    NotEnoughBookies,
    RecoveryStopped,
)
from interpulse.storage.bookkeeper.records import LedgerState, Quorum
from interpulse.storage.bookkeeper.writer import LedgerWriter
from tests.support.scripted_bookie import ScriptedBookie, ScriptedBookies
from tests.support.scripted_zookeeper import ScriptedZooKeeper
from tests.support.waiting import eventually
from tests.unit.storage.bookkeeper.conftest import Connect

Q332 = Quorum(3, 3, 2)
MANY = 1 << 30


async def written(client: BookKeeperClient, quorum: Quorum, count: int) -> LedgerWriter:
    """A ledger with so many acknowledged entries."""
    writer = await client.create(quorum)
    await asyncio.gather(*(writer.add(b"entry %d" % each) for each in range(count)))
    return writer


def payloads(count: int) -> list[bytes]:
    return [b"entry %d" % each for each in range(count)]


async def read_all(client: BookKeeperClient, ledger_id: int) -> list[bytes]:
    reader = await client.open(ledger_id)
    found: list[bytes] = []
    while len(found) <= reader.last_confirmed:
        found += await reader.read(len(found), entries_max=7, bytes_max=MANY)
    return found


async def recovered(client: BookKeeperClient, ledger_id: int) -> list[bytes]:
    reader = await client.recover(ledger_id)
    assert reader.metadata.closed
    return await read_all(client, ledger_id)


@pytest.mark.parametrize("quorum", [(1, 1, 1), (3, 3, 2), (3, 2, 2), (5, 3, 2)], ids=str)
async def test_ledger_when_written_and_closed_then_read_as_it_was(
    quorum: tuple[int, int, int], connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    for _ in range(2):
        await bookies.start()
    writer = await written(client, Quorum(*quorum), 50)
    metadata = await writer.close()
    assert (metadata.state, metadata.last_entry) == (LedgerState.CLOSED, 49)
    assert metadata.length == sum(map(len, payloads(50)))
    assert await read_all(await connect(), writer.ledger_id) == payloads(50)
    for entry in range(50):
        assert bookies.having(writer.ledger_id, entry) == set(metadata.bookies_of(entry))


async def test_ledger_when_empty_then_closed_without_entries(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    writer = await client.create(Q332, custom={"application": b"pulsar"})
    metadata = await writer.close()
    assert (metadata.last_entry, metadata.length) == (-1, 0)
    assert (await client.open(writer.ledger_id)).metadata.custom == {"application": b"pulsar"}
    with pytest.raises(ValueError, match="readable up to entry -1"):
        await client.reader_of(writer).read(0, entries_max=1, bytes_max=1)


async def test_ledger_when_open_then_readable_up_to_what_is_surely_acknowledged(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await client.create(Q332)
    for payload in payloads(5):
        await writer.add(payload)
    assert await client.reader_of(writer).read(0, entries_max=9, bytes_max=MANY) == payloads(5)
    other = await connect()
    reader = await other.open(writer.ledger_id)
    assert reader.last_confirmed == 3  # the last entry tells of the one before
    assert await reader.read(0, entries_max=9, bytes_max=MANY) == payloads(4)
    assert not reader.metadata.closed
    await writer.add(b"it is not fenced")


async def test_entries_when_read_with_bounds_then_within_them(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    for quorum in (Q332, Quorum(3, 2, 2)):
        writer = await client.create(quorum)
        for _ in range(20):
            await writer.add(bytes(1000))
        reader = client.reader_of(writer)
        assert len(await reader.read(3, entries_max=5, bytes_max=MANY)) == 5
        assert 1 <= len(await reader.read(3, entries_max=50, bytes_max=5000)) <= 6
        assert len(await reader.read(3, entries_max=50, bytes_max=1)) == 1
        assert len(await reader.read(18, entries_max=50, bytes_max=MANY)) == 2


async def test_acknowledgement_when_the_ack_quorum_has_an_entry_then_and_not_before(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await client.create(Q332)
    await writer.add(b"first")
    first, second, _ = bookies
    first.mute = second.mute = True
    adding = asyncio.create_task(writer.add(b"second"))
    await eventually(lambda: len(bookies.having(writer.ledger_id, 1)) == 3)
    await asyncio.sleep(0.05)
    assert not adding.done()
    first.go_on()
    assert await adding == 1
    second.go_on()
    await eventually(lambda: len(writer._pending) == 0)


async def test_acknowledgements_when_a_later_entry_is_stored_first_then_in_order(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    heard: list[int] = []

    class Listener:
        def on_confirmed(self, last_entry: int) -> None:
            heard.append(last_entry)

        def on_ledger_failed(self, error: BookKeeperError) -> None:
            raise AssertionError(error)

    client = await connect()
    writer = await client.create(Quorum(3, 1, 1), listener=Listener())
    bookies[writer.metadata.bookies_of(0)[0]].mute = True
    for payload in payloads(3):
        writer.append(payload)
    await eventually(lambda: bool(bookies.having(writer.ledger_id, 2)))
    await asyncio.sleep(0.05)
    assert heard == []
    bookies[writer.metadata.bookies_of(0)[0]].go_on()
    await writer.confirmed(2)
    assert heard[-1] == 2


@pytest.mark.parametrize("quorum", [Quorum(3, 3, 2), Quorum(3, 2, 2), Quorum(4, 3, 2), Quorum(1, 1, 1)], ids=str)
async def test_run_when_answered_in_any_order_then_acknowledged_in_order_once_a_turn(
    quorum: Quorum, connect: Connect, bookies: ScriptedBookies
) -> None:
    heard: list[int] = []

    class Listener:
        def on_confirmed(self, last_entry: int) -> None:
            heard.append(last_entry)

        def on_ledger_failed(self, error: BookKeeperError) -> None:
            raise AssertionError(error)

    await bookies.start()
    writer = await (await connect()).create(quorum, listener=Listener())
    for bookie in bookies:
        bookie.mute = True
    assert writer.append(*payloads(40)) == 39
    await eventually(lambda: len(bookies.having(writer.ledger_id, 39)) == quorum.write)
    for bookie in bookies:
        random.Random(1).shuffle(bookie.held)
        first_half, bookie.held = bookie.held[::2], bookie.held[1::2]
        for answer in first_half:
            answer()
    await asyncio.sleep(0.02)
    assert writer.last_confirmed < 39
    for bookie in bookies:
        bookie.go_on()
    await writer.confirmed(39)
    assert heard == sorted(set(heard))
    await eventually(lambda: len(writer._pending) == 0)
    assert (await writer.close()).length == sum(map(len, payloads(40)))


@pytest.mark.parametrize("quorum", [Quorum(3, 3, 2), Quorum(3, 2, 2), Quorum(2, 2, 2)], ids=str)
async def test_ensemble_change_when_inside_a_run_then_unacknowledged_part_is_resent(
    quorum: Quorum, connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect(reconnect_s=0.05)
    await bookies.start()
    writer = await client.create(quorum)
    for bookie in bookies:
        bookie.refuse = lambda request: Code.OK if request.entry_id < 15 else Code.TOO_MANY_REQUESTS
    writer.append(*payloads(30))
    await writer.confirmed(14)
    dead = bookies[writer.metadata.last_segment.ensemble[1]]
    await dead.kill()
    await eventually(lambda: len(writer.metadata.segments) == 2)
    new = bookies[writer.metadata.last_segment.ensemble[1]]
    for bookie in bookies:
        bookie.refuse = lambda request: Code.OK
    await eventually(lambda: len(writer._pending) == 0)
    metadata = await writer.close()
    assert [each.first for each in metadata.segments] == [0, 15]
    mine = {each for each in range(15, 30) if 1 in quorum.positions(each)}
    assert set(new.ledgers[writer.ledger_id].entries) == mine
    for entry in range(30):
        assert set(metadata.bookies_of(entry)) <= bookies.having(writer.ledger_id, entry)
    await dead.start()
    assert await read_all(await connect(), writer.ledger_id) == payloads(30)


async def test_run_when_one_of_it_is_too_large_then_none_of_it_is_sent(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    writer = await (await connect(frame_bytes_max=1000)).create(Q332)
    with pytest.raises(EntryTooLarge, match="an entry of 2000 bytes"):
        writer.append(*[b"small", bytes(2000), b"small"])
    assert writer.last_appended == -1
    assert await writer.add(b"small") == 0


async def test_bookie_when_it_dies_and_there_is_another_then_replaced(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect(reconnect_s=0.1)
    writer = await written(client, Q332, 10)
    spare = await bookies.start()
    dead = bookies[writer.metadata.last_segment.ensemble[1]]
    await dead.kill()
    for payload in payloads(10):
        await writer.add(payload)
    await eventually(lambda: len(writer.metadata.segments) == 2)
    metadata = await writer.close()
    assert spare.bookie_id in metadata.last_segment.ensemble
    assert dead.bookie_id not in metadata.last_segment.ensemble
    for entry in range(metadata.last_segment.first, 20):
        assert spare.bookie_id in bookies.having(writer.ledger_id, entry)
    assert await read_all(await connect(), writer.ledger_id) == payloads(10) * 2


async def test_bookie_when_it_dies_without_a_spare_then_the_ledger_goes_on(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect(reconnect_s=0.1, retry_s=0.1)
    writer = await written(client, Q332, 10)
    dead = next(iter(bookies))
    await dead.kill()
    for payload in payloads(10):
        await writer.add(payload)
    await eventually(lambda: len(writer._pending) == 0)
    await dead.start()

    def has_more() -> bool:
        writer.append(b"more")
        return max(dead.ledgers[writer.ledger_id].entries) > 19

    await eventually(has_more)
    metadata = await writer.close()
    assert len(metadata.segments) == 1
    assert (await read_all(client, writer.ledger_id))[:20] == payloads(10) * 2


async def test_connection_when_cut_then_entries_are_sent_again(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    writer = await client.create(Q332)
    for bookie in bookies:
        bookie.mute = True
    numbers = [writer.append(payload) for payload in payloads(5)]
    await eventually(lambda: len(bookies.having(writer.ledger_id, 4)) == 3)
    for bookie in bookies:
        bookie.cut()
        bookie.mute = False
    await writer.confirmed(numbers[-1])
    assert len((await writer.close()).segments) == 1


async def test_quorum_when_lost_then_waits_and_goes_on_or_fails(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect(reconnect_s=0.05, retry_s=0.05, stall_s=60)
    writer = await written(client, Q332, 3)
    first, second, _ = bookies
    await first.kill()
    await second.kill()
    adding = asyncio.create_task(writer.add(b"later"))
    await asyncio.sleep(0.3)
    assert not adding.done()
    await first.start()
    assert await adding == 3
    assert (await writer.close()).last_entry == 3

    impatient = await connect(reconnect_s=0.05, retry_s=0.05, stall_s=0.2)
    await second.start()
    writer = await written(impatient, Q332, 3)
    await first.kill()
    await second.kill()
    with pytest.raises(LedgerFailed, match="cannot have their ack quorum: no bookie can replace"):
        await writer.add(b"never")
    with pytest.raises(LedgerFailed):
        writer.append(b"never")


@pytest.mark.parametrize("code", [Code.IO_ERROR, Code.READ_ONLY, Code.UNKNOWN_LEDGER_STATE])
async def test_bookie_when_its_disk_fails_then_replaced(code: Code, connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    writer = await written(client, Q332, 3)
    await bookies.start()
    bad = bookies[writer.metadata.last_segment.ensemble[0]]
    bad.refuse = lambda request: code
    for payload in payloads(3):
        await writer.add(payload)
    await eventually(lambda: len(writer.metadata.segments) == 2)
    assert bad.bookie_id not in (await writer.close()).last_segment.ensemble


async def test_bookie_when_too_busy_then_entries_are_sent_again_in_order(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await client.create(Q332)
    refused = 0

    def refuse_at_first(request: object) -> int:
        nonlocal refused
        refused += 1
        return Code.TOO_MANY_REQUESTS if refused < 40 else Code.OK

    for bookie in bookies:
        bookie.refuse = refuse_at_first
    numbers = [writer.append(payload) for payload in payloads(20)]
    await writer.confirmed(numbers[-1])
    assert len((await writer.close()).segments) == 1
    assert await read_all(client, writer.ledger_id) == payloads(20)


async def test_bookie_when_busy_for_too_long_then_replaced(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect(busy_s=0.1)
    writer = await written(client, Q332, 1)
    await bookies.start()
    busy = bookies[writer.metadata.last_segment.ensemble[0]]
    busy.refuse = lambda request: Code.TOO_MANY_REQUESTS
    await writer.add(b"more")
    await eventually(lambda: len(writer.metadata.segments) == 2)


async def test_bookie_when_it_answers_nothing_for_long_then_replaced(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    """It takes connections all the same, as a suspended one does."""
    client = await connect(add_timeout_s=0.2)
    writer = await written(client, Q332, 1)
    await bookies.start()
    silent = bookies[writer.metadata.last_segment.ensemble[0]]
    silent.silent = True
    await writer.add(b"more")
    await eventually(lambda: len(writer.metadata.segments) == 2)
    assert silent.bookie_id not in (await writer.close()).last_segment.ensemble


async def test_bookie_when_far_behind_then_given_up_and_memory_is_bounded(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect(behind_entries=50, behind_s=0.05, retry_s=60)
    writer = await written(client, Q332, 1)
    slow = bookies[writer.metadata.last_segment.ensemble[2]]
    slow.silent = True
    most = 0
    for _ in range(20):
        await asyncio.gather(*(writer.add(bytes(100)) for _ in range(20)))
        most = max(most, len(writer._pending))
    await eventually(lambda: len(writer._pending) == 0)
    assert most <= 4 * 50 + 20 * 2
    assert (await writer.close()).last_entry == 400


async def test_bookie_when_slow_for_a_moment_then_waited_for(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    writer = await written(client, Q332, 1)
    await bookies.start()
    slow = bookies[writer.metadata.last_segment.ensemble[2]]
    slow.silent = True
    for _ in range(100):
        await writer.add(bytes(100))
    assert len(writer._pending) == 100
    slow.go_on()
    await eventually(lambda: len(writer._pending) == 0)
    assert len((await writer.close()).segments) == 1


async def test_writer_when_fenced_then_fails_at_once_and_nothing_acknowledged_is_lost(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client, other = await connect(), await connect()
    writer = await written(client, Q332, 20)
    assert await recovered(other, writer.ledger_id) == payloads(20)
    with pytest.raises(LedgerFenced, match="another process recovers it"):
        await writer.add(b"too late")
    with pytest.raises(LedgerFenced):
        await writer.close()
    assert isinstance(writer.failure, LedgerFenced)


async def test_writer_when_recovered_before_it_closes_then_close_fails(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client, other = await connect(), await connect()
    writer = await written(client, Q332, 3)
    writer.append(b"on its way")
    await writer.confirmed(3)
    reader = await other.recover(writer.ledger_id)
    metadata = await writer.close()  # it ends where the writer wants it to
    assert (metadata.last_entry, reader.last_confirmed) == (3, 3)

    writer = await client.create(Q332)
    await other.recover(writer.ledger_id)
    with pytest.raises(LedgerFenced):
        await writer.add(b"too late")


@pytest.mark.parametrize("quorum", [(1, 1, 1), (3, 3, 2), (3, 2, 2), (5, 3, 2), (4, 2, 1)], ids=str)
async def test_recovery_when_entries_are_unacknowledged_then_all_acknowledged_ones_stay(
    quorum: tuple[int, int, int], connect: Connect, bookies: ScriptedBookies
) -> None:
    client, other = await connect(), await connect()
    for _ in range(2):
        await bookies.start()
    writer = await written(client, Quorum(*quorum), 10)
    for bookie in bookies:
        bookie.mute = True
    for each in range(300):
        writer.append(b"in flight %d" % each)
    last = writer.last_appended
    await eventually(lambda: len(bookies.having(writer.ledger_id, last)) == quorum[1])
    for bookie in bookies:
        bookie.go_on()
    writer.abandon()
    found = await recovered(other, writer.ledger_id)
    assert found == payloads(10) + [b"in flight %d" % each for each in range(300)]


async def test_recovery_when_an_entry_is_missing_then_what_lies_behind_is_dropped(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client, other = await connect(), await connect()
    writer = await written(client, Quorum(3, 1, 1), 6)
    keeper = bookies[writer.metadata.bookies_of(6)[0]]
    keeper.silent = True
    for payload in payloads(3):
        writer.append(payload)
    await eventually(lambda: bool(bookies.having(writer.ledger_id, 8)))
    keeper.cut()
    keeper.go_on()
    writer.abandon()
    assert await recovered(other, writer.ledger_id) == payloads(6)


async def test_recovery_when_one_bookie_is_away_then_done_and_when_two_then_not(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client, other = await connect(), await connect()
    writer = await written(client, Q332, 10)
    writer.abandon()
    first, second, _ = bookies
    await first.kill()
    await second.kill()
    with pytest.raises(RecoveryStopped, match="these bookies do not answer: bookie-"):
        await other.recover(writer.ledger_id)
    assert (await other.open(writer.ledger_id)).metadata.state is LedgerState.IN_RECOVERY
    await second.start()
    assert await recovered(other, writer.ledger_id) == payloads(10)


async def test_recovery_when_a_bookie_lost_its_data_then_that_is_no_answer(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client, other = await connect(), await connect()
    writer = await written(client, Q332, 10)
    writer.abandon()
    first, second, _ = bookies
    first.refuse = second.refuse = lambda request: Code.UNKNOWN_LEDGER_STATE
    with pytest.raises(RecoveryStopped):
        await other.recover(writer.ledger_id)


async def test_recovery_when_several_run_at_once_then_they_agree(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    others = [await connect() for _ in range(4)]
    writer = await written(client, Q332, 10)
    for each in range(50):
        writer.append(b"%d" % each)
    ends = await asyncio.gather(*(each.recover(writer.ledger_id) for each in others))
    assert len({(each.last_confirmed, each.metadata.length) for each in ends}) == 1
    assert ends[0].last_confirmed >= 9


async def test_recovery_when_broken_off_anywhere_then_another_finishes_it(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client, breaking, other = await connect(), await connect(), await connect()
    await breaking.recover((await client.create(Q332)).ledger_id)  # its connections are there
    for turns in range(0, 60, 3):
        writer = await written(client, Q332, 5)
        for each in range(20):
            writer.append(b"in flight %d" % each)
        recovering = asyncio.create_task(breaking.recover(writer.ledger_id))
        for _ in range(turns):
            await asyncio.sleep(0)
        recovering.cancel()
        await asyncio.wait([recovering])
        found = await recovered(other, writer.ledger_id)
        acknowledged = writer.last_confirmed
        assert found == (payloads(5) + [b"in flight %d" % each for each in range(20)])[: len(found)]
        assert len(found) > acknowledged >= 4


async def test_recovery_when_a_bookie_takes_no_writes_then_another_has_its_place(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client, other = await connect(), await connect()
    writer = await written(client, Q332, 10)
    writer.abandon()
    bad = bookies[writer.metadata.last_segment.ensemble[0]]
    bad.refuse = lambda request: Code.READ_ONLY if request.operation == 1 else Code.OK
    spare = await bookies.start()
    reader = await other.recover(writer.ledger_id)
    assert spare.bookie_id in reader.metadata.last_segment.ensemble
    assert await read_all(other, writer.ledger_id) == payloads(10)


async def test_recovery_when_the_ledger_is_closed_or_empty_then_nothing_changes(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await written(client, Q332, 3)
    closed = await writer.close()
    assert (await client.recover(writer.ledger_id)).metadata == closed
    empty = await client.create(Q332)
    reader = await (await connect()).recover(empty.ledger_id)
    assert (reader.last_confirmed, reader.metadata.length) == (-1, 0)


@pytest.mark.parametrize("old", [False, True], ids=["batches", "single reads"])
async def test_entry_when_a_bookie_has_it_damaged_then_read_from_another(
    old: bool, connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await written(client, Q332, 10)
    await writer.close()
    for bookie in bookies:
        bookie.old = old
    first, second, third = bookies
    for entry in range(10):
        (first, second)[entry % 2].damage(writer.ledger_id, entry)
    assert await read_all(client, writer.ledger_id) == payloads(10)
    third.damage(writer.ledger_id, 4)
    second.damage(writer.ledger_id, 4)
    with pytest.raises(EntryDamaged, match=f"entry {writer.ledger_id}:4 is lost: .*its bytes are not those"):
        await read_all(client, writer.ledger_id)


async def test_entry_when_bookies_are_away_then_unreachable_and_not_lost(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await written(client, Q332, 10)
    await writer.close()
    first, *others = bookies
    for bookie in others:
        await bookie.kill()
    assert await read_all(client, writer.ledger_id) == payloads(10)
    await first.kill()
    reader = await client.open(writer.ledger_id)
    with pytest.raises(EntryUnreachable, match="cannot be read now"):
        await reader.read(0, entries_max=1, bytes_max=1)


async def test_entry_when_a_bookie_is_silent_then_the_next_is_asked(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    writer = await written(client, Q332, 10)
    await writer.close()
    bookies[writer.metadata.bookies_of(0)[0]].silent = True
    assert await read_all(client, writer.ledger_id) == payloads(10)


async def test_ledgers_when_a_bookie_is_silent_then_only_the_first_reader_waits_for_it(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writers = [await written(client, Q332, 10) for _ in range(9)]
    firsts = Counter(writer.metadata.bookies_of(0)[0] for writer in writers)
    [(silent_id, count)] = firsts.most_common(1)
    silent = bookies[silent_id]
    silent.silent = True
    assert count >= 3
    for writer in writers:
        assert await client.reader_of(writer).read(0, entries_max=10, bytes_max=1000) == payloads(10)
    assert len(silent.held) <= 2


async def test_batch_reads_when_the_bookie_knows_none_then_asked_once_and_never_again(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await written(client, Quorum(1, 1, 1), 30)
    await writer.close()
    keeper = bookies[writer.metadata.last_segment.ensemble[0]]
    keeper.old = True
    assert await read_all(client, writer.ledger_id) == payloads(30)
    assert sum(each.operation == 7 for each in keeper.requests) == 1


async def test_ledger_when_deleted_then_there_is_none(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect()
    writer = await written(client, Q332, 3)
    await client.delete(writer.ledger_id)
    await client.delete(writer.ledger_id)
    for look in (client.open, client.recover):
        with pytest.raises(NoLedger):
            await look(writer.ledger_id)
    with pytest.raises(NoLedger):
        await writer.close()


async def test_ledger_when_bookies_are_too_few_then_refused_with_the_numbers(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    with pytest.raises(NotEnoughBookies, match="4 writable bookies are needed, and 3 are registered"):
        await client.create(Quorum(4, 3, 2))
    with pytest.raises(ValueError, match="no ledger has ensemble 1, write quorum 2"):
        await client.create(Quorum(1, 2, 1))


async def test_entry_when_too_large_then_refused_and_the_ledger_goes_on(
    connect: Connect, bookies: ScriptedBookies
) -> None:
    client = await connect()
    writer = await client.create(Q332)
    with pytest.raises(EntryTooLarge, match=r"an entry of 5242880 bytes .* limit of bookies, 5242784; split it"):
        writer.append(bytes(5_242_880))
    assert await writer.add(bytes(5_242_880 - 96)) == 0


async def test_ledger_when_it_has_another_password_then_refused(connect: Connect, bookies: ScriptedBookies) -> None:
    client, other = await connect(password=b"secret"), await connect()
    writer = await written(client, Q332, 3)
    for look in (other.open, other.recover):
        with pytest.raises(LedgerUnusable, match="another password"):
            await look(writer.ledger_id)
    assert await recovered(client, writer.ledger_id) == payloads(3)


async def test_writer_when_zookeeper_is_away_then_goes_on_and_closes_later(
    connect: Connect, bookies: ScriptedBookies, zookeeper: ScriptedZooKeeper
) -> None:
    client = await connect()
    writer = await written(client, Q332, 3)
    zookeeper.shut = True
    zookeeper.cut()
    for payload in payloads(3):
        await writer.add(payload)
    closing = asyncio.create_task(writer.close())
    await asyncio.sleep(0.1)
    assert not closing.done()
    zookeeper.shut = False
    assert (await closing).last_entry == 5


async def test_connection_when_cut_while_zookeeper_is_away_then_made_again(
    connect: Connect, bookies: ScriptedBookies, zookeeper: ScriptedZooKeeper
) -> None:
    client = await connect()
    writer = await written(client, Q332, 3)
    zookeeper.shut = True
    zookeeper.cut()
    for bookie in bookies:
        bookie.cut()
    for payload in payloads(3):
        await writer.add(payload)
    await eventually(lambda: len(bookies.having(writer.ledger_id, 5)) == 3)
    zookeeper.shut = False
    assert len((await writer.close()).segments) == 1


async def test_ensemble_change_when_its_answer_is_lost_then_made_once(
    connect: Connect, bookies: ScriptedBookies, zookeeper: ScriptedZooKeeper
) -> None:
    client = await connect(reconnect_s=0.05)
    writer = await written(client, Q332, 3)
    await bookies.start()
    zookeeper.losing["set"] = 1
    await bookies[writer.metadata.last_segment.ensemble[0]].kill()
    for payload in payloads(3):
        await writer.add(payload)
    await eventually(lambda: len(writer.metadata.segments) == 2)
    await writer.close()
    assert await read_all(client, writer.ledger_id) == payloads(3) * 2


async def test_requests_when_beyond_the_window_then_wait_their_turn(connect: Connect, bookies: ScriptedBookies) -> None:
    client = await connect(window_entries=10)
    writer = await client.create(Quorum(1, 1, 1))
    keeper = bookies[writer.metadata.last_segment.ensemble[0]]
    keeper.mute = True
    numbers = [writer.append(payload) for payload in payloads(40)]
    await eventually(lambda: len(keeper.requests) == 10)
    await asyncio.sleep(0.05)
    assert len(keeper.requests) == 10
    keeper.go_on()
    await writer.confirmed(numbers[-1])


def test_scripted_bookie_when_played_the_recorded_exchanges_then_answers_as_the_real_one() -> None:
    """What is written to it before stands in for what the real one had."""
    from tests.support.scripted_bookie import BATCH_READ, Request
    from tests.unit.storage.bookkeeper.recorded import EXCHANGES

    bookie = ScriptedBookie("b")
    for name, (request, reply) in EXCHANGES.items():
        body = request[4:]
        operation, flags = body[1], body[3]
        at = 24 if operation == 1 else 4
        (answer,) = bookie.answer(Request(operation, flags, *struct.unpack(">qq", body[at : at + 16])), body)
        if name != "batch maxcount 0":  # the real one's limit of bytes counts what stands around an entry
            assert answer == reply, name
        assert operation in (1, 2, BATCH_READ)
