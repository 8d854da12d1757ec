"""Ledgers and topic logs on real bookies, side by side with BookKeeper's Java client.

Each reads, fences and recovers what the other wrote.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from interpulse.model.ids import Position
from interpulse.storage.bookkeeper.client import BookKeeperClient, BookKeeperConfig
from interpulse.storage.bookkeeper.connection import ConnectionConfig
from interpulse.storage.bookkeeper.errors import LedgerFenced, LedgerUnusable, NoLedger, RecoveryStopped
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.bookkeeper.records import LedgerState, Quorum
from interpulse.storage.bookkeeper.replica import ReplicaConfig
from interpulse.storage.bookkeeper.writer import LedgerWriter, WriterConfig
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.durability.small_disk import disk_within, with_small_disk
from tests.interop.java_ledgers import JavaLedgers, as_read
from tests.interop.log_writer import open_logs
from tests.interop.real_pulsar.bookkeeper import RealBookie, RealBookKeeper, real_bookkeeper
from tests.support.waiting import SECONDS_MAX, eventually
from tests.unit.storage.listeners import Listener
from tests.unit.storage.listeners import read_all as read_all_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

Q332, Q322 = Quorum(3, 3, 2), Quorum(3, 2, 2)
MANY = 1 << 30
Connect = Callable[..., Awaitable[BookKeeperClient]]
OpenLog = Callable[[str], Awaitable[tuple[TopicLog, Listener]]]


@pytest.fixture(scope="module")
def bookkeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBookKeeper]:
    """A ZooKeeper and four bookies, started once for the tests of this file."""
    with real_bookkeeper(tmp_path_factory.mktemp("bookkeeper"), 4) as cluster:
        yield cluster


@pytest.fixture
async def connect(bookkeeper: RealBookKeeper) -> AsyncIterator[Connect]:
    """`await connect()`: a client with a session of its own, closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_client(
            digest: DigestType = DigestType.CRC32C,
            password: bytes = b"",
            reconnect_s: float = 1.0,
            window_entries: int = 5000,
        ) -> BookKeeperClient:
            nodes = await ZooKeeperClient.connect(bookkeeper.zookeeper.address)
            stack.push_async_callback(nodes.close)
            writer = WriterConfig(replica=ReplicaConfig(reconnect_s=reconnect_s))
            connection = ConnectionConfig(window_entries=window_entries)
            client = BookKeeperClient(nodes, BookKeeperConfig(digest, password, connection, writer))
            stack.push_async_callback(client.close)
            return client

        yield open_client


@pytest.fixture(scope="module")
def java(bookkeeper: RealBookKeeper) -> Iterator[JavaLedgers]:
    """BookKeeper's client, started once for the tests of this file."""
    started = JavaLedgers(bookkeeper.zookeeper.address)
    yield started
    started.stop()


def ours(count: int) -> list[bytes]:
    return [b"ours %d" % each for each in range(count)]


def javas(count: int) -> list[bytes]:
    return [b"java %d" % each for each in range(count)]


async def write(writer: LedgerWriter, count: int) -> None:
    """Acknowledged entries that go on where the ledger ends."""
    first = writer.last_appended + 1
    await asyncio.gather(*(writer.add(b"ours %d" % (first + each)) for each in range(count)))


async def read_all(client: BookKeeperClient, ledger_id: int) -> list[bytes]:
    reader = await client.open(ledger_id)
    found: list[bytes] = []
    while len(found) <= reader.last_confirmed:
        found += await reader.read(len(found), entries_max=1000, bytes_max=MANY)
    return found


async def run_down(java: JavaLedgers, ledger_id: int, digest: str = "CRC32C") -> tuple[int, str]:
    """The last entry after Java's recovery, and what it reads."""
    last = int((await java.ask("recover", ledger_id, digest)).split()[0])
    return last, await java.ask("read", ledger_id)


@pytest.mark.parametrize("quorum", [Q332, Q322, Quorum(1, 1, 1)], ids=str)
@pytest.mark.parametrize("digest", DigestType, ids=lambda each: each.name)
async def test_closed_ledger_when_either_wrote_it_then_the_other_reads_it(
    quorum: Quorum, digest: DigestType, connect: Connect, java: JavaLedgers
) -> None:
    client = await connect(digest)
    kind = "MAC" if digest is DigestType.HMAC else digest.name
    writer = await client.create(quorum, custom={"component": b"managed-ledger"})
    await write(writer, 1200)
    closed = await writer.close()
    assert await java.ask("open", writer.ledger_id, kind) == f"1199 {closed.length} true"
    assert await java.ask("read", writer.ledger_id) == as_read(ours(1200))
    assert (await java.ask("metadata", writer.ledger_id)).endswith(" managed-ledger")

    ledger_id = int(await java.ask("create", *quorum, kind))
    await java.ask("add", ledger_id, 1200)
    last, length = map(int, (await java.ask("close", ledger_id)).split())
    reader = await client.open(ledger_id)
    assert (reader.metadata.closed, reader.last_confirmed, reader.metadata.length) == (True, last, length)
    assert await read_all(client, ledger_id) == javas(1200)
    assert reader.metadata.custom["application"] == b"java"


@pytest.mark.parametrize("quorum", [Q332, Q322], ids=str)
async def test_open_ledger_when_either_writes_it_then_the_other_reads_what_is_acknowledged(
    quorum: Quorum, connect: Connect, java: JavaLedgers
) -> None:
    client = await connect()
    writer = await client.create(quorum)
    await write(writer, 20)
    await writer.add(b"tells of the one before")
    length = writer._pending.confirmed_length  # of the last entry, which Java takes for that of the ledger
    assert await java.ask("open", writer.ledger_id, "CRC32C") == f"19 {length} false"
    assert await java.ask("read", writer.ledger_id) == as_read(ours(20))
    await write(writer, 1)  # not fenced

    ledger_id = int(await java.ask("create", *quorum, "CRC32C"))
    await java.ask("add", ledger_id, 20)
    await java.ask("add", ledger_id, 1)
    reader = await client.open(ledger_id)
    assert (reader.metadata.state, reader.last_confirmed) == (LedgerState.OPEN, 19)
    assert await read_all(client, ledger_id) == javas(20)
    assert await java.ask("add", ledger_id, 1) == "21 21"


@pytest.mark.parametrize("quorum", [Q332, Q322, Quorum(4, 3, 2)], ids=str)
async def test_ledger_when_java_recovers_it_while_we_write_then_nothing_acknowledged_is_missing(
    quorum: Quorum, connect: Connect, java: JavaLedgers
) -> None:
    client = await connect()
    writer = await client.create(quorum)
    acknowledged = -1

    async def go_on() -> None:
        nonlocal acknowledged
        while True:
            await write(writer, 50)
            acknowledged = writer.last_confirmed

    writing = asyncio.create_task(go_on())
    await eventually(lambda: acknowledged > 200)
    last, read = await run_down(java, writer.ledger_id)
    with pytest.raises(LedgerFenced):
        await writing
    acknowledged = max(acknowledged, writer.last_confirmed)
    assert last >= acknowledged
    assert read == as_read(ours(last + 1))
    assert await read_all(client, writer.ledger_id) == ours(last + 1)


@pytest.mark.parametrize("quorum", [Q332, Q322, Quorum(4, 3, 2)], ids=str)
async def test_ledger_when_we_recover_it_while_java_writes_then_nothing_acknowledged_is_missing(
    quorum: Quorum, connect: Connect, java: JavaLedgers
) -> None:
    client = await connect()
    ledger_id = int(await java.ask("create", *quorum, "CRC32C"))
    await java.ask("add", ledger_id, 200)
    writing = asyncio.create_task(java.ask("add", ledger_id, 20_000))
    reader = await client.recover(ledger_id)
    told = await writing
    assert told in ("error BKLedgerFencedException", "error BKLedgerClosedException") or told == "20199 20199"
    assert await java.ask("add", ledger_id, 1) == "error BKLedgerClosedException" or told == "20199 20199"
    assert reader.last_confirmed >= 199
    assert await read_all(client, ledger_id) == javas(reader.last_confirmed + 1)
    second = await java.ask("recover", ledger_id, "CRC32C")
    assert second == f"{reader.last_confirmed} {reader.metadata.length} true"


async def test_ledger_when_its_writer_is_killed_then_the_other_recovers_it(
    connect: Connect, java: JavaLedgers, bookkeeper: RealBookKeeper
) -> None:
    client = await connect()
    killed = JavaLedgers(bookkeeper.zookeeper.address)
    ledger_id = int(await killed.ask("create", *Q332, "CRC32C"))
    await killed.ask("add", ledger_id, 100)
    await killed.ask("fling", ledger_id, 5000)
    killed.stop()
    reader = await client.recover(ledger_id)
    assert 99 <= reader.last_confirmed <= 5099
    assert await read_all(client, ledger_id) == javas(reader.last_confirmed + 1)
    assert await java.ask("open", ledger_id, "CRC32C") == f"{reader.last_confirmed} {reader.metadata.length} true"

    writer = await client.create(Q332)
    await write(writer, 100)
    for each in range(5000):
        writer.append(b"ours %d" % (100 + each))
    writer.abandon()
    last, read = await run_down(java, writer.ledger_id)
    assert 99 <= last <= 5099
    assert read == as_read(ours(last + 1))


async def test_ledger_when_empty_then_recovered_and_closed_by_either(connect: Connect, java: JavaLedgers) -> None:
    client = await connect()
    writer = await client.create(Q332)
    assert await java.ask("recover", writer.ledger_id, "CRC32C") == "-1 0 true"
    ledger_id = int(await java.ask("create", *Q332, "CRC32C"))
    reader = await client.recover(ledger_id)
    assert (reader.last_confirmed, reader.metadata.length) == (-1, 0)
    assert await java.ask("open", ledger_id, "CRC32C") == "-1 0 true"


async def test_ledger_when_deleted_by_either_then_gone_for_the_other(connect: Connect, java: JavaLedgers) -> None:
    client = await connect()
    writer = await client.create(Q332)
    await write(writer, 3)
    await writer.close()
    assert await java.ask("delete", writer.ledger_id) == "deleted"
    with pytest.raises(NoLedger):
        await client.open(writer.ledger_id)
    ledger_id = int(await java.ask("create", *Q332, "CRC32C"))
    await client.delete(ledger_id)
    assert await java.ask("open", ledger_id, "CRC32C") == "error BKNoSuchLedgerExistsOnMetadataServerException"


@pytest.mark.parametrize("digest", [DigestType.CRC32C, DigestType.HMAC], ids=lambda each: each.name)
async def test_ledger_when_it_has_a_password_then_only_who_knows_it_reads_it(
    digest: DigestType, connect: Connect, bookkeeper: RealBookKeeper
) -> None:
    java = JavaLedgers(bookkeeper.zookeeper.address, "secret")
    kind = "MAC" if digest is DigestType.HMAC else digest.name
    client, other = await connect(digest, b"secret"), await connect(digest)
    writer = await client.create(Q332)
    await write(writer, 10)
    assert await run_down(java, writer.ledger_id, kind) == (9, as_read(ours(10)))
    ledger_id = int(await java.ask("create", *Q332, kind))
    await java.ask("add", ledger_id, 10)
    with pytest.raises(LedgerUnusable, match="another password"):
        await other.recover(ledger_id)
    await client.recover(ledger_id)
    assert await read_all(client, ledger_id) == javas(10)
    java.stop()


async def test_large_entries_when_written_then_read_by_both(connect: Connect, java: JavaLedgers) -> None:
    client = await connect()
    writer = await client.create(Q332)
    large = [bytes([each]) * (5 << 20) for each in range(3)]
    for payload in large[:2]:
        await writer.add(payload[:-96])
    await writer.add(b"small")
    await writer.close()
    expected = [large[0][:-96], large[1][:-96], b"small"]
    assert await read_all(client, writer.ledger_id) == expected
    await java.ask("open", writer.ledger_id, "CRC32C")
    assert await java.ask("read", writer.ledger_id) == as_read(expected)


async def test_bookie_when_paused_then_nothing_waits_for_it(
    connect: Connect, java: JavaLedgers, bookkeeper: RealBookKeeper
) -> None:
    client = await connect()
    writer = await client.create(Q332)
    await write(writer, 10)
    paused = bookkeeper.bookie(writer.metadata.last_segment.ensemble[1])
    paused.pause()
    try:
        async with asyncio.timeout(SECONDS_MAX):
            for _ in range(20):
                await write(writer, 100)
        assert len(writer._pending) >= 2000
    finally:
        paused.go_on()
    await eventually(lambda: len(writer._pending) == 0)
    assert len((await writer.close()).segments) == 1
    await java.ask("open", writer.ledger_id, "CRC32C")
    assert await java.ask("read", writer.ledger_id) == as_read(ours(2010))


async def test_bookies_when_they_are_killed_then_replaced_and_ledgers_of_both_stay_whole(
    connect: Connect, java: JavaLedgers, bookkeeper: RealBookKeeper
) -> None:
    client = await connect(reconnect_s=0.2)
    writers = [await client.create(quorum) for quorum in (Q332, Q322)]
    of_java = int(await java.ask("create", *Q332, "CRC32C"))
    await java.ask("add", of_java, 500)
    for writer in writers:
        await write(writer, 500)
    abandoned = await client.create(Q332)
    await write(abandoned, 500)
    killed = bookkeeper.bookie(writers[0].metadata.last_segment.ensemble[0])
    killed.kill()
    try:
        for writer in writers:
            await write(writer, 500)
        await eventually(lambda: len(writers[0].metadata.segments) > 1)
        await java.ask("add", of_java, 500)
        await java.ask("close", of_java)
        abandoned.abandon()
        last, read = await run_down(java, abandoned.ledger_id)
        assert (last, read) == (499, as_read(ours(500)))
        for writer in writers:
            await writer.close()
            assert killed.bookie_id not in writer.metadata.last_segment.ensemble
            await java.ask("open", writer.ledger_id, "CRC32C")
            assert await java.ask("read", writer.ledger_id) == as_read(ours(1000))
            assert await read_all(client, writer.ledger_id) == ours(1000)
        assert await read_all(client, of_java) == javas(1000)
    finally:
        await restart(killed)


async def test_bookie_when_its_disk_is_full_then_replaced_and_read_from_and_used_again_when_there_is_room(
    connect: Connect, java: JavaLedgers, bookkeeper: RealBookKeeper, tmp_path: Path
) -> None:
    """Cluster 17, row 15. Its journal is elsewhere: a bookie whose journal finds no room ends."""
    place = tmp_path / "bookie" / "ledgers"
    full = RealBookie(
        place.parent, bookkeeper.zookeeper.address, {"diskCheckInterval": "200"}, within=with_small_disk(place, 64)
    )
    full.start()
    try:
        await asyncio.to_thread(full.wait)
        disk = disk_within(full.pid, place)
        client = await connect()
        writers = [await created_on(client, full, quorum) for quorum in (Quorum(1, 1, 1), Q332)]
        for writer in writers:
            await write(writer, 500)
        disk.fill()
        for writer in writers:
            async with asyncio.timeout(SECONDS_MAX):
                while full.bookie_id in writer.metadata.last_segment.ensemble:
                    await write(writer, 20)
            await write(writer, 500)
            await writer.close()
            count = writer.last_confirmed + 1
            assert full.bookie_id in writer.metadata.segments[0].ensemble
            assert await read_all(client, writer.ledger_id) == ours(count)
            await java.ask("open", writer.ledger_id, "CRC32C")
            assert await java.ask("read", writer.ledger_id) == as_read(ours(count))
        disk.make_room()
        again = await created_on(client, full, Quorum(1, 1, 1))
        await write(again, 500)
        await again.close()
        assert await read_all(client, again.ledger_id) == ours(500)
    finally:
        full.kill()


async def created_on(client: BookKeeperClient, bookie: RealBookie, quorum: Quorum) -> LedgerWriter:
    """A ledger that has entries on this bookie."""
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            writer = await client.create(quorum)
            if bookie.bookie_id in writer.metadata.last_segment.ensemble:
                return writer
            await writer.close()


async def test_recovery_when_one_bookie_is_away_then_done_and_when_two_then_not(
    connect: Connect, java: JavaLedgers, bookkeeper: RealBookKeeper
) -> None:
    client = await connect()
    ledger_id = int(await java.ask("create", *Q332, "CRC32C"))
    await java.ask("add", ledger_id, 100)
    bookies = [bookkeeper.bookie(each) for each in (await client.open(ledger_id)).metadata.last_segment.ensemble]
    bookies[0].kill()
    bookies[1].kill()
    try:
        with pytest.raises(RecoveryStopped, match="these bookies do not answer"):
            await client.recover(ledger_id)
        await restart(bookies[0])
        reader = await client.recover(ledger_id)
        assert (reader.last_confirmed, await read_all(client, ledger_id)) == (99, javas(100))
    finally:
        await restart(bookies[1])


class LogWriter:
    """`tests.interop.log_writer` in a process of its own, and what it said."""

    def __init__(self, address: str, name: str) -> None:
        command = [sys.executable, "-m", "tests.interop.log_writer", address, name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.acknowledged = 0
        self.fenced = ""
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def kill(self) -> None:
        """End it at once; `acknowledged` is final then."""
        self.process.kill()
        self.process.wait()
        self._listening.join()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            what, said = line.split()
            if what == "acknowledged":
                self.acknowledged = int(said)
            else:
                self.fenced = said
        self.process.stdout.close()


@pytest.fixture
async def open_log(bookkeeper: RealBookKeeper) -> AsyncIterator[OpenLog]:
    """`await open_log(name)`: a log of a broker of its own, closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_one(name: str) -> tuple[TopicLog, Listener]:
            store = await stack.enter_async_context(open_logs(bookkeeper.zookeeper.address))
            listener = Listener()
            return await store.open(name, listener, create=False), listener

        yield open_one


def numbers(count: int) -> list[bytes]:
    return [b"%d" % (1 + each) for each in range(count)]


async def read_by_java(java: JavaLedgers, log: TopicLog) -> None:
    """Java reads from every ledger that takes no more entries what the log reads."""
    for ledger in log.ledgers[:-1]:
        expected = await log.read(Position(ledger.ledger_id, 0), entries_max=ledger.entries, bytes_max=MANY)
        assert len(expected) == ledger.entries
        opened = await java.ask("open", ledger.ledger_id, "CRC32C")
        assert opened == f"{ledger.entries - 1} {ledger.size} true"
        assert await java.ask("read", ledger.ledger_id) == as_read(each.entry for each in expected)


async def test_log_when_its_process_is_killed_then_another_goes_on_with_all_that_was_acknowledged(
    bookkeeper: RealBookKeeper, java: JavaLedgers, open_log: OpenLog
) -> None:
    name = "t/n/persistent/killed"
    writer = LogWriter(bookkeeper.zookeeper.address, name)
    try:
        await eventually(lambda: writer.acknowledged > 5000)
    finally:
        await asyncio.to_thread(writer.kill)
    log, listener = await open_log(name)
    assert len(log.ledgers) > 3
    found = await read_all_of(log, entries_max=1000)
    assert len(found) >= writer.acknowledged
    assert found == numbers(len(found))
    await read_by_java(java, log)
    await listener.durable(log.append(b"more"))


async def test_log_when_its_process_is_paused_and_another_opens_it_then_the_first_acknowledges_nothing_more(
    bookkeeper: RealBookKeeper, java: JavaLedgers, open_log: OpenLog
) -> None:
    name = "t/n/persistent/paused"
    writer = LogWriter(bookkeeper.zookeeper.address, name)
    try:
        await eventually(lambda: writer.acknowledged > 2000)
        writer.process.send_signal(signal.SIGSTOP)
        log, listener = await open_log(name)
        await listener.durable(log.append(b"more"))
        writer.process.send_signal(signal.SIGCONT)
        await eventually(lambda: writer.fenced != "")
        assert writer.fenced == "OWNED_ELSEWHERE"
        assert writer.process.wait(60) == 0
    finally:
        await asyncio.to_thread(writer.kill)
    *found, more = await read_all_of(log, entries_max=1000)
    assert more == b"more"
    assert len(found) >= writer.acknowledged
    assert found == numbers(len(found))
    await read_by_java(java, log)


async def test_log_when_a_bookie_is_killed_while_it_is_written_then_it_goes_on_and_is_whole(
    bookkeeper: RealBookKeeper, java: JavaLedgers, open_log: OpenLog
) -> None:
    name = "t/n/persistent/replaced"
    killed = bookkeeper.bookies[0]
    writer = LogWriter(bookkeeper.zookeeper.address, name)
    try:
        await eventually(lambda: writer.acknowledged > 2000)
        killed.kill()
        before = writer.acknowledged
        await eventually(lambda: writer.acknowledged > before + 5000)
        await asyncio.to_thread(writer.kill)
        log, _ = await open_log(name)
        found = await read_all_of(log, entries_max=1000)
        assert len(found) >= writer.acknowledged
        assert found == numbers(len(found))
        await read_by_java(java, log)
    finally:
        await asyncio.to_thread(writer.kill)
        await restart(killed)


async def restart(bookie: RealBookie) -> None:
    """Start it again if it does not run; it waits for its former session to end."""
    bookie.kill()
    bookie.start()
    await asyncio.to_thread(bookie.wait)
