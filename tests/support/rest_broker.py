"""A broker over stores in memory, for tests of the admin API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.stores import Stores
from interpulse.storage.api import MetadataStore
from tests.support.memory_storage import MemoryMetadataStore, memory_log_store


@dataclass
class RestBroker:
    """What a test may want to reach besides the admin API."""

    app: BrokerApp
    store: MemoryMetadataStore

    @property
    def web_url(self) -> str:
        return self.app.web_url

    @property
    def context(self) -> RestContext:
        return self.app.context


@asynccontextmanager
async def rest_broker(
    config: BrokerConfig | None = None, *, provisioning: bool = False, metadata: MetadataStore | None = None
) -> AsyncIterator[RestBroker]:
    """A broker of cluster ``standalone`` (unless the settings say otherwise) without a replication job.

    With ``provisioning`` it sees to it that replicated topics exist on other clusters. ``metadata`` lies in memory
    unless it is given.
    """
    store = MemoryMetadataStore()

    async def open_stores(config: BrokerConfig, opened: AsyncExitStack) -> Stores:
        return Stores(metadata or store, memory_log_store(metadata or store))

    settings = replace(config or BrokerConfig(), broker_service_port=0, web_service_port=0, replication_job="external")
    app = BrokerApp(settings, open_stores=open_stores)
    await app.start()
    try:
        if not provisioning:
            await app.parts.replication.remote_topics.stop()
        yield RestBroker(app, store)
    finally:
        await app.stop()
