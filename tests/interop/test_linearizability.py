"""Registers and locks of metadata on a real ZooKeeper and on the scripted one, checked for linearizability.

Five brokers use them at the same time while connections are held and cut, answers are lost, sessions expire, brokers
die and the real server is killed. Porcupine, a checker of histories, then looks for one order of all operations on a
key that explains what each client saw and that keeps the order in time.

Checked:

* Writes of a register: create if absent, compare and set, put, delete. An acknowledged one takes effect once, between
  its call and its answer. A conflict is true. One whose answer was lost takes effect at most once.
* Reads after a `sync`: they see every write that was acknowledged before the call. Versions never fall.
* Locks of bundles: created, marked, removed and taken again by the ownership of brokers. The holder is one session, and
  a lock ends with its session.
* Claims: whenever a broker acts as the owner of a bundle, the lock is its own. So no two do at one time.
* Commits under a lock, as of topic records: none succeeds under the version of an earlier holder.

Not checked, since ZooKeeper does not promise it:

* Reads without a `sync` and answers from the cache, which may be older than writes of others ("Consistency
  Guarantees" in the ZooKeeper Programmer's Guide). They serve as expectations only. For the same reason a refusal to
  create a lock, which may come from the cache, is left out.
* Expectations of a node that was deleted, created again and written as often since the client's last notification: the
  servers compare the number of writes. The model permits this for registers that are deleted, and for nothing else.

A lost answer has no end: the operation may take effect at any later time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from interpulse.broker.ownership.bundle_locks import lock_key
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import NoNode, ZooKeeperError
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.protocol import Frames
from interpulse.storage.zookeeper.records import MULTI
from tests.interop.metadata_clients import BUNDLES, Client, Recorder, short
from tests.interop.real_pulsar.zookeeper import real_zookeeper
from tests.interop.recorded_history import ABSENT, Operation, judge, now
from tests.support.scripted_zookeeper import scripted_zookeeper
from tests.support.soak import soak
from tests.support.tcp_relay import TcpRelay
from tests.support.waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.slow]

log = logging.getLogger(__name__)

SEED = int(os.environ.get("HISTORY_SEED") or time.time_ns() % 1_000_000)
CLIENTS = 5
ROUNDS = soak(20, otherwise=3)
"""How often each fault comes."""
STALL_S_MAX = 0.5
"""Half of the session's time-out."""
DEAD_S = 0.5
APPLIED_S = 0.02
COMMIT = MULTI.code.to_bytes(4, "big")
"""The operation of a request, behind its number."""
BETWEEN_FAULTS = 60
"""Operations from one fault to the next."""
KINDS = ("write", "delete", "check", "read", "claim", "expire")
_OBSERVED_S = 0.03


class Game:
    """Clients of one ZooKeeper, the faults that they meet, and their history."""

    def __init__(self, zookeeper: str, observer: ZooKeeperClient, end_session: Callable[[int], None]) -> None:
        """Create a game. ``end_session`` ends a silent session where no server does so by itself."""
        self.chance = random.Random(SEED)
        self.recorder = Recorder(self.chance)
        self.clients: list[Client] = []
        self._zookeeper = zookeeper
        self._observer = observer
        self._end_session = end_session
        self._observing = asyncio.create_task(self._observe())

    async def start(self, name: str) -> Client:
        client = Client(name, self._zookeeper, self.recorder)
        await client.start()
        self.clients.append(client)
        return client

    async def play(self, faults: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Play each fault so many times as there are rounds, in any order, then end all clients."""
        for number in range(CLIENTS):
            await self.start(f"broker-{number}")
        schedule = list(faults) * ROUNDS
        self.chance.shuffle(schedule)
        for fault in schedule:
            await fault()
            await self._goes_on()
        await asyncio.gather(*(client.stop() for client in self.clients))
        self.clients.clear()
        self.recorder.history.ended(self.recorder.sessions)

    async def close(self) -> None:
        """End what a failed game leaves."""
        self._observing.cancel()
        await asyncio.wait([self._observing])
        for client in self.clients:
            await client.die()

    @property
    def faults(self) -> list[Callable[[], Awaitable[None]]]:
        """The faults of clients and their connections."""
        return [self.cut, self.lose_answer, self.lose_request, self.stall, self.expire, self.die, self.die_shortly]

    async def cut(self) -> None:
        """A connection breaks, with the requests and answers that are on their way."""
        self.chance.choice(self.clients).relay.cut()

    async def lose_answer(self) -> None:
        """A connection breaks after a server received a commit and before the client has the answer."""
        await self._lose(requests=False)

    async def lose_request(self) -> None:
        """A connection breaks before a server received a commit."""
        await self._lose(requests=True)

    async def _lose(self, *, requests: bool) -> None:
        relay = self.chance.choice(self.clients).relay
        await self._hold_commit(relay, requests=requests)
        await asyncio.sleep(APPLIED_S)  # no sign shows that a server applied it
        relay.cut()
        relay.let_go()

    async def _hold_commit(self, relay: TcpRelay, *, requests: bool) -> None:
        """Hold the next commit, or else its answer, and everything behind it."""
        held: list[bytes] = []

        def hold(raw: bytes) -> None:
            if any(body[4:8] == COMMIT for body in Frames().cut(raw)):
                relay.hold(requests=requests)
                held.append(raw)

        relay.on_requests = hold
        await eventually(lambda: held)
        relay.on_requests = lambda raw: None

    async def stall(self) -> None:
        """Bytes arrive late."""
        relay = self.chance.choice(self.clients).relay
        relay.hold(requests=self.chance.random() < 0.5)
        await asyncio.sleep(self.chance.uniform(0, STALL_S_MAX))  # the length of the fault
        relay.let_go()

    async def expire(self) -> None:
        """A client is silent until its session is over; what it sent last may still arrive."""
        client = self.chance.choice(self.clients)
        session, node = await self._marked_session(client)
        client.relay.hold()
        await eventually(lambda: not client.store.session.holds())
        await self._ended(session, node)
        if self.chance.random() < 0.5:
            client.relay.cut()
        client.relay.let_go()
        await eventually(lambda: client.store.session.id != session and client.store.session.holds())

    async def _marked_session(self, client: Client) -> tuple[int, str]:
        """Return the session of a client, and a node that exists until its end."""
        while True:
            session, node = client.store.session.id, f"/marks-{next(self.recorder.numbers)}"
            with suppress(ZooKeeperError):  # another fault lasts
                await client.store.client.create(node, ephemeral=True)
                if client.store.session.id == session:
                    return session, node

    async def die(self) -> None:
        """A client dies, and a successor with its name starts while the session still lives."""
        client = self.clients.pop(self.chance.randrange(len(self.clients)))
        await client.die()
        await self.start(client.name)

    async def die_shortly(self) -> None:
        """A client dies, and the commits of its successor arrive after its session ended and others took its locks."""
        client = self.chance.choice(self.clients)
        session, node = await self._marked_session(client)
        self.clients.remove(client)
        await client.die()
        await asyncio.sleep(DEAD_S)
        successor = await self.start(client.name)
        await self._hold_commit(successor.relay, requests=True)
        await self._ended(session, node)
        successor.relay.let_go()

    async def _ended(self, session: int, node: str) -> None:
        """Return when a silent session is over, and others had time to take its locks."""
        self._end_session(session)
        while await self._observer.exists(node) is not None:
            log.debug("session still lives session=%d", session)
        await self._goes_on()

    async def _goes_on(self) -> None:
        operations = self.recorder.history.operations
        enough = len(operations) + BETWEEN_FAULTS
        await eventually(lambda: len(operations) >= enough)

    async def _observe(self) -> None:
        """Read the locks again and again, with their owners."""
        while True:
            for bundle in BUNDLES:
                key, call = lock_key(bundle), now()
                await self._observer.sync(key)
                found: Operation = {"found": ABSENT}
                try:
                    stored = await self._observer.get(key)
                    seen = {"version": stored.stat.mzxid, "value": short(stored.value)}
                    found = {"found": seen, "session": stored.stat.ephemeral_owner}
                except NoNode:
                    pass
                self.recorder.history.saw(key, "observer", "read", call, **found)
            await asyncio.sleep(_OBSERVED_S)


@asynccontextmanager
async def game(zookeeper: str, end_session: Callable[[int], None] = lambda session: None) -> AsyncIterator[Game]:
    """A game on this server, whose operations wait as long as a server takes to start."""
    observer = await ZooKeeperClient.connect(zookeeper, LinkConfig(session_timeout_ms=240_000))
    played = Game(zookeeper, observer, end_session)
    try:
        yield played
    finally:
        await played.close()
        await observer.close()


def check(checker: Path, played: Game) -> None:
    operations = played.recorder.history.operations
    kinds = Counter(operation["kind"] for operation in operations)
    assert min(kinds[kind] for kind in KINDS) >= CLIENTS, kinds
    verdict = judge(checker, operations)
    log.info("seed=%d %s", SEED, verdict.text)
    assert verdict.linearizable, f"seed {SEED}: {verdict.text}"


async def test_real_zookeeper_when_faults_come_at_random_then_metadata_is_linearizable(
    checker: Path, tmp_path: Path
) -> None:
    """HISTORY_SEED plays a game again, as far as the moments of its faults allow."""
    with real_zookeeper(tmp_path) as zookeeper:
        async with game(zookeeper.address) as played:

            async def restart() -> None:
                zookeeper.kill()
                zookeeper.begin()
                await asyncio.to_thread(zookeeper.wait)

            await played.play([*played.faults, restart])
    check(checker, played)


async def test_scripted_zookeeper_when_faults_come_at_random_then_metadata_is_linearizable(checker: Path) -> None:
    async with scripted_zookeeper() as zookeeper, game(await zookeeper.listen(), zookeeper.expire) as played:
        await played.play(played.faults)
    check(checker, played)
