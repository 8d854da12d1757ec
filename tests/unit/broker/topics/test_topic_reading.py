"""Known answers are the ones that a broker without any memory would give, whatever was changed and by which broker."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpulse.broker import metadata_paths as keys
from interpulse.broker.binary.lookup import on_lookup_run
from interpulse.broker.binary.topics import on_partitions_run
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.ownership import NO_OPTIONS, Bundle, LookupOptions, SoleOwner
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup import lookup as lookups_module
from interpulse.broker.topics.lookup.lookup import Lookups
from interpulse.broker.topics.topic_reading import AnswerBasis, AnswerCache, Reading
from interpulse.model.changes import Decision
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import PulsarError, ServiceNotReady, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import Permissions
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import PARTITIONED, AutoTopicCreation
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.bundles import split_at
from interpulse.rules.lookup import LookupTarget, Owner
from interpulse.rules.topic_view import TopicView
from interpulse.serving.admission import LookupPermits
from interpulse.storage.api import Delete, MetadataStore, Put, Versioned
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import FrameDecoder, LookupRun, PartitionsRun
from tests.support.counting_store import CountingStore
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.soak import soak

TRIAL = NamespaceName("public", "trial")
X, Y = TopicName.parse("persistent://public/trial/x"), TopicName.parse("persistent://public/trial/y")
FLEETING = TopicName.parse("non-persistent://public/trial/z")
LOADED = TopicName.parse("non-persistent://public/trial/loaded")
SYSTEM = TopicName.parse("persistent://public/trial/__change_events")
HEARTBEAT = TopicName.parse("persistent://pulsar/127.0.0.1:8080/healthcheck")
NAMES = (X, X.partition(0), X.partition(5), Y, FLEETING, FLEETING.partition(0), LOADED, SYSTEM, HEARTBEAT)
HERE, OTHER = (
    LookupTarget("pulsar://here:6650", broker_id="here"),
    LookupTarget("pulsar://other:6650", broker_id="other"),
)


class Bundles:
    """Who owns the bundles: this broker, another one, or no one at the moment."""

    def __init__(self, target: LookupTarget | None = HERE) -> None:
        self.target = target

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        return self.cached()

    def check_serving(self) -> None:
        return

    def cached(self) -> Owner:
        def owner(namespace: NamespaceName, bundle: str) -> LookupTarget:
            if self.target is None:
                raise ServiceNotReady(f"{namespace}/{bundle} is being unloaded")
            return replace(self.target, web_url=bundle)  # so that a wrong bundle is seen

        return owner


class Broker:
    """What answers questions, over a store that others write to as well."""

    def __init__(self, store: MetadataStore, like: Broker | None = None) -> None:
        self.store = store
        self.settings: BrokerConfig = like.settings if like else BrokerConfig()
        self.loaded: set[TopicName] = like.loaded if like else set()
        self.bundles: Bundles = like.bundles if like else Bundles()
        self.namespaces: Namespaces = Namespaces(store, local_cluster="east")
        self.lifecycle: TopicLifecycle = TopicLifecycle(
            store, self.namespaces, lambda: self.settings, loaded=self.loaded
        )
        clusters = Clusters(store)
        self.lookups = Lookups(self.namespaces, clusters, self.lifecycle, self.bundles, permits=nullcontext())

    async def ask(self, name: TopicName) -> dict[str, Any]:
        """The answers to all questions that create nothing."""
        lifecycle = self.lifecycle
        return {
            "partitions": await outcome(lifecycle.partitions(name, create=False)),
            "for operator": await outcome(lifecycle.partitions_for_operator(name, create=False)),
            "servable": await outcome(lifecycle.check_servable(name)),
            "lookup": await outcome(self.lookups.find(name, NO_OPTIONS)),
        }

    def tell(self, names: Sequence[TopicName]) -> list[tuple[TopicName, str, Any]]:
        """What runs of questions, two about each name, are told at once: name, question and answer."""
        told: list[tuple[TopicName, str, Any]] = []
        topics = [(str(name), [2 * number, 2 * number + 1]) for number, name in enumerate(names)]
        for question, handle, run in (
            ("partitions", on_partitions_run, PartitionsRun(False, topics)),
            ("with creation", on_partitions_run, PartitionsRun(True, topics)),
            ("lookup", on_lookup_run, LookupRun(False, topics)),
        ):
            connection = AskingConnection(self)
            left = [_request_id(frame.command) for frame in handle(connection, run)]  # type: ignore[arg-type]
            answers = FrameDecoder().feed(b"".join(connection.written))
            assert sorted(left + [_request_id(frame.command) for frame in answers]) == list(range(2 * len(names)))
            told += [(names[_request_id(each.command) // 2], question, _content(each.command)) for each in answers]
        return told

    def know(self, name: TopicName) -> dict[str, Any]:
        """What is told from memory, each with the question."""
        known = {
            "partitions": self.lifecycle.cached_partitions(str(name), create=False),
            "with creation": self.lifecycle.cached_partitions(str(name), create=True),
            "lookup": self.lookups.cached(str(name)),
        }
        return {question: answer for question, answer in known.items() if answer is not None}


class AskingConnection:
    """A client's connection to this broker, as far as handlers of runs look at it."""

    session = None

    def __init__(self, broker: Broker) -> None:
        self.context, self.output = self, self
        self.lifecycle, self.lookups = broker.lifecycle, broker.lookups
        self.permits = LookupPermits(lambda: 1)
        self.written: list[bytes] = []
        self.send = self.written.append


def _content(command: pb.BaseCommand) -> Any:
    """What a question is told."""
    if command.type == pb.BaseCommand.LOOKUP_RESPONSE:
        return command.lookupTopicResponse.brokerServiceUrl
    return command.partitionMetadataResponse.partitions


def _request_id(command: pb.BaseCommand) -> int:
    _, content = command.ListFields()[1]
    found: int = content.request_id
    return found


async def outcome(work: Awaitable[Any]) -> Any:
    """What it gives, or the error in words."""
    try:
        return await work
    except PulsarError as error:
        return type(error), str(error)


async def start(store: MetadataStore) -> Broker:
    peer = ClusterData(service_url="http://west:8080", broker_service_url="pulsar://west:6650")
    await bootstrap(store, local_cluster="east", cluster=ClusterData(peer_cluster_names=("west",)))
    broker = Broker(store)
    await Clusters(store).put("west", peer)
    await broker.namespaces.create(TRIAL, NamespacePolicies())
    return broker


@pytest.fixture
async def broker() -> Broker:
    return await start(MemoryMetadataStore())


# --- what is changed --------------------------------------------------------------------------------------------------

Change = Callable[[Broker], Awaitable[Any]]


def policies(**values: Any) -> Change:
    async def change(broker: Broker) -> None:
        await broker.namespaces.update_policies(TRIAL, lambda old: old.changed(**values))

    return change


def setting(**values: Any) -> Change:
    async def change(broker: Broker) -> None:
        broker.settings = BrokerConfig(**values)

    return change


def written(*changes: Put | Delete) -> Change:
    """By somebody who asks no rule."""

    async def change(broker: Broker) -> None:
        await broker.store.commit(changes)

    return change


def metadata(name: TopicName, partitions: int, *, deleted: bool = False) -> Change:
    record = PartitionedTopicMetadata(partitions, deleted=deleted, properties={"of": str(partitions)})
    return written(Put(keys.partitioned_topic(name), record.dump()))


async def divide(broker: Broker) -> None:
    divided = list(split_at(("0x00000000", "0xffffffff"), [0x40000000, 0x80000000]))
    await broker.namespaces.update_policies(TRIAL, lambda old: old.changed(other={"bundles": {"boundaries": divided}}))


async def move(broker: Broker) -> None:
    broker.bundles.target = {HERE: OTHER, OTHER: None, None: HERE}[broker.bundles.target]


async def load(broker: Broker) -> None:
    broker.loaded.symmetric_difference_update({LOADED})


CHANGES: dict[str, Change] = {
    "create partitioned": lambda broker: broker.lifecycle.create_partitioned(X, 3),
    "create plain": lambda broker: broker.lifecycle.create_plain(Y),
    "create non-persistent": lambda broker: broker.lifecycle.create_partitioned(FLEETING, 2),
    "create by asking": lambda broker: broker.lifecycle.partitions(X, create=True),
    "expand": lambda broker: broker.lifecycle.expand(X, 7),
    "delete record": written(Delete(keys.topic_record(X.partition(0))), Delete(keys.topic_record(Y))),
    "delete metadata": written(Delete(keys.partitioned_topic(X)), Delete(keys.partitioned_topic(FLEETING))),
    "mark as deleted": metadata(X, 3, deleted=True),
    "metadata of Y": metadata(Y, 4),
    "metadata of X": metadata(X, 9),
    "damage": written(Put(keys.partitioned_topic(X), b'{"partitions": true')),
    "creation off": policies(auto_topic_creation=AutoTopicCreation(False)),
    "creation partitioned": policies(auto_topic_creation=AutoTopicCreation(True, PARTITIONED, 2)),
    "creation inherited": policies(auto_topic_creation=None),
    "limit": policies(max_topics_per_namespace=4),
    "no limit": policies(max_topics_per_namespace=None),
    "elsewhere": policies(replication_clusters=("west",)),
    "nowhere": policies(replication_clusters=("north",)),
    "here": policies(replication_clusters=("east",)),
    "deletion": policies(deleted=True),
    "no deletion": policies(deleted=False),
    "permission": policies(granted=Permissions(namespace={"someone": frozenset()})),
    "namespace gone": written(Delete(keys.namespace_policies(TRIAL))),
    "namespace back": lambda broker: broker.namespaces.create(TRIAL, NamespacePolicies()),
    "divide": divide,
    "move": move,
    "load or unload": load,
    "settings off": setting(allow_auto_topic_creation=False),
    "settings partitioned": setting(allow_auto_topic_creation_type=PARTITIONED, default_num_partitions=5),
    "settings default": setting(),
    "settings limit": setting(max_topics_per_namespace=3),
    "settings without system topics": setting(system_topic_enabled=False),
}
STEPS = st.tuples(
    st.sampled_from(sorted(CHANGES)), st.booleans(), st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
)


async def snapshot(path: Path | None, store: MetadataStore) -> MemoryMetadataStore:
    """What is stored, read past all memory; nobody has asked this copy anything yet."""
    copy = MemoryMetadataStore()
    if path is None:
        rows = [(key, *value) for key, value in await store.scan("", limit=100_000)]
    else:
        with sqlite3.connect(path) as connection:
            rows = connection.execute("SELECT key, value, version FROM entries ORDER BY key").fetchall()
        connection.close()
    copy.tree.load({key: Versioned(value, version) for key, value, version in rows})
    return copy


async def check_run(broker: Broker, path: Path | None, names: Sequence[TopicName]) -> None:
    """Compare all that runs of questions are told at once with what rests on no memory."""
    told = broker.tell(names)
    for name in set(names):
        fresh = Broker(await snapshot(path, broker.store), like=broker)
        expected = await fresh.ask(name)
        if isinstance(expected["lookup"], LookupTarget):
            expected["lookup"] = expected["lookup"].service_url
        if any(each[:2] == (name, "with creation") for each in told):
            expected["with creation"] = await outcome(fresh.lifecycle.partitions(name, create=True))
        for _, question, answer in (each for each in told if each[0] == name):
            assert answer == expected[question], f"from memory, {question} of {name}"


async def check(broker: Broker, path: Path | None, name: TopicName) -> int:
    """Compare every answer with one that rests on no memory; how many were told from memory at once."""
    fresh = Broker(await snapshot(path, broker.store), like=broker)
    known = broker.know(name)
    expected = await fresh.ask(name)
    if "with creation" in known:
        expected["with creation"] = await outcome(fresh.lifecycle.partitions(name, create=True))
    assert known.items() <= expected.items(), f"from memory, {name}"
    asked = await broker.ask(name)
    assert asked == {question: expected[question] for question in asked}, name
    return len(known)


async def play(broker: Broker, path: Path | None, steps: list[Any]) -> None:
    second = Broker(broker.store)  # another broker, which shares nothing but the store
    for change, by_another, names in steps:
        await outcome(CHANGES[change](second if by_another else broker))
        await check_run(broker, path, names)
        for name in names:
            await check(broker, path, name)
            await outcome(broker.lifecycle.partitions(name, create=True))
            await check(broker, path, name)


@given(st.lists(STEPS, max_size=soak(60, otherwise=25)))
@settings(max_examples=soak(2000, otherwise=40), deadline=None)
def test_answers_when_anything_changes_then_are_those_of_a_fresh_read(steps: list[Any]) -> None:
    async def run() -> None:
        await play(await start(MemoryMetadataStore()), None, steps)

    asyncio.run(run())


@given(st.lists(STEPS, max_size=12))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_answers_over_sqlite_when_anything_changes_then_are_those_of_the_file(steps: list[Any]) -> None:
    async def run(path: Path) -> None:
        store = await SqliteMetadataStore.open(path)
        try:
            await play(await start(store), path, steps)
        finally:
            await store.close()

    with TemporaryDirectory() as directory:
        asyncio.run(run(Path(directory) / "metadata.sqlite"))


@pytest.mark.parametrize("change", sorted(CHANGES))
async def test_answers_when_one_thing_changes_then_are_those_of_a_fresh_read(broker: Broker, change: str) -> None:
    for prepare in ("create partitioned", "create plain", "create non-persistent", "load or unload"):
        await CHANGES[prepare](broker)
    for name in NAMES:
        await check(broker, None, name)
        await outcome(broker.lifecycle.partitions(name, create=True))
    assert sum([await check(broker, None, name) for name in NAMES]) > len(NAMES)
    assert len(broker.tell(NAMES)) > 2 * len(NAMES)
    await outcome(CHANGES[change](broker))
    await check_run(broker, None, NAMES)
    for name in NAMES:
        await check(broker, None, name)


async def test_answer_while_a_commit_is_under_way_then_is_not_known(tmp_path: Path) -> None:
    store = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite")
    broker = await start(store)
    await broker.lifecycle.create_partitioned(X, 3)
    await broker.lifecycle.partitions(X, create=False)
    assert broker.lifecycle.cached_partitions(str(X), create=False) == 3
    grown = Put(keys.partitioned_topic(X), PartitionedTopicMetadata(4).dump())
    growing = asyncio.ensure_future(store.commit([grown]))
    await asyncio.sleep(0)
    assert broker.lifecycle.cached_partitions(str(X), create=False) is None  # it may be stored already
    await growing
    assert await broker.lifecycle.partitions(X, create=False) == 4
    assert broker.lifecycle.cached_partitions(str(X), create=False) == 4
    await store.close()
    assert broker.lifecycle.cached_partitions(str(X), create=False) is None


async def test_questions_when_asked_again_then_read_nothing() -> None:
    store = CountingStore()
    broker = await start(store)
    await broker.lifecycle.create_partitioned(X, 3, properties={"owner": "ops"})
    await broker.namespaces.update_policies(TRIAL, lambda old: old.changed(max_topics_per_namespace=10))
    for name in (X, X.partition(0)):
        first = await broker.ask(name)
        store.forget()
        assert await broker.ask(name) == first
        assert store.reads == 0


async def test_missing_topic_when_asked_for_then_is_not_known(broker: Broker) -> None:
    assert (await outcome(broker.lifecycle.partitions(X, create=False)))[0] is TopicNotFound
    assert broker.know(X) == {}


async def test_served_namespace_when_looked_up_then_known_and_a_missing_one_not(broker: Broker) -> None:
    await broker.lookups.find(X, NO_OPTIONS)
    assert set(broker.know(X)) == {"lookup"}
    elsewhere = TopicName.parse("persistent://public/none/x")
    await outcome(broker.lookups.find(elsewhere, NO_OPTIONS))
    assert broker.know(elsewhere) == {}


def test_names_when_there_are_too_many_then_all_are_forgotten() -> None:
    store = MemoryMetadataStore()
    known_settings = BrokerConfig()
    cache = AnswerCache[int](AnswerBasis(store, lambda: known_settings, ()), names_max=3)

    def add(index: int) -> None:
        cache.add(Reading(TopicView(X.partition(index)), {}, known_settings), Decision(index))

    for index in range(3):
        add(index)
    assert [cache.find(str(X.partition(index))) for index in range(3)] == [Decision(0), Decision(1), Decision(2)]
    add(3)
    assert [cache.find(str(X.partition(index))) for index in range(4)] == [None, None, None, Decision(3)]


async def test_looked_up_names_when_there_are_too_many_then_all_are_forgotten(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups_module, "_NAMES_MAX", 2)
    for index in range(3):
        await broker.lookups.find(X.partition(index), NO_OPTIONS)
    assert [bool(broker.know(X.partition(index))) for index in range(3)] == [False, False, True]


async def test_lookup_when_the_broker_is_not_ready_then_is_not_known() -> None:
    ready = True
    broker = await start(MemoryMetadataStore())
    clusters, owners = Clusters(broker.store), SoleOwner(HERE)
    lookups = Lookups(broker.namespaces, clusters, broker.lifecycle, owners, permits=nullcontext(), ready=lambda: ready)
    assert await lookups.find(X, NO_OPTIONS) is HERE
    assert lookups.cached(str(X)) is HERE
    ready = False
    assert lookups.cached(str(X)) is None
    assert lookups.meter.ended == 1
