"""Any order of writing and of single failures, then recovery: nothing that was acknowledged is lost, ever.

A failure is one bookie at a time: killed, silent, cut off, with a failing disk, too busy, read-only, or with damaged
entries. The quorums permit one. The history of acknowledgements is compared with what is read at the end.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import AsyncExitStack
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.errors import BookKeeperError, Code, RecoveryStopped
from interpulse.storage.bookkeeper.reader import LedgerReader
from interpulse.storage.bookkeeper.records import Quorum
from interpulse.storage.bookkeeper.writer import LedgerWriter
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.scripted_bookie import ADD, ScriptedBookie, ScriptedBookies, scripted_bookies
from tests.support.scripted_zookeeper import scripted_zookeeper
from tests.support.soak import soak
from tests.unit.storage.bookkeeper.conftest import config_of

SETTINGS: dict[str, Any] = {
    "reconnect_s": 0.05,
    "retry_s": 0.05,
    "busy_s": 0.1,
    "connect_timeout_s": 0.5,
    "add_timeout_s": 0.4,
    "read_timeout_s": 0.4,
    "behind_entries": 20,
    "behind_s": 0.05,
}
ATTEMPTS_MAX = 20
FAULTS = ("kill", "silent", "mute", "cut", "disk", "busy", "read only")

faults = st.tuples(st.sampled_from(FAULTS), st.integers(0, 4))
steps = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 40)),
    st.tuples(st.just("append run"), st.integers(1, 40)),
    st.tuples(st.just("pause"), st.integers(0, 60)),
    faults,
    st.tuples(st.just("heal"), st.just(0)),
)
quorums = st.sampled_from([Quorum(3, 3, 2), Quorum(3, 2, 2), Quorum(4, 3, 2), Quorum(2, 2, 2)])
ends = st.sampled_from(["crash", "close", "zombie", "damage"])


class History:
    """What the writer was told."""

    def __init__(self) -> None:
        self.acknowledged = -1
        self.failure: BookKeeperError | None = None

    def on_confirmed(self, last_entry: int) -> None:
        assert self.failure is None, "acknowledged after the failure"
        assert last_entry > self.acknowledged
        self.acknowledged = last_entry

    def on_ledger_failed(self, error: BookKeeperError) -> None:
        assert self.failure is None, "failed twice"
        self.failure = error


def payload(entry_id: int) -> bytes:
    return struct.pack(">q", entry_id) * (1 + entry_id % 5)


class OneFault:
    """The bookie that is at fault, if any: a second one is at fault only once the first is whole again."""

    def __init__(self, bookies: ScriptedBookies) -> None:
        self._all = list(bookies)
        self._bad: ScriptedBookie | None = None
        self._kind = ""

    async def begin(self, kind: str, number: int) -> None:
        await self.heal()
        bad = self._bad = self._all[number % len(self._all)]
        self._kind = kind
        codes = {"disk": Code.IO_ERROR, "busy": Code.TOO_MANY_REQUESTS, "read only": Code.READ_ONLY}
        if kind == "kill":
            await bad.kill()
        elif kind == "silent":
            bad.silent = True
        elif kind == "mute":
            bad.mute = True
        elif kind == "cut":
            bad.cut()
        else:
            bad.refuse = lambda request: codes[kind] if request.operation == ADD else Code.OK

    async def heal(self) -> None:
        bad, self._bad = self._bad, None
        if bad is None:
            return
        bad.refuse = lambda request: Code.OK
        if self._kind == "kill":
            await bad.start()
        bad.go_on()


async def play(quorum: Quorum, spare: bool, schedule: list[tuple[str, int]], end: str) -> None:
    async with AsyncExitStack() as stack:
        zookeeper = await stack.enter_async_context(scripted_zookeeper())
        nodes = await ZooKeeperClient.connect(await zookeeper.listen())
        stack.push_async_callback(nodes.close)
        bookies = await stack.enter_async_context(scripted_bookies(nodes, quorum.ensemble + spare))
        clients = [BookKeeperClient(nodes, config_of(**SETTINGS)) for _ in range(3)]
        for client in clients:
            stack.push_async_callback(client.close)
        history, fault = History(), OneFault(bookies)
        writer = await clients[0].create(quorum, listener=history)
        for what, number in schedule:
            await play_step(writer, fault, what, number)
        await finish(end, writer, fault, bookies)
        if quorum.write == quorum.ack and not spare:  # what is at the end cannot be written back to so many
            await fault.heal()
        readers = await asyncio.gather(*(recover(client, writer.ledger_id) for client in clients[1:]))
        if end == "zombie":
            await write_on(writer)
        await compare(history, readers, writer)


async def play_step(writer: LedgerWriter, fault: OneFault, what: str, number: int) -> None:
    if what == "append":
        for _ in range(number):
            if writer.failure is None:
                writer.append(payload(writer.last_appended + 1))
    elif what == "append run":
        if writer.failure is None:
            first = writer.last_appended + 1
            assert writer.append(*[payload(first + each) for each in range(number)]) == first + number - 1
    elif what == "pause":
        await asyncio.sleep(number / 1000)
    elif what == "heal":
        await fault.heal()
    else:
        await fault.begin(what, number)


async def finish(end: str, writer: LedgerWriter, fault: OneFault, bookies: ScriptedBookies) -> None:
    if end == "close":
        await fault.heal()
        if writer.failure is None:
            assert (await writer.close()).last_entry == writer.last_appended
    elif end in ("crash", "damage"):
        writer.abandon()
    if end == "damage":
        await fault.heal()
        bad = next(iter(bookies))
        for entry_id in bad.ledgers[writer.ledger_id].entries if writer.ledger_id in bad.ledgers else ():
            bad.damage(writer.ledger_id, entry_id)


async def write_on(writer: LedgerWriter) -> None:
    """Its ledger is closed: whatever it sends, nothing is acknowledged."""
    for _ in range(5):
        if writer.failure is None:
            writer.append(payload(writer.last_appended + 1))
        await asyncio.sleep(0.02)


async def recover(client: BookKeeperClient, ledger_id: int) -> LedgerReader:
    for _ in range(ATTEMPTS_MAX):
        try:
            return await client.recover(ledger_id)
        except RecoveryStopped:
            await asyncio.sleep(0.05)
    raise AssertionError("one failure keeps the ledger from being recovered")


async def compare(history: History, readers: list[LedgerReader], writer: LedgerWriter) -> None:
    last = readers[0].last_confirmed
    assert [each.metadata for each in readers] == [readers[0].metadata] * len(readers)
    assert history.acknowledged <= last <= writer.last_appended
    found: list[bytes] = []
    while len(found) <= last:
        found += await readers[0].read(len(found), entries_max=50, bytes_max=1 << 20)
    assert found == [payload(each) for each in range(last + 1)]
    assert readers[0].metadata.length == sum(map(len, found))


@settings(max_examples=soak(600, otherwise=12))
@given(quorums, st.booleans(), st.lists(steps, min_size=1, max_size=soak(40, otherwise=12)), ends)
def test_ledger_when_bookies_fail_one_at_a_time_then_nothing_acknowledged_is_lost(
    quorum: Quorum, spare: bool, schedule: list[tuple[str, int]], end: str
) -> None:
    asyncio.run(play(quorum, spare, schedule, end))
