"""The parts of a broker that create and delete topics, over metadata that dies, fails or is slow on demand."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.registry.topic_registry import TopicRegistry, TopicStores
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.deletion import Deletion
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.schemas import Schemas
from interpulse.model.clusters import ClusterData
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.topics import PartitionedTopicMetadata, Requester
from interpulse.storage.api import Change, MetadataStore, MetadataUnavailable, Versioned
from interpulse.storage.sessions import Session
from tests.support.fake_clock import FakeClock
from tests.support.memory_storage import MemoryJournal, MemoryMetadataStore, memory_log_store

CONFIG = replace(BrokerConfig(), force_delete_namespace_allowed=True, force_delete_tenant_allowed=True)


class _Around:
    """Passes everything on to another store."""

    def __init__(self, inner: MetadataStore) -> None:
        self.inner = inner

    @property
    def session(self) -> Session:
        return self.inner.session

    async def get(self, key: str) -> Versioned | None:
        return await self.inner.get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        return await self.inner.get_many(keys)

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        return self.inner.unchanged(versions)

    async def children(self, key: str) -> list[str]:
        return await self.inner.children(key)

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        return await self.inner.scan(prefix, after=after, limit=limit)

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        await self.inner.commit(changes, expect)

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        return await self.inner.create_sequential(prefix, value)

    async def sync(self, key: str) -> None:
        await self.inner.sync(key)

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        return self.inner.watch(prefix, callback)

    async def close(self) -> None:
        await self.inner.close()


class MortalStore(_Around):
    """Its ``fatal``-th commit fails, before or after it was applied; with ``dies`` nothing is stored from then on."""

    def __init__(self, inner: MetadataStore, *, fatal: int, applied: bool, dies: bool) -> None:
        super().__init__(inner)
        self.commits = 0
        self.hit = False
        self._fatal = fatal
        self._applied = applied
        self._dies = dies

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        self.commits += 1
        if self.hit and self._dies:
            raise MetadataUnavailable("the process is gone")
        if self.commits != self._fatal:
            await self.inner.commit(changes, expect)
            return
        self.hit = True
        if self._applied:
            await self.inner.commit(changes, expect)
        raise MetadataUnavailable("the disk is gone")


class SilentStore(_Around):
    """As ZooKeeper that is paused: what is asked while `answers` is not set waits for it.

    With `silent_next` the next commit is answered, and nothing after it.
    """

    def __init__(self, inner: MetadataStore) -> None:
        super().__init__(inner)
        self.answers = asyncio.Event()
        self.answers.set()
        self.silent_next = False

    async def get(self, key: str) -> Versioned | None:
        await self.answers.wait()
        return await self.inner.get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        await self.answers.wait()
        return await self.inner.get_many(keys)

    async def children(self, key: str) -> list[str]:
        await self.answers.wait()
        return await self.inner.children(key)

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        await self.answers.wait()
        return await self.inner.scan(prefix, after=after, limit=limit)

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        await self.answers.wait()
        await self.inner.commit(changes, expect)
        if self.silent_next:
            self.silent_next = False
            self.answers.clear()


class SlowStore(_Around):
    """Takes some turns of the event loop for whatever it does, as the dice fall."""

    def __init__(self, inner: MetadataStore, dice: random.Random) -> None:
        super().__init__(inner)
        self._dice = dice

    async def _take_turns(self) -> None:
        for _ in range(self._dice.choice((0, 0, 1, 1, 2, 5))):
            await asyncio.sleep(0)

    async def get(self, key: str) -> Versioned | None:
        await self._take_turns()
        return await self.inner.get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        await self._take_turns()
        return await self.inner.get_many(keys)

    async def children(self, key: str) -> list[str]:
        await self._take_turns()
        return await self.inner.children(key)

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        await self._take_turns()
        return await self.inner.scan(prefix, after=after, limit=limit)

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        await self._take_turns()
        await self.inner.commit(changes, expect)
        await self._take_turns()


class LifecycleBench:
    """One life of a broker on some metadata."""

    def __init__(self, store: MetadataStore, journal: MemoryJournal | None = None) -> None:
        self.store = store
        self.settings = BrokerConfig()
        self.namespaces = Namespaces(store, local_cluster="east")
        self.registry = TopicRegistry(
            TopicStores(store, memory_log_store(store, journal=journal)),
            cluster="east",
            clock=FakeClock(),
            open_rule=self._open_rule,
            settings_of=self._topic_settings,
        )
        self.lifecycle = TopicLifecycle(store, self.namespaces, lambda: self.settings, loaded=self.registry.names)
        self.schemas = Schemas(store, self.namespaces, BrokerConfig, FakeClock())
        self.deletion = Deletion(store, self.lifecycle, self.registry, self.namespaces, Tenants(store), lambda: CONFIG)

    async def _open_rule(self, name: TopicName, by: Requester, create: bool) -> None:
        await self.lifecycle.open(name, by=by, create=create)

    async def _topic_settings(self, name: TopicName) -> TopicSettings:
        return TopicSettings(deduplication_enabled=True)

    async def topic(self, name: TopicName) -> Topic:
        """The loaded topic, created if it has to be."""
        topic = await self.registry.open(name)
        assert isinstance(topic, Topic)
        return topic

    @classmethod
    async def first(cls) -> LifecycleBench:
        """On fresh metadata."""
        store = MemoryMetadataStore()
        await bootstrap(store, local_cluster="east", cluster=ClusterData())
        return cls(store)


def copy_of(store: MetadataStore) -> MemoryMetadataStore:
    """The same metadata once more, without its watches."""
    assert isinstance(store, MemoryMetadataStore)
    copy = MemoryMetadataStore()
    copy.tree.load(store.tree.values)
    return copy


async def picture(store: MetadataStore) -> dict[str, Any]:
    """Everything that is stored, but for numbers that only ever grow and what loading a topic leaves behind."""
    found: dict[str, Any] = {}
    for key, stored in await store.scan("", limit=100_000):
        if key.startswith(("/ledgers/", "/counters/")) or key.endswith("/pulsar.dedup"):
            continue
        found[key] = stored.value
        if key.startswith(f"{keys.TOPIC_RECORDS}/") and key.count("/") == 5:
            found[key] = json.loads(stored.value).get("properties")
    return found


async def disorder(store: MetadataStore) -> list[str]:
    """What is stored against the rules of the lifecycle, in words."""
    everything = dict(await store.scan("", limit=100_000))
    named = (keys.topic_of_record(key) for key in _below(everything, keys.TOPIC_RECORDS) if key.count("/") == 5)
    records = {name for name in named if name is not None}
    partitioned = {
        keys.topic_of_partitioned_topic(key): PartitionedTopicMetadata.load(everything[key].value)
        for key in _below(everything, keys.PARTITIONED_TOPICS)
    }
    wrong = [f"metadata of {name} is marked" for name, metadata in partitioned.items() if metadata.deleted]
    wrong += [f"{name} is of both kinds" for name in partitioned if name in records]
    for name in records:
        metadata = partitioned.get(name.base)
        if name.is_partition and (metadata is None or name.partition_index >= metadata.partitions):
            wrong.append(f"{name} is an orphan")
    for key in _below(everything, keys.TOPIC_RECORDS):
        if keys.topic_of_record(key) not in records:
            wrong.append(f"{key} has no topic")
    wrong += _stray_ledgers(everything)
    return wrong + _strays_of_namespaces(everything)


def _below(everything: Mapping[str, Versioned], root: str) -> list[str]:
    return [key for key in everything if key.startswith(f"{root}/")]


def _stray_ledgers(everything: Mapping[str, Versioned]) -> list[str]:
    wrong = []
    for key in _below(everything, "/ledgers"):
        if key != "/ledgers/id-counter":
            record = everything.get(f"{keys.TOPIC_RECORDS}/{everything[key].value.decode()}")
            listed = {row["ledgerId"] for row in json.loads(record.value)["ledgers"]} if record else set()
            if int(key.rpartition("L")[2]) not in listed:
                wrong.append(f"{key} belongs to no topic")
    return wrong


def _strays_of_namespaces(everything: Mapping[str, Versioned]) -> list[str]:
    known = {NamespaceName(*key.split("/")[3:5]) for key in _below(everything, keys.POLICIES) if key.count("/") == 4}
    policies = {each: json.loads(everything[keys.namespace_policies(each)].value) for each in known}
    wrong = [f"{namespace} is marked" for namespace, stored in policies.items() if stored["deleted"]]
    roots = [keys.namespace_contents(NamespaceName("t", "n"))[index].split("/t/n")[0] for index in range(4)]
    for key in [each for root in roots for each in _below(everything, root)]:
        tenant, local = next(key.removeprefix(f"{root}/") for root in roots if key.startswith(f"{root}/")).split("/")[
            :2
        ]
        if NamespaceName(tenant, local) not in known:
            wrong.append(f"{key} outlived its namespace")
    wrong += [f"{key} outlived its deletion" for key in _below(everything, "/admin/forced-deletions")]
    return wrong


def named(text: str) -> TopicName:
    """A persistent topic of the namespace that tests delete."""
    return TopicName.of(PERSISTENT, "public", "trial", text)
