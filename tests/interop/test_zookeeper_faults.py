"""The store on a real ZooKeeper that is killed and paused under load, and a session whose process is."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from interpulse.storage.api import CommitConflict, Put
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import SessionExpired
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.session import SessionEvent
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from tests.interop.real_pulsar.zookeeper import RealZooKeeper, real_zookeeper
from tests.support.waiting import SECONDS_MAX, eventually

pytestmark = [pytest.mark.interop, pytest.mark.slow]

_KEY = "/t/n"
_LOADS = 8
_HANGS_S = 4 * SECONDS_MAX
"""A test starts a server up to four times, which takes a Java 20 s where much else runs."""


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealZooKeeper]:
    with real_zookeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture(autouse=True)
async def bounded() -> AsyncIterator[None]:
    """Ends a test that hangs, with a stack that shows where."""
    test = asyncio.current_task()
    assert test is not None
    handle = asyncio.get_running_loop().call_later(_HANGS_S, test.cancel, "the test hangs")
    yield
    handle.cancel()


@dataclass
class Load:
    """A counter that several tasks advance, and the history of it."""

    client: ZooKeeperClient
    store: ZooKeeperMetadataStore
    numbers: list[int] = field(default_factory=list)
    """What was acknowledged."""
    unknown: int = 0
    """Commits that failed with their session: applied, or not."""
    events: list[SessionEvent] = field(default_factory=list)

    async def advance(self, enough: Callable[[], bool]) -> None:
        """Advance the counter again and again. One task may lose every race, since losing costs a request more."""
        while not enough():
            stored = await self.store.get(_KEY)
            number = int(stored.value) if stored else 0
            try:
                await self.store.commit([Put(_KEY, b"%d" % (number + 1))], {_KEY: stored and stored.version})
            except CommitConflict:
                continue
            except SessionExpired:
                self.unknown += 1
            else:
                self.numbers.append(number)

    async def goes_on(self) -> None:
        """Return when more commits were acknowledged than the tasks had under way."""
        before = len(self.numbers)
        await eventually(lambda: len(self.numbers) >= before + 2 * _LOADS)

    async def check(self) -> None:
        """No number came twice, and none is missing but those of commits whose outcome is unknown."""
        assert len(set(self.numbers)) == len(self.numbers)
        found = await self.store.get(_KEY)
        assert found is not None
        last = int(found.value)
        assert max(self.numbers) < last
        assert last - len(self.numbers) in range(self.unknown + 1)


@asynccontextmanager
async def load(zookeeper: RealZooKeeper, chroot: str, timeout_ms: int) -> AsyncIterator[Load]:
    """One that runs within the block, and is checked behind it."""
    client = await ZooKeeperClient.connect(
        f"{zookeeper.address}/{chroot}", LinkConfig(session_timeout_ms=timeout_ms, operation_timeout_s=_HANGS_S)
    )
    running = Load(client, await ZooKeeperMetadataStore.open(client, watched=["/t"]))
    client.on_session(running.events.append)
    over = False
    try:
        async with asyncio.timeout(_HANGS_S), asyncio.TaskGroup() as tasks:
            for _ in range(_LOADS):
                tasks.create_task(running.advance(lambda: over))
            await running.goes_on()
            yield running
            await running.goes_on()
            over = True
        await running.check()
    finally:
        await running.store.close()


async def test_store_when_the_server_is_killed_again_and_again_then_goes_on_in_its_session(
    zookeeper: RealZooKeeper,
) -> None:
    async with load(zookeeper, "killed", 240_000) as running:
        for _ in range(3):
            zookeeper.kill()
            await eventually(lambda: not running.client.connected)
            zookeeper.begin()
            await asyncio.to_thread(zookeeper.wait)  # shows what it printed where it does not start
            await eventually(lambda: running.client.connected)
            await running.goes_on()
    assert running.unknown == 0
    # A Java that starts for most of a minute makes the session suspect; the next answer resumes it.
    assert set(running.events) - {SessionEvent.SUSPECT} == {SessionEvent.DISCONNECTED, SessionEvent.RESUMED}
    assert running.events.count(SessionEvent.RESUMED) >= 3


async def test_store_when_the_server_is_paused_briefly_then_only_slower(zookeeper: RealZooKeeper) -> None:
    async with load(zookeeper, "paused", 60_000) as running:
        zookeeper.pause()
        answered = len(running.numbers)
        await asyncio.sleep(0.5)  # the length of the fault, not a wait for something
        assert len(running.numbers) <= answered + _LOADS
        assert running.client.session.holds()
        zookeeper.go_on()
        await running.goes_on()
    assert running.unknown == 0
    assert running.events == []


async def test_store_when_the_server_is_paused_past_the_session_then_suspect_and_nothing_is_applied_twice(
    zookeeper: RealZooKeeper,
) -> None:
    async with load(zookeeper, "suspect", 1000) as running:
        zookeeper.pause()
        try:
            await eventually(lambda: SessionEvent.SUSPECT in running.events)
            assert not running.client.session.holds()
        finally:
            zookeeper.go_on()
        await eventually(lambda: running.events[-1] in (SessionEvent.RESUMED, SessionEvent.RENEWED))
        await running.goes_on()
        await eventually(running.client.session.holds)


@asynccontextmanager
async def holder(zookeeper: RealZooKeeper, key: str) -> AsyncIterator[tuple[Process, Callable[[], Awaitable[str]]]]:
    """A process with an ephemeral node, and how to ask it."""
    command = (sys.executable, "-m", "tests.interop.session_holder", zookeeper.address, key, "1000")
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    to, answers = process.stdin, process.stdout

    async def ask() -> str:
        to.write(b"?\n")
        return (await answers.readline()).decode().strip()

    try:
        async with asyncio.timeout(SECONDS_MAX):
            assert await answers.readline() == b"holds\n"
        yield process, ask
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def written(ask: Callable[[], Awaitable[str]]) -> None:
    """Return when its session holds; on a machine that is busy one of a second may have ended meanwhile."""
    async with asyncio.timeout(SECONDS_MAX):
        while await ask() != "holds written":
            continue


async def _gone(zookeeper: RealZooKeeper, key: str, opened: AsyncExitStack) -> ZooKeeperMetadataStore:
    """Another broker's store, which was told that the key is gone."""
    store = await ZooKeeperMetadataStore.open(await ZooKeeperClient.connect(zookeeper.address), watched=[key])
    opened.push_async_callback(store.close)
    told: list[str] = []
    store.watch(key, told.append)
    if await store.get(key) is not None:
        await eventually(lambda: told == [key])
    assert await store.get(key) is None
    return store


async def test_ephemeral_when_its_process_is_killed_then_gone_and_told(zookeeper: RealZooKeeper) -> None:
    async with AsyncExitStack() as opened, holder(zookeeper, "/killed-lock") as (process, ask):
        await written(ask)
        process.kill()
        await _gone(zookeeper, "/killed-lock", opened)


async def test_session_when_its_process_was_stopped_then_the_first_look_says_suspect_and_writes_fail(
    zookeeper: RealZooKeeper,
) -> None:
    async with AsyncExitStack() as opened, holder(zookeeper, "/zombie-lock") as (process, ask):
        await written(ask)
        process.send_signal(signal.SIGSTOP)
        asked = asyncio.ensure_future(ask())  # read by it when it goes on
        store = await _gone(zookeeper, "/zombie-lock", opened)
        await store.client.set("/zombie-lock-record", b"its successor's")
        process.send_signal(signal.SIGCONT)
        assert await asked in ("suspect OutcomeUnknown", "suspect SessionExpired")
        assert (await store.client.get("/zombie-lock-record")).value == b"its successor's"
        await written(ask)  # in a new session
