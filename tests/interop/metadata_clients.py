"""Brokers without topics that use registers and bundles of one ZooKeeper, and record what they see.

Each has its own store, session and relay, the ownership of bundles as a broker has it, and a name under which a
successor may start. What is recorded and what not: `test_linearizability.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.bundle_locks import lock_key
from interpulse.broker.ownership.ownership import Bundle
from interpulse.broker.ownership.registered_brokers import RegisteredBrokers
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.clock import SystemClock
from interpulse.model.brokers import BrokerAddresses, BundleLock, ListenerAddresses, LoadReport
from interpulse.model.errors import PulsarError
from interpulse.model.isolation import IsolationPolicies
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.bundles import bundle_of
from interpulse.storage.api import Change, CommitConflict, Delete, Put, Versioned
from interpulse.storage.logs.topic_records import record_key
from interpulse.storage.metadata.guarded import GuardedMetadata
from interpulse.storage.metadata.session_bounded import SessionBoundedMetadata
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from tests.interop.recorded_history import ABSENT, History, Operation, now
from tests.support.tcp_relay import TcpRelay

NAMESPACE: Final = NamespaceName("t", "ns")
BOUNDARIES: Final = ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")
BUNDLES: Final = [Bundle(NAMESPACE, f"{lower}_{upper}") for lower, upper in pairwise(BOUNDARIES)]
KEPT: Final = [f"/kept/{number}" for number in range(10)]
"""Registers that are never deleted, and not watched."""
REBORN: Final = [f"/reborn/{number}" for number in range(10)]
"""Registers that are deleted and created again, and watched."""
_HOT: Final = 3  # registers that are used at one time
_HOT_OPERATIONS: Final = 150  # after which the next register is used
_REGISTER_TASKS: Final = 4
_PAUSE_S: Final = 0.12  # at most, between two operations of a task
_CLAIM_S: Final = 0.02
_SESSION_MS: Final = 1000
_OPERATION_S: Final = 60.0


@dataclass
class Recorder:
    """The history of all clients, and the sessions that may own a lock."""

    chance: random.Random
    history: History = field(default_factory=History)
    sessions: dict[tuple[str, int], int] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def register(self) -> str:
        """Return a register that other tasks use too."""
        first = len(self.history.operations) // _HOT_OPERATIONS
        return self.chance.choice((KEPT, REBORN))[(first + self.chance.randrange(_HOT)) % len(KEPT)]

    async def pause(self) -> None:
        """Let others run."""
        await asyncio.sleep(self.chance.uniform(0, _PAUSE_S))


class RecordedStore:
    """A metadata store that records the commits which change or expect locks of bundles."""

    def __init__(self, store: ZooKeeperMetadataStore, client: str, recorder: Recorder) -> None:
        self._store = store
        self._client = client
        self._recorder = recorder
        self.session, self.watch, self.unchanged = store.session, store.watch, store.unchanged
        self.get, self.get_many, self.children, self.scan = store.get, store.get_many, store.children, store.scan
        self.create_sequential, self.sync, self.close = store.create_sequential, store.sync, store.close

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        """Commit and record. A lock that is created may be refused because of a state of the past."""
        by_key = {change.key: change for change in changes}
        locks = [key for key in {*by_key, *expect} if key.startswith(keys.LOCKS)]
        if not locks:
            await self._store.commit(changes, expect)
            return
        (key,) = locks
        change = by_key.get(key)
        kind = "check" if change is None else "delete" if isinstance(change, Delete) else "write"
        fields: Operation = {"expect": seen_version(expect[key])} if key in expect else {}
        if isinstance(change, Put):
            fields |= {"value": short(change.value), "session": self._noted(key)}
        with self._recorder.history.write(key, self._client, kind, fresh=kind != "write", **fields) as operation:
            try:
                await self._store.commit(changes, expect)
            finally:
                if isinstance(change, Put):
                    self._note_change_of_session(operation)

    def _noted(self, key: str) -> int:
        """Return the current session, which may own this lock from now on."""
        self._recorder.sessions.setdefault((key, self.session.id), now())
        return self.session.id

    def _note_change_of_session(self, operation: Operation) -> None:
        """Note that either session may have sent the write, if there is another one since the call."""
        if self._noted(operation["key"]) != operation["session"]:
            self._recorder.history.operations.append({**operation, "session": self.session.id})


def seen_version(version: int | None) -> Operation:
    """Return the expectation of a version."""
    return ABSENT if version is None else {"version": version}


def seen_register(key: str, stored: Versioned | None) -> Operation:
    """Return a register as a client read it. The value ends with the number of writes since the creation."""
    if stored is None:
        return ABSENT
    value = stored.value.decode()
    writes = {"writes": int(value.rpartition(" ")[2])} if key in REBORN else {}
    return {"version": stored.version, "value": value, **writes}


def short(lock: bytes) -> str:
    """Return the value of a lock as its history shows it."""
    parsed = BundleLock.load(lock)
    return parsed.broker.broker_id + (" leaving" if parsed.disabled else "")


class Client:
    """One broker: tasks that use registers and bundles, and one that claims what the broker holds."""

    def __init__(self, name: str, zookeeper: str, recorder: Recorder) -> None:
        self.name = name
        self.relay = TcpRelay(zookeeper)
        self.store: ZooKeeperMetadataStore
        self._recorder = recorder
        self._history = recorder.history
        self._ownership: SharedOwnership
        self._topics = {bundle: topic_in(bundle) for bundle in BUNDLES}
        self._tasks: list[asyncio.Task[None]] = []
        self._opened = AsyncExitStack()

    async def start(self) -> None:
        """Connect, and use metadata from now on."""
        await self.relay.listen()
        self._opened.push_async_callback(self.relay.close)
        config = LinkConfig(session_timeout_ms=_SESSION_MS, operation_timeout_s=_OPERATION_S)
        client = await ZooKeeperClient.connect(self.relay.address, config)
        watched = [keys.LOCKS, REBORN[0].rpartition("/")[0]]
        self.store = await ZooKeeperMetadataStore.open(client, watched=watched)
        self._opened.push_async_callback(self.store.close)
        recorded = RecordedStore(self.store, self.name, self._recorder)
        bounded, guarded = SessionBoundedMetadata(recorded), GuardedMetadata(recorded)
        report = LoadReport(addresses(self.name), "5.0.0+interpulse-1", "ModularLoadManagerImpl")
        brokers = RegisteredBrokers(bounded, report, SystemClock())
        self._ownership = SharedOwnership(bounded, guarded, brokers, boundaries, isolation)
        self._ownership.start(ForgottenTopics(self._ownership))
        await self.store.get_many([lock_key(bundle) for bundle in BUNDLES])  # as lookups do
        self.store.session.on_change(lambda state: self._claim())
        self.store.watch(keys.LOCKS, lambda key: self._claim())
        work = (*(self._use_registers() for _ in range(_REGISTER_TASKS)), self._use_bundles(), self._claim_often())
        self._tasks = [asyncio.create_task(each) for each in work]

    async def stop(self) -> None:
        """Release the bundles and end the session."""
        await self._stop_tasks()
        await self._ownership.leave()
        await self._opened.aclose()

    async def die(self) -> None:
        """Stop in the middle of everything. The session lives on at the servers."""
        await self.relay.close()
        await self._stop_tasks()
        await self._opened.aclose()

    async def _stop_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if not isinstance(outcome, asyncio.CancelledError):
                raise AssertionError(f"a task of {self.name} ended early") from outcome

    # --- registers

    async def _use_registers(self) -> None:
        chance = self._recorder.chance
        while True:
            key = self._recorder.register()
            use = chance.choice((self._read, self._create, self._compare_and_set, self._compare_and_set))
            if use == self._compare_and_set and chance.random() < 0.3:
                use = self._delete if key in REBORN else self._put
            with suppress(PulsarError, CommitConflict):  # recorded
                await use(key)
            await self._recorder.pause()

    async def _read(self, key: str) -> None:
        call = now()
        await self.store.sync(key)
        stored = await self.store.get(key)
        self._history.saw(key, self.name, "read", call, found=seen_register(key, stored))

    async def _create(self, key: str) -> None:
        value = self._value(0)
        with self._history.write(key, self.name, "write", value=value, expect=ABSENT):
            await self.store.sync(key)
            await self.store.commit([Put(key, value.encode())], {key: None})

    async def _put(self, key: str) -> None:
        value = self._value(0)
        with self._history.write(key, self.name, "write", value=value):
            await self.store.commit([Put(key, value.encode())])

    async def _compare_and_set(self, key: str) -> None:
        stored = await self._known(key)
        if stored is None:
            return
        seen = seen_register(key, stored)
        value = self._value(seen.get("writes", 0) + 1)
        with self._history.write(key, self.name, "write", value=value, expect=seen):
            await self.store.commit([Put(key, value.encode())], {key: stored.version})

    async def _delete(self, key: str) -> None:
        stored = await self._known(key)
        if stored is None:
            return
        with self._history.write(key, self.name, "delete", expect=seen_register(key, stored)):
            await self.store.commit([Delete(key)], {key: stored.version})

    async def _known(self, key: str) -> Versioned | None:
        """Read without a sync, and now and then use it a little later."""
        stored = await self.store.get(key)
        if self._recorder.chance.random() < 0.5:
            await self._recorder.pause()
        return stored

    def _value(self, writes: int) -> str:
        return f"{next(self._recorder.numbers)} {writes}"

    # --- bundles

    async def _use_bundles(self) -> None:
        while True:
            with suppress(PulsarError):  # refused: the bundle is another broker's, or the session may be over
                await self._use_bundle(self._recorder.chance.choice(BUNDLES))
            await self._recorder.pause()

    async def _use_bundle(self, bundle: Bundle) -> None:
        await self._ownership.take(bundle)
        if bundle not in self._ownership.owned:
            return
        topic = self._topics[bundle]
        await self._ownership.acquire(topic)
        for _ in range(self._recorder.chance.randrange(6)):
            await self._ownership.metadata.commit([Put(record_key(topic.log_name), self.name.encode())])
            await self._recorder.pause()
        if self._recorder.chance.random() < 0.7:
            await self._ownership.release(bundle)

    async def _claim_often(self) -> None:
        while True:
            self._claim()
            await asyncio.sleep(_CLAIM_S)

    def _claim(self) -> None:
        """Claim what a broker would serve now, by its clock."""
        for bundle, topic in self._topics.items():
            call = now()
            if self._ownership.holds(topic):
                session = self.store.session.id
                self._history.saw(lock_key(bundle), self.name, "claim", call, session=session)


class ForgottenTopics:
    """Topics that need nothing when they are closed."""

    def __init__(self, ownership: SharedOwnership) -> None:
        self._ownership = ownership

    async def unload_all(self, names: Sequence[TopicName]) -> None:
        self.forsake(names)

    def forsake(self, names: Sequence[TopicName]) -> None:
        for name in names:
            self._ownership.forget(name)

    async def recheck(self, names: Sequence[TopicName]) -> None:
        return


def addresses(name: str) -> BrokerAddresses:
    """Return the addresses of a broker with this name."""
    return BrokerAddresses(name, ListenerAddresses(f"pulsar://{name}:6650", web_url=f"http://{name}:8080"))


def topic_in(bundle: Bundle) -> TopicName:
    """Return a topic whose bundle this is."""
    topics = (TopicName.parse(f"persistent://{NAMESPACE}/{number}") for number in count())
    return next(topic for topic in topics if bundle_of(topic, BOUNDARIES) == bundle.range)


async def boundaries(namespace: NamespaceName) -> Sequence[str]:
    """Return those of the one namespace."""
    return BOUNDARIES


async def isolation() -> IsolationPolicies:
    """Return no policies."""
    return {}
