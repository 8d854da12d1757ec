"""A broker in memory behind its REST door, for tests of the door."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from interpulse.broker.binary.permits import LookupPermits
from interpulse.broker.clock import SystemClock
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.config.dynamic_config import DynamicConfig
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.live.settings import TopicSettings
from interpulse.broker.rest.http.context import RestRooms, build_rest_rooms
from interpulse.broker.rest.server import RestServer
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.remote_partitions import AdminRemotePartitions
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup import BatchLimits, Lookups, SoleOwner, this_broker
from interpulse.broker.topics.schemas import Schemas, SchemaSettings
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.broker.topics.topic_reading import LifecycleSettings
from interpulse.broker.topics.topic_settings import topic_settings
from interpulse.model.clusters import ClusterData
from interpulse.model.names import TopicName
from interpulse.model.topics import Requester
from interpulse.storage.memory import MemoryMetadataStore, memory_log_store

__all__ = ["RestBroker", "rest_broker"]


@dataclass
class RestBroker:
    """What a test may want to reach behind the door."""

    web_url: str
    rooms: RestRooms
    store: MemoryMetadataStore
    ready: bool = True


@asynccontextmanager
async def rest_broker(config: BrokerConfig | None = None, *, provisioning: bool = False) -> AsyncIterator[RestBroker]:
    """A broker of cluster ``standalone`` (unless the settings say otherwise) that answers REST calls.

    With ``provisioning`` it sees to it that replicated topics exist on other clusters.
    """
    config = config or BrokerConfig()
    store = MemoryMetadataStore()
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    web_url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    await bootstrap(store, local_cluster=config.cluster_name, cluster=ClusterData(service_url=web_url))
    rooms = _rooms(store, config, web_url, lambda: broker.ready)
    broker = RestBroker(web_url, rooms, store)
    server = RestServer(rooms, bound)
    await rooms.registry.start()
    await server.start()
    if provisioning:
        await rooms.remote_topics.start()
    try:
        yield broker
    finally:
        await rooms.remote_topics.stop()
        await server.stop()
        await rooms.links.close()
        await rooms.registry.close()


def _rooms(store: MemoryMetadataStore, config: BrokerConfig, web_url: str, ready: Callable[[], bool]) -> RestRooms:
    this = this_broker("pulsar://127.0.0.1:1", web_url)
    dynamic = DynamicConfig(store, config)
    namespaces = Namespaces(store, local_cluster=config.cluster_name)

    async def open_rule(name: TopicName, by: Requester, create: bool) -> None:
        await lifecycle.open(name, by=by, create=create)

    async def settings(name: TopicName) -> TopicSettings:
        namespace = await namespaces.find_policies(name.namespace_name)
        return topic_settings(name, await topic_policies.find(name), namespace, dynamic.config)

    registry = TopicRegistry(
        cluster=config.cluster_name,
        metadata=store,
        logs=memory_log_store(store),
        clock=SystemClock(),
        open_rule=open_rule,
        settings=settings,
    )
    lifecycle = TopicLifecycle(
        store,
        namespaces,
        lambda: LifecycleSettings.of(dynamic.config),
        loaded=registry.names,
        remote_partitions=AdminRemotePartitions(Clusters(store), SystemClock(), timeout_ms=5000),
    )
    topic_policies = TopicPolicyRecords(store, lifecycle)
    lookups = Lookups(
        namespaces,
        Clusters(store),
        lifecycle,
        SoleOwner(this),
        permits=LookupPermits(lambda: dynamic.config.max_concurrent_lookup_request),
        limits=lambda: BatchLimits.of(dynamic.config),
        ready=ready,
    )
    schemas = Schemas(store, namespaces, SchemaSettings, SystemClock())
    return build_rest_rooms(
        store,
        namespaces=namespaces,
        lifecycle=lifecycle,
        registry=registry,
        lookups=lookups,
        schemas=schemas,
        dynamic=dynamic,
        this_broker=this,
        ready=ready,
    )
