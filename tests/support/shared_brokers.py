"""Several brokers in this process over one metadata store and one set of ledgers in memory, each with its session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from interpulse.broker.app import BrokerApp
from interpulse.broker.committer import ALONE
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.broker.stores import Stores
from interpulse.broker.tenancy.namespaces import bootstrap
from interpulse.client import AdminClient, Client, Credentials, TlsOptions
from interpulse.clock import Clock
from interpulse.model.clusters import ClusterData
from interpulse.model.names import TopicName
from interpulse.storage.api import MetadataStore
from interpulse.storage.metadata.guarded import GuardedMetadata
from tests.support.memory_storage import MemoryJournal, MemoryLedgers, MemoryMetadataStore, MemoryTree, memory_log_store

_LAYOUT = replace(ALONE, shared=True)


class SharedBroker:
    """One of several brokers, and the store that only it uses."""

    def __init__(
        self,
        tree: MemoryTree,
        ledgers: MemoryLedgers,
        config: BrokerConfig,
        metadata: MetadataStore | None = None,
        clock: Clock | None = None,
    ) -> None:
        """``metadata`` None: a store with the tree."""
        self.store = MemoryMetadataStore(tree)
        store = self.store if metadata is None else metadata
        guarded = GuardedMetadata(store)

        async def open_stores(config: BrokerConfig, opened: AsyncExitStack) -> Stores:
            opened.push_async_callback(store.close)
            logs = memory_log_store(guarded, journal=MemoryJournal(ledgers=ledgers))
            opened.push_async_callback(logs.close)
            return Stores(store, logs, guarded=guarded, layout=_LAYOUT)

        self.app = BrokerApp(config, open_stores=open_stores, clock=clock)

    @property
    def id(self) -> str:
        return self.app.context.this_broker.broker_id

    @property
    def service_url(self) -> str:
        return self.app.service_url

    @property
    def web_url(self) -> str:
        return self.app.web_url

    @property
    def ownership(self) -> SharedOwnership:
        assert self.app.parts.member.shared is not None
        return self.app.parts.member.shared

    @property
    def bundles(self) -> set[str]:
        """The bundles that it owns."""
        return set(map(str, self.ownership.owned))


@dataclass
class SharedBrokers:
    """All of them; a test may start others."""

    config: BrokerConfig
    tree: MemoryTree = field(default_factory=MemoryTree)
    ledgers: MemoryLedgers = field(default_factory=MemoryLedgers)
    brokers: list[SharedBroker] = field(default_factory=list)
    tls: TlsOptions | None = None
    """What clients of theirs need."""
    credentials: Credentials | None = None
    """Those of a client that may do everything."""

    async def start(self, metadata: MetadataStore | None = None, clock: Clock | None = None) -> SharedBroker:
        """Start one more, with a store of its own."""
        broker = SharedBroker(self.tree, self.ledgers, self.config, metadata, clock)
        if not self.brokers:
            store = broker.store if metadata is None else metadata
            await bootstrap(store, local_cluster=self.config.cluster_name, cluster=ClusterData())
        await broker.app.start()
        await broker.app.parts.replication.remote_topics.stop()
        self.brokers.append(broker)
        return broker

    def __getitem__(self, index: int) -> SharedBroker:
        return self.brokers[index]

    def of_id(self, broker_id: str) -> SharedBroker:
        return next(each for each in self.brokers if each.id == broker_id)

    async def owner(self, topic: str) -> SharedBroker:
        """Who has the bundle of a topic; raises StopIteration if nobody has."""
        name = TopicName.parse(topic)
        bundle = await self.brokers[0].app.lookups.bundle(name)
        return next(each for each in self.brokers if f"{name.namespace_name}/{bundle}" in each.bundles)

    async def take(self, topic: str) -> tuple[SharedBroker, SharedBroker]:
        """Look a topic up, so that a broker owns its bundle. Return the owner and another broker."""
        async with Client(self.brokers[0].service_url, tls=self.tls, credentials=self.credentials) as client:
            await client.lookup_batch([topic])
        owner = await self.owner(topic)
        return owner, self.other(owner)

    async def move(self, topic: str, to: SharedBroker) -> None:
        """Have the bundle of a topic unloaded, asked of any broker, and taken by this one."""
        name = TopicName.parse(topic)
        bundle = await self.brokers[0].app.lookups.bundle(name)
        async with AdminClient(self.brokers[0].web_url, tls=self.tls, credentials=self.credentials) as admin:
            await admin.namespaces.unload(name.namespace_name, bundle=str(bundle), destination_broker=to.id)

    async def spread(self, topics: Sequence[str]) -> None:
        """Have the bundles of these topics taken, each by the next broker."""
        async with Client(self.brokers[0].service_url, tls=self.tls, credentials=self.credentials) as client:
            await client.lookup_batch(topics)
        firsts = {await self.brokers[0].app.lookups.bundle(TopicName.parse(topic)): topic for topic in topics}
        for number, bundle in enumerate(sorted(firsts)):
            target = self.brokers[number % len(self.brokers)]
            if await self.owner(firsts[bundle]) is not target:
                await self.move(firsts[bundle], target)

    def other(self, than: SharedBroker) -> SharedBroker:
        """One that is not this."""
        return next(each for each in self.brokers if each is not than)


@asynccontextmanager
async def shared_brokers(number: int, config: BrokerConfig | None = None) -> AsyncIterator[SharedBrokers]:
    """So many brokers of cluster ``standalone``, without a replication job; stopped at the end in order."""
    given = config or BrokerConfig()
    settings = replace(
        given,
        broker_service_port=None if given.broker_service_port is None else 0,
        web_service_port=None if given.web_service_port is None else 0,
        replication_job="external",
    )
    all_of_them = SharedBrokers(settings)
    try:
        for _ in range(number):
            await all_of_them.start()
        yield all_of_them
    finally:
        for broker in reversed(all_of_them.brokers):
            await broker.app.stop()
