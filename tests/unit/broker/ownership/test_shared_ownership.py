"""Bundles held by one of several brokers, seen through its store alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.ownership.ownership import NO_OPTIONS, Bundle, LookupOptions
from interpulse.broker.ownership.registered_brokers import RegisteredBrokers
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.clock import SystemClock
from interpulse.model.brokers import BrokerAddresses, BrokerLoad, BundleLock, ListenerAddresses, LoadReport
from interpulse.model.errors import MetadataError, PreconditionFailed, ServiceNotReady
from interpulse.model.isolation import IsolationPolicies, IsolationPolicy
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.bundles import bundle_of
from interpulse.storage.api import Change, CommitConflict, Delete, MetadataUnavailable, Put, Versioned
from interpulse.storage.metadata.guarded import GuardedMetadata
from interpulse.storage.metadata.session_bounded import SessionBoundedMetadata, SessionLost
from tests.support.lifecycle_bench import SilentStore
from tests.support.memory_storage import MemoryMetadataStore, MemoryTree
from tests.support.waiting import eventually

NAMESPACE = NamespaceName("t", "ns")
HALVES = ("0x00000000", "0x80000000", "0xffffffff")
LOWER, UPPER = Bundle(NAMESPACE, "0x00000000_0x80000000"), Bundle(NAMESPACE, "0x80000000_0xffffffff")
TOPIC = TopicName.parse("persistent://t/ns/x")
ITS_BUNDLE = Bundle(NAMESPACE, bundle_of(TOPIC, HALVES))
NOT_MINE = {"p": IsolationPolicy(("t/.*",), ("other",), parameters={"min_limit": "1"})}
MODULAR = "ModularLoadManagerImpl"


def addresses(name: str) -> BrokerAddresses:
    urls = ListenerAddresses(f"pulsar://{name}:6650", web_url=f"http://{name}:8080")
    return BrokerAddresses(f"{name}:8080", urls)


async def nothing() -> BrokerLoad:
    """The load of a broker that serves nothing."""
    return BrokerLoad()


class Commits(MemoryMetadataStore):
    """Counts what is created, and takes its time."""

    created = 0

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        self.created += any(isinstance(each, Put) and each.ephemeral for each in changes)
        await asyncio.sleep(0)
        await super().commit(changes, expect)


class Silent(Commits):
    """Takes no commit from now on."""

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        self.created += 1
        await asyncio.Event().wait()


class Topics:
    """What becomes of loaded topics."""

    def __init__(self) -> None:
        self.unloaded: list[TopicName] = []
        self.forsaken: list[TopicName] = []
        self.rechecked: list[TopicName] = []
        self.hang = False

    async def unload_all(self, names: Sequence[TopicName]) -> None:
        self.unloaded += names
        if self.hang:
            await asyncio.Event().wait()

    def forsake(self, names: Sequence[TopicName]) -> None:
        self.forsaken += names

    async def recheck(self, names: Sequence[TopicName]) -> None:
        self.rechecked += names


class Broker:
    def __init__(self, tree: MemoryTree, name: str, store: Commits | None = None) -> None:
        self.store = store or Commits(tree)
        report = LoadReport(addresses(name), "5.0.0+interpulse-1", MODULAR)
        self.brokers = RegisteredBrokers(self.store, report, SystemClock())
        self.topics = Topics()
        self.policies: IsolationPolicies = {}
        self.guarded = GuardedMetadata(self.store)
        self.ownership = SharedOwnership(self.store, self.guarded, self.brokers, self._boundaries, self._policies)
        self.ownership.start(self.topics)

    async def _policies(self) -> IsolationPolicies:
        return self.policies

    async def _boundaries(self, namespace: NamespaceName) -> Sequence[str] | None:
        return HALVES if namespace == NAMESPACE else None

    @property
    def owned(self) -> list[Bundle]:
        return self.ownership.owned


@pytest.fixture
def tree() -> MemoryTree:
    return MemoryTree()


@pytest.fixture
def broker(tree: MemoryTree) -> Broker:
    return Broker(tree, "me")


@pytest.fixture
def other(tree: MemoryTree) -> Broker:
    return Broker(tree, "other")


def lock_in(tree: MemoryTree, bundle: Bundle) -> BundleLock | None:
    stored = tree.values.get(keys.bundle_lock(*bundle))
    return None if stored is None else BundleLock.load(stored.value)


# --- taking


async def test_take_when_many_want_the_same_then_one_attempt_is_made(broker: Broker) -> None:
    locks = await asyncio.gather(*(broker.ownership.take(LOWER) for _ in range(1000)))
    assert {lock.broker.broker_id for lock in locks} == {"me:8080"}
    assert broker.store.created == 1


async def test_lookup_when_the_session_is_lost_while_a_bundle_is_taken_then_is_refused_at_once(
    tree: MemoryTree,
) -> None:
    broker = Broker(tree, "me", Silent(tree))
    authoritative = LookupOptions(authoritative=True)
    looking = asyncio.create_task(broker.ownership.prepare([LOWER, UPPER], authoritative))
    await eventually(lambda: broker.store.created == 2)
    broker.store.session.lose()
    answer = await looking
    for bundle in (LOWER, UPPER):
        with pytest.raises(SessionLost):
            answer(*bundle)


async def test_take_when_another_was_first_then_its_lock_is_the_answer(broker: Broker, other: Broker) -> None:
    taken = await asyncio.gather(broker.ownership.take(LOWER), other.ownership.take(LOWER))
    assert taken[0] == taken[1] == lock_in(broker.store.tree, LOWER)
    assert [broker.owned, other.owned].count([LOWER]) == 1


async def test_take_when_the_lock_is_of_an_earlier_life_then_is_taken_over(broker: Broker, tree: MemoryTree) -> None:
    earlier = Broker(tree, "me")
    await earlier.ownership.take(LOWER)
    await broker.ownership.take(LOWER)
    earlier.store.expire_session()
    assert lock_in(tree, LOWER) == BundleLock(addresses("me"))
    assert broker.owned == [LOWER]


async def test_take_when_the_reply_was_lost_then_the_lock_is_this_brokers(broker: Broker, tree: MemoryTree) -> None:
    await broker.store.commit([Put(keys.bundle_lock(*LOWER), BundleLock(addresses("me")).dump(), ephemeral=True)])
    await broker.ownership.take(LOWER)
    assert broker.owned == [LOWER]


async def test_take_when_the_session_is_suspect_then_is_refused(broker: Broker) -> None:
    broker.store.cut_off()
    with pytest.raises(ServiceNotReady):
        await broker.ownership.take(LOWER)


# --- what is held


async def test_holds_when_the_session_is_suspect_then_is_false_at_once(broker: Broker) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)
    assert broker.ownership.holds(TOPIC)
    broker.store.cut_off()
    assert not broker.ownership.holds(TOPIC)
    assert broker.ownership.cached() is None
    broker.store.reconnect()
    await eventually(lambda: broker.ownership.holds(TOPIC))
    assert (broker.topics.rechecked, broker.topics.forsaken) == ([], [])


async def test_acquire_when_the_bundle_is_free_then_the_client_is_told_to_look_up(broker: Broker) -> None:
    with pytest.raises(ServiceNotReady) as refusal:
        await broker.ownership.acquire(TOPIC)
    assert str(refusal.value) == (
        f"Namespace bundle (t/ns/{ITS_BUNDLE.range}) for topic ({TOPIC}) not served by this instance:me:8080. "
        f"Please redo the lookup."
    )


async def test_acquire_when_there_is_no_namespace_then_is_left_to_the_rules(broker: Broker) -> None:
    await broker.ownership.acquire(TopicName.parse("no/such/x"))


async def test_acquired_when_the_lock_goes_to_another_then_the_topic_is_forsaken(broker: Broker, other: Broker) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)
    broker.store.cut_off()
    broker.store.expire_unseen()
    await other.ownership.take(ITS_BUNDLE)
    broker.store.reconnect()
    await eventually(lambda: broker.topics.forsaken == [TOPIC])
    assert broker.owned == []
    assert not broker.ownership.holds(TOPIC)
    with pytest.raises(ServiceNotReady):
        broker.ownership.check(TOPIC)
    await eventually(broker.ownership.serving)


async def test_acquired_when_the_lock_was_free_for_a_while_then_the_topic_is_rechecked(broker: Broker) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)
    broker.store.expire_session()
    assert not broker.ownership.serving()
    await eventually(broker.ownership.serving)
    assert broker.topics.rechecked == [TOPIC]
    assert broker.ownership.holds(TOPIC)


async def test_opened_when_the_bundle_was_taken_again_during_the_load_then_is_refused(broker: Broker) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)
    broker.store.expire_session()
    await eventually(broker.ownership.serving)
    assert broker.ownership.holds(TOPIC)
    with pytest.raises(ServiceNotReady, match="is not served by this instance"):
        await broker.ownership.opened(TOPIC)
    assert not broker.ownership.holds(TOPIC), "the registry closes it without writing"
    await broker.ownership.acquire(TOPIC)
    await broker.ownership.opened(TOPIC)
    assert broker.ownership.holds(TOPIC)


# --- lookups


async def test_prepare_when_bundles_fail_then_each_by_itself(broker: Broker, other: Broker) -> None:
    await broker.brokers.register(nothing)
    await broker.store.commit([Put(keys.bundle_lock(*LOWER), b"no lock")])
    owner = await broker.ownership.prepare([LOWER, UPPER], NO_OPTIONS)
    with pytest.raises(MetadataError):
        owner(*LOWER)
    assert owner(*UPPER).broker_id == "me:8080"


async def test_prepare_when_the_flag_says_so_then_all_free_bundles_are_taken(broker: Broker, other: Broker) -> None:
    await other.brokers.register(nothing)
    owner = await broker.ownership.prepare([LOWER, UPPER], LookupOptions(authoritative=True))
    assert {owner(*each).broker_id for each in (LOWER, UPPER)} == {"me:8080"}
    assert set(broker.owned) == {LOWER, UPPER}


async def test_prepare_when_nobody_is_registered_then_no_broker_can_take_it(broker: Broker) -> None:
    owner = await broker.ownership.prepare([LOWER], NO_OPTIONS)
    with pytest.raises(ServiceNotReady):
        owner(*LOWER)


async def test_known_when_the_lock_changes_then_has_to_be_asked_again(broker: Broker, other: Broker) -> None:
    await other.ownership.take(LOWER)
    await broker.ownership.prepare([LOWER], NO_OPTIONS)
    known = broker.ownership.cached()
    assert known is not None
    assert known(*LOWER).broker_id == "other:8080"
    await other.ownership.release(LOWER)
    with pytest.raises(ServiceNotReady):
        known(*LOWER)


# --- isolation policies


@pytest.mark.parametrize("flag", [False, True])
async def test_prepare_when_a_policy_names_another_then_the_bundle_is_not_taken(
    broker: Broker, other: Broker, flag: bool
) -> None:
    await broker.brokers.register(nothing)
    broker.policies = NOT_MINE
    owner = await broker.ownership.prepare([LOWER], LookupOptions(authoritative=flag))
    with pytest.raises(ServiceNotReady, match="isolation policy p"):
        owner(*LOWER)
    await other.brokers.register(nothing)
    owner = await broker.ownership.prepare([LOWER], NO_OPTIONS)
    assert owner(*LOWER).broker_id == "other:8080"
    assert broker.owned == []


async def test_take_when_a_policy_names_another_then_its_lock_is_the_answer(broker: Broker, other: Broker) -> None:
    broker.policies = NOT_MINE
    with pytest.raises(
        ServiceNotReady,
        match=r"^Namespace bundle t/ns/0x00000000_0x80000000 is not taken: Namespace t/ns is for brokers of isolation "
        r"policy p \(primary other\), and me:8080 is none$",
    ):
        await broker.ownership.take(LOWER)
    lock = await other.ownership.take(LOWER)
    assert await broker.ownership.take(LOWER) == lock


async def test_take_when_the_own_earlier_life_had_it_then_a_policy_counts_all_the_same(
    broker: Broker, tree: MemoryTree
) -> None:
    await Broker(tree, "me").ownership.take(LOWER)
    broker.policies = NOT_MINE
    with pytest.raises(ServiceNotReady, match="isolation policy p"):
        await broker.ownership.take(LOWER)


async def test_take_when_even_excluded_then_is_given_back(broker: Broker) -> None:
    broker.policies = NOT_MINE
    await broker.ownership.take(LOWER, even_excluded=True)
    await broker.ownership.release_excluded(NamespaceName("t", "other"))
    assert broker.owned == [LOWER]
    await broker.ownership.release_excluded(NAMESPACE)
    assert broker.owned == []
    broker.policies = {}
    await broker.ownership.take(LOWER)
    await broker.ownership.release_excluded(NAMESPACE)
    assert broker.owned == [LOWER]


# --- giving away


async def test_release_when_topics_are_open_then_they_close_in_the_order_in_which_they_were_opened(
    broker: Broker,
) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    named = (TopicName.parse(f"persistent://t/ns/{number}") for number in range(40))
    opened = [topic for topic in named if bundle_of(topic, HALVES) == ITS_BUNDLE[1]]
    for topic in opened:
        await broker.ownership.acquire(topic)
    await broker.ownership.release(ITS_BUNDLE)
    assert len(opened) > 10
    assert broker.topics.unloaded == opened


async def test_release_when_in_order_then_nobody_is_sent_here_while_topics_close(broker: Broker, other: Broker) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)
    broker.topics.hang = True
    releasing = asyncio.create_task(broker.ownership.release(ITS_BUNDLE))
    await eventually(lambda: broker.topics.unloaded == [TOPIC])
    lock = lock_in(broker.store.tree, ITS_BUNDLE)
    assert lock is not None
    assert lock.disabled
    for each in (broker, other):
        owner = await each.ownership.prepare([ITS_BUNDLE], NO_OPTIONS)
        with pytest.raises(MetadataError):
            owner(*ITS_BUNDLE)
    assert not broker.ownership.holds(TOPIC)
    releasing.cancel()
    with suppress(asyncio.CancelledError):
        await releasing
    assert lock_in(broker.store.tree, ITS_BUNDLE) is None


class Hasty(Commits):
    """Fails after the next commit that it does."""

    fails = False

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        await super().commit(changes, expect)
        if self.fails:
            self.fails = False
            raise MetadataUnavailable("no answer in time")


async def test_release_when_its_mark_is_not_answered_then_the_lock_goes_all_the_same(
    tree: MemoryTree, other: Broker
) -> None:
    store = Hasty(tree)
    broker = Broker(tree, "me", store)
    await broker.ownership.take(LOWER)
    store.fails = True
    await broker.ownership.release(LOWER)
    assert lock_in(tree, LOWER) is None
    assert (await other.ownership.take(LOWER)).broker.broker_id == "other:8080"


async def test_release_when_the_store_is_silent_past_the_session_then_the_lock_goes_when_it_answers(
    tree: MemoryTree,
) -> None:
    broker = Broker(tree, "me")
    paused = SilentStore(broker.store)
    broker.ownership = SharedOwnership(
        SessionBoundedMetadata(paused), broker.guarded, broker.brokers, broker._boundaries, broker._policies
    )
    broker.ownership.start(broker.topics)
    await broker.ownership.take(LOWER)
    paused.silent_next = True
    releasing = asyncio.create_task(broker.ownership.release(LOWER))
    await eventually(lambda: not paused.answers.is_set())
    broker.store.session.lose()
    for _ in range(20):
        await asyncio.sleep(0)
    broker.store.session.resume(broker.store.session.id)
    paused.answers.set()
    await releasing
    assert lock_in(tree, LOWER) is None


async def test_release_when_the_session_is_replaced_meanwhile_then_the_topics_end_before_others_are_served(
    broker: Broker,
) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)
    broker.topics.hang = True
    releasing = asyncio.create_task(broker.ownership.release(ITS_BUNDLE))
    await eventually(lambda: broker.topics.unloaded == [TOPIC])
    broker.store.expire_session()
    assert not broker.ownership.serving()
    await eventually(broker.ownership.serving)
    assert broker.topics.forsaken == [TOPIC]
    releasing.cancel()


async def test_release_when_the_lock_is_anothers_already_then_that_one_stays(broker: Broker, other: Broker) -> None:
    await broker.ownership.take(LOWER)
    with broker.store.out_of_sight():
        await other.store.commit([Delete(keys.bundle_lock(*LOWER))])
        await other.ownership.take(LOWER)
        await broker.ownership.release(LOWER)
    assert lock_in(broker.store.tree, LOWER) == BundleLock(addresses("other"))


async def test_leave_when_in_order_then_the_report_goes_first(broker: Broker, tree: MemoryTree) -> None:
    await broker.brokers.register(nothing)
    await broker.ownership.take(LOWER)
    gone: list[str] = []
    Commits(tree).watch("/", gone.append)
    await broker.ownership.leave()
    assert gone[0] == keys.load_report("me:8080")
    assert gone[-1] == keys.bundle_lock(*LOWER)
    with pytest.raises(ServiceNotReady):
        await broker.ownership.take(UPPER)


async def test_split_when_the_commit_fails_then_the_bundle_stays(broker: Broker) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)

    async def fail(changes: Sequence[Change], expect: Mapping[str, int | None]) -> None:
        raise CommitConflict("/admin/policies/t/ns")

    parts = [Bundle(NAMESPACE, "0x0_0x1"), Bundle(NAMESPACE, "0x1_0x2")]
    with pytest.raises(CommitConflict):
        await broker.ownership.split(ITS_BUNDLE, parts, lambda topic: "0x0_0x1", fail)
    assert broker.owned == [ITS_BUNDLE]
    assert broker.ownership.holds(TOPIC)


async def test_split_when_the_lock_is_lost_meanwhile_then_the_new_owner_keeps_it(
    broker: Broker, other: Broker, tree: MemoryTree
) -> None:
    await broker.ownership.take(ITS_BUNDLE)
    await broker.ownership.acquire(TOPIC)

    async def commit(changes: Sequence[Change], expect: Mapping[str, int | None]) -> None:
        await other.store.commit([Delete(keys.bundle_lock(*ITS_BUNDLE))])
        await other.ownership.take(ITS_BUNDLE)
        await broker.store.commit(changes, expect)

    parts = [Bundle(NAMESPACE, "0x0_0x1"), Bundle(NAMESPACE, "0x1_0x2")]
    with pytest.raises(ServiceNotReady, match="lost while it was divided"):
        await broker.ownership.split(ITS_BUNDLE, parts, lambda topic: "0x0_0x1", commit)
    await eventually(lambda: broker.topics.forsaken == [TOPIC])
    assert not broker.ownership.holds(TOPIC)
    assert (broker.owned, other.owned) == ([], [ITS_BUNDLE])
    lock = lock_in(tree, ITS_BUNDLE)
    assert lock is not None
    assert lock.broker.broker_id == "other:8080"


# --- the brokers of the cluster


async def test_register_when_a_report_of_an_earlier_life_is_there_then_is_taken_over(
    broker: Broker, tree: MemoryTree
) -> None:
    earlier = Broker(tree, "me")
    await earlier.brokers.register(nothing)
    await broker.brokers.register(nothing)
    earlier.store.expire_session()
    assert set((await broker.brokers.view()).reports) == {"me:8080"}


async def test_leave_when_the_report_is_just_being_written_then_it_does_not_come_back(
    broker: Broker, tree: MemoryTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.brokers.register(nothing)
    get = broker.store.get

    async def leave_meanwhile(key: str) -> Versioned | None:
        monkeypatch.undo()
        stored = await get(key)
        await broker.brokers.leave()
        return stored

    monkeypatch.setattr(broker.store, "get", leave_meanwhile)
    await broker.brokers.renew()
    assert not tree.values


async def test_check_when_a_broker_has_the_extensible_load_manager_then_is_refused(
    broker: Broker, other: Broker
) -> None:
    await broker.brokers.register(nothing)
    await broker.brokers.check_others()
    real = LoadReport(addresses("real"), "5.0.0-M1", "o.a.p.b.l.extensions.ExtensibleLoadManagerImpl")
    value = real.dump(BrokerLoad(), started_ms=1, now_ms=1)
    await other.store.commit([Put(keys.load_report("real:8080"), value)])
    with pytest.raises(PreconditionFailed, match="real:8080"):
        await broker.brokers.check_others()
    told: list[bool] = []
    broker.brokers.on_extensible = lambda: told.append(True)
    await broker.brokers.refresh()  # one that came later
    assert told == [True]
